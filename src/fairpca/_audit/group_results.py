"""From held-out sums to the figures of every group, with intervals that hold together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit
from sklearn.metrics import roc_auc_score

from fairpca._audit import record
from fairpca._audit.cross_fit import CrossFitted, Folds, People
from fairpca._audit.record import GroupFigures, GroupResult, Interval, Robust
from fairpca._cv.held_out import Figure, HeldOut, Totals
from fairpca._typing import Array, Codes, Mask

JUDGED, ALTERNATIVE = 0, 1  # places of the two projections
_ROUNDING = 1e-9  # of the variation: smaller errors are those of losing nothing
_TINY = 1e-300
_NO_GAIN = 1e-12  # of the squared distance from the mean: smaller gains are rounding
_TRIMMED = (0.01, 0.05)  # shares of every group that are left out


class Setup:
    """Which groups are compared with whom, and how.

    ``by_share``: shares of each group's own variation are judged. ``set_aside``: groups that the
    fit did not compare. ``about`` are the fields of the provenance that the folds do not know.
    """

    def __init__(
        self, folds: Folds, by_share: bool, set_aside: Sequence[Any] = (), **about: Any
    ) -> None:
        self.folds, self.by_share, self.set_aside = folds, by_share, set_aside
        self.origin = origin = record.Provenance(
            n_rows=int(folds.moments.counts.sum()),
            feature_names=folds.feature_names,
            group_columns=folds.group_columns,
            **about,
        )
        level, seed = origin.thresholds.level, origin.random_state
        self.chance: dict[str, Any] = {"confidence": level, "random_state": seed}
        self.people = folds if isinstance(folds, People) else None
        labels, reference = folds.labels, origin.reference
        self.others = ~np.eye(len(labels), dtype=bool)  # whom each group is compared with
        if reference is not None:
            if reference not in labels:
                raise ValueError(
                    f"reference={reference!r} is none of the groups; pass one of {labels}."
                )
            self.others[:] = [label == reference for label in labels]
        least, sizes = origin.thresholds.judge_from, folds.moments.counts
        # A group is judged if it, and those it is compared with, have enough rows.
        self.judged = np.asarray((sizes >= least) & (self.others @ sizes >= least))
        self.has_gap = np.asarray(self.judged & ~np.diag(self.others))  # and is not the reference

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
    folds, thresholds = setup.folds, setup.origin.thresholds
    k, level = len(folds.labels), thresholds.level
    parts, paired = (of.projections([JUDGED, ALTERNATIVE]) for of in (crossed.parts, crossed.folds))
    shares = parts.relative()
    errors, lost = parts.totals.group_errors, shares.totals.group_errors
    n_gaps = 1 if k == 2 else max(int(setup.has_gap.sum()), 1)
    gaps, share_gaps = (above_one(of, setup.ratios, level, n_gaps) for of in (parts, shares))
    read = shares if setup.by_share else parts
    se = read.standard_error(lambda t: np.log(np.maximum(setup.ratios(t)[JUDGED], _TINY)))
    quantile = float(stdtrit(read.n_folds - 1, 1 - (1 - level) / (2 * n_gaps)))
    detectable = np.expm1((quantile + float(ndtri(thresholds.power))) * se)

    paired = paired.relative() if setup.by_share else paired
    worst = int(np.where(setup.judged, paired.totals.group_errors[JUDGED], -1.0).argmax())

    def over(totals: Totals) -> Array:
        """The alternative over what is judged: each group's own error, and the worst one."""
        before, after = np.maximum(totals.group_errors, _TINY)
        return np.stack([after / before, after / before[worst]])

    changes, above = above_one(paired, over, level, max(int(setup.judged.sum()), 1))
    robust: list[Any] = [[None] * k] * 2
    gainers: list[Any] = [None] * k
    if setup.people is not None:
        codes, weights = (of[crossed.rows] for of in (setup.people.codes, setup.people.weights))
        robust = [
            robust_figures(each, codes, weights, setup.others, setup.has_gap)
            for each in crossed.errors
        ]
        gains = crossed.errors[1] < crossed.errors[0] - _NO_GAIN * crossed.distances
        totals = np.bincount(codes, weights, minlength=k)
        better_off = np.bincount(codes, weights * gains, minlength=k)
        gainers = (better_off / np.where(totals, totals, 1)).tolist()

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
            name=record.group_name(label, folds.group_columns),
            n=int(folds.moments.counts[g]),
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
        for g, label in enumerate(folds.labels)
    ]


def overall_figures(held_out: HeldOut, level: float) -> record.Overall:
    """All people together."""
    before, after, *_ = held_out.totals.overall.tolist()
    price = above_one(held_out, lambda t: t.overall[1] / max(float(t.overall[0]), _TINY), level)
    return record.Overall(before, after, Interval(*price))


def robust_figures(
    errors: Array, codes: Codes, weights: Array, others: Mask, wanted: Mask
) -> list[Robust | None]:
    """The robust figures of the groups wanted, each against its ``others``, of shape (k, k)."""
    # Leaving out the rows with the largest shares in a *difference* of means would take them all
    # from the smaller group. Here every group loses the same share of its own rows.
    order = np.argsort(errors, kind="stable")
    errors, codes, weights = errors[order], codes[order], weights[order]
    reached = np.empty(len(codes))  # the share of the own group up to each row
    for g in np.unique(codes):
        below = np.cumsum(weights[codes == g])
        reached[codes == g] = np.append(0.0, below[1:] / below[-1])  # one row is always kept
    found: list[Robust | None] = [None] * len(wanted)
    for g in np.flatnonzero(wanted).tolist():
        both = np.array([weights * (codes == g), weights * others[g][codes]])
        medians = [_median(errors, each) for each in both]
        trimmed = {}
        for share in _TRIMMED:
            kept = both * (reached <= 1 - share + 1e-9)
            trimmed[share] = _gap(*(kept @ errors / kept.sum(axis=1)))
        pairs = roc_auc_score(codes == g, errors, sample_weight=both.sum(axis=0))
        found[g] = Robust(medians[0], _gap(*medians), trimmed, float(pairs))
    return found


def _gap(own: float, rest: float) -> float:
    return float(own / rest - 1.0) if rest > 0 else float("nan")


def _median(errors: Array, weights: Array) -> float:
    """The weighted median of sorted errors."""
    errors, weights = errors[weights > 0], weights[weights > 0]
    below = np.cumsum(weights)
    places = [np.searchsorted(below, below[-1] / 2, side) for side in ("left", "right")]
    return float(errors[np.minimum(places, len(errors) - 1)].mean())
