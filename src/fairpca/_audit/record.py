"""The figures that an audit finds, as frozen records. ``fairpca.report`` puts them into words.

========  ==================================================================
symbol    meaning
========  ==================================================================
R_g       mean squared reconstruction error of the people of group g
R_rest    the same over all people outside group g, those of small groups included
V_g       mean squared distance of group g from the mean: the error of keeping nothing
gap       ``R_g / R_rest - 1``: 0.33 says that g is described 33 % worse than all others
========  ==================================================================

In an :class:`Audit` plain PCA is judged (``baseline``) and the ``alternative`` is the fair version.
In a :class:`ModelAudit` a model is judged and the alternative is plain PCA.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairpca._audit.verdict import Thresholds, Verdict
from fairpca._typing import Array, Codes
from fairpca.metrics import Estimate, Outcomes, Probe, Selection
from fairpca.path import TradeoffPath


class Interval(Estimate):
    """A figure with its confidence interval."""

    @property
    def direction(self) -> int:
        """1 if the figure is reliably above zero, -1 if reliably below, otherwise 0."""
        return int(self.low > 0) - int(self.high < 0)


class Robust(NamedTuple):
    """Figures of a group that a few unusual people cannot move."""

    median: float  # the median squared error of the group
    median_gap: float  # ratio to the median of all others, minus 1
    trimmed_gaps: Mapping[float, float]  # without the largest 1 % and 5 % of errors in EACH group
    pairs: float  # how often a person of the group has a larger error than one of all others


@dataclass(frozen=True)
class GroupFigures:
    """The figures of one group under one projection; intervals of judged groups are joint."""

    error: float  # R_g
    share: float  # R_g / V_g, what the group loses of its own variation
    gap: Interval | None  # None if the group is not judged
    share_gap: Interval | None  # (R_g / V_g) / (R_rest / V_rest) - 1
    gap_estimate: float  # the bare figures, for every group
    share_gap_estimate: float
    robust: Robust | None = None  # of judged groups under what is judged, with rows in memory

    def read(self, by_share: bool) -> tuple[Interval | None, float]:
        """The gap and its bare figure, by one of the readings."""
        if by_share:
            return self.share_gap, self.share_gap_estimate
        return self.gap, self.gap_estimate


@dataclass(frozen=True)
class GroupResult:
    """The figures of one group under what is judged, and what the alternative changes."""

    label: Any
    name: str  # the label, with its column where the label says little: "sex = 1"
    n: int  # rows
    n_units: int  # people, or what else the rows belong to; the rows themselves without units
    judged: bool  # whether the group, and all others together, have enough rows
    compared: bool  # False if ``small_groups`` set the group aside in the fit
    baseline: GroupFigures
    alternative: GroupFigures
    # R_g(alternative) / R_g(baseline) - 1; its ends are NaN unless the group is judged.
    change: Interval
    better_off: float | None = None  # share of people whose error the alternative lowers
    detectable_gap: float | None = None  # the gap that these rows show in 80 % of cases
    # The gap by the reading of the audit; each end is one-sided and holds for this group alone.
    bounds: Interval | None = None
    p_worse: float | None = None  # of a group of ten units or more that is too small to be judged
    share_missing: float = 0.0  # of the group's values


class Overall(NamedTuple):
    """All people together."""

    error: float
    alternative_error: float
    change: Interval  # the price of the alternative


@dataclass(frozen=True)
class DecidingColumn:
    """A column whose scale, or the error of a group, depends on few rows."""

    name: str
    n_rows: int  # how many rows lie far from all others
    value: float | None  # their value; None if they differ, or if it is that of a person
    next_value: float  # the most extreme value of the other rows, on the same side
    share_of_variance: float  # share of the column's variance that these rows make up
    near_constant: bool  # whether all other rows have one and the same value
    decides: bool  # whether its scale and much of the error of a judged group depend on these rows
    group: Any = None  # the group much of whose error they make up, if there is one
    share_of_error: float = 0.0  # share of that group's error


class Gain(NamedTuple):
    """What the alternative does for the group described worst, and to the largest error."""

    group: Any  # the group with the largest held-out error, of those that the fit compares
    t: float  # what it gains, in corrected standard errors; above 1.2 it is reliable
    largest: Interval  # the largest error of a group over that under PCA, minus 1


class GapReading(NamedTuple):
    """The gap of a group, computed again under another reading of the same figures."""

    name: str  # "codes", "restating columns", "medians", "available cases", "other folds"
    group: Any
    gap: Interval | None = None  # None if the reading is not tried
    difference: Interval | None = None  # (1 + gap) over 1 + the shown gap, minus 1; paired
    overturns: bool = False  # less than half of the shown gap, and less beyond chance
    columns: Sequence[str] = ()  # that are read otherwise
    values: Sequence[float] = ()  # that may be codes
    n_rows: int = 0  # with such a value
    not_tried: str = ""  # why


class Scale(NamedTuple):
    """The column of most variance, and whether others are lost beside it."""

    column: str
    share: float  # of the variance of all columns, in the units in which errors are measured
    n_lost: int  # columns that lose more than half of their own variance


class LeftOut(NamedTuple):
    """Something that the audit did not look at."""

    what: str  # "column" or "rows"
    name: str
    n_rows: int
    reason: str  # a short phrase such as "weight zero"


class RankCurve(NamedTuple):
    """Held-out errors of plain PCA by the number of components."""

    n_components: NDArray[np.int64]  # of shape (m,)
    pca: Array  # group errors, of shape (m, k)
    # The judged group with the largest lower end at each rank, as in the verdict, and its gap. None
    # if no group is judged or nothing is lost.
    group: Sequence[Any]
    pca_gap: Sequence[Interval | None]


class Budget(NamedTuple):
    """A budget such as ``max_disparity=0.1``, and what was reached.

    On held-out rows if :class:`FairPCACV` kept to it, otherwise on the rows fitted to.
    """

    name: str
    wanted: float
    reached: float
    met: bool


@dataclass(frozen=True)
class Fit:
    """The projections fitted to all rows. Their errors look too good."""

    status: str  # how the fit of the fair version ended
    alpha: float
    duality_gap: float
    certified: bool  # whether none is better at its weighting by more than the duality gap
    budgets: Sequence[Budget]
    pca_loadings: Array  # of shape (n_components, n_features), with the signs of the fair ones
    fair_loadings: Array
    pca_errors: Array  # of shape (k,)
    fair_errors: Array
    pca_column_errors: Array  # of shape (k, n_features)
    fair_column_errors: Array


class KeptColumns(NamedTuple):
    """The columns that each choice keeps, most helpful first; chosen on all rows."""

    usual: Sequence[str]  # those of least overall error
    fair: Sequence[str]
    lower_bound: float  # no choice brings the worst group below it, on the rows fitted to


class Leakage(NamedTuple):
    """How much the scores tell about the group."""

    baseline: Mapping[str, float]  # group_separation of the worst pair of judged groups
    alternative: Mapping[str, float]
    baseline_probes: Sequence[Probe] = ()  # classifiers that guess the group, on request or with y
    alternative_probes: Sequence[Probe] = ()
    n_rows: int = 0  # rows whose group the probes guessed


class SampledRows(NamedTuple):
    """Single people of judged groups, kept out of ``to_dict`` and of the page unless asked for."""

    rows: Codes  # positions of a random sample, about equally many of each group
    group: Codes  # index into ``Audit.groups``
    pca: Array  # scores on the first two components
    fair: Array


@dataclass(frozen=True)
class Provenance:
    """How the figures came about."""

    judged: str  # what was judged, as code
    fitted_here: bool  # False for audit_model
    alternative: str  # as code
    n_rows: int
    n_components: int
    feature_names: Sequence[str]  # as they enter the projection
    group_columns: Sequence[str]  # empty where groups came without a name
    standardized: bool
    weighted: bool
    n_folds: int  # 0 for a fitted model
    reference: Any  # the group that all others are compared with, if there is one
    thresholds: Thresholds
    random_state: int
    # Parameters that all steps between PCA and the fair version share, unless at their defaults.
    shared: Mapping[str, Any] = field(default_factory=dict)
    n_units: int | None = None  # people, or what else the rows belong to; None: every row is one
    crossing: bool = True  # False: groups of several attributes, which overlap
    not_computed: Sequence[str] = ()  # figures that need rows, where moments were all there is
    n_complete: int | None = None  # rows without missing values; None: all are


@dataclass(frozen=True)
class Subgroup:
    """The subgroup whose error is worst."""

    conditions: tuple[str, ...]  # such as ("sex = f", "age above 46")
    columns: tuple[str, ...]
    n: int  # units with a row inside
    share: float  # their share of all units
    error: float  # mean error of its units
    gap: float  # how much larger that is than the mean error of all others
    p: float  # how often chance alone finds one as bad
    honest_gap: Interval | None  # of what half of the units show, in the other half
    n_searched: int  # how many subgroups were looked at
    by_feature: bool  # whether a feature describes it: extreme values are hard to describe


@dataclass(frozen=True, repr=False)
class _Result:
    """The fields and methods that both kinds of audit have."""

    verdict: Verdict
    groups: Sequence[GroupResult]
    overall: Overall
    readings: Sequence[GapReading]  # of the gaps that are shown
    columns: Sequence[DecidingColumn]
    scale: Scale
    left_out: Sequence[LeftOut]
    provenance: Provenance
    leakage: Leakage | None  # None unless two groups are judged
    selected: Selection | None  # who has the positive outcome in the data; None without y
    outcomes: Sequence[Outcomes] | None  # for the scores, PCA's and all features; None without y
    subgroup: Subgroup | None  # the worst one that ``subgroups`` describe

    @property
    def n_components(self) -> int:
        """Rank of the projections."""
        return self.provenance.n_components

    def group(self, label: Any) -> GroupResult:
        """The figures of one group, by its label."""
        by_label = {row.label: row for row in self.groups}
        if label not in by_label:
            raise KeyError(f"{label!r} is none of the groups; these are {list(by_label)}.")
        return by_label[label]

    def to_dict(self, with_rows: bool = False) -> dict[str, Any]:
        """All figures, ready for ``json.dump``; those of single people only ``with_rows``."""
        figures: dict[str, Any] = plain_json(self)
        if not with_rows:
            figures.pop("rows", None)
            if any(row.n == 1 for row in self.groups):  # by group, these tell about that person
                figures |= dict.fromkeys(figures.keys() & _BY_GROUP)
        return figures

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Write the page of ``fairpca report``, or return it; needs jinja2, vl-convert-python."""
        from fairpca._atomic import replacing
        from fairpca.report import render

        page: str = render(self)  # type: ignore[arg-type]  # either of the two kinds below
        if path is None:
            return page
        with replacing(path) as temporary:
            temporary.write_text(page, encoding="utf-8")
        return None

    def __repr__(self) -> str:
        from fairpca.report import as_text

        return as_text(self)  # type: ignore[arg-type]

    def _repr_html_(self) -> str:
        from fairpca.report import as_html

        return as_html(self)  # type: ignore[arg-type]


