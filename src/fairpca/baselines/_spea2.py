"""SPEA2 on subsets of fixed size. The only file of the library that imports pymoo.

A subset is a row of d booleans with exactly r of them true; crossover and mutation exchange
members, so the number never changes. Fewer members are exchanged from generation to generation, as
in the authors' code: the search first goes far, then stays near.

pymoo's SPEA2 keeps the archive as its population and tries ``n_offsprings`` new subsets per
generation, which SPEA2's authors call the population. Two details differ from the authors'
code: duplicates are dropped, and an offspring may be both crossed and mutated, each with
probability one half, where theirs was one or the other.
"""

import math
from typing import Any

import numpy as np
from pymoo.algorithms.moo.spea2 import SPEA2
from pymoo.core.crossover import Crossover
from pymoo.core.mutation import Mutation
from pymoo.core.problem import Problem
from pymoo.optimize import minimize

from fairpca._typing import Array, Codes, Mask

_GENERATIONS = 50  # the authors' number, the first population included


def search(
    lambdas: Array, deltas: Array, pca: Codes, population: int, rng: np.random.Generator
) -> Codes:
    """Return the subsets in the last archive, one per row; PCA's is in the first population."""
    d, r = len(lambdas), len(pca)
    wanted = min(population, math.comb(d, r))
    subsets = {tuple(pca.tolist()): None}  # in order, none twice
    while len(subsets) < wanted:
        drawn = rng.choice(d, size=r, replace=False)
        subsets[tuple(sorted(drawn.tolist()))] = None
    first = np.zeros((wanted, d), dtype=bool)
    np.put_along_axis(first, np.array(list(subsets)), True, axis=1)
    algorithm = SPEA2(
        pop_size=round(population / 2),
        n_offsprings=population,
        sampling=first,
        crossover=_Exchange(n_parents=2, n_offsprings=2, prob=0.5),
        mutation=_Replace(prob=0.5),
    )
    # Where all points agree in an objective, pymoo divides zero by zero to normalise distances.
    with np.errstate(divide="ignore", invalid="ignore"):
        problem, seed = _KeepSubset(lambdas, deltas), int(rng.integers(2**31))
        result = minimize(problem, algorithm, ("n_gen", _GENERATIONS), seed=seed)
    masks = np.asarray(result.pop.get("X"), dtype=bool)
    return np.nonzero(masks)[1].reshape(len(masks), r)


class _KeepSubset(Problem):  # type: ignore[misc]
    """Minimise (R, F), sums over the entries left out."""

    def __init__(self, lambdas: Array, deltas: Array) -> None:
        super().__init__(n_var=len(lambdas), n_obj=2, xl=0, xu=1, vtype=bool)
        self.lambdas, self.deltas = lambdas, deltas

    def _evaluate(self, X: Mask, out: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        left = ~X.astype(bool)
        out["F"] = np.column_stack([left @ self.lambdas, (left @ self.deltas) ** 2])


class _Exchange(Crossover):  # type: ignore[misc]
    """Children keep what the parents share and swap some of what they do not."""

    def _do(
        self, problem: Problem, X: Mask, *_: Any, random_state: Any, algorithm: Any, **__: Any
    ) -> Mask:
        children = X.copy()
        for k in range(X.shape[1]):
            own = np.flatnonzero(X[0, k] & ~X[1, k])
            others = np.flatnonzero(X[1, k] & ~X[0, k])
            if len(own) < 2:
                continue
            n = _how_many(len(own) - 1, algorithm.n_gen, random_state)
            for members in (own, others):
                swapped = random_state.permutation(members)[:n]
                children[:, k, swapped] = ~children[:, k, swapped]
        return children


class _Replace(Mutation):  # type: ignore[misc]
    """Replace some members by as many others."""

    def _do(
        self, problem: Problem, X: Mask, *_: Any, random_state: Any, algorithm: Any, **__: Any
    ) -> Mask:
        mutants = X.copy()
        for mutant in mutants:
            members, others = np.flatnonzero(mutant), np.flatnonzero(~mutant)
            most = min(len(members), len(others))
            n = _how_many(most, algorithm.n_gen, random_state)
            mutant[random_state.permutation(members)[:n]] = False
            mutant[random_state.permutation(others)[:n]] = True
        return mutants


def _how_many(most: int, generation: int, random_state: Any) -> int:
    """A random number from 1 to a limit that falls from `most` to 1 over the generations."""
    progress = (generation - 1) / (_GENERATIONS - 1)
    limit = round(most + (1 - most) * min(1.0, progress))
    return int(random_state.integers(1, limit + 1))
