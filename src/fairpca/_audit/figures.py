"""The figures of an audit, from the errors of rows left out and from the fit to all rows."""

from collections.abc import Sequence
from dataclasses import replace
from math import nan
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing

from fairpca._audit import record
from fairpca._audit.cross_fit import CrossFitted, Folds, People, Subspace, dense, fit_quietly
from fairpca._audit.record import GroupFigures, GroupResult, Interval, Robust
from fairpca._audit.verdict import decide, headline
from fairpca._cv.held_out import PCA, Figure, HeldOut, Totals
from fairpca._estimators.base import FairProjection
from fairpca._estimators.fair_columns import FairColumns
from fairpca._estimators.fair_pca import FairPCA
from fairpca._estimators.fair_pca_cv import FairPCACV
from fairpca._input.folds import FoldRule
from fairpca._moments.group_moments import GroupMoments
from fairpca._typing import Array, Codes, Mask
from fairpca.exceptions import quietly
from fairpca.metrics import Outcomes, classifier_outcomes, group_separation, probe_groups
from fairpca.path import TradeoffPath, tradeoff_path

JUDGED, ALTERNATIVE = 0, 1  # places of the two projections
_TINY = 1e-300  # in place of a zero divisor; ratios to it stay finite
_NO_GAIN = 1e-12  # Gains below this share of the squared distance from the mean are rounding.
_TRIMMED = (0.01, 0.05)  # shares of each group that trimmed means leave out
_MOST_RANKS = 30
_MANY_FEATURES, _FEW_RANKS = 300, 8  # With so many features each rank takes time.
_MOST_COLUMNS = 2000  # Tables with more are not searched for deciding columns.
_FEW = 0.05  # largest share of a group's rows that counts as few
_MANY_ALIKE = 0.02  # An extreme value in a larger share of the rows belongs to the column.
_MOST_ROWS = 10_000  # Classifiers get a sample of larger tables.
_FOLDS = 5  # for classifiers
FEWEST_FOLDS = 3  # for FairPCACV when it is fitted to a part of the rows
_MOST_SCORES = 600  # people in the sample of scores


class Setup:
    """Which groups are compared with which others, and how.

    ``by_share`` judges shares of each group's own variation. ``set_aside`` lists groups that the
    fit did not compare. ``own`` holds the fields of the provenance that the folds do not know.
    """

    def __init__(self, folds: Folds, by_share: bool, set_aside: Sequence[Any], **own: Any) -> None:
        self.folds, self.by_share, self.set_aside = folds, by_share, set_aside
        self.origin = origin = record.Provenance(
            n_rows=int(folds.moments.counts.sum()),
            fitted_here=own["n_folds"] > 0,
            feature_names=folds.feature_names,
            group_columns=folds.group_columns,
            **own,
        )
        level, seed = origin.thresholds.level, origin.random_state
        self.chance: dict[str, Any] = {"level": level, "random_state": seed}
        self.people = folds if isinstance(folds, People) else None
        labels, reference = folds.labels, origin.reference
        if reference not in (None, *labels):
            raise ValueError(
                f"the reference {reference!r} is none of the groups; pass one of "
                f"{', '.join(map(repr, labels))}."
            )
        self.others = ~np.eye(len(labels), dtype=bool)  # whom each group is compared with
        if reference is not None:  # which is itself compared with all others
            is_reference = np.array([label == reference for label in labels])
            self.others[~is_reference] = is_reference
        least, sizes = origin.thresholds.judge_from, folds.moments.counts
        # A group is judged if it has enough rows and the others have enough too.
        self.judged = np.asarray((sizes >= least) & (self.others @ sizes >= least))
        # Two groups are one comparison, seen from both sides.
        self.n_gaps = 1 if len(labels) == 2 else max(int(self.judged.sum()), 1)

    def ratios(self, totals: Totals) -> Array:
        """``R_g / R_rest`` or ``R_g / R_reference``, of shape (n_projections, k)."""
        weights = np.maximum(self.others @ totals.weights, _TINY)
        rest = totals.errors @ self.others.T / weights
        return np.asarray(totals.group_errors / np.maximum(rest, _TINY))


