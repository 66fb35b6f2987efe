"""What a user must not overlook about a fit, as warnings."""

from __future__ import annotations

from math import isfinite

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.implicit import ImplicitMoments
from fairpca._moments.operand import TINY, Operand
from fairpca._moments.small_groups import SettledGroups
from fairpca._problems.fair import PLAIN_PCA, FairProblem
from fairpca._problems.pls import PLSProblem
from fairpca._problems.solution import Solution
from fairpca._problems.status import APPROXIMATE, Status
from fairpca._solvers import Problem
from fairpca._solvers.eigenspaces.dense import rounding_of
from fairpca._typing import Array
from fairpca.exceptions import (
    DualityGapWarning,
    FewRowsWarning,
    LevellingDownWarning,
    ParityInfeasibleWarning,
    warn,
)

FEW_ROWS = 30  # below, a group that decides the result is worth a warning
_PAID = 0.05  # of a group's error under PCA: more is a price worth a warning
_LITTLE = 1e-3  # of the largest variance: shares of smaller errors say nothing
_LOST_DIGITS = 1e9  # the ratio of spreads that leaves errors six digits
_DROWNED = 10  # times rounding: variances that are smaller are lost in it
_NOISE = 64  # times rounding: no smaller gap can be proven
_NO_CHANGE = 1e-9  # of the largest error
_NEXT_TO_NOTHING = 2e-3  # of a group's held-out error: a smaller gain is none
_UNRELATED = 1e-12  # of the target's variance: no more than rounding explains
_ROUNDED = 1e-13  # of the largest trace: what rounding can make of errors
_GAP_WORTH_A_WARNING = 1e-2  # of the overall error; only very many features can leave one


def warn_of_result(
    problem: Problem, solution: Solution, measured: Operand, disparity: float, tol: float
) -> None:
    """Say that parity is out of reach, or that the projection is not proven to be the best."""
    r, gap = solution.basis.shape[1], solution.gap
    onto = f"onto {r} component{'s' if r > 1 else ''}"
    if solution.status is Status.INFEASIBLE:
        warn(
            f"no projection {onto} has the disparity asked for; this one has the "
            f"least possible, {disparity:.6g}. Pass more components.",
            ParityInfeasibleWarning,
        )
    R, rounding = float(measured.shares @ solution.errors), rounding_of(measured.n_features)
    implicit = measured.compact.matrices is None
    if implicit and len(measured.shares) == 2:
        if gap > _GAP_WORTH_A_WARNING * R + rounding * float(measured.traces.max()):
            warn(
                f"with {measured.n_features} features the search ended before it had converged: "
                f"the least error may be lower by up to {gap:.3g} than {R:.6g}, that of the "
                "projection found. All figures about this projection are exact.",
                ConvergenceWarning,
            )
    elif solution.status not in APPROXIMATE and gap > largest_gap(solution, measured, tol):
        why = "for more than two groups the bound is not always attained"
        if len(measured.shares) == 2:
            why = "nearly equal eigenvalues of the harmed group leave this much to rounding"
        warn(
            f"the projection {onto} may be up to duality_gap_ = {gap:.3g} worse "
            f"than the best one, which is more than tol = {tol:g} allows: {why}. "
            "Another n_components may close the gap; a larger tol accepts it.",
            DualityGapWarning,
        )
    if isinstance(problem, FairProblem) and problem.alpha != 1.0 and implicit:
        _warn_of_pca(problem, solution, measured)
    by_folds = solution.status in (Status.CROSS_VALIDATED, Status.NO_GAIN)  # by held-out errors
    if isinstance(problem, FairProblem) and problem.alpha is None and not by_folds:
        _warn_of_people(problem, solution, measured, disparity)


