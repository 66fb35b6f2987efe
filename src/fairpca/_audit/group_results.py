"""From held-out sums to the figures of every group, with intervals that hold together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from fairpca._audit.cross_fit import CrossFitted
from fairpca._audit.record import (
    GroupFigures,
    GroupResult,
    Interval,
    Overall,
    Provenance,
    Robust,
    group_name,
)
from fairpca._cv.held_out import Figure, HeldOut, Totals
from fairpca._typing import Array, Codes, Mask

JUDGED, ALTERNATIVE = 0, 1  # places of the two projections
_ROUNDING = 1e-9  # of the variation: smaller errors are those of losing nothing
_TINY = 1e-300
_NO_GAIN = 1e-12  # of the squared distance from the mean: smaller gains are rounding
_TRIMMED = (0.01, 0.05)  # shares of every group that are left out


@dataclass(frozen=True)
class Setup:
    """Which groups are compared with whom, and how."""

    labels: Sequence[Any]
    sizes: Codes
    origin: Provenance
    by_share: bool  # whether shares of each group's own variation are judged
    set_aside: Sequence[Any] = ()  # groups that the fit did not compare

    def __post_init__(self) -> None:
        reference = self.origin.reference
        if reference is not None and reference not in self.labels:
            raise ValueError(
                f"reference={reference!r} is none of the groups; pass one of {self.labels}."
            )

    @cached_property
    def others(self) -> Mask:
        """Whom each group is compared with, of shape (k, k)."""
        k, reference = len(self.labels), self.origin.reference
        if reference is None:
            return ~np.eye(k, dtype=bool)
        return np.tile([label == reference for label in self.labels], (k, 1))

    @cached_property
    def judged(self) -> Mask:
        """Whether a group, and those it is compared with, have enough rows."""
        least = self.origin.thresholds.judge_from
        return np.asarray((self.sizes >= least) & (self.others @ self.sizes >= least))

    @cached_property
    def has_gap(self) -> Mask:
        """Whether a group is judged and is not the reference."""
        return np.asarray(self.judged & ~np.diag(self.others))

    def ratios(self, totals: Totals) -> Array:
        """``R_g / R_rest`` or ``R_g / R_reference``, of shape (n_projections, k)."""
        weights = np.maximum(self.others @ totals.weights, _TINY)
        rest = totals.errors @ self.others.T / weights
        return np.asarray(totals.group_errors / np.maximum(rest, _TINY))


def loses_something(held_out: HeldOut) -> Mask:
    """Whether the errors under each projection are more than rounding."""
    errors, variation = held_out.errors.sum(axis=0), held_out.variation.sum(axis=0)
    return np.asarray(errors.max(axis=1) > _ROUNDING * max(float(variation.max()), _TINY))


def above_one(held_out: HeldOut, figure: Figure, level: float, comparisons: int = 1) -> Any:
    """Ratios minus 1: value, low and high as nested lists, along a new last axis."""
    ends = held_out.interval(figure, level=level, comparisons=comparisons, log=True)
    return (np.stack(ends, axis=-1) - 1.0).tolist()


def group_results(crossed: CrossFitted, setup: Setup) -> list[GroupResult]:
    """The figures of every group, from sums for what is judged and the alternative."""
    k, rows, level = len(setup.labels), crossed.rows, setup.origin.thresholds.level
    parts, folds = (of.projections([JUDGED, ALTERNATIVE]) for of in (crossed.parts, crossed.folds))
    shares = parts.relative()
    n_gaps = 1 if k == 2 else max(int(setup.has_gap.sum()), 1)
    gaps, share_gaps = (above_one(of, setup.ratios, level, n_gaps) for of in (parts, shares))
    read = shares if setup.by_share else parts
    se = read.standard_error(lambda t: np.log(np.maximum(setup.ratios(t)[JUDGED], _TINY)))
    quantile = float(stdtrit(read.n_folds - 1, 1 - (1 - level) / (2 * n_gaps)))
    detectable = np.expm1((quantile + float(ndtri(setup.origin.thresholds.power))) * se)

    paired = folds.relative() if setup.by_share else folds
    worst = int(np.where(setup.judged, paired.totals.group_errors[JUDGED], -1.0).argmax())

    def over(totals: Totals) -> Array:
        """The alternative over what is judged: each group's own error, and the worst one."""
        before, after = np.maximum(totals.group_errors, _TINY)
        return np.stack([after / before, after / before[worst]])

    changes, above = above_one(paired, over, level, max(int(setup.judged.sum()), 1))
    robust: list[Any] = [[None] * k] * 2
    gainers: list[Any] = [None] * k
    if len(rows.codes):
        by_row = rows.codes, rows.weights
        robust = [
            robust_figures(errors, *by_row, setup.others, setup.has_gap) for errors in rows.errors
        ]
        gainers = better_off(rows.errors, rows.distances, *by_row, k).tolist()
    errors, lost = parts.totals.group_errors, shares.totals.group_errors

    def figures(projection: int, g: int) -> GroupFigures:
        gap, share_gap = (Interval(*of[projection][g]) for of in (gaps, share_gaps))
        return GroupFigures(
            error=float(errors[projection, g]),
            share=float(lost[projection, g]),
            gap=gap if setup.has_gap[g] else None,
            share_gap=share_gap if setup.has_gap[g] else None,
            gap_estimate=gap.value,
            share_gap_estimate=share_gap.value,
            robust=robust[projection][g],
        )

    return [
        GroupResult(
            label=label,
            name=group_name(label, setup.origin.group_columns),
            n=int(setup.sizes[g]),
            judged=bool(setup.judged[g]),
            compared=label not in setup.set_aside,
            baseline=figures(JUDGED, g),
            alternative=figures(ALTERNATIVE, g),
            change=Interval(*changes[g]) if setup.judged[g] else None,
            change_estimate=changes[g][0],
            above_worst=Interval(*above[g]) if setup.judged[g] else None,
            better_off=gainers[g],
            detectable_gap=float(detectable[g]) if setup.has_gap[g] else None,
        )
        for g, label in enumerate(setup.labels)
    ]


