"""Which r of the d principal components to keep: the problem behind MOFPCA.

Keeping a set S of PCA eigenvectors v_j leaves out the others, and both objectives add up over them:

    f1 = R = sum of lambda_j,   f2 = F = (sum of delta_j)^2,   j not in S,

    lambda_j    eigenvalue, v_j' C v_j
    delta_j     v_j' (C_B - C_A) v_j, the eigenvector's share in the disparity D

So the Pareto front of (R, F) is a subset problem on 2 d numbers. :func:`exact_front` solves it by
enumeration, at a few nanoseconds per subset; :func:`spea2_front` is the authors' evolutionary
search for when there are too many subsets.

Where the same sum can be reached in two ways, rounding decides which is smaller. Differences below
the rounding error of a sum of d terms therefore count as ties, and ties go to the subset met first,
which is PCA's own wherever it takes part.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from fairpca._typing import Array, Codes

EXACT_LIMIT = 1_000_000
_BLOCK = 1 << 17


@dataclass(frozen=True, eq=False)
class Front:
    """Subsets that no other subset beats in both objectives.

    Attributes
    ----------
    subsets : ndarray of shape (m, r)
        Indices of the eigenvectors kept, ascending in each row.
    errors : ndarray of shape (m,)
        Overall reconstruction error R, strictly ascending.
    fairness : ndarray of shape (m,)
        Fairness measure F, strictly descending.
    """

    subsets: Codes
    errors: Array
    fairness: Array

    def __len__(self) -> int:
        return len(self.errors)


def exact_front(lambdas: ArrayLike, deltas: ArrayLike, r: int) -> Front:
    """Find the whole Pareto front by looking at every subset.

    The indices are cut into two halves; the sums of all subsets with j members in the first half
    are an outer sum of two short lists. Cost: C(d, r) additions; memory: the two lists and one
    block.

    Parameters
    ----------
    lambdas, deltas : array-like of shape (d,)
        Eigenvalues and shares in the disparity, see the module's notation.
    r : int
        How many eigenvectors to keep, 1 <= r <= d.

    Returns
    -------
    Front

    Examples
    --------
    >>> from fairpca._solvers.subset.front import exact_front
    >>> front = exact_front([4.0, 2.0, 1.0], [3.0, -1.0, 0.5], 1)
    >>> front.subsets.tolist()
    [[0]]
    >>> front = exact_front([4.0, 2.0, 1.0], [0.5, -1.0, 3.0], 1)
    >>> front.subsets.tolist(), front.errors.tolist(), front.fairness.tolist()
    ([[0], [2]], [3.0, 6.0], [4.0, 0.25])
    """
    lambdas, deltas = np.asarray(lambdas, float), np.asarray(deltas, float)
    d = len(lambdas)
    ranking = _ranking(lambdas)
    # Choose the fewer: those kept, or those left out. Either way PCA's own subset is met first.
    keep = 2 * r <= d
    k = r if keep else d - r
    order = ranking if keep else ranking[::-1]
    offset = (lambdas.sum(), deltas.sum()) if keep else (0.0, 0.0)
    sign = -1.0 if keep else 1.0
    tolerance = _tolerance(lambdas), _tolerance(deltas)

    best_R, best_D = np.empty(0), np.empty(0)
    best_chosen = np.empty((0, k), dtype=np.intp)
    for rows, columns in _blocks(order, k):
        R = offset[0] + sign * np.add.outer(_sums(lambdas, rows), _sums(lambdas, columns))
        D = np.abs(offset[1] + sign * np.add.outer(_sums(deltas, rows), _sums(deltas, columns)))
        new = _undominated(R.ravel(), D.ravel(), best_R, best_D, tolerance)
        i, j = np.unravel_index(new, R.shape)
        best_R = np.concatenate([best_R, R[i, j]])
        best_D = np.concatenate([best_D, D[i, j]])
        best_chosen = np.concatenate([best_chosen, np.hstack([rows[i], columns[j]])])
        kept = _pareto(best_R, best_D, tolerance)
        best_R, best_D, best_chosen = best_R[kept], best_D[kept], best_chosen[kept]
    if not keep:
        best_chosen = _complements(best_chosen, d)
    return _front(lambdas, deltas, best_chosen)


def spea2_front(
    lambdas: ArrayLike,
    deltas: ArrayLike,
    r: int,
    *,
    n_generations: int = 50,
    random_state: int | np.random.RandomState | None = None,
) -> Front:
    """Search for the Pareto front with SPEA2, set as its authors set it.

    50 generations; a population of 100, or half the number of subsets if that is less, PCA's own
    subset among the first; an archive of half the population. PCA's subset has the least error of
    all, so it is put back if the archive has lost it. Needs pymoo: ``pip install
    "fairpca[subset]"``.

    Parameters
    ----------
    lambdas, deltas : array-like of shape (d,)
        Eigenvalues and shares in the disparity, see the module's notation.
    r : int
        How many eigenvectors to keep, 1 <= r <= d.
    n_generations : int, default=50
        Generations, the first population included.
    random_state : int, RandomState or None, default=None
        Seed of the search.

    Returns
    -------
    Front
        What the search found: never better than :func:`exact_front`, and possibly incomplete.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca._solvers.subset.front import spea2_front
    >>> lambdas, deltas = 1 / np.arange(1, 31), np.cos(np.arange(30))
    >>> front = spea2_front(lambdas, deltas, 12, random_state=0)
    >>> front.subsets[0].tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    """
    lambdas, deltas = np.asarray(lambdas, float), np.asarray(deltas, float)
    population = min(100, round(math.comb(len(lambdas), r) / 2))
    if population < 4:  # too few subsets to cross any: look at all of them
        return exact_front(lambdas, deltas, r)
    try:
        from fairpca._solvers.subset import spea2 as _spea2
    except ImportError as error:
        raise ImportError(
            'solver="spea2" needs pymoo; install it with pip install "fairpca[subset]", or pass '
            f'solver="auto", which looks at up to {EXACT_LIMIT} subsets without it.'
        ) from error
    pca = np.sort(_ranking(lambdas)[:r])
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    found = _spea2.search(lambdas, deltas, pca, n_generations, population, rng)
    return _front(lambdas, deltas, np.vstack([pca, found]))


def _ranking(lambdas: Array) -> Codes:
    """Eigenvectors by descending eigenvalue, PCA's order."""
    return np.argsort(-lambdas, kind="stable")


