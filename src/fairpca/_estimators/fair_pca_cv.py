"""FairPCACV: FairPCA whose stop is chosen by the errors of held-out rows."""

from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Integral
from typing import Any, ClassVar, Literal, NoReturn

import numpy as np

from fairpca._cv.cross_fit import disparity_interval
from fairpca._cv.held_out import BASELINE
from fairpca._cv.leave_out import LeaveOut
from fairpca._cv.split import learn_repeats
from fairpca._cv.stopping import Stop, solve_by_folds
from fairpca._estimators.advice import warn_of_held_out
from fairpca._estimators.fair_pca import FairPCA
from fairpca._estimators.fitted import FairPCACVRecord
from fairpca._input.stream import Input
from fairpca._moments.implicit import Moments
from fairpca._moments.operand import Operand
from fairpca._moments.small_groups import SettledGroups
from fairpca._problems.solution import Solution

_ONE_SIDED = 0.9  # The upper end of such an interval is exceeded in 5 % of cases.


@dataclass(eq=False, repr=False)
class FairPCACV(FairPCA, FairPCACVRecord):
    """:class:`FairPCA` with its stop chosen by cross-validation, by the errors of held-out rows.

    What a group gains on the training rows, it need not gain on new rows, which are what counts.
    Each fold of the rows is judged under projections fitted to the other folds. Limits and budgets
    apply to these held-out errors. Without a budget, ``constraint="efficient"`` ends where the
    worst-off group is best off, at most as far from PCA as :class:`FairPCA` ends, and stays at PCA
    unless that group gains reliably. In the end the projection is fitted to all rows. Parameters
    and attributes not listed below are those of :class:`FairPCA`.

    With ``order="fair"`` prefixes are those of :class:`FairPCA` inside the span that was chosen.
    Where PCA is kept, the order is by variance.

    Parameters
    ----------
    cv : int, splitter or iterable of splits, default=10
        The number of folds; or a splitter such as ``RepeatedStratifiedKFold(n_splits=5,
        n_repeats=4)``, which gets the number of each row's group as y; or its splits. Splitters
        need all rows in memory, and folds that do not overlap. With a number, the rows of each
        group go to the folds in turn: folds differ by at most one row of a group, and the same rows
        get the same folds in every run, in memory and in streams. On clusters, rows are counted
        within each partition. With ``units``, the fold of a unit is a hash of its label, the same
        wherever the rows are, and a splitter gets them as its groups, as ``GroupKFold`` needs.
    random_state : int, RandomState or None, default=None
        A nonzero int gives other folds than None does. Splitters have their own ``random_state``.
    n_components, constraint, max_disparity, max_error_increase, max_group_increase
    standardize, relative_errors, whiten, min_group_size, small_groups, crossing, missing, tol
        As in :class:`FairPCA`. With ``standardize`` each fold is judged in units of the standard
        deviations of the other folds.

    Attributes
    ----------
    stop_ : float
        How far the projection is from PCA, from 0 (PCA) to 1 (where :class:`FairPCA` could end).
    held_out_group_errors_, held_out_pca_group_errors_ : ndarray of shape (k,)
        Errors of held-out rows, and the same for PCA. Each fold is judged at the
        stop that the other folds choose, so that the choice does not flatter the figures.
    held_out_reconstruction_error_, held_out_disparity_ : float
        The same for all rows together, and for the disparity.
    held_out_changes_ : ndarray of shape (k,)
        How much larger each group's held-out error is than under PCA; negative for a gain.
    held_out_disparity_interval_, held_out_changes_interval_ : ndarray of shape (2,), (k, 2)
        95 % intervals, by the corrected t-test of Nadeau and Bengio (2003). They cover two
        intervals: at the stop that all folds choose, and at the stops that the other folds choose.
    held_out_t_ : float
        What the group with the largest held-out error under PCA gains, in corrected standard errors
        of this gain. Above 1.2 it is reliable.
    held_out_largest_change_ : float
        The share by which the largest held-out group error differs from PCA's. It can rise although
        that group gains: another group may become the worst-off one.
    held_out_largest_change_interval_ : ndarray of shape (2,)
        Its 95 % interval.
    worst_case_error_upper_ : float
        The largest of the compared groups' one-sided 95 % upper ends of held-out errors. With this
        confidence it bounds the overall error of new rows from every population that is a mixture
        of the groups, in whatever proportions.
    status_ : str
        "strength chosen by testing on left-out people" or "no gain on held-out rows: PCA".
    moments_ : GroupMoments
        What was learnt from the data, by fold.

    Examples
    --------
    >>> from fairpca import FairPCACV
    >>> from fairpca.datasets import load_checkup
    >>> people = load_checkup()
    >>> fair = FairPCACV(5, standardize=True)
    >>> fair = fair.fit(people.data, sensitive_features=people.sensitive_features)
    >>> fair.status_, fair.harmed_group_, fair.held_out_changes_.round(2)
    ('strength chosen by testing on left-out people', '75 and older', array([-0.46,  0.15]))
    """

    _: KW_ONLY
    cv: Any = 10
    random_state: int | np.random.RandomState | None = None
    # Not parameters here.
    alpha: None = field(default=None, init=False)
    solver: Literal["exact"] = field(default="exact", init=False)
    _stop: Stop = field(init=False)

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        name: allowed
        for name, allowed in FairPCA._parameter_constraints.items()
        if name not in ("alpha", "solver")
    } | {"cv": ["cv_object"]}

    def _learn(self, given: Input) -> tuple[Moments, SettledGroups]:
        if self.cv is None:
            use = f"FairPCA({self.n_components})"
            raise ValueError(f"cv=None has no folds to choose by; pass cv=10, or use {use}.")
        given = given._replace(y=self._target_of(given, "fit"))
        moments, *others = learn_repeats(given, self.cv, self.random_state)
        return moments, self._settle(moments).with_repeats(others)

    @property
    def partial_fit(self) -> NoReturn:
        """Not offered: the stop is chosen when all rows are known."""
        raise AttributeError(
            "FairPCACV has no partial_fit, because the stop is chosen when all rows are known; add "
            "blocks to moments, moments.update(X, groups, folds=10), and call fit(moments)."
        )

    def _check_groups(self, settled: SettledGroups) -> None:
        """Refuse moments without folds or with other folds, and groups too small for them."""
        cv = self.cv
        n_folds = 0
        if settled.cells is not None:
            n_folds = settled.cells.n_folds
        if not n_folds:
            raise ValueError(
                f"cv={cv} needs the moments of folds, and these have none; make them with folds, "
                "for example GroupMoments.from_data(X, groups, folds=10)."
            )
        if not isinstance(cv, Integral):
            return
        self._refuse_more_folds_than_units(settled)
        if n_folds != int(cv):
            raise ValueError(f"cv={cv}, but these moments have {n_folds} folds; pass cv={n_folds}.")

    def _prefix_estimator(self, rank: int) -> FairPCA:
        own = self.get_params(deep=False)
        shared = {name: own[name] for name in FairPCA().get_params() if name in own}
        return FairPCA(**(shared | {"n_components": rank}))

    def _refuse_more_folds_than_units(self, settled: SettledGroups) -> None:
        moments = settled.moments
        sizes = moments.n_units
        few = settled.compared & (sizes < int(self.cv))
        if not few.any():
            return
        g = int(few.argmax())
        label = moments.groups.tolist()[g]
        if moments.has_units:
            raise ValueError(
                f"cv={self.cv} is more than the units of group {label!r} ({sizes[g]}, with "
                f"{moments.counts[g]} rows); pass fewer folds, or merge the group with "
                "others by min_group_size and small_groups='merge'."
            )
        raise ValueError(
            f"cv={self.cv} is more than the rows of group {label!r} (n_samples = {sizes[g]}); pass "
            f"fewer folds, or min_group_size={self.cv} with small_groups='merge' or 'ignore'."
        )

    def _solve_rank(self, settled: SettledGroups, operand: Operand, rank: int) -> Solution:
        solution, stop = solve_by_folds(
            self._problem(), LeaveOut(settled), operand, rank, self.relative_errors, self.tol
        )
        held_out = stop.honest
        totals = held_out.totals
        disparity = disparity_interval(held_out, 1, stop.curve.sides)
        changes = held_out.interval(lambda totals: totals.changes[1])
        largest = held_out.largest_change(settled.compared)
        upper = held_out.interval(lambda totals: totals.group_errors[1], level=_ONE_SIDED).high
        extras = {
            **solution.extras,
            "_stop": stop,
            "stop_": stop.stop,
            "held_out_group_errors_": totals.group_errors[1],
            "held_out_pca_group_errors_": totals.group_errors[BASELINE],
            "held_out_reconstruction_error_": float(totals.overall[1]),
            "held_out_disparity_": float(disparity.estimate),
            "held_out_disparity_interval_": disparity.ends,
            "held_out_changes_": changes.estimate,
            # No error falls below zero.
            "held_out_changes_interval_": changes.clipped(-totals.group_errors[BASELINE]).ends,
            "held_out_t_": held_out.gain_t(settled.compared),
            "held_out_largest_change_": float(largest.estimate),
            "held_out_largest_change_interval_": largest.ends,
            "worst_case_error_upper_": float(upper[settled.compared].max()),
        }
        return replace(solution, extras=extras)

    def _warn(self, settled: SettledGroups, result: Solution) -> None:
        super()._warn(settled, result)
        curve = self._stop.curve
        chosen = self._stop.chosen
        compared = settled.compared
        totals = curve.held_out.totals
        changes = totals.changes[chosen, compared]
        errors = totals.group_errors[BASELINE, compared]
        labels = self.groups_[compared].tolist()
        D = float(curve.disparity[chosen])
        warn_of_held_out(self._problem(), labels, changes, errors, D)


def stop_of(fair: FairPCACV) -> Stop:
    """How the stop of a fit was chosen."""
    return fair._stop