def above_one(held_out: HeldOut, figure: Figure, level: float, comparisons: int = 1) -> Any:
    """Ratios minus 1: value, low and high as nested lists, along a new last axis."""
    ends = held_out.interval(figure, level=level, comparisons=comparisons, log=True)
    return (np.stack(ends, axis=-1) - 1.0).tolist()


def group_results(crossed: CrossFitted, setup: Setup) -> list[GroupResult]:
    """The figures of every group under the judged projection and the alternative."""
    folds, thresholds = setup.folds, setup.origin.thresholds
    k, level = len(folds.labels), thresholds.level
    parts, paired = (of.projections([JUDGED, ALTERNATIVE]) for of in (crossed.parts, crossed.folds))
    shares = parts.relative()
    errors, lost = parts.totals.group_errors, shares.totals.group_errors
    n_judged, n_gaps = max(int(setup.judged.sum()), 1), setup.n_gaps
    gaps, share_gaps = (above_one(of, setup.ratios, level, n_gaps) for of in (parts, shares))
    read = shares if setup.by_share else parts
    se = read.standard_error(lambda t: np.log(np.maximum(setup.ratios(t)[JUDGED], _TINY)))
    quantile = float(stdtrit(len(read.errors) - 1, 1 - (1 - level) / (2 * n_gaps)))
    with np.errstate(over="ignore"):  # a group of one row: no gap can be shown
        detectable = np.expm1((quantile + float(ndtri(thresholds.power))) * se)

    paired = paired.relative() if setup.by_share else paired
    worst = int(np.where(setup.judged, paired.totals.group_errors[JUDGED], -1.0).argmax())

    def over(totals: Totals) -> Array:
        """Errors of the alternative over each group's own judged error, and over the worst."""
        before, after = np.maximum(totals.group_errors, _TINY)
        return np.stack([after / before, after / before[worst]])

    changes, above = above_one(paired, over, level, n_judged)
    robust: list[Any] = [None] * k
    gainers: list[Any] = [None] * k
    if setup.people is not None:
        codes, weights = setup.people.codes[crossed.rows], setup.people.weights[crossed.rows]
        robust = robust_figures(crossed.errors[0], codes, weights, setup.others, setup.judged)
        gains = crossed.errors[1] < crossed.errors[0] - _NO_GAIN * crossed.distances
        totals = np.bincount(codes, weights, minlength=k)
        better_off = np.bincount(codes, weights * gains, minlength=k)
        gainers = (better_off / np.where(totals, totals, 1)).tolist()

    sizes = folds.moments.counts.tolist()

    def figures(projection: int, g: int) -> GroupFigures:
        if sizes[g] == 1:  # these would be the figures of a person
            return GroupFigures(nan, nan, None, None, nan, nan)
        gap, share_gap = (Interval(*of[projection][g]) for of in (gaps, share_gaps))
        return GroupFigures(
            error=float(errors[projection, g]),
            share=float(lost[projection, g]),
            gap=gap if setup.judged[g] else None,
            share_gap=share_gap if setup.judged[g] else None,
            gap_estimate=gap.value,
            share_gap_estimate=share_gap.value,
            robust=robust[g] if projection == JUDGED else None,
        )

    return [
        GroupResult(
            label=label,
            name=record.group_name(label, folds.group_columns),
            n=sizes[g],
            judged=bool(setup.judged[g]),
            compared=label not in setup.set_aside,
            baseline=figures(JUDGED, g),
            alternative=figures(ALTERNATIVE, g),
            change=Interval(*changes[g]) if setup.judged[g] else None,
            change_estimate=changes[g][0] if sizes[g] > 1 else nan,
            above_worst=Interval(*above[g]) if setup.judged[g] else None,
            better_off=gainers[g] if sizes[g] > 1 else None,
            detectable_gap=float(detectable[g]) if setup.judged[g] else None,
        )
        for g, label in enumerate(folds.labels)
    ]


