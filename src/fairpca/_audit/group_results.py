"""From held-out sums to the figures of every group, with intervals that hold together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from fairpca._audit.record import GroupFigures, GroupResult, Interval, Overall, group_name
from fairpca._audit.robust import better_off, robust_figures
from fairpca._audit.verdict import Thresholds
from fairpca._cv.held_out import HeldOut, Totals
from fairpca._typing import Array, Codes, Mask

JUDGED, ALTERNATIVE = 0, 1  # places of the two projections
_ROUNDING = 1e-9  # of the variation: smaller errors are those of losing nothing


@dataclass(frozen=True)
class RowErrors:
    """Squared errors of n rows under what is judged and under the alternative."""

    errors: Array  # of shape (2, n)
    distances: Array  # squared, from the mean
    codes: Codes
    weights: Array


@dataclass(frozen=True)
class Comparison:
    """Which groups are compared with whom."""

    labels: Sequence[Any]
    columns: Sequence[str]  # that the groups come from
    sizes: Codes
    compared: Mask  # whether the fit took care of the group
    reference: int | None  # the group to compare with; None for all others
    thresholds: Thresholds
    by_share: bool  # whether shares of each group's own variation are judged

    @classmethod
    def of(
        cls,
        labels: Sequence[Any],
        sizes: Any,
        columns: Sequence[str],
        reference: Any,
        thresholds: Thresholds,
        by_share: bool,
        small: Sequence[Any] = (),
    ) -> Comparison:
        """The comparison of groups, some of which are too small for the fit."""
        if reference is not None and reference not in labels:
            raise ValueError(
                f"reference={reference!r} is none of the groups; pass one of {labels}."
            )
        compared = np.array([label not in small for label in labels])
        place = None if reference is None else list(labels).index(reference)
        return cls(labels, columns, np.asarray(sizes), compared, place, thresholds, by_share)

    @property
    def judged(self) -> Mask:
        """Whether a group, and those it is compared with, have enough rows."""
        others = self.sizes.sum() - self.sizes
        if self.reference is not None:
            others = np.full(len(self.sizes), self.sizes[self.reference])
        least = self.thresholds.judge_from
        return np.asarray((self.sizes >= least) & (others >= least))

    def ratios(self, totals: Totals) -> Array:
        """``R_g / R_rest`` or ``R_g / R_reference``, of shape (n_projections, k)."""
        if self.reference is None:
            return totals.ratios
        errors = totals.group_errors
        return np.asarray(errors / np.maximum(errors[:, [self.reference]], 1e-300))


def loses_nothing(held_out: HeldOut) -> bool:
    """Whether all errors of what is judged are rounding."""
    errors, variation = held_out.errors[:, JUDGED].sum(axis=0), held_out.variation.sum(axis=0)
    return bool(errors.max() <= _ROUNDING * max(float(variation.max()), 1e-300))


def group_results(
    held_out: HeldOut,
    comparison: Comparison,
    rows: RowErrors | None,
    paired: HeldOut | None = None,
) -> list[GroupResult]:
    """The figures of every group, from sums for what is judged and the alternative.

    Robust figures need ``rows``. ``paired`` is for the changes, if only the alternative was fitted
    in folds.
    """
    c, judged, relative = comparison, comparison.judged, held_out.relative()
    rest = int(judged.sum()) - (c.reference is not None and bool(judged[c.reference]))
    comparisons = 1 if len(c.labels) == 2 else max(rest, 1)
    gaps = [_gaps(data, c, comparisons) for data in (held_out, relative)]
    both = held_out if paired is None else paired
    changes, above = _changes(both.relative() if c.by_share else both, judged, c.thresholds.level)
    errors, shares = held_out.totals.group_errors, relative.totals.group_errors
    k, weights = len(c.labels), held_out.totals.weights
    robust: list[list[Any]] = [[None] * k, [None] * k]
    gainers: list[Any] = [None] * k
    if rows is not None:
        common = rows.codes, rows.weights
        robust = [robust_figures(e, *common, judged, c.reference) for e in rows.errors]
        gainers = better_off(rows.errors, rows.distances, *common, k).tolist()
    detectable = _detectable(relative if c.by_share else held_out, c, comparisons)

    def figures(projection: int, g: int) -> GroupFigures:
        ends = [_at(gap, (projection, g)) for gap in gaps]
        known = judged[g] and g != c.reference
        return GroupFigures(
            error=float(errors[projection, g]),
            share=float(shares[projection, g]),
            gap=ends[0] if known else None,
            share_gap=ends[1] if known else None,
            gap_estimate=ends[0].value,
            share_gap_estimate=ends[1].value,
            robust=robust[projection][g],
        )

    return [
        GroupResult(
            label=label,
            name=group_name(label, c.columns),
            n=int(c.sizes[g]),
            weight=float(weights[g] / weights.sum()),
            judged=bool(judged[g]),
            compared=bool(c.compared[g]),
            baseline=figures(JUDGED, g),
            alternative=figures(ALTERNATIVE, g),
            change=_at(changes, (g,)) if judged[g] else None,
            change_estimate=_at(changes, (g,)).value,
            above_worst=_at(above, (g,)) if judged[g] else None,
            better_off=gainers[g],
            detectable_gap=float(detectable[g]) if judged[g] and g != c.reference else None,
        )
        for g, label in enumerate(c.labels)
    ]


def overall_figures(held_out: HeldOut, level: float) -> Overall:
    """All people together."""
    totals, variation = held_out.totals, held_out.variation.sum()
    errors, shares = totals.overall, totals.errors.sum(axis=1) / max(float(variation), 1e-300)
    change = held_out.interval(
        lambda t: t.overall[ALTERNATIVE] / max(float(t.overall[JUDGED]), 1e-300),
        level=level,
        log=True,
    )
    return Overall(
        error=float(errors[JUDGED]),
        alternative_error=float(errors[ALTERNATIVE]),
        share=float(shares[JUDGED]),
        alternative_share=float(shares[ALTERNATIVE]),
        change=_at(change, ()),
    )


def gap_interval(held_out: HeldOut, comparison: Comparison, g: int) -> Interval:
    """The gap of one group alone under the first projection, for curves."""
    how = comparison.thresholds.level
    data = held_out.relative() if comparison.by_share else held_out
    return _at(data.interval(lambda t: comparison.ratios(t)[0, g], level=how, log=True), ())


def _gaps(data: HeldOut, c: Comparison, comparisons: int) -> Any:
    return data.interval(c.ratios, level=c.thresholds.level, comparisons=comparisons, log=True)


def _changes(data: HeldOut, judged: Mask, level: float) -> tuple[Any, Any]:
    """How much the alternative changes each error, and how far it is above the worst one judged."""
    comparisons = max(int(judged.sum()), 1)
    before = np.where(judged, data.totals.group_errors[JUDGED], -1.0)
    worst = int(before.argmax())

    def over(totals: Totals, below: Array) -> Array:
        return np.asarray(totals.group_errors[ALTERNATIVE] / np.maximum(below, 1e-300))

    def change(totals: Totals) -> Array:
        return over(totals, totals.group_errors[JUDGED])

    def above(totals: Totals) -> Array:
        return over(totals, totals.group_errors[JUDGED, worst])

    found = [
        data.interval(figure, level=level, comparisons=comparisons, log=True)
        for figure in (change, above)
    ]
    return found[0], found[1]


def _detectable(data: HeldOut, c: Comparison, comparisons: int) -> Array:
    """The gap that these rows would have shown with the probability ``power``, for each group."""
    se = data.standard_error(lambda t: np.log(np.maximum(c.ratios(t)[JUDGED], 1e-300)))
    level, degrees = c.thresholds.level, data.n_folds - 1
    quantile = float(stdtrit(degrees, 1 - (1 - level) / (2 * comparisons)))
    return np.asarray(np.expm1((quantile + float(ndtri(c.thresholds.power))) * se))


def _at(interval: Any, place: tuple[int, ...]) -> Interval:
    """One entry of an interval of ratios, minus 1."""
    return Interval(*(float(np.asarray(end)[place]) - 1.0 for end in interval))
