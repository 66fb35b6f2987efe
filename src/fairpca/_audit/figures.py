"""The figures of an audit, from the errors of rows left out and from the fit to all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import nan
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from fairpca._audit import record
from fairpca._audit.any_model import Rebuilt, RebuiltSums
from fairpca._audit.crossed import Crossed
from fairpca._audit.few_rows import deciding_columns, robust_figures
from fairpca._audit.readings import Usual, readings_of
from fairpca._audit.record import GroupFigures, GroupResult, Interval
from fairpca._audit.setup import LEAST, Setup
from fairpca._audit.small_groups import p_values
from fairpca._audit.subgroups import worst_subgroup
from fairpca._audit.verdict import decide, gaps_of, headline, shown_in
from fairpca._cv.held_out import BASELINE, Figure, HeldOut, Totals
from fairpca._estimators.base import FairProjection
from fairpca._estimators.fair_columns import FairColumns
from fairpca._estimators.fair_pca import FairPCA
from fairpca._estimators.fair_pca_cv import FairPCACV, stop_of
from fairpca._linear_map import LinearMap
from fairpca._moments.group_moments import GroupMoments
from fairpca._progress import Progress
from fairpca._typing import Array
from fairpca.exceptions import quietly
from fairpca.path import TradeoffPath, tradeoff_path

JUDGED, ALTERNATIVE = 0, 1  # places of the two choices
_NO_GAIN = 1e-12  # Gains below this share of the squared distance from the mean are rounding.
_MOST_RANKS = 30
_MANY_FEATURES = 300  # With so many features each rank and each point takes time.
_FEW_RANKS = 8
_POINTS_OF_TWO, _POINTS_OF_MORE, _FEW_POINTS = 41, 9, 11
#: Figures of a group of one row, which would be those of a person.
_UNKNOWN = GroupFigures(nan, nan, None, None, nan, nan)


def _above_one(held_out: HeldOut, figure: Figure, level: float, comparisons: int = 1) -> Array:
    """Ratios minus 1: value, low and high, along a new last axis."""
    ends = held_out.interval(figure, level=level, comparisons=comparisons, log=True)
    return np.stack(ends, axis=-1) - 1.0


def group_results(crossed: Crossed, setup: Setup) -> list[GroupResult]:
    """The figures of every group under the judged choice and the alternative."""
    moments = setup.folds.moments
    labels = setup.folds.labels
    baseline, alternative = _sides(crossed, setup)
    changes = _changes(crossed, setup)
    changes[~setup.judged, 1:] = nan
    changes[moments.counts == 1] = nan
    detectable = _detectable_gaps(crossed, setup).tolist()
    bounds = _bounds(crossed, setup).tolist()
    p_worse = p_values(setup, crossed)
    better_off = _better_off(crossed, setup)
    found = []
    missing = moments.share_missing.tolist()
    sizes = moments.n_units.tolist()
    for g, (label, n) in enumerate(zip(labels, moments.counts.tolist(), strict=True)):
        change = Interval(*changes[g].tolist())
        one = GroupResult(
            label=label,
            name=record.group_name(label, setup.folds.group_columns),
            n=n,
            n_units=sizes[g],
            judged=bool(setup.judged[g]),
            compared=label not in setup.set_aside,
            baseline=baseline[g],
            alternative=alternative[g],
            change=change,
            better_off=better_off[g],
            p_worse=p_worse.get(g),
            share_missing=missing[g],
        )
        if one.judged:
            one = replace(one, detectable_gap=detectable[g], bounds=Interval(*bounds[g]))
        if n == 1:
            one = replace(one, baseline=_UNKNOWN, alternative=_UNKNOWN, better_off=None)
        found.append(one)
    return found


def _sides(crossed: Crossed, setup: Setup) -> list[list[GroupFigures]]:
    """The figures of every group under each of the two choices."""
    parts = crossed.parts.projections([JUDGED, ALTERNATIVE])
    shares = parts.relative()
    errors = parts.totals.group_errors
    lost = shares.totals.group_errors
    gaps = _above_one(parts, setup.ratios, setup.level, setup.n_gaps)
    share_gaps = _above_one(shares, setup.ratios, setup.level, setup.n_gaps)
    unknown: list[Any] = [None] * len(setup.judged)
    robust = {JUDGED: unknown, ALTERNATIVE: unknown}
    alone = crossed.alone
    if setup.people is not None and len(alone.rows):
        codes, weights, (errors_of_units,) = setup.people.by_unit(alone.rows, alone.errors[:1])
        robust[JUDGED] = robust_figures(errors_of_units, codes, weights, setup.others, setup.judged)
    found: list[list[GroupFigures]] = [[], []]
    for choice in (JUDGED, ALTERNATIVE):
        for g, judged in enumerate(setup.judged.tolist()):
            gap = Interval(*gaps[choice, g].tolist())
            share_gap = Interval(*share_gaps[choice, g].tolist())
            own = GroupFigures(
                error=float(errors[choice, g]),
                share=float(lost[choice, g]),
                gap=gap,
                share_gap=share_gap,
                gap_estimate=gap.value,
                share_gap_estimate=share_gap.value,
                robust=robust[choice][g],
            )
            if not judged:
                own = replace(own, gap=None, share_gap=None)
            found[choice].append(own)
    return found


def _changes(crossed: Crossed, setup: Setup) -> Array:
    """Each group's error over its own judged error, minus 1."""

    def over(totals: Totals) -> Array:
        before, after = np.maximum(totals.group_errors, LEAST)
        return np.asarray(after / before)

    return _above_one(_paired(crossed, setup), over, setup.level, setup.n_judged)


