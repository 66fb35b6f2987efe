"""Which way to find eigenspaces is fastest: all features at once, or in a basis that grows.

Few features, or nearly as many components, are decomposed densely; very many are searched in a
growing basis. Where the basis gives up, the dense way is taken. An operand without matrices gets
the best that the growing basis finds. Whatever was used is kept with the solution and serves the
searches that start from it, such as those for the points of a path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fairpca._moments.operand import Operand
from fairpca._problems.solution import Solution
from fairpca._solvers.eigenspaces.dense import Eigenspaces
from fairpca._solvers.eigenspaces.many_features import GrowingBasis, Spaces, ThinSpaces

# A growing basis is faster from this many features on, and from this many for each component.
_GROWING_BASIS_FROM, _GROWING_BASIS_PER_RANK = 600, 40
# Columns per component without matrices. A basis needs about ten, but many more where eigenvalues
# are close to each other, and then there is no other way to the answer.
_BASIS_PER_RANK = 80
_BASIS_BYTES = 1 << 29  # largest size of a growing basis without matrices


def search_in_basis(
    search: Callable[[Eigenspaces], Solution],
    operand: Operand,
    rank: int,
    start: Solution | None = None,
) -> Solution:
    """What ``search`` finds, inside a growing basis where that is faster."""
    guess, kept = (None, None) if start is None else (start.alpha, start.found_in)
    if not isinstance(kept, Eigenspaces | GrowingBasis) or kept.operand is not operand:
        kept = _growing_basis(operand, rank) if _is_thin(operand, rank) else None
    n_eigensolves = 0
    if isinstance(kept, GrowingBasis):
        before = kept.n_eigensolves
        solution = kept.solve(search, guess)
        n_eigensolves = kept.n_eigensolves - before
        if kept.converged or operand.matrices is None:
            return replace(solution, n_eigensolves=n_eigensolves, found_in=kept)
    spaces = kept if isinstance(kept, Eigenspaces) else Eigenspaces(operand, rank)
    spaces.guess = guess
    before = spaces.n_eigensolves
    solution = search(spaces)
    n_eigensolves += spaces.n_eigensolves - before
    return replace(solution, n_eigensolves=n_eigensolves, found_in=spaces)


def search_whole(search: Callable[[Spaces], Solution], operand: Operand, rank: int) -> Solution:
    """What ``search`` finds, each eigenspace with all features."""
    spaces = spaces_of(operand, rank)
    return replace(search(spaces), n_eigensolves=spaces.n_eigensolves)


def spaces_of(operand: Operand, rank: int) -> Spaces:
    """All eigenspaces of one rank."""
    if operand.matrices is None:
        return _growing_basis(operand, rank)
    return (ThinSpaces if _is_thin(operand, rank) else Eigenspaces)(operand, rank)


def _is_thin(operand: Operand, rank: int) -> bool:
    """Whether there are far more features than a basis would have columns."""
    enough = max(_GROWING_BASIS_FROM, _GROWING_BASIS_PER_RANK * rank)
    return operand.matrices is None or operand.n_features >= enough


def _growing_basis(operand: Operand, rank: int) -> GrowingBasis:
    """A basis that gives up early where matrices are there to fall back on."""
    d, k = operand.n_features, len(operand.shares)
    if operand.matrices is not None:
        return GrowingBasis(operand, rank, d // 2)
    capacity = max(_BASIS_BYTES // (8 * d * (k + 1)), 8 * rank + 16)
    return GrowingBasis(operand, rank, _BASIS_PER_RANK * max(rank, 8), capacity)