def results(setup: Setup, crossed: CrossFitted, **how: Any) -> dict[str, Any]:
    """The fields that both kinds of audit have, except for figures about scores."""
    thresholds, folds = setup.origin.thresholds, crossed.folds
    groups = group_results(crossed, setup)
    columns = deciding_columns(setup, crossed.rows, crossed.errors[0])
    how |= {"by_share": setup.by_share, "reference": setup.origin.reference}
    how |= {"nothing_compressed": not crossed.loses[JUDGED]}
    before, after, *_ = folds.totals.overall.tolist()
    price = above_one(
        folds, lambda t: np.divide(*np.maximum(t.overall[1::-1], _TINY)), thresholds.level
    )
    return {
        "verdict": decide(groups, columns, thresholds, **how),
        "groups": groups,
        "overall": record.Overall(before, after, Interval(*price)),
        "columns": columns,
        "left_out": setup.folds.left_out,
        "provenance": setup.origin,
    }


def robust_figures(
    errors: Array, codes: Codes, weights: Array, others: Mask, wanted: Mask
) -> list[Robust | None]:
    """Robust figures of the wanted groups against their ``others``, a mask of shape (k, k)."""
    # Trimming the rows that contribute most to a *difference* of means would take them all from the
    # smaller group. Here every group loses the same share of its own rows.
    order = np.argsort(errors, kind="stable")
    errors, codes, weights = errors[order], codes[order], weights[order]
    reached = np.empty(len(codes))  # share of its own group up to each row
    for g in np.unique(codes):
        below = np.cumsum(weights[codes == g])
        reached[codes == g] = np.append(0.0, below[1:] / below[-1])  # one row is always kept
    found: list[Robust | None] = [None] * len(wanted)
    for g in np.flatnonzero(wanted).tolist():
        both = np.array([weights * (codes == g), weights * others[g][codes]])
        averages: list[Any] = [[_median(errors, each) for each in both]]
        for share in _TRIMMED:
            kept = both * (reached <= 1 - share + 1e-9)
            averages.append(kept @ errors / kept.sum(axis=1))
        gaps = [float(own / rest - 1) if rest > 0 else nan for own, rest in averages]
        trimmed = dict(zip(_TRIMMED, gaps[1:], strict=True))
        pairs = roc_auc_score(codes == g, errors, sample_weight=both.sum(axis=0))
        found[g] = Robust(averages[0][0], gaps[0], trimmed, float(pairs))
    return found


def _median(errors: Array, weights: Array) -> float:
    """The weighted median of sorted errors."""
    errors, weights = errors[weights > 0], weights[weights > 0]
    below = np.cumsum(weights)
    places = [np.searchsorted(below, below[-1] / 2, side) for side in ("left", "right")]
    return float(errors[np.minimum(places, len(errors) - 1)].mean())


def ranks_of_curve(ranks: Sequence[int] | None, r: int, moments: GroupMoments) -> list[int]:
    """The ranks of the curve; see ``ranks`` of :func:`fairpca.audit`."""
    limit = int(min(moments.n_features, moments.counts.sum()))
    if ranks is None:
        most = _MOST_RANKS if moments.n_features < _MANY_FEATURES else _FEW_RANKS
        highest = min(limit, max(2 * r, most))
        few = highest <= most
        grid = np.arange(1, highest + 1) if few else np.geomspace(1, highest, most).round()
        ranks = [r, *grid.astype(int).tolist()]
    elif not len(ranks) or any(rank not in range(1, limit + 1) for rank in ranks):
        raise ValueError(f"ranks={list(ranks)}: pass integers from 1 to {limit}.")
    return sorted({int(rank) for rank in ranks})


def rank_curve(ranks: list[int], crossed: CrossFitted, setup: Setup) -> record.RankCurve:
    """Errors of PCA by rank (projections from the third on), and the gap that leads at each."""
    read = crossed.parts.relative() if setup.by_share else crossed.parts
    origin = setup.origin
    ends = above_one(read, lambda t: setup.ratios(t)[2:], origin.thresholds.level, setup.n_gaps)
    labels, judged = setup.folds.labels, np.flatnonzero(setup.judged)
    leading: list[Any] = []
    for own, loses in zip(ends, crossed.loses[2:], strict=True):
        gaps = {labels[g]: Interval(*own[g]) for g in judged if loses}
        group = headline(gaps, origin.reference) if gaps else None
        leading.append((group, gaps.get(group)))
    errors = crossed.parts.totals.group_errors[2:]
    return record.RankCurve(np.array(ranks), errors, *zip(*leading, strict=True))


