"""Readings: a gap that is shown, computed again under other readings of the same figures.

========================  ======================================================================
reading                   the gap is computed again
========================  ======================================================================
codes                     with every value that may be a code, such as 99, read as missing
restating columns         without the columns from which the group can be read
medians                   with medians of errors in place of means
available cases           by the values that are there, if values were filled in
other folds               with the rows dealt into folds anew, twice
========================  ======================================================================

A reading overturns a gap if it shows less than half of it, and the difference of the two, over the
same folds and parts, is beyond chance. Other folds overturn it only if they lead outside of its
interval. A reading never creates a gap, with one exception: filling in hides gaps. So a gap that
the available cases alone show is a reason to doubt that there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from math import expm1, log
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit
from sklearn.metrics import roc_auc_score

from fairpca._audit.crossed import Crossed, by_moments
from fairpca._audit.few_rows import median_of
from fairpca._audit.people import People
from fairpca._audit.record import GapReading, Interval
from fairpca._audit.setup import LEAST, Setup
from fairpca._audit.verdict import OTHER_FOLDS
from fairpca._cv.held_out import Totals, spread
from fairpca._linear_map import LinearMap
from fairpca._moments.group_moments import GroupMoments
from fairpca._typing import Array, Codes, Mask

_HALF = 0.5  # A reading that shows less than this share of a gap may overturn it.
_MOST_COLUMNS = 300  # Pairs of more columns are not counted.
_AVAILABLE = "available cases"
_UNEQUAL = 0.05  # shares of values filled in that differ by this much between groups
_LEAST_ALIKE = 3  # rows with the same value
_FAR = 0.25  # share of the others' range between a code and the next value
_SPACES = 2  # A code lies further out than this number of usual spaces between values.
_MOST_CODES = 3  # at one end of a column
_RESAMPLES = 200
_MOST_RESAMPLED = 5000  # units
_RESTATES = 0.98  # Columns with a held-out AUC of this size tell the group.

#: What is judged, fitted to the rows outside of a fold.
Usual = Callable[[GroupMoments], LinearMap]


class Code(NamedTuple):
    """A value that may stand for something missing."""

    column: int
    value: float
    rows: Mask


class _Gaps(NamedTuple):
    """``log(1 + gap)`` of every group, and what each part of the folds contributes to it."""

    logs: Array  # (k,)
    contributions: Array  # (n_parts, k)


class _Untried(Exception):
    """Why a reading is not tried."""


def readings_of(
    setup: Setup, crossed: Crossed, usual: Usual | None, shown: Mapping[Any, Interval]
) -> list[GapReading]:
    """Every reading of the gaps of these groups; ``usual`` is None where nothing is fitted.

    Groups without a gap are read by their available cases.
    """
    people = setup.people
    labels = list(shown)
    if people is None:
        why = "needs rows in memory"
        return [GapReading(name, label, not_tried=why) for label in labels for name in NAMES]
    if not labels and people.filled_in() is None:
        return []
    context = _Context(setup, people, crossed, usual, shown)
    found = [_read(context, name, label) for label in labels for name in NAMES]
    judged = [label for g, label in enumerate(setup.folds.labels) if setup.judged[g]]
    hidden = [_read(context, _AVAILABLE, label) for label in judged if label not in labels]
    return found + [reading for reading in hidden if not reading.not_tried]


def _read(context: _Context, name: str, label: Any) -> GapReading:
    try:
        return _READERS[name](context, label)
    except _Untried as why:
        return GapReading(name, label, not_tried=str(why))


class _Context:
    """The shown gaps, and what readings of them have in common."""

    def __init__(
        self,
        setup: Setup,
        people: People,
        crossed: Crossed,
        usual: Usual | None,
        intervals: Mapping[Any, Interval],
    ) -> None:
        self.setup = setup
        self.intervals = intervals  # of the gaps that are shown
        self.people = people
        self.crossed = crossed
        self.usual = usual
        self._codes: list[Code] | None = None
        self._by_columns: dict[tuple[int, ...], _Gaps] = {}
        self.shown = self.gaps(crossed.errors[0], crossed.distances, setup.by_share)
        plain = self.gaps(crossed.errors[0], crossed.distances, False)
        #: What shares of each group's own variation take off the logs of gaps.
        self.variation = plain.logs - self.shown.logs

    def gaps(self, errors: Array, distances: Array, by_share: bool) -> _Gaps:
        """The gaps by these errors of the held-out rows."""
        held_out = self.crossed.by_part(self.people, errors, distances)
        if by_share:
            held_out = held_out.relative()

        def logs(totals: Totals) -> Array:
            return np.asarray(np.log(np.maximum(self.setup.ratios(totals)[0], LEAST)))

        return _Gaps(logs(held_out.totals), held_out.contributions(logs))

    def of_gaps(self, name: str, label: Any, gaps: _Gaps, **what: Any) -> GapReading:
        """The gap of a group by a reading that changes the errors of rows."""
        g = self.setup.folds.labels.index(label)
        paired = gaps.contributions - self.shown.contributions
        factor = float(np.sqrt(1 / len(paired) + self.crossed.parts.odds))
        own_error = factor * float(spread(gaps.contributions)[g])
        paired_error = factor * float(spread(paired)[g])
        return self.compared(name, label, float(gaps.logs[g]), own_error, paired_error, **what)

    def compared(
        self, name: str, label: Any, read: float, own_error: float, paired_error: float, **what: Any
    ) -> GapReading:
        """The gap of a group by a reading, on the log scale, beside the one that is shown."""
        shown = float(self.shown.logs[self.setup.folds.labels.index(label)])
        difference = self._interval(read - shown, paired_error)
        gap = self._interval(read, own_error)
        overturns = expm1(read) < _HALF * expm1(shown) and difference.high < 0
        if label not in self.intervals:  # is a gap hidden?
            overturns = gap.low > 0 and difference.low > 0
        return GapReading(name, label, gap, difference, overturns, **what)

    def _interval(self, value: float, error: float) -> Interval:
        n = len(self.shown.contributions)
        margin = float(stdtrit(n - 1, 0.5 + self.setup.level / 2)) * error
        return Interval(*map(expm1, (value, value - margin, value + margin)))

    @property
    def X(self) -> Array:
        """All rows as they enter the projection."""
        X = self.people.values
        if hasattr(X, "toarray"):
            raise _Untried("the rows are sparse")
        if X.shape[1] > _MOST_COLUMNS:
            raise _Untried(f"more than {_MOST_COLUMNS} columns")
        return np.asarray(X, np.float64)

    @property
    def codes(self) -> list[Code]:
        """The values that may be codes."""
        if self._codes is None:
            n_copies = self.people.n_copies
            once = self.X[: len(self.X) // n_copies]
            found = possible_codes(once)
            self._codes = [code._replace(rows=np.tile(code.rows, n_copies)) for code in found]
        return self._codes

    def without(self, codes: Sequence[Code]) -> _Gaps:
        """The gaps with these codes read as missing."""
        X = self.X.copy()
        for code in codes:
            X[code.rows, code.column] = np.nan
        return self._refitted(X)

    @cached_property
    def available(self) -> _Gaps:
        """The gaps by the values that were not filled in."""
        filled = self.people.filled_in()
        if filled is None:
            raise _Untried("nothing is known to be filled in")
        rows = filled.mean(axis=1)
        codes = self.people.codes
        shares = np.bincount(codes, rows) / np.bincount(codes)
        if np.ptp(shares) < _UNEQUAL:
            raise _Untried("as much is filled in of every group")
        return self._refitted(np.where(filled, np.nan, self.X))

    def without_columns(self, columns: Sequence[int]) -> _Gaps:
        """The gaps without these columns."""
        if self.people.moments.n_features - len(columns) <= self.setup.origin.n_components:
            raise _Untried("too few columns are left")
        key = tuple(sorted(columns))
        if key not in self._by_columns:
            self._by_columns[key] = self._refitted(np.delete(self.X, key, axis=1))
        return self._by_columns[key]

    @cached_property
    def dealt_again(self) -> list[Array]:
        """The logs of the gaps in other folds."""
        if self.usual is None:
            raise _Untried("only PCA is fitted anew")
        found = []
        for folds in self.people.dealt_again:
            sums = [by_moments(folds.moments, pair, [self.usual(pair.fit_to)]) for pair in folds]
            errors, variation, weights = np.sum(sums, axis=0)
            divisors = weights
            if self.setup.by_share:
                divisors = variation
            ratios = self.setup.ratios(Totals(errors[np.newaxis], divisors))[0]
            found.append(np.log(np.maximum(ratios, LEAST)))
        return found

    def _refitted(self, X: Array) -> _Gaps:
        """The gaps of other values of the same rows."""
        people = self.people
        if self.usual is None:
            raise _Untried("only PCA is fitted anew")
        moments = people.moments_of(X, people.fold_of_rows, may_miss=True)
        errors = np.full(len(X), np.nan)
        distances = np.full(len(X), np.nan)
        for fold in moments.fold_sizes():
            fit_to, _ = moments.split(fold)
            rows = np.flatnonzero(people.fold_of_rows == fold)
            own = self.usual(fit_to)
            if moments.observed is None:
                errors[rows], distances[rows] = own.errors(X[rows])
            else:
                both = own.errors_observed(X[rows], people.codes[rows], moments.observed)
                errors[rows], distances[rows] = both
        rows = self.crossed.rows
        return self.gaps(errors[rows], distances[rows], self.setup.by_share)


# -- the readings ----------------------------------------------------------------------------------


def _codes_as_missing(context: _Context, label: Any) -> GapReading:
    """All codes at once; where that overturns the gap, the column that does so by itself."""
    codes = context.codes
    if not codes:
        raise _Untried("no value looks like a code")
    whole = _of_codes(context, label, codes)
    if not whole.overturns:
        return whole
    columns = sorted({code.column for code in codes})
    by_column = [[code for code in codes if code.column == column] for column in columns]
    if len(columns) == 1:
        return whole
    each = [_of_codes(context, label, own) for own in by_column]
    alone = [reading for reading in each if reading.overturns]
    return min(alone, key=_gap_of, default=whole)


def _gap_of(reading: GapReading) -> float:
    if reading.gap is None:
        return np.inf
    return reading.gap.value


def _of_codes(context: _Context, label: Any, codes: Sequence[Code]) -> GapReading:
    names = context.people.feature_names
    return context.of_gaps(
        "codes",
        label,
        context.without(codes),
        columns=tuple(dict.fromkeys(names[code.column] for code in codes)),
        values=tuple(dict.fromkeys(code.value for code in codes)),
        n_rows=int(np.any([code.rows for code in codes], axis=0).sum()) // context.people.n_copies,
    )


def _without_restating(context: _Context, label: Any) -> GapReading:
    people = context.people
    g = context.setup.folds.labels.index(label)
    rows = np.flatnonzero((people.codes == g) | context.setup.others[g][people.codes])
    n_columns = context.X.shape[1]
    X = np.asarray(people.filled(rows), np.float64)
    columns = restating_columns(X, people.codes[rows] == g, people.fold_of_rows[rows])
    if not columns:
        raise _Untried("the group cannot be read from the columns")
    if len(columns) > n_columns // 2:
        raise _Untried("too many columns tell the group")
    names = tuple(people.feature_names[column] for column in columns)
    gaps = context.without_columns(columns)
    return context.of_gaps("restating columns", label, gaps, columns=names)


def _by_medians(context: _Context, label: Any) -> GapReading:
    """Medians of units. Their errors are found by resampling: a median is no sum."""
    crossed = context.crossed
    setup = context.setup
    if context.people.observed is not None:
        raise _Untried("values are missing")
    g = setup.folds.labels.index(label)
    codes, weights, (errors,) = context.people.by_unit(crossed.rows, crossed.errors[:1])
    order = np.argsort(errors, kind="stable")
    own = (codes == g)[order]
    rest = setup.others[g][codes][order]
    rng = np.random.default_rng(setup.seed)
    medians = []
    variances = np.zeros(2)
    for side in (own, rest):
        of_side = errors[order][side]
        weight = weights[order][side]
        medians.append(log(max(median_of(of_side, weight), LEAST)))
        variances += resampled(of_side, weight, rng)
    refitting = len(crossed.parts.errors) * crossed.parts.odds
    own_error, paired_error = np.sqrt(variances * (1 + refitting)).tolist()
    read = medians[0] - medians[1] - float(context.variation[g])
    return context.compared("medians", label, read, own_error, paired_error)


def resampled(errors: Array, weights: Array, rng: np.random.Generator) -> Array:
    """Variances of the log of the median, and of the log of the median over the mean.

    Errors are sorted. Of many units a sample is enough.
    """
    n = len(errors)
    m = min(n, _MOST_RESAMPLED)
    some = np.sort(rng.choice(n, m, replace=False))
    drawn = rng.multinomial(m, np.full(m, 1 / m), _RESAMPLES) * weights[some]
    below = np.cumsum(drawn, axis=1)
    total = below[:, -1]
    middle = (below >= total[:, np.newaxis] / 2).argmax(axis=1)
    medians = np.log(np.maximum(errors[some][middle], LEAST))
    means = np.log(np.maximum(drawn @ errors[some] / total, LEAST))
    return np.array([medians.var(), (medians - means).var()]) * m / n


def _available_cases(context: _Context, label: Any) -> GapReading:
    return context.of_gaps(_AVAILABLE, label, context.available)


def _other_folds(context: _Context, label: Any) -> GapReading:
    """The gap in those of the other folds that lead furthest away."""
    if not context.dealt_again:
        raise _Untried("the folds are given")
    g = context.setup.folds.labels.index(label)
    interval = context.intervals[label]
    logs = [float(other[g]) for other in context.dealt_again]
    furthest = max(logs, key=lambda log_gap: abs(log_gap - float(context.shown.logs[g])))
    moved = expm1(furthest - float(context.shown.logs[g]))
    gap = Interval(*((1 + end) * (1 + moved) - 1 for end in interval))
    outside = not interval.low <= gap.value <= interval.high
    return GapReading(OTHER_FOLDS, label, gap, overturns=outside)


_READERS: dict[str, Callable[[_Context, Any], GapReading]] = {
    "codes": _codes_as_missing,
    "restating columns": _without_restating,
    "medians": _by_medians,
    _AVAILABLE: _available_cases,
    OTHER_FOLDS: _other_folds,
}
NAMES = tuple(_READERS)


# -- codes -----------------------------------------------------------------------------------------


def possible_codes(X: Array) -> Iterator[Code]:
    """Values at an end of a column that several rows share, far from all other values."""
    for column, x in enumerate(X.T):
        values, counts = np.unique(x[np.isfinite(x)], return_counts=True)
        for value in _codes_among(values, counts):
            yield Code(column, value, x == value)


def _codes_among(values: Array, counts: Codes) -> list[float]:
    """The codes among sorted values, taken away from both ends as long as there are any."""
    most = counts.sum() / 2
    found: list[float] = []
    while True:
        at_top = _codes_at_top(values, counts, most)
        at_bottom = _codes_at_top(-values[::-1], counts[::-1], most)
        if not at_top and not at_bottom:
            return found
        kept = slice(at_bottom, len(values) - at_top)
        found += np.delete(values, np.arange(len(values))[kept]).tolist()
        values = values[kept]
        counts = counts[kept]


def _codes_at_top(values: Array, counts: Codes, most: float) -> int:
    """How many of the largest values may be codes."""
    for n in range(1, _MOST_CODES + 1):
        others = values[:-n]
        alike = counts[-n:]
        if len(others) < 2 or alike.min() < _LEAST_ALIKE or alike.sum() > most:
            return 0
        space = values[-n] - others[-1]
        usual = float(np.median(np.diff(others)))
        if space >= _FAR * (others[-1] - others[0]) and space > _SPACES * usual:
            return n
    return 0


# -- columns that restate the group ----------------------------------------------------------------


def restating_columns(X: Array, inside: Mask, folds: Codes) -> list[int]:
    """Columns from which a group can be read: each by itself, or a linear fit, on held-out rows.

    They are dropped one after the other, the most telling one first.
    """
    spread_of = X.std(axis=0)
    usable = np.flatnonzero(spread_of > 0)
    Z = (X[:, usable] - X[:, usable].mean(axis=0)) / spread_of[usable]
    alone = np.array([_auc(inside, z) for z in Z.T])
    dropped: list[int] = usable[alone >= _RESTATES].tolist()
    kept = np.flatnonzero(alone < _RESTATES)
    while len(kept) and len(dropped) <= X.shape[1] // 2:
        scores, telling = _linear_fit(Z[:, kept], inside, folds)
        if _auc(inside, scores) < _RESTATES:
            break
        most = int(telling.argmax())
        dropped.append(int(usable[kept[most]]))
        kept = np.delete(kept, most)
    return dropped


def _auc(inside: Mask, scores: Array) -> float:
    auc = float(roc_auc_score(inside, scores))
    return max(auc, 1 - auc)


def _linear_fit(Z: Array, inside: Mask, folds: Codes) -> tuple[Array, Array]:
    """Held-out scores of a linear fit of the group, and what each column adds to the fit."""
    y = inside - inside.mean()
    n, d = Z.shape
    ridge = 1e-9 * n * np.eye(d)
    scores = np.zeros(n)
    for fold in np.unique(folds):
        held_out = folds == fold
        train = Z[~held_out]
        weights = np.linalg.solve(train.T @ train + ridge, train.T @ y[~held_out])
        scores[held_out] = Z[held_out] @ weights
    inverse = np.linalg.inv(Z.T @ Z + ridge)
    weights = inverse @ (Z.T @ y)
    return scores, weights**2 / np.diag(inverse)