def gain(crossed: Crossed, setup: Setup) -> record.Gain:
    """The gain of the group described worst, by the statistic of FairPCACV."""
    paired = _paired(crossed, setup)
    labels = setup.folds.labels
    compared = np.array([label not in setup.set_aside for label in labels])
    seen = compared | setup.judged  # also groups that the fit did not look at
    largest = Interval(*map(float, paired.largest_change(seen)))
    return record.Gain(labels[paired.worst_off(compared)], paired.gain_t(compared), largest)


def _paired(crossed: Crossed, setup: Setup) -> HeldOut:
    """Held-out errors of both choices, on the scale of the audit."""
    return setup.as_judged(crossed.folds.projections([JUDGED, ALTERNATIVE]))


def _detectable_gaps(crossed: Crossed, setup: Setup) -> Array:
    """The gap of each group that these rows would show with the wanted power."""
    read = setup.as_judged(crossed.parts.projections([JUDGED]))
    se = read.standard_error(lambda t: np.log(np.maximum(setup.ratios(t)[JUDGED], LEAST)))
    quantile = stdtrit(len(read.errors) - 1, 1 - (1 - setup.level) / (2 * setup.n_gaps))
    with np.errstate(over="ignore"):  # a group of one row: no gap can be shown
        return np.asarray(np.expm1((quantile + ndtri(setup.origin.thresholds.power)) * se))


def _bounds(crossed: Crossed, setup: Setup) -> Array:
    """The gap of each group, with one-sided ends that hold for this group alone."""
    read = setup.as_judged(crossed.parts.projections([JUDGED]))
    return np.asarray(_above_one(read, setup.ratios, max(2 * setup.level - 1, 0.0))[JUDGED])


def _better_off(crossed: Crossed, setup: Setup) -> list[Any]:
    """The share of people in each group whose error the alternative lowers."""
    k = len(setup.judged)
    alone = crossed.alone
    if setup.people is None or not len(alone.rows):
        return [None] * k
    of_rows = np.stack([*alone.errors, alone.distances])
    codes, weights, (before, after, distances) = setup.people.by_unit(alone.rows, of_rows)
    gains = after < before - _NO_GAIN * distances
    totals = np.bincount(codes, weights, minlength=k)
    gained = np.bincount(codes, weights * gains, minlength=k)
    return list((gained / np.where(totals, totals, 1)).tolist())