def frontier(
    fair: FairProjection, setup: Setup, n_points: int | None, has_gap: bool
) -> TradeoffPath:
    """The frontier at the rank of the audit, also on held-out rows if groups are large enough.

    With more than two groups held-out figures take by far the longest of an audit, so they are left
    out where there is no gap, or no step to choose because none after PCA is efficient.
    """
    moments, n_folds = setup.folds.moments, setup.folds.moments.n_folds
    large = fair.min_group_size >= n_folds or moments.counts.min() >= n_folds
    how: dict[str, Any] = {"n_components": fair.n_components_, **setup.origin.shared}
    how["max_group_increase"] = getattr(fair, "max_group_increase", None)
    two = len(moments.groups) == 2
    how["n_points"] = n_points or (41 if two else 9)
    with quietly():
        path = None if two else tradeoff_path(moments, **how)
        if path is None or (has_gap and large and path.efficient[1:].any()):
            path = tradeoff_path(moments, cv=n_folds if large else None, **how)
    return path


def fit_figures(both: Sequence[Subspace], fair: Any, moments: GroupMoments) -> record.Fit:
    """Figures of the judged and the fair projection, fitted to all rows."""
    columns = [column_errors(projection, moments) for projection in both]
    exact = isinstance(fair, FairPCA) and fair.solver == "exact"
    return record.Fit(
        str(fair.status_),
        float(getattr(fair, "alpha_", nan)),
        float(fair.duality_gap_),
        exact or (isinstance(fair, FairColumns) and fair.duality_gap_ == 0),
        _budgets(fair) if isinstance(fair, FairPCA) else [],
        *(projection.components for projection in both),
        *(errors.sum(axis=1) for errors in columns),
        *columns,
    )


def _budgets(fair: FairPCA) -> list[record.Budget]:
    """The limits that were asked for, and what was reached on the rows that they apply to."""
    overall = np.array([fair.pca_reconstruction_error_, fair.reconstruction_error_])
    errors, D = np.array([fair.pca_group_errors_, fair.group_errors_]), abs(fair.disparity_)
    if isinstance(fair, FairPCACV):
        curve, ends = fair._stop.curve, [PCA, fair._stop.chosen]
        totals, D = curve.held_out.totals, float(curve.disparity[fair._stop.chosen])
        overall, errors = totals.overall[ends], totals.group_errors[ends]
    compared = [label not in fair.small_groups_ for label in fair.groups_.tolist()]
    pairs = [overall, *errors[:, compared].T]
    above = [new / old - 1 if old > 0 else 0.0 for old, new in pairs]
    reached = {
        "max_disparity": D,
        "max_error_increase": above[0],
        "max_group_increase": max(above[1:]),
    }
    return [
        record.Budget(name, float(most), float(value), bool(value <= most + 1e-6 * (1 + most)))
        for name, value in reached.items()
        if (most := getattr(fair, name)) is not None
    ]


def column_errors(projection: Subspace, moments: GroupMoments) -> Array:
    """The error of each group on each column, ``diag((I - P) C_g (I - P)')``, of shape (k, d)."""
    U, mean, scale, V = *projection[:3], projection.rebuild
    scale, operand = np.broadcast_to(scale, mean.shape), moments.operand("group")
    d = (moments.means - mean) / scale
    C_U = operand.products((U / scale).T) / scale[:, None] + np.einsum("kj,kr->kjr", d, d @ U.T)
    once = np.einsum("kjr,rj->kj", C_U, V)
    twice = np.einsum("rj,krs,sj->kj", V, U @ C_U, V)
    errors: Array = np.maximum(operand.diagonals / scale**2 + d**2 - 2 * once + twice, 0.0)
    return errors