def overall_figures(held_out: HeldOut, level: float) -> Overall:
    """All people together."""
    before, after, *_ = held_out.totals.overall.tolist()
    price = above_one(held_out, lambda t: t.overall[1] / max(float(t.overall[0]), _TINY), level)
    return Overall(before, after, Interval(*price))


# -- figures that a few unusual people cannot move -------------------------------------------------
# A mean of squared errors hangs on its largest terms. Leaving out the rows with the largest shares
# in a *difference* of means would take them all from the smaller group, so that sound findings look
# as if few rows made them. Here every group loses the same share of its own rows, or nobody does.


def robust_figures(
    errors: Array, codes: Codes, weights: Array, others: Mask, wanted: Mask
) -> list[Robust | None]:
    """The robust figures of the groups wanted, each against its ``others``, of shape (k, k)."""
    order = np.argsort(errors, kind="stable")
    errors, codes, weights = errors[order], codes[order], weights[order]
    k = len(wanted)
    trimmed = {share: _trimmed_sums(errors, codes, weights, k, share) for share in _TRIMMED}
    found: list[Robust | None] = [None] * k
    for g in np.flatnonzero(wanted).tolist():
        own, rest = weights * (codes == g), weights * others[g][codes]
        medians = _median(errors, own), _median(errors, rest)
        gaps = {
            share: _gap(sums[g] / totals[g], others[g] @ sums / (others[g] @ totals))
            for share, (sums, totals) in trimmed.items()
        }
        found[g] = Robust(medians[0], _gap(*medians), gaps, _pairs(errors, own, rest))
    return found


def better_off(errors: Array, distances: Array, codes: Codes, weights: Array, k: int) -> Array:
    """Share of each group whose error is smaller under the second projection, of shape (k,)."""
    gains = errors[1] < errors[0] - _NO_GAIN * distances
    totals = np.bincount(codes, weights, minlength=k)
    return np.asarray(
        np.bincount(codes, weights * gains, minlength=k) / np.where(totals, totals, 1)
    )


def _gap(own: float, rest: float) -> float:
    return float(own / rest - 1.0) if rest > 0 else float("nan")


def _median(errors: Array, weights: Array) -> float:
    """The weighted median of sorted errors."""
    errors, weights = errors[weights > 0], weights[weights > 0]
    below = np.cumsum(weights)
    places = [np.searchsorted(below, below[-1] / 2, side) for side in ("left", "right")]
    return float(errors[np.minimum(places, len(errors) - 1)].mean())


def _pairs(errors: Array, own: Array, rest: Array) -> float:
    """Share of pairs in which the first has the larger error; ties count half."""
    below = np.append(0.0, np.cumsum(rest))
    smaller = below[np.searchsorted(errors, errors, "left")]
    not_larger = below[np.searchsorted(errors, errors, "right")]
    return float(own @ (smaller + not_larger) / (2 * below[-1] * own.sum()))


def _trimmed_sums(
    errors: Array, codes: Codes, weights: Array, k: int, share: float
) -> tuple[Array, Array]:
    """Sums of errors and weights by group without the largest errors, ``share`` of each group."""
    sums, totals = np.zeros(k), np.zeros(k)
    for g in range(k):
        rows = np.flatnonzero(codes == g)
        below = np.cumsum(weights[rows])
        if len(rows):
            kept = rows[(below <= (1 - share + 1e-9) * below[-1]) | (rows == rows[0])]
            sums[g], totals[g] = errors[kept] @ weights[kept], weights[kept].sum()
    return sums, totals
