"""Warnings about a fit."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fairpca._moments.implicit import Moments
from fairpca._moments.operand import Operand
from fairpca._moments.small_groups import SettledGroups
from fairpca._moments.tolerances import (
    KEPT,
    MEAN_NOISE,
    NEGLIGIBLE,
    TINY,
    arithmetic_noise,
    parity_tolerance,
)
from fairpca._problems.problems import PLAIN_PCA, FairProblem
from fairpca._problems.solution import Solution, disparity
from fairpca._problems.status import APPROXIMATE, Status
from fairpca._solvers import Problem
from fairpca._typing import Array
from fairpca.exceptions import (
    DualityGapWarning,
    FewRowsWarning,
    LevellingDownWarning,
    ParityInfeasibleWarning,
    warn,
)

_FEW_ROWS = 30  # A group of fewer rows that decides the result is worth a warning.
_PAID = 0.05  # An error that rises by more than this share is a price worth a warning.
_LITTLE = 2e-3  # Smaller shares of a group's error, or of the largest variance, do not count.
_OF_A_FRONT = 'selection="least_error" is PCA, and FairPCA lowers the largest error.'
_GAP_WORTH_A_WARNING = 1e-2  # Share of the overall error, with very many features.


def warn_of_result(
    problem: Problem | None,
    solution: Solution,
    settled: SettledGroups,
    measured: Operand,
    tol: float,
) -> None:
    """Issue the warnings about a result; the problem was solved for ``measured``."""
    D = float(disparity(solution.errors, settled.compared, solution.harmed, solution.privileged))
    by_folds = solution.status in (Status.CROSS_VALIDATED, Status.NO_GAIN)
    _warn_of_gap(solution, measured, D, tol)
    if isinstance(problem, FairProblem) and problem.alpha != 1.0:
        if measured.products_only:
            _warn_of_pca(problem, solution, measured)
        if problem.alpha is None and not by_folds:
            _warn_of_people(problem, solution, settled, measured, D)
    if solution.status is Status.SELECTED:
        _warn_of_levelling(solution, settled, measured, _OF_A_FRONT)
    if problem != PLAIN_PCA:  # plain PCA favours no group on purpose
        _warn_of_few_rows(solution, settled, measured)


def _warn_of_gap(solution: Solution, measured: Operand, D: float, tol: float) -> None:
    """Warn that parity is out of reach, or that the projection is not proven to be the best."""
    r = solution.basis.shape[1]
    gap = solution.gap
    k = len(measured.shares)
    onto = f"onto {r} components"
    if r == 1:
        onto = "onto 1 component"
    allowed, scale = largest_gap(solution, measured, tol)
    if solution.status is Status.INFEASIBLE:
        proven = "found"
        if gap <= allowed:
            proven = "possible"
        warn(
            f"no projection {onto} has the disparity asked for; this one has the "
            f"least {proven}, {D:.6g}. Pass more components.",
            ParityInfeasibleWarning,
        )
    R = float(measured.shares @ solution.errors)
    rounding = arithmetic_noise(measured.n_features)
    if measured.products_only and k == 2:
        if gap > _GAP_WORTH_A_WARNING * R + rounding * float(measured.traces.max()):
            warn(
                f"with {measured.n_features} features the search ended before it had converged: "
                f"the error {R:.6g} found is exact, but the least one may be lower by {gap:.3g}.",
                ConvergenceWarning,
            )
    elif solution.status not in APPROXIMATE and gap > allowed:
        why = "for more than two groups the bound is not always attained"
        if k == 2:
            why = "nearly equal eigenvalues of the harmed group leave this much to rounding"
        warn(
            f"the projection {onto} may be worse than the best one by up to "
            f"{_percent(gap / max(scale, TINY))} (duality_gap_ = {gap:.3g} of {scale:.6g}), and "
            f"tol = {tol:g} allows {_percent(tol)}: {why}. "
            "Another n_components may close the gap; a larger tol accepts it.",
            DualityGapWarning,
        )


def largest_gap(solution: Solution, measured: Operand, tol: float) -> tuple[float, float]:
    """The gap that passes without a warning, and the quantity that ``tol`` is relative to.

    This quantity is what is minimised, with two exceptions: the overall error for a disparity,
    which may vanish; and the largest variance for welfare and for two groups, solved to rounding.
    """
    largest = float(measured.traces.max())
    if len(measured.shares) == 2 or solution.objective == "welfare":
        return tol * largest, largest
    scale = abs(solution.value)
    if solution.objective == "disparity":
        scale = float(measured.shares @ solution.errors)
    return max(tol * scale, 8 * KEPT * arithmetic_noise(measured.n_features) * largest), scale


def _warn_of_pca(problem: FairProblem, solution: Solution, measured: Operand) -> None:
    """Warn that PCA itself has not converged well enough to compare with."""
    errors = solution.pca.errors
    R = float(measured.shares @ errors)
    unknown = R - solution.pca.bound
    budget = R * problem.max_error_increase
    apart = float(errors[solution.harmed] - errors[solution.privileged])
    negligible = parity_tolerance(measured.traces, measured.traces)
    if unknown <= max(_GAP_WORTH_A_WARNING * min(budget, apart), negligible):
        return
    counts = ""
    if isfinite(budget):
        counts = f"max_error_increase={problem.max_error_increase:g} counts from the latter. "
    warn(
        f"with {measured.n_features} features PCA itself had not converged: its error may be lower "
        f"by up to {unknown:.3g} than {R:.6g}. {counts}"
        f"The harmed group, whose error is larger by {apart:.3g}, might be another one under the "
        "best PCA. Pass another n_components, or fewer features.",
        ConvergenceWarning,
    )


def _warn_of_people(
    problem: FairProblem, solution: Solution, settled: SettledGroups, measured: Operand, D: float
) -> None:
    """Warn that nobody gains, or that only levelling down would give the disparity asked for."""
    efficient = problem.constraint == "efficient"
    _warn_of_levelling(solution, settled, measured, _cheaper(problem), efficient)
    negligible = parity_tolerance(solution.pca.errors, measured.traces)
    asked = problem.max_disparity
    if asked is None or asked + negligible >= D or solution.status is Status.INFEASIBLE:
        return
    reason, ways = {
        "efficient": (
            "the worst-off group is at its best",
            "constraint='no_worse' (no group above PCA's worst error), constraint='parity', or ",
        ),
        "no_worse": (
            "no group may have a larger error than PCA's worst",
            "constraint='parity', or ",
        ),
        "parity": ("no projection with less was found", ""),
    }[problem.constraint]
    warn(
        f"max_disparity={asked:g} is not met: the disparity is {D:.6g}, and {reason}. "
        f"Pass {ways}more components.",
        ParityInfeasibleWarning,
    )


def _warn_of_levelling(
    solution: Solution,
    settled: SettledGroups,
    measured: Operand,
    advice: str,
    efficient: bool = False,
) -> None:
    """Warn that a group is worse off than under PCA, and none is better off."""
    labels = settled.moments.groups.tolist()
    before = solution.pca.errors
    changes = solution.errors - before
    negligible = parity_tolerance(before, measured.traces)
    if changes.max() <= negligible or changes.min() < -negligible:
        return
    paid = _who_pays(labels, before, changes, negligible)
    if efficient:
        gain = f"the worst-off group, {labels[solution.harmed]!r}, gains next to nothing"
        message = f"{gain}, and others pay for it: {paid}"
    else:
        message = f"no group is better off than under PCA, and {paid}: the groups were made more "
        message += "alike by making them worse"
    warn(f"{message}. {advice}", LevellingDownWarning)


def _who_pays(
    labels: Sequence[Any], before: Array, changes: Array, negligible: float | Array
) -> str:
    """The groups whose error rises, and by how much, the largest rise first."""
    risen = changes > negligible
    known = before > negligible
    order = [g for g in np.argsort(-changes).tolist() if risen[g]]
    named = []
    for g in order[:3]:
        share = ""
        if known[g]:
            share = f" by {_percent(changes[g] / before[g])}"
        start = max(before[g], 0.0)
        end = before[g] + changes[g]
        named.append(f"{labels[g]!r}{share} (from {start:.4g} to {end:.4g})")
    more = ""
    if len(order) > 3:
        more = f" and {len(order) - 3} more"
    return f"the error rises for {', '.join(named)}{more}"


def _percent(share: float) -> str:
    """Three digits, without an exponent: "3210 %"."""
    return f"{float(f'{100 * share:.3g}'):.12g} %"


def _cheaper(problem: FairProblem) -> str:
    """Advice on how to limit the price that groups pay."""
    if problem.constraint != "efficient":
        return 'constraint="efficient", the default, stops before that.'
    if isfinite(problem.max_error_increase):
        return "Pass a smaller max_error_increase, or alpha=1 in its place, which is PCA."
    return "Pass max_error_increase to limit the price."


def _warn_of_few_rows(solution: Solution, settled: SettledGroups, measured: Operand) -> None:
    """Warn that other groups pay for the sake of a group of few rows."""
    harmed = solution.harmed
    counts = settled.moments.counts
    before = solution.pca.errors
    few = counts < _FEW_ROWS
    if not few[harmed]:
        return
    least = max(_LITTLE * float(measured.traces.max()), TINY)
    changes = (solution.errors - before) / np.maximum(before, least)
    nobody_larger = bool(few.all()) and counts[harmed] <= 2
    paid = float(changes[~few | nobody_larger].max(initial=0.0))
    if changes[harmed] >= 0 or paid <= _PAID:
        return
    n = counts[harmed]
    compared = settled.compared
    step = "Collect more rows of it before you rely on the result."
    if (compared & ~few).sum() > 1:
        merged = ""
        if counts[compared & few].sum() >= _FEW_ROWS:
            merged = "'merge' or "
        option = f"small_groups={merged}'ignore'"
        step = f"Pass min_group_size={_FEW_ROWS} with {option} to leave it out."
    rows = f"{n} rows"
    if n == 1:
        rows = f"{n} row"
    others = "a larger"
    if nobody_larger:
        others = "another"
    label = settled.moments.groups.tolist()[harmed]
    warn(
        f"{label!r} has only {rows} and "
        f"steers the projection: its error falls by {_percent(-changes[harmed])}, and that of "
        f"{others} group rises by up to {_percent(paid)}. "
        f"{step}",
        FewRowsWarning,
    )


def warn_of_held_out(
    problem: FairProblem, labels: Sequence[Any], changes: Array, pca_errors: Array, D: float
) -> None:
    """Warn that on held-out rows nobody gains, or that the disparity is too large.

    ``labels``, ``changes`` and ``pca_errors`` are those of the groups that are compared.
    """
    negligible = parity_tolerance(pca_errors, pca_errors)
    hardly = np.maximum(_LITTLE * pca_errors, negligible)
    if (changes > hardly).any() and (changes >= -hardly).all():
        warn(
            "on held-out rows no group is better off than under PCA by more than "
            f"{100 * _LITTLE:g} %, and {_who_pays(labels, pca_errors, changes, hardly)}. "
            f"{_cheaper(problem)}",
            LevellingDownWarning,
        )
    if problem.max_disparity is not None and problem.max_disparity < D - negligible:
        alternative = ""
        if problem.constraint == "efficient":
            alternative = ", or constraint='parity'"
        warn(
            f"max_disparity={problem.max_disparity:g} is not met: on held-out rows the disparity "
            f"is {D:.6g}. Pass more components{alternative}.",
            ParityInfeasibleWarning,
        )


def warn_of_target(r2: float, plain_r2: float) -> None:
    """Warn that the scores explain nothing of the target; arguments are shares of its variance."""
    if r2 > MEAN_NOISE:
        return
    rounding = "target_r2_ is rounding"
    message = f"the features tell nothing about y: {rounding}. Pass other features, or another y."
    if plain_r2 > MEAN_NOISE:
        message = (
            f"nothing is left to predict y from: {rounding}, and plain PLS explains {plain_r2:.3g} "
            "of y. What the features tell about y is what tells the groups apart; y may "
            "be the group itself. Pass another y, or allow a gap, for example max_mean_gap=0.1."
        )
    warn(message, UserWarning)


def warn_of_data(moments: Moments) -> None:
    """Warn that some of the data are lost in the rounding of float64."""
    about_means, of_means = moments.variances()
    within = float(about_means.sum())
    between = float(of_means.sum())
    if NEGLIGIBLE * between > within > 0:  # errors keep six digits
        warn(
            f"the groups' means are so far apart (mean square {between:.3g}) that the spread of "
            f"the rows about them ({within:.3g}) is nearly lost in the rounding of float64: take "
            f"errors and disparity as uncertain by about {1e-15 * between:.1g}. Drop the columns "
            "that tell the groups apart, or subtract each group's mean first.",
            RuntimeWarning,
        )
    variances = about_means + of_means
    largest = int(variances.argmax())
    others = float(np.delete(variances, largest).sum())
    if 0 < others < 8 * KEPT * arithmetic_noise(len(variances)) * float(variances.sum()):
        names = moments.feature_names or range(len(variances))
        warn(
            f"feature {names[largest]!r} varies so much more (variance "
            f"{variances[largest]:.3g}) than all others together ({others:.3g}) that these are "
            "lost in the rounding of float64. Pass standardize=True, or leave this one out.",
            RuntimeWarning,
        )