def widest_column(setup: Setup, own: LinearMap | Rebuilt | RebuiltSums) -> record.Scale:
    """Which column has most of the variance, and how many others are lost."""
    if isinstance(own, Rebuilt | RebuiltSums):
        lost = own.column_errors()
        whole = own.column_variances()
    else:
        lost = column_errors(own, setup.folds.moments)
        whole = column_errors(own.first(0), setup.folds.moments)
    weights = setup.folds.moments.weights
    lost = weights @ lost
    whole = weights @ whole
    widest = int(whole.argmax())
    return record.Scale(
        column=setup.folds.feature_names[widest],
        share=float(whole[widest] / whole.sum()),
        n_lost=int((2 * lost > whole).sum()),
    )


def results(
    setup: Setup,
    crossed: Crossed,
    usual: Usual | None,
    judged: LinearMap | Rebuilt | RebuiltSums,
    **how: Any,
) -> dict[str, Any]:
    """The fields that both kinds of audit have, except for figures about scores.

    ``judged`` is what all rows lead to. ``usual`` fits it anew, for readings; None where it is
    fixed.
    """
    groups = group_results(crossed, setup)
    gaps = gaps_of(groups, setup.by_share)
    shown = {label: gaps[label] for label in shown_in(gaps)}
    readings = readings_of(setup, crossed, usual, shown)
    columns = deciding_columns(setup, crossed.alone.rows, crossed.alone.errors[0])
    before, after, *_ = crossed.folds.totals.overall.tolist()

    def price(totals: Totals) -> Array:
        overall = np.maximum(totals.overall, LEAST)
        return np.asarray(overall[ALTERNATIVE] / overall[JUDGED])

    change = Interval(*_above_one(crossed.folds, price, setup.level).tolist())
    scale = widest_column(setup, judged)
    verdict = decide(
        groups,
        columns,
        setup.origin.thresholds,
        readings=readings,
        by_share=setup.by_share,
        reference=setup.origin.reference,
        nothing_compressed=not crossed.loses[JUDGED],
        columns_are_lost=scale.n_lost > 0,
        **how,
    )
    return {
        "verdict": verdict,
        "groups": groups,
        "overall": record.Overall(before, after, change),
        "readings": readings,
        "columns": columns,
        "scale": scale,
        "left_out": setup.folds.left_out,
        "provenance": setup.origin,
        "subgroup": worst_subgroup(setup, crossed),
    }


def ranks_of_curve(ranks: Sequence[int] | None, r: int, moments: GroupMoments) -> list[int]:
    """The ranks of the curve; see ``ranks`` of :func:`fairpca.audit`."""
    limit = int(min(moments.n_features, moments.n_rows))
    if ranks is not None:
        if not len(ranks) or any(rank not in range(1, limit + 1) for rank in ranks):
            raise ValueError(f"ranks={list(ranks)}: pass integers from 1 to {limit}.")
        return sorted({int(rank) for rank in ranks})
    most = _MOST_RANKS
    if moments.n_features >= _MANY_FEATURES:
        most = _FEW_RANKS
    highest = min(limit, max(2 * r, most))
    grid = np.arange(1, highest + 1)
    if highest > most:
        grid = np.geomspace(1, highest, most).round().astype(int)
    return sorted({r, *grid.tolist()})


def rank_curve(ranks: list[int], crossed: Crossed, setup: Setup) -> record.RankCurve:
    """Errors of PCA by rank (choices from the third on), and the gap that leads at each."""
    read = setup.as_judged(crossed.parts)
    ends = _above_one(read, lambda t: setup.ratios(t)[2:], setup.level, setup.n_gaps)
    groups: list[Any] = []
    gaps: list[Interval | None] = []
    for of_rank, loses in zip(ends.tolist(), crossed.loses[2:], strict=True):
        if not (loses and setup.judged.any()):
            groups.append(None)
            gaps.append(None)
            continue
        judged = np.flatnonzero(setup.judged).tolist()
        found = {setup.folds.labels[g]: Interval(*of_rank[g]) for g in judged}
        leading = headline(found, setup.origin.reference)
        groups.append(leading)
        gaps.append(found[leading])
    errors = crossed.parts.totals.group_errors[2:]
    return record.RankCurve(np.array(ranks), errors, tuple(groups), tuple(gaps))