@dataclass(frozen=True, repr=False)
class Audit(_Result):
    """How plain PCA treats the groups, and what a fair version changes, on held-out rows.

    Errors and gaps are those of held-out rows, except in ``fit``, ``kept`` and ``path`` itself.
    """

    gain: Gain
    fit: Fit
    ranks: RankCurve
    # At this rank, with held-out figures if there is a gap and a step to choose; None for columns.
    path: TradeoffPath | None
    rows: SampledRows | None  # None without rows in memory
    kept: KeptColumns | None = None  # for FairColumns, judged beside the usual choice of columns


@dataclass(frozen=True, repr=False)
class ModelAudit(_Result):
    """How a fitted model treats the groups, beside plain PCA.

    The case of the verdict is ``GAP`` where there is a gap: no remedy is tried.
    """

    # Whether the scores vary exactly as in the fit: then these are the rows that the model was
    # fitted to, on which it looks too good. False may also mean that this is unknown.
    on_rows_fitted_to: bool
    # Share of rows with a column more than ten standard deviations from the mean of the fit. None
    # if the model does not store its variances.
    outside: float | None
    column_errors: Array  # what each group loses on each column, of shape (k, n_features)
    loadings: Array | None  # of shape (n_components, n_features); None if scores are not linear


#: Fields of audits that have figures of every group, besides ``groups``.
_BY_GROUP = {"fit", "ranks", "path", "column_errors"}

