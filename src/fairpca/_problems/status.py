"""How a fit ended: the texts of ``status_``, all in one place."""

from enum import StrEnum


class Status(StrEnum):
    """How a fit ended."""

    PARITY = "parity reached"
    INFEASIBLE = "parity infeasible at this rank"
    WORST_OFF_BEST = "worst-off group at its best"
    CAPPED = "capped"
    ALREADY_FAIR = "already fair"
    DISPARITY_BUDGET = "disparity budget met"
    ERROR_BUDGET = "error budget spent"
    GROUP_LIMIT = "group limit reached"
    UNPROVEN = "least disparity found, not proven"
    CROSS_VALIDATED = "strength chosen by testing on left-out people"
    NO_GAIN = "no gain on held-out rows: PCA"
    FIXED = "fixed alpha"
    STOPPED = "stopped on the way"
    SEARCHED = "golden section ended at its tolerance"
    GROUPS_EQUAL = "groups equal"
    WORST_EQUAL = "worst-off groups equal"
    ONE_GROUP_DECIDES = "one group decides"
    ITERATED = "multiplicative weights ended"
    ROBUST = "robust error at its least"
    WELFARE_BEST = "welfare at its best"
    WELFARE_UNPROVEN = "most welfare found, not proven"
    SUPERVISED = "partial least squares"
    MEANS_HIDDEN = "group means hidden"
    MEAN_GAP_BUDGET = "mean gap budget met"
    PREFIX = "prefix of a fair order"
    SELECTED = "selected from the front"
    ALL_TRIED = "all subsets tried"
    BEST_FOUND = "best subset found, not proven"


#: Ends of searches that are run for comparison. They do not claim to be optimal.
APPROXIMATE = frozenset({Status.SEARCHED, Status.ITERATED, Status.SELECTED, Status.PREFIX})
