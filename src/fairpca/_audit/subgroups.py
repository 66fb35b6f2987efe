"""The subgroup that nobody named: the one whose error is worst, among all that columns describe.

A condition is a value of a column, or a side of one of its quartiles; a subgroup is given by one
condition or by two on different columns. Each is compared with everybody outside it:

    t = (mean error inside - mean error outside) / standard error of the mean inside

The largest t of thousands is large by chance. So the errors are dealt to the units anew, 200 times,
and p is the share of these deals whose largest t is as large. The gap of the subgroup that was
found is flattered by the search as well. An honest one comes from the other half of the units: the
search is made again in one half, and what it finds is measured in the other.

A unit counts by its mean error over the rows inside. A row with a missing value in a column meets
no condition on this column.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from math import exp, hypot
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import ndtri

from fairpca._audit.crossed import Crossed
from fairpca._audit.people import entries_of
from fairpca._audit.record import Interval, Subgroup
from fairpca._audit.setup import Setup
from fairpca._input.checks import refuse_unknown_columns
from fairpca._input.device import is_dask
from fairpca._input.stream import is_stream
from fairpca._moments.group_moments import GroupMoments
from fairpca._sklearn import num_samples
from fairpca._typing import Array, Mask

_MOST_VALUES = 12  # numbers with more values than this are cut at their quartiles
_LEAST_UNITS = 30
_LEAST_SHARE = 0.02
_DEALS = 200
_AT_A_TIME = 512  # subgroups whose rows are held in memory together


class _Condition(NamedTuple):
    """Rows that a condition holds for."""

    column: str
    text: str
    rows: Mask


class _Units:
    """Errors of rows, summed up by unit, as multiples of the mean error."""

    def __init__(self, errors: Array, units: NDArray[Any], weights: Array) -> None:
        names, codes = np.unique(units, return_inverse=True)
        self.n = len(names)
        self.scale = max(float(np.average(errors, weights=weights)), np.finfo(float).tiny)
        errors = weights * errors / self.scale
        rows = codes, np.arange(len(codes))
        shape = self.n, len(codes)
        self._weigh = csr_array((weights.astype(np.float32), rows), shape)
        self._add_up = csr_array((errors.astype(np.float32), rows), shape)
        weight = np.bincount(codes, weights)
        self.mean = np.bincount(codes, errors) / weight
        self.total = weight / np.bincount(codes)  # however many rows it has

    def inside(self, rows: Mask) -> tuple[Array, Array]:
        """Weights of the units with rows inside of subgroups, (n_units, m), and their mean errors.

        The weight of a unit without such rows is 0.
        """
        members = rows.astype(np.float32)
        within = self._weigh @ members
        means = (self._add_up @ members) / np.where(within > 0, within, 1)
        weights = np.where(within > 0, self.total[:, np.newaxis], 0).astype(np.float32)
        return np.asarray(weights), np.asarray(means)


def columns_to_search(subgroups: Any, X: Any) -> nw.DataFrame[Any] | None:
    """The columns that may describe subgroups: a data frame, or columns of X by name."""
    if subgroups is None:
        return None
    if isinstance(X, GroupMoments) or is_stream(X) or is_dask(X):
        raise ValueError(
            "subgroups are looked for among rows in memory; pass X as an array or a data frame."
        )
    table = nw.from_native(X, eager_only=True, pass_through=True)
    names = subgroups
    if isinstance(subgroups, str):
        names = [subgroups]
    if isinstance(names, list | tuple):
        if not isinstance(table, nw.DataFrame):
            raise TypeError(
                f"subgroups={subgroups!r} are names, but X ({type(X).__name__}) is no data frame; "
                "pass a data frame of the columns that may describe a subgroup."
            )
        refuse_unknown_columns(names, table.columns)
        return table.select(names)
    columns = nw.from_native(subgroups, eager_only=True, pass_through=True)
    if not isinstance(columns, nw.DataFrame):
        raise TypeError(
            f"subgroups must be a data frame or names of columns of X, not "
            f"{type(subgroups).__name__}; pass for example people[['sex', 'age']]."
        )
    n_rows = num_samples(X)
    if len(columns) != n_rows:
        raise ValueError(
            f"subgroups has {len(columns)} rows but X has {n_rows}; pass one row for each of X."
        )
    return columns


def worst_subgroup(setup: Setup, crossed: Crossed) -> Subgroup | None:
    """The subgroup whose held-out error under the judged choice is worst, if one is wanted."""
    people = setup.people
    columns = setup.described_by
    if columns is None or people is None:
        return None
    rows = crossed.rows
    return find_worst_subgroup(
        crossed.errors[0],
        columns[people.positions[rows].tolist()],
        entries_of(people.units, rows),
        people.weights[rows],
        tuple(people.feature_names),
        setup.level,
        setup.seed,
    )


def find_worst_subgroup(
    errors: Array,
    columns: Any,
    units: NDArray[Any] | None = None,
    weights: Array | None = None,
    features: tuple[str, ...] = (),
    level: float = 0.95,
    random_state: int = 0,
) -> Subgroup | None:
    """The worst subgroup of one or two conditions on the columns of a data frame.

    ``errors``, ``units`` and ``weights`` hold one entry for each row. None means that no subgroup
    is large enough.
    """
    n = len(errors)
    if units is None:
        units = np.arange(n)
    if weights is None:
        weights = np.ones(n)
    conditions = _conditions(columns)
    everybody = _Units(errors, units, weights)
    rng = np.random.default_rng(random_state)
    found = _search(everybody, conditions, _deals(everybody, rng))
    if found is None:
        return None
    chosen = _names(conditions, found.pair)
    texts = tuple(conditions[c].text for c in found.pair)
    honest_gap = _honest_gap(errors, units, weights, conditions, level, rng)
    return Subgroup(
        conditions=texts,
        columns=chosen,
        n=found.n,
        share=found.n / everybody.n,
        error=found.mean * everybody.scale,
        gap=found.mean / found.rest - 1.0,
        p=found.p,
        honest_gap=honest_gap,
        n_searched=found.n_searched,
        by_feature=bool(set(chosen) & set(features)),
    )


class _Found(NamedTuple):
    """The subgroup with the largest t."""

    pair: tuple[int, ...]  # its conditions
    t: float
    n: int
    mean: float
    rest: float
    p: float
    n_searched: int


def _search(units: _Units, conditions: list[_Condition], deals: Array) -> _Found | None:
    """The subgroup with the largest t, and how often a deal has one as large."""
    least = max(_LEAST_UNITS, _LEAST_SHARE * units.n)
    best: _Found | None = None
    largest = np.full(len(deals), -np.inf)
    n_searched = 0
    for pairs, rows in _subgroups(conditions):
        weights, means = units.inside(rows)
        counts = np.count_nonzero(weights, axis=0)
        kept = np.flatnonzero((counts >= least) & (units.n - counts >= least))
        if len(kept) == 0:
            continue
        n_searched += len(kept)
        weights = weights[:, kept]
        t, mean, rest = _compare(units, weights, means[:, kept])
        largest = np.maximum(largest, _largest_of_deals(units, weights, deals))
        first = int(t.argmax())
        if best is None or t[first] > best.t:
            place = int(kept[first])
            figures = float(t[first]), int(counts[place]), float(mean[first]), float(rest[first])
            best = _Found(pairs[place], *figures, p=1.0, n_searched=0)
    if best is None:
        return None
    p = (1 + np.count_nonzero(largest >= best.t)) / (1 + len(deals))
    return best._replace(p=float(p), n_searched=n_searched)


def _compare(units: _Units, weights: Array, means: Array) -> tuple[Array, Array, Array]:
    """t, the mean inside and the mean outside, for subgroups given by the weights of units."""
    total = weights.sum(axis=0)
    mean = np.einsum("ij,ij->j", weights, means) / total
    everything = units.total @ units.mean
    rest = (everything - units.mean @ weights) / (units.total.sum() - total)
    deviations = weights * (means - mean)
    variance = np.einsum("ij,ij->j", deviations, deviations) / total**2
    return (mean - rest) / _positive_root(variance), mean, rest


def _largest_of_deals(units: _Units, weights: Array, deals: Array) -> Array:
    """The largest t over these subgroups for each deal, in which a unit has one error."""
    squares = weights**2
    total = weights.sum(axis=0)
    first = deals @ weights
    mean = first / total
    rest = ((deals @ units.total)[:, np.newaxis] - first) / (units.total.sum() - total)
    crossed = first
    if (squares != weights).any():
        crossed = deals @ squares
    variance = (deals**2) @ squares - 2 * mean * crossed + mean**2 * squares.sum(axis=0)
    return np.asarray(((mean - rest) / _positive_root(variance / total**2)).max(axis=1))


def _positive_root(variance: Array) -> Array:
    """Standard errors; where nothing varies, a difference says nothing."""
    return np.where(variance > 0, np.sqrt(np.maximum(variance, 0.0)), np.inf)


def _deals(units: _Units, rng: np.random.Generator) -> Array:
    """The errors of the units, dealt anew."""
    errors = units.mean.astype(np.float32)
    return np.array([rng.permutation(errors) for _ in range(_DEALS)])


def _honest_gap(
    errors: Array,
    units: NDArray[Any],
    weights: Array,
    conditions: list[_Condition],
    level: float,
    rng: np.random.Generator,
) -> Interval | None:
    """The gap, in one half of the units, of the subgroup that is worst in the other half."""
    names, codes = np.unique(units, return_inverse=True)
    first = (rng.permutation(len(names)) % 2 == 0)[codes]
    halves = []
    for half in (first, ~first):
        own = [c._replace(rows=c.rows[half]) for c in conditions]
        halves.append((_Units(errors[half], units[half], weights[half]), own))
    (searched, own), (judging, others) = halves
    found = _search(searched, own, np.empty((0, searched.n), np.float32))
    if found is None:
        return None
    rows = np.logical_and.reduce([others[c].rows for c in found.pair])[:, np.newaxis]
    inside, means = judging.inside(rows)
    outside, others_means = judging.inside(~rows)
    if min(np.count_nonzero(inside), np.count_nonzero(outside)) < 2:
        return None
    mean, error = _mean_and_error(inside[:, 0], means[:, 0])
    rest, error_of_rest = _mean_and_error(outside[:, 0], others_means[:, 0])
    if not mean > 0 < rest:
        return None
    width = float(ndtri(0.5 + level / 2)) * hypot(error / mean, error_of_rest / rest)
    ratio = mean / rest
    return Interval(ratio - 1.0, ratio * exp(-width) - 1.0, ratio * exp(width) - 1.0)


def _mean_and_error(weights: Array, means: Array) -> tuple[float, float]:
    """The mean over units, and its standard error."""
    mean = float(np.average(means, weights=weights))
    deviations = weights * (means - mean)
    return mean, float(np.linalg.norm(deviations) / weights.sum())


def _subgroups(conditions: list[_Condition]) -> Iterator[tuple[list[tuple[int, ...]], Mask]]:
    """The subgroups of one and of two conditions, and which rows they hold, some at a time."""
    singles: list[tuple[int, ...]] = [(i,) for i in range(len(conditions))]
    pairs = [
        (i, j)
        for i, j in combinations(range(len(conditions)), 2)
        if conditions[i].column != conditions[j].column
    ]
    every: list[tuple[int, ...]] = [*singles, *pairs]
    rows = np.array([condition.rows for condition in conditions])
    for start in range(0, len(every), _AT_A_TIME):
        own = every[start : start + _AT_A_TIME]
        yield own, (rows[[s[0] for s in own]] & rows[[s[-1] for s in own]]).T


def _conditions(columns: Any) -> list[_Condition]:
    """A condition for each value of a column, or for each side of its quartiles."""
    frame = nw.from_native(columns, eager_only=True)
    found = []
    for name in frame.columns:
        column = frame.get_column(name)
        known = ~column.is_null().to_numpy()
        if column.dtype.is_numeric() and column.n_unique() > _MOST_VALUES:
            found += _sides(name, column.cast(nw.Float64).to_numpy(), known)
            continue
        values = column.to_list()
        labels = np.array([str(value) for value in values], dtype=object)
        counts = Counter(labels[known].tolist())
        for label in sorted(label for label, n in counts.items() if n >= _LEAST_UNITS):
            found.append(_Condition(name, f"{name} = {label}", known & (labels == label)))
    return found


def _sides(name: str, values: Array, known: Mask) -> list[_Condition]:
    """Both sides of the quartiles of a column of numbers."""
    known = known & np.isfinite(values)
    found = []
    for cut in np.unique(np.quantile(values[known], [0.25, 0.5, 0.75])).tolist():
        above = known & (values > cut)
        found.append(_Condition(name, f"{name} above {cut:.4g}", above))
        found.append(_Condition(name, f"{name} at most {cut:.4g}", known & ~above))
    return found


def _names(conditions: list[_Condition], pair: tuple[int, ...]) -> tuple[str, ...]:
    """The columns of a subgroup's conditions."""
    return tuple(conditions[c].column for c in pair)