def deciding_columns(setup: Setup, rows: Codes, errors: Array) -> list[record.DecidingColumn]:
    """Columns whose scale depends on few rows; deciding columns come first.

    A column decides if these rows make up much of the error of a judged group, or of those whom it
    is compared with, whether they are judged or not. If one person makes up as much of a judged
    group's error, the column in which that person is most extreme is listed too.
    """
    people, thresholds = setup.people, setup.origin.thresholds
    if people is None or len(people.feature_names) > _MOST_COLUMNS:
        return []
    X = dense(_safe_indexing(people.values, rows))
    codes, k = people.codes[rows], len(people.labels)
    few, errors = max(int(thresholds.few_rows * len(X)), 1), errors * people.weights[rows]
    judged = np.flatnonzero(setup.judged)
    sides = np.concatenate([np.eye(k)[judged], setup.others[judged]])  # groups, then their others
    totals, sizes = (np.bincount(codes, each, minlength=k) for each in (errors, None))
    alone = {}  # by column, the person who makes up much of a group's error
    for g in judged.tolist():
        row = int(np.where(codes == g, errors, -1.0).argmax())
        if errors[row] > thresholds.decides * totals[g]:
            far = np.abs(X[row] - X.mean(axis=0)) / np.maximum(X.std(axis=0), _TINY)
            alone[int(far.argmax())] = row
    hanging = {j: at for j, x in enumerate(X.T) if len(at := _few_rows(x, few))}
    candidates = {j: np.array([row]) for j, row in alone.items()} | hanging
    found, fewest = [], np.full(len(X), len(X))  # the fewest rows by which a column decides
    for j, at in sorted(candidates.items(), key=lambda own: (len(own[1]), own[0])):
        x, hangs = X[:, j], j in hanging
        # A value that decides by itself must not accuse other columns that share its row.
        part = np.bincount(codes[at], errors[at] * (fewest[at] >= len(at)), minlength=k)
        is_few = sides @ np.bincount(codes[at], minlength=k) <= np.maximum(_FEW * sides @ sizes, 1)
        deciding = np.flatnonzero(is_few & (sides @ part > thresholds.decides * sides @ totals))
        group = None
        if len(deciding):  # if these rows are among the others, the group with most of their error
            group = [*judged.tolist(), *[int(part.argmax())] * len(judged)][deciding[0]]
            fewest[at] = np.minimum(fewest[at], len(at) if hangs else len(X))
        values, others, middle = np.unique(x[at]), np.delete(x, at), np.median(x)
        side = np.sign(values[[0, -1]] - middle).sum() / 2  # 0 if these rows lie on both sides
        next_value = others[(side * others if side else np.abs(others - middle)).argmax()]
        squares = (x - x.mean()) ** 2
        found.append(
            record.DecidingColumn(
                name=people.feature_names[j],
                n_rows=len(at),
                value=float(values[0]) if hangs and len(values) == 1 else None,
                next_value=float(next_value),
                share_of_variance=float(squares[at].sum() / squares.sum()),
                near_constant=bool(np.ptp(others) == 0),
                decides=hangs and group is not None,
                group=None if group is None else people.labels[group],
                share_of_error=0.0 if group is None else float(part[group] / totals[group]),
            )
        )
    return sorted(found, key=lambda column: not column.decides)


def _few_rows(x: Array, few: int) -> Codes:
    """The few rows that the scale of a column depends on; empty if there are none.

    They are the only ones that differ from the median, or make up half of the variance, or share an
    extreme value that makes up a quarter of it, such as a 0 that stands for a missing value.
    """
    different = np.flatnonzero(x != np.median(x))
    if len(different) <= few:
        return different
    squares = (x - x.mean()) ** 2
    largest = np.argpartition(-squares, few)[:few]
    largest = largest[np.argsort(-squares[largest], kind="stable")]
    reached = np.cumsum(squares[largest]) > squares.sum() / 2
    if reached.any():
        alike = np.flatnonzero(squares >= squares[largest[int(reached.argmax())]])
        if len(alike) <= few:
            return alike
    extreme = x == x[squares.argmax()]
    shared = extreme.sum() <= _MANY_ALIKE * len(x) and np.ptp(x[~extreme]) > 0
    return np.flatnonzero(extreme & (shared and squares[extreme].sum() > squares.sum() / 4))