def largest_gap(solution: Solution, measured: Operand, tol: float) -> float:
    """The gap that passes without a warning.

    Relative to what is minimised. A disparity may vanish, so that its gap is compared with the
    overall error. Two groups are solved to rounding, which depends on the largest variance, as
    does welfare.
    """
    largest = float(measured.traces.max())
    if len(measured.shares) == 2 or solution.objective == "welfare":
        return tol * largest
    error = float(measured.shares @ solution.errors)
    scale = error if solution.objective == "disparity" else abs(solution.value)
    return max(tol * scale, _NOISE * rounding_of(measured.n_features) * largest)


def _warn_of_pca(problem: FairProblem, solution: Solution, measured: Operand) -> None:
    """Say that PCA is not known well enough for what rests on it."""
    R = float(measured.shares @ solution.pca.errors)
    unknown, budget = R - solution.pca.bound, R * problem.max_error_increase
    apart = float(solution.pca.errors[solution.harmed] - solution.pca.errors[solution.privileged])
    negligible = _NO_CHANGE * float(measured.traces.max())
    if unknown <= max(_GAP_WORTH_A_WARNING * min(budget, apart), negligible):
        return
    warn(
        f"with {measured.n_features} features PCA itself had not converged: its error may be lower "
        f"by up to {unknown:.3g} than {R:.6g}. "
        + (
            f"max_error_increase={problem.max_error_increase:g} counts from the latter. "
            if isfinite(budget)
            else ""
        )
        + f"The harmed group has an error larger by {apart:.3g} under the PCA found; it might be "
        "another group under the best one. Pass another n_components, or fewer features.",
        ConvergenceWarning,
    )


def _warn_of_people(
    problem: FairProblem, solution: Solution, measured: Operand, disparity: float
) -> None:
    """Say that nobody gains, or that only levelling down would give the disparity asked for."""
    negligible = max(
        _NO_CHANGE * float(solution.pca.errors.max()), _ROUNDED * float(measured.traces.max())
    )
    changes = solution.errors - solution.pca.errors
    if changes.max() > negligible and changes.min() >= -negligible:
        before, after = (
            errors[changes.argmax()] for errors in (solution.pca.errors, solution.errors)
        )
        paid = f"its error rises from {max(before, 0.0):.4g} to {after:.4g}"
        if problem.constraint == "pareto":
            message = (
                f"the worst-off group gains next to nothing, and another pays for it: {paid}. "
            )
            message += _cheaper(problem)
        else:
            message = "no group is better off than under PCA, and one is worse off "
            message += f"({paid}): the groups were made more alike by making them worse. "
            message += 'constraint="pareto", the default, stops before that.'
        warn(message, LevellingDownWarning)
    over = disparity - problem.max_disparity
    if problem.constraint == "pareto" and problem.max_disparity > 0 and over > negligible:
        warn(
            f"max_disparity={problem.max_disparity:g} is not met: the disparity is "
            f"{disparity:.6g}, the worst-off group is at its best, and from here on the groups "
            "would become more alike only by becoming worse. Pass constraint=None to go there, or "
            "more components.",
            ParityInfeasibleWarning,
        )


def _cheaper(problem: FairProblem) -> str:
    """What limits the price that a group pays."""
    if isfinite(problem.max_error_increase):
        return "Pass a smaller max_error_increase, or alpha=1 in its place, which is PCA."
    return "Pass max_error_increase to limit the price."


def warn_of_few_rows(
    problem: Problem, solution: Solution, settled: SettledGroups, measured: Operand
) -> None:
    """Say that larger groups pay for the sake of a group of few rows."""
    if isinstance(problem, PLSProblem) or problem == PLAIN_PCA:  # for no group's sake
        return
    harmed, counts = solution.harmed, settled.moments.counts
    before, few = solution.pca.errors, counts < FEW_ROWS
    if not few[harmed]:
        return
    least = max(_LITTLE * float(measured.traces.max()), TINY)
    changes = (solution.errors - before) / np.maximum(before, least)
    paid = float(changes[~few].max(initial=0.0))
    if changes[harmed] >= 0 or paid <= _PAID:
        return
    n, compared = counts[harmed], settled.compared
    if (compared & ~few).sum() > 1:
        merged = "'merge' or " if counts[compared & few].sum() >= FEW_ROWS else ""
        step = f"Pass min_group_size={FEW_ROWS} with small_groups={merged}'ignore' to leave it out."
    else:
        step = "Collect more rows of it before you rely on the result."
    warn(
        f"{settled.moments.groups.tolist()[harmed]!r} has only {n} row{'s' if n > 1 else ''} and "
        f"steers the projection: its error falls by {-100 * changes[harmed]:.3g} %, and that of a "
        f"larger group rises by up to {100 * paid:.3g} %. {step}",
        FewRowsWarning,
    )


