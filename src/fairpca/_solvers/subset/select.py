"""MOFPCA: one subset of PCA's components, picked from the Pareto front by a rule."""

from __future__ import annotations

import math

import numpy as np

from fairpca._moments.operand import Operand
from fairpca._problems.solution import Point, Solution, best_and_worst
from fairpca._problems.status import Status
from fairpca._problems.subset import Rule, SubsetProblem
from fairpca._solvers.subset.front import EXACT_LIMIT, Front, exact_front, spea2_front
from fairpca._typing import Array, Codes


def solve_subset(problem: SubsetProblem, operand: Operand, rank: int) -> Solution:
    """Find the front of the ``rank``-subsets of PCA's components, and pick a point of it."""
    if operand.matrices is None:
        raise ValueError(
            f"SubsetFairPCA chooses among all principal components, too many to compute with "
            f"{operand.n_features} features; use FairPCA({rank}), or fit to fewer features."
        )
    exact = _enumerates(problem, operand.n_features, rank)
    lambdas, V = np.linalg.eigh(np.tensordot(operand.shares, operand.matrices, axes=1))
    lambdas, V = np.maximum(lambdas[::-1], 0.0), V[:, ::-1]
    products = operand.products(V)
    deltas = np.einsum("ij,ij->j", V, products[1] - products[0])
    if exact:
        front = exact_front(lambdas, deltas, rank)
    else:
        front = spea2_front(lambdas, deltas, rank, random_state=problem.random_state)
    first = exact_front(lambdas, deltas, 1) if problem.selection == "weighted" else None
    chosen = select(front, problem.selection, first=first)
    subset = front.subsets[chosen]

    def errors(kept: Codes) -> Array:
        return operand.errors(V[:, kept])

    bound = float(lambdas[rank:].sum())
    pca = Point(operand.shares, V[:, :rank], errors(np.arange(rank)), bound)
    privileged, harmed = best_and_worst(pca.errors, operand.compared)
    F = float(front.fairness[chosen])
    return Solution(
        basis=V[:, subset],
        errors=errors(subset),
        status=Status.SELECTED,
        objective="fairness",
        value=F,
        bound=F if exact else math.nan,
        weights=operand.shares,
        pca=pca,
        privileged=privileged,
        harmed=harmed,
        n_eigensolves=1,
        extras={"subset_": subset, "front_": front},
    )


def _enumerates(problem: SubsetProblem, d: int, rank: int) -> bool:
    """Whether all subsets are looked at; asking for too many is an error."""
    count = math.comb(d, rank)
    if problem.solver == "exact" and count > EXACT_LIMIT:
        raise ValueError(
            f"solver='exact' would look at {count:.3g} ways to keep {rank} of {d} components, "
            f"more than {EXACT_LIMIT}; pass SubsetFairPCA({rank}, solver='spea2')."
        )
    return problem.solver != "spea2" and count <= EXACT_LIMIT


def select(front: Front, rule: Rule = "balanced", *, first: Front | None = None) -> int:
    """Pick one point of a front; ties go to the smaller error.

    Parameters
    ----------
    front : Front
        The front for the r in question.
    rule : {"balanced", "weighted", "least_error", "fairest"}
        ``"balanced"`` (the authors' M2): both objectives scaled to [0, 1] over this front, least
        sum. ``"weighted"`` (M1): scaled by their ranges over the front for r = 1, least sum; where
        that front is one point, by its values. ``"least_error"`` (M3), which is PCA up to ties.
        ``"fairest"`` (M4): least F.
    first : Front, optional
        The front for r = 1, for ``"weighted"`` only.

    Returns
    -------
    int
        Row of the front.

    Examples
    --------
    >>> from fairpca._solvers.subset.front import exact_front
    >>> from fairpca._solvers.subset.select import select
    >>> front = exact_front([4.0, 3.0, 1.0], [0.5, 2.0, 3.0], 1)
    >>> front.errors.tolist(), front.fairness.tolist()
    ([4.0, 5.0, 7.0], [25.0, 12.25, 6.25])
    >>> [select(front, rule) for rule in ("balanced", "least_error", "fairest")]
    [1, 0, 2]
    """
    if rule == "least_error":
        return 0
    if rule == "fairest":
        return len(front) - 1
    scales = _scales(front if first is None else first)
    # R / a + F / b, multiplied by a b: a scale of zero then decides alone instead of dividing.
    a, b = scales
    score = b * (front.errors - front.errors[0]) + a * (front.fairness - front.fairness[-1])
    return int(np.flatnonzero(score <= score.min() + 1e-12 * score.max())[0])


def _scales(front: Front) -> tuple[float, float]:
    """Ranges of R and F over a front; its values where it is one point, as the authors do."""
    if len(front) == 1:
        return float(front.errors[0]), float(front.fairness[0])
    return float(np.ptp(front.errors)), float(np.ptp(front.fairness))