def leakage(
    setup: Setup, both: Sequence[Subspace], probes: bool, smaller: Any = None
) -> record.Leakage | None:
    """How far apart the scores of judged groups are, and how well the group can be guessed.

    If ``smaller``, an estimator for fewer rows, is given, projections are fitted to one half of the
    rows and probes guess the groups of the other half.
    """
    people = setup.people
    if people is None or setup.judged.sum() < 2:
        return None
    rows, groups = np.flatnonzero(setup.judged[people.codes]), people.groups
    apart = []
    for projection in both:
        moments = people.moments_of(projection.scores(people.values), None, rows)
        as_they_are = SimpleNamespace(components_=np.eye(moments.n_features), mean_=0.0)
        found = group_separation(as_they_are, moments)
        furthest = float(found.discriminant_auc.max())
        apart.append({"centroid_share": found.centroid_share, "discriminant_auc": furthest})
    if not probes and people.classes is None:
        return record.Leakage(apart[0], apart[1])
    rows, seed = _sampled(setup, people), setup.origin.random_state
    if smaller is not None:
        halves = train_test_split(rows, test_size=0.5, stratify=groups[rows], random_state=seed)
        fitted_to, rows = map(np.sort, halves)
        half = people.moments_of(people.values, FoldRule(FEWEST_FOLDS), fitted_to)
        fitted = fit_quietly(smaller, half)
        both = [Subspace.usual(fitted, half), Subspace.of(fitted)]
    scores = [projection.scores(_safe_indexing(people.values, rows)) for projection in both]
    probed = [probe_groups(None, own, groups[rows], cv=_FOLDS, **setup.chance) for own in scores]
    return record.Leakage(apart[0], apart[1], probed[0], probed[1], len(rows))


def outcomes(setup: Setup, model: Any, X: Any) -> list[Outcomes] | None:
    """Rates by judged group of classifiers on the scores, on PCA's scores and on all features."""
    people = setup.people
    if people is None or people.classes is None or setup.judged.sum() < 2:
        return None
    y, rows = people.classes, _sampled(setup, people)
    cells = people.codes[rows], np.unique(y[rows], return_inverse=True)[1]
    n_folds = min(_FOLDS, int(np.unique(cells, axis=1, return_counts=True)[1].min()))
    if n_folds < 2:  # a group has only one row of a class
        return None
    X = _safe_indexing(X, rows)
    with quietly():
        X, y = X.toarray() if hasattr(X, "toarray") else X, y[rows]
        how = {"pos_label": people.pos_label, "cv": n_folds} | setup.chance
        found = classifier_outcomes(model, X, people.groups[rows], y, **how)
    return [replace(result, data=None) for result in found]  # without predictions for people


def _sampled(setup: Setup, people: People) -> Codes:
    """The rows of judged groups; if there are too many, a random sample stratified by group."""
    rows, seed = np.flatnonzero(setup.judged[people.codes]), setup.origin.random_state
    if len(rows) <= _MOST_ROWS:
        return rows
    how = {"train_size": _MOST_ROWS, "stratify": people.codes[rows], "random_state": seed}
    return np.sort(train_test_split(rows, **how)[0])


def sampled_scores(setup: Setup, both: Sequence[Subspace]) -> record.SampledRows | None:
    """Scores of a random sample, with about the same number of people of each judged group."""
    people, judged = setup.people, np.flatnonzero(setup.judged)
    if people is None or not len(judged):
        return None
    rng = np.random.default_rng(setup.origin.random_state)
    each = max(_MOST_SCORES // len(judged), 1)
    members = [rng.permutation(np.flatnonzero(people.codes == g))[:each] for g in judged]
    rows = np.concatenate([np.sort(own) for own in members])
    pca, fair = (one.scores(_safe_indexing(people.values, rows))[:, :2] for one in both)
    return record.SampledRows(people.positions[rows], people.codes[rows], pca, fair)