def warn_of_held_out(problem: FairProblem, changes: Array, pca_errors: Array, D: float) -> None:
    """Say that on held-out rows nobody gains, or that the disparity is too large.

    ``changes`` are those of the groups compared, ``pca_errors`` what they start from.
    """
    negligible = _NO_CHANGE * float(pca_errors.max())
    hardly = np.maximum(_NEXT_TO_NOTHING * pca_errors, negligible)
    if (changes > hardly).any() and (changes >= -hardly).all():
        message = (
            "on held-out rows no group is better off than under PCA by more than "
            f"{100 * _NEXT_TO_NOTHING:g} %, and one is worse off: "
        )
        if problem.constraint == "pareto":
            message += f"it pays for next to nothing. {_cheaper(problem)}"
        else:
            message += "the groups are more alike only because they are worse off. "
            message += 'constraint="pareto", the default, stops before that.'
        warn(message, LevellingDownWarning)
    if 0 < problem.max_disparity < D - negligible:
        warn(
            f"max_disparity={problem.max_disparity:g} is not met: on held-out rows the disparity "
            f"is {D:.6g}. Pass more components"
            + (", or constraint=None." if problem.constraint == "pareto" else "."),
            ParityInfeasibleWarning,
        )


def warn_of_target(r2: float, plain_r2: float) -> None:
    """Say that scores made for a target tell nothing about it; both are shares of its variance."""
    if r2 > _UNRELATED:
        return
    none = "the scores explain none of its variance (target_r2_ is rounding)"
    if plain_r2 > _UNRELATED:
        message = (
            f"nothing is left to predict y from: {none}, where those of plain PLS explain "
            f"{plain_r2:.3g}. What the features tell about y is what tells the groups apart; y may "
            "be the group itself. Pass another y, or allow a gap, for example max_mean_gap=0.1."
        )
    else:
        message = f"the features tell nothing about y: {none}. Pass other features, or another y."
    warn(message, UserWarning)


def warn_of_data(moments: GroupMoments | ImplicitMoments) -> None:
    """Say that some of the data are lost in the rounding of float64."""
    about_means, of_means = moments.variances()
    within, between = float(about_means.sum()), float(of_means.sum())
    if between > _LOST_DIGITS * within > 0:
        warn(
            f"the groups' means are so far apart (mean square {between:.3g}) that the spread of "
            f"the rows about them ({within:.3g}) is nearly lost in the rounding of float64: take "
            f"errors and disparity as uncertain by about {1e-15 * between:.1g}. Drop the columns "
            "that tell the groups apart, or subtract each group's mean first.",
            RuntimeWarning,
        )
    variances = about_means + of_means
    total, largest = float(variances.sum()), int(variances.argmax())
    others = float(variances[:largest].sum() + variances[largest + 1 :].sum())
    if 0 < others < _DROWNED * rounding_of(len(variances)) * total:
        names = moments.feature_names
        warn(
            f"feature {names[largest] if names else largest!r} varies so much more (variance "
            f"{variances[largest]:.3g}) than all others together ({others:.3g}) that these are "
            "lost in the rounding of float64. Standardise the features first, for example with "
            "StandardScaler, or leave this one out.",
            RuntimeWarning,
        )