def frontier(
    fair: FairProjection, setup: Setup, n_points: int | None, has_gap: bool, progress: Progress
) -> TradeoffPath:
    """The frontier at the rank of the audit, also on held-out rows if groups are large enough.

    With more than two groups held-out figures take by far the longest of an audit, so they are left
    out where there is no gap, or no step to choose because none after PCA is efficient.
    """
    moments = setup.folds.moments
    n_folds = moments.n_folds
    two = len(moments.groups) == 2
    points = _POINTS_OF_MORE
    if two:
        points = _POINTS_OF_TWO
    if moments.n_features >= _MANY_FEATURES:
        points = min(points, _FEW_POINTS)
    how: dict[str, Any] = {
        "n_components": fair.n_components_,
        "n_points": n_points or points,
        "max_group_increase": getattr(fair, "max_group_increase", None),
        "progress": progress,
        **setup.origin.shared,
    }
    large = fair.min_group_size >= n_folds or moments.n_units.min() >= n_folds
    with quietly():
        if not (two and large):
            path = tradeoff_path(moments, **how)
            if not (has_gap and large and path.efficient[1:].any()):
                return path
        return tradeoff_path(moments, cv=n_folds, **how)


def fit_figures(both: Sequence[LinearMap], fair: Any, moments: GroupMoments) -> record.Fit:
    """Figures of the judged and the fair choice, fitted to all rows."""
    usual, own = both
    usual_columns = column_errors(usual, moments)
    own_columns = column_errors(own, moments)
    certified = False
    budgets: list[record.Budget] = []
    if isinstance(fair, FairColumns):
        certified = fair.duality_gap_ == 0
    if isinstance(fair, FairPCA):
        certified = fair.solver == "exact"
        budgets = _budgets(fair)
    return record.Fit(
        status=str(fair.status_),
        alpha=float(getattr(fair, "alpha_", nan)),
        duality_gap=float(fair.duality_gap_),
        certified=certified,
        budgets=budgets,
        pca_loadings=usual.directions,
        fair_loadings=own.directions,
        pca_errors=usual_columns.sum(axis=1),
        fair_errors=own_columns.sum(axis=1),
        pca_column_errors=usual_columns,
        fair_column_errors=own_columns,
    )


def _budgets(fair: FairPCA) -> list[record.Budget]:
    """The limits that were asked for, and what was reached on the rows that they apply to."""
    overall = np.array([fair.pca_reconstruction_error_, fair.reconstruction_error_])
    errors = np.array([fair.pca_group_errors_, fair.group_errors_])
    disparity = abs(fair.disparity_)
    if isinstance(fair, FairPCACV):
        stop = stop_of(fair)
        curve = stop.curve
        ends = [BASELINE, stop.chosen]
        overall = curve.held_out.totals.overall[ends]
        errors = curve.held_out.totals.group_errors[ends]
        disparity = float(curve.disparity[stop.chosen])
    compared = [label not in fair.small_groups_ for label in fair.groups_.tolist()]
    above = [_increase(*pair) for pair in errors[:, compared].T.tolist()]
    reached = {
        "max_disparity": disparity,
        "max_error_increase": _increase(*overall.tolist()),
        "max_group_increase": max(above),
    }
    budgets = []
    for name, value in reached.items():
        most = getattr(fair, name)
        if most is not None:
            met = bool(value <= most + 1e-6 * (1 + most))
            budgets.append(record.Budget(name, float(most), float(value), met))
    return budgets


def _increase(old: float, new: float) -> float:
    if old <= 0:
        return 0.0
    return new / old - 1


def column_errors(own: LinearMap, moments: GroupMoments) -> Array:
    """The error of each group on each column, ``diag((I - ED)' C_g (I - ED))``, (k, d)."""
    inner = own.in_units()
    sums = moments.group_sums().divided(own.units)
    lost, _ = sums.lost(inner.encode, inner.decode, inner.mean)
    return np.asarray(np.maximum(lost, 0.0) / sums.weights[:, None])
