"""MOFPCA: which r of the d principal components to keep.

Keeping a set S of PCA eigenvectors v_j leaves out the others, whose sums give both objectives:

    f1 = R = sum of lambda_j,   f2 = F = (sum of delta_j)^2,   j not in S,

    lambda_j    eigenvalue, v_j' C v_j
    delta_j     v_j' (C_B - C_A) v_j, the eigenvector's share in the disparity D

So the Pareto front of (R, F) is a subset problem on 2 d numbers. :func:`exact_front` solves it by
enumeration, at a few nanoseconds per subset; :func:`spea2_front` is the authors' evolutionary
search for when there are too many subsets. A rule then picks one point of the front.

Where two subsets have the same sum, rounding would decide which is smaller. Differences below the
rounding error of a sum of d terms therefore count as ties, and ties go to the subset met first,
which is PCA's own wherever that is one of them.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from fairpca._moments.operand import Operand
from fairpca._moments.tolerances import EPS
from fairpca._problems.solution import Point, Solution, best_and_worst
from fairpca._problems.status import Status
from fairpca._solvers.eigenspaces.lapack import descending
from fairpca._typing import Array, Codes

#: How a point of the Pareto front of subsets is picked.
Rule = Literal["balanced", "weighted", "least_error", "fairest"]

#: ``"exact"`` looks at every subset, ``"spea2"`` searches as the authors do, and ``"auto"`` is
#: exact where that is possible.
Way = Literal["auto", "exact", "spea2"]

EXACT_LIMIT = 1_000_000  # subsets that are looked at one by one, in less than a second
_BLOCK = 1 << 17  # subsets in memory at a time


@dataclass(frozen=True, eq=False)
class Front:
    """Subsets that no other subset beats in both objectives."""

    subsets: Codes  # (m, r): indices of the eigenvectors kept, ascending in each row
    errors: Array  # (m,): overall reconstruction error R, strictly ascending
    fairness: Array  # (m,): fairness measure F, strictly descending

    def __len__(self) -> int:
        return len(self.errors)


def solve_subset(
    operand: Operand,
    rank: int,
    selection: Rule,
    solver: Way,
    random_state: int | RandomState | None,
) -> Solution:
    """Find the front of the ``rank``-subsets of PCA's components, and pick a point of it."""
    d = operand.n_features
    count = math.comb(d, rank)
    if solver == "exact" and count > EXACT_LIMIT:
        raise ValueError(
            f"solver='exact' would look at {count:.3g} ways to keep {rank} of {d} components, "
            f"more than {EXACT_LIMIT}; pass SubsetFairPCA({rank}, solver='spea2')."
        )
    lambdas, V = descending(np.tensordot(operand.shares, operand.dense_matrices, axes=1))
    unit = _far_from_one(float(lambdas[0]))  # so that no product leaves the range of float64
    lambdas = np.maximum(lambdas, 0.0) / unit
    products = operand.products(V)
    deltas = np.einsum("ij,ij->j", V, products[1] - products[0]) / unit
    exact = solver != "spea2" and count <= EXACT_LIMIT
    if exact:
        front = exact_front(lambdas, deltas, rank)
    else:
        front = spea2_front(lambdas, deltas, rank, random_state)
    first = exact_front(lambdas, deltas, 1) if selection == "weighted" else None
    chosen = select(front, selection, first=first)
    front = Front(front.subsets, front.errors * unit, front.fairness * unit**2)
    subset = front.subsets[chosen]
    F = float(front.fairness[chosen])
    principal = V[:, :rank]
    pca_bound = float(lambdas[rank:].sum()) * unit
    pca = Point(operand.shares, principal, operand.errors(principal), pca_bound)
    privileged, harmed = best_and_worst(pca.errors, operand.traces, operand.compared)
    return Solution(
        basis=V[:, subset],
        errors=operand.errors(V[:, subset]),
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


def select(front: Front, rule: Rule = "balanced", *, first: Front | None = None) -> int:
    """Pick one point of a front; ties go to the smaller error.

    ``"balanced"`` (the authors' M2): least sum of the objectives, scaled to [0, 1] over this front.
    ``"weighted"`` (M1): scaled by their ranges over ``first``, the front for r = 1, or by its
    values if it is one point. ``"least_error"`` (M3): PCA, up to ties. ``"fairest"`` (M4): least F.

    Examples
    --------
    >>> front = exact_front([4.0, 3.0, 1.0], [0.5, 2.0, 3.0], 1)
    >>> front.errors.tolist(), front.fairness.tolist()
    ([4.0, 5.0, 7.0], [25.0, 12.25, 6.25])
    >>> [select(front, rule) for rule in ("balanced", "least_error", "fairest")]
    [1, 0, 2]
    """
    if rule in ("least_error", "fairest"):
        return 0 if rule == "least_error" else len(front) - 1
    scale = front if first is None else first
    if len(scale) == 1:
        a, b = float(scale.errors[0]), float(scale.fairness[0])
    else:
        a, b = float(np.ptp(scale.errors)), float(np.ptp(scale.fairness))
    # R / a + F / b, multiplied by a b, so that a scale of zero does not divide.
    score = b * (front.errors - front.errors[0]) + a * (front.fairness - front.fairness[-1])
    return int(np.flatnonzero(score <= score.min() + 1e-12 * score.max())[0])


def exact_front(lambdas: ArrayLike, deltas: ArrayLike, r: int) -> Front:
    """Find the whole Pareto front for r eigenvectors by looking at every subset.

    The indices are cut into two halves; the sums of all subsets with j members in the first half
    are an outer sum of two short lists. The cost is C(d, r) additions.
    """
    lambdas, deltas = np.asarray(lambdas, float), np.asarray(deltas, float)
    d, order = len(lambdas), np.argsort(-lambdas, kind="stable")  # PCA's order
    # Enumerate the smaller set: what is kept or what is left out. PCA's own subset is met first.
    keep = 2 * r <= d
    k, order = (r, order) if keep else (d - r, order[::-1])
    offset, sign = ((lambdas.sum(), deltas.sum()), -1.0) if keep else ((0.0, 0.0), 1.0)
    tolerance = _tolerance(lambdas), _tolerance(deltas)

    best_R, best_D = np.empty(0), np.empty(0)
    best_chosen = np.empty((0, k), dtype=np.intp)
    for rows, columns in _blocks(order, k):
        R, D = (
            start + sign * np.add.outer(x[rows].sum(axis=1), x[columns].sum(axis=1))
            for start, x in zip(offset, (lambdas, deltas), strict=True)
        )
        D = np.abs(D)
        # Candidates that the front so far, which is sorted by R, does not dominate.
        position = np.searchsorted(best_R, R + tolerance[0], side="right")
        i, j = np.nonzero(np.append(np.inf, best_D)[position] - tolerance[1] > D)
        best_R = np.concatenate([best_R, R[i, j]])
        best_D = np.concatenate([best_D, D[i, j]])
        best_chosen = np.concatenate([best_chosen, np.hstack([rows[i], columns[j]])])
        kept = _pareto(best_R, best_D, tolerance)
        best_R, best_D, best_chosen = best_R[kept], best_D[kept], best_chosen[kept]
    if not keep:
        best_chosen = _complements(best_chosen, d)
    return _front(lambdas, deltas, best_chosen)


def spea2_front(
    lambdas: ArrayLike, deltas: ArrayLike, r: int, random_state: int | RandomState | None
) -> Front:
    """Search for the Pareto front with SPEA2; the front may be incomplete.

    The settings are those of MOFPCA: 50 generations, a population of 100, or half the number
    of subsets if that is less, and an archive of half the population. PCA's subset is among the
    first population and stays in the front: no subset has less error.
    """
    lambdas, deltas = np.asarray(lambdas, float), np.asarray(deltas, float)
    population = min(100, round(math.comb(len(lambdas), r) / 2))
    if population < 4:  # too few subsets to cross any: look at all of them
        return exact_front(lambdas, deltas, r)
    try:
        from fairpca.baselines import _spea2
    except ImportError as error:
        raise ImportError(
            'solver="spea2" needs pymoo; install it with pip install pymoo, or pass '
            f'solver="auto", which looks at up to {EXACT_LIMIT} subsets without it.'
        ) from error
    pca = np.sort(np.argsort(-lambdas, kind="stable")[:r])
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    found = _spea2.search(lambdas, deltas, pca, population, rng)
    return _front(lambdas, deltas, np.vstack([pca, found]))


def _far_from_one(size: float) -> float:
    """The nearest power of 2**64, which is 1 for ordinary sizes; dividing by it costs no digits."""
    return math.ldexp(1.0, 64 * round(math.frexp(size)[1] / 64))


def _tolerance(terms: Array) -> float:
    """Bound on the rounding error of a sum of some of the terms."""
    return float(4 * len(terms) * EPS * np.abs(terms).sum())


def _combinations(items: Codes, k: int) -> Codes:
    """All k-subsets of the items, one per row, in lexicographic order of position."""
    n = math.comb(len(items), k)
    flat = itertools.chain.from_iterable(itertools.combinations(items.tolist(), k))
    return np.fromiter(flat, dtype=np.intp, count=n * k).reshape(n, k)


def _blocks(order: Codes, k: int) -> Iterator[tuple[Codes, Codes]]:
    """Pairs of lists whose rows, joined in all ways, give each k-subset exactly once."""
    front, back = order[: len(order) // 2], order[len(order) // 2 :]
    for j in range(min(k, len(front)), max(0, k - len(back)) - 1, -1):
        rows, columns = _combinations(front, j), _combinations(back, k - j)
        step = max(1, _BLOCK // len(columns))
        for start in range(0, len(rows), step):
            yield rows[start : start + step], columns


def _pareto(R: Array, D: Array, tolerance: tuple[float, float]) -> Codes:
    """Indices of the undominated points, by ascending R; ties go to the lower index."""
    order = np.lexsort((D, R))
    least = np.minimum.accumulate(D[order])
    order = order[np.concatenate([[True], D[order][1:] <= least[:-1] + tolerance[1]])]
    kept: list[int] = []
    for i in order.tolist():
        if kept:
            last = kept[-1]
            same_R = R[i] <= R[last] + tolerance[0]
            if D[i] >= D[last] - tolerance[1]:  # no fairer than a point of less error
                if same_R and i < last and D[i] <= D[last] + tolerance[1]:
                    kept[-1] = i
                continue
            if same_R:
                kept.pop()
        kept.append(i)
    return np.array(kept, dtype=np.intp)


def _complements(subsets: Codes, d: int) -> Codes:
    left = np.ones((len(subsets), d), dtype=bool)
    np.put_along_axis(left, subsets, False, axis=1)
    return np.nonzero(left)[1].reshape(len(subsets), d - subsets.shape[1])


def _front(lambdas: Array, deltas: Array, subsets: Codes) -> Front:
    """Evaluate subsets afresh, without cancellation, and keep the undominated ones."""
    subsets = np.sort(subsets, axis=1)
    left = _complements(subsets, len(lambdas))
    R, D = lambdas[left].sum(axis=1), deltas[left].sum(axis=1)
    kept = _pareto(R, np.abs(D), (_tolerance(lambdas), _tolerance(deltas)))
    return Front(subsets[kept], R[kept], D[kept] ** 2)