def _tolerance(terms: Array) -> float:
    """Bound on the rounding error of a sum of some of the terms."""
    return float(4 * len(terms) * np.finfo(float).eps * np.abs(terms).sum())


def _combinations(items: Codes, k: int) -> Codes:
    """All k-subsets of the items, one per row, in lexicographic order of position."""
    n = math.comb(len(items), k)
    flat = itertools.chain.from_iterable(itertools.combinations(items.tolist(), k))
    return np.fromiter(flat, dtype=np.intp, count=n * k).reshape(n, k)


def _blocks(order: Codes, k: int) -> Iterator[tuple[Codes, Codes]]:
    """Pairs of lists whose rows, joined in all ways, are each k-subset exactly once."""
    front, back = order[: len(order) // 2], order[len(order) // 2 :]
    for j in range(min(k, len(front)), max(0, k - len(back)) - 1, -1):
        rows, columns = _combinations(front, j), _combinations(back, k - j)
        step = max(1, _BLOCK // len(columns))
        for start in range(0, len(rows), step):
            yield rows[start : start + step], columns


def _sums(terms: Array, subsets: Codes) -> Array:
    sums: Array = terms[subsets].sum(axis=1)
    return sums


def _undominated(
    R: Array, D: Array, front_R: Array, front_D: Array, tolerance: tuple[float, float]
) -> Codes:
    """Candidates that the front so far does not dominate; the front is sorted by R."""
    position = np.searchsorted(front_R, R + tolerance[0], side="right")
    bound = np.concatenate([[np.inf], front_D])[position]
    return np.flatnonzero(bound - tolerance[1] > D)


def _pareto(R: Array, D: Array, tolerance: tuple[float, float]) -> Codes:
    """Indices of the points that none dominates, by ascending R; ties go to the lower index."""
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
    """Evaluate subsets afresh, without cancellation, and keep those that none dominates."""
    subsets = np.sort(subsets, axis=1)
    left = _complements(subsets, len(lambdas))
    R, D = _sums(lambdas, left), _sums(deltas, left)
    kept = _pareto(R, np.abs(D), (_tolerance(lambdas), _tolerance(deltas)))
    return Front(subsets[kept], R[kept], D[kept] ** 2)