AnyAudit = Audit | ModelAudit


def group_name(label: Any, columns: Sequence[str], full: bool = False) -> str:
    """The label with its columns, which are shortened to 24 characters.

    A single column is left out where the label is more than a number, a letter, or a yes or no,
    unless the name is to be ``full``.

    Examples
    --------
    >>> group_name(1, ["sex"]), group_name("female", ["sex"]), group_name("female", ["sex"], True)
    ('sex = 1', 'female', 'sex = female')
    >>> group_name("black=0 & m", ["black", "sex"])
    'black = 0, sex = m'
    """
    says_little = r"\s*[-+.\d]*\d[.\d]*\s*|\s*(true|false|yes|no|.)?\s*"
    unclear = not isinstance(label, str) or re.fullmatch(says_little, label, re.IGNORECASE)
    values = str(label).split(" & ", len(columns) - 1)
    if len(values) != len(columns) or (len(columns) == 1 and not full and not unclear):
        return str(label)
    short = [column if len(column) <= 24 else f"{column[:23]}…" for column in columns]
    triples = zip(short, columns, values, strict=True)
    return ", ".join(f"{shown} = {text.removeprefix(f'{own}=')}" for shown, own, text in triples)


def plain_json(value: Any) -> Any:
    """The value as JSON can hold it, without the bases of a frontier, which are large."""
    if hasattr(value, "_asdict"):  # a named tuple
        value = value._asdict()
    elif is_dataclass(value):
        value = {f.name: getattr(value, f.name) for f in fields(value) if f.name != "components"}
    elif isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        return None  # JSON has no NaN and no infinity
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
