"""Which way to find eigenspaces is fastest: all features at once, or in a basis that grows.

Few features, or components nearly as many, are decomposed whole, which takes two decompositions;
very many in a basis of residuals. A basis also serves the searches that follow, such as those for
the points of a path, so for these some hundred features get a basis of snapshots. Where a basis
gives up, the next simpler way is taken. An operand that has no matrices gets the best that the
growing basis finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from fairpca._moments.operand import Operand
from fairpca._problems.solution import Solution
from fairpca._solvers.eigenspaces.dense import Eigenspaces
from fairpca._solvers.eigenspaces.growing import GrowingBasis, Spaces, ThinSpaces
from fairpca._solvers.eigenspaces.snapshots import SnapshotBasis

# What is fastest from how many features on, and from how many for each component.
_SNAPSHOTS_FROM, _SNAPSHOTS_PER_RANK = 160, 15
_GROWING_BASIS_FROM, _GROWING_BASIS_PER_RANK = 600, 40
# Columns per component, of which a growing basis needs about ten; many more where eigenvalues are
# close to each other, and there is no other way to the answer.
_BASIS_PER_RANK = 80
_BASIS_BYTES = 1 << 29  # of a growing basis without matrices to fall back on


def search_in_basis(
    search: Callable[[Eigenspaces], Solution],
    operand: Operand,
    rank: int,
    start: Solution | None = None,
    from_pca: bool = False,
    several: bool = False,
) -> Solution:
    """What ``search`` finds, all of it within a small basis where that is faster.

    A search ``from_pca`` goes along one line of weights that starts there. It may be one of
    ``several``.
    """
    n_eigensolves, guess = 0, None if start is None else start.alpha
    for basis in _bases(operand, rank, start, from_pca and several):
        before = basis.n_eigensolves
        solution = basis.solve(search, guess)
        n_eigensolves += basis.n_eigensolves - before
        if basis.converged or operand.matrices is None:
            return replace(solution, n_eigensolves=n_eigensolves, found_in=basis)
    spaces = Eigenspaces(operand, rank, guess=guess)
    solution = search(spaces)
    return replace(solution, n_eigensolves=n_eigensolves + spaces.n_eigensolves)


def search_whole(search: Callable[[Spaces], Solution], operand: Operand, rank: int) -> Solution:
    """What ``search`` finds, each eigenspace with all features."""
    spaces = spaces_of(operand, rank)
    return replace(search(spaces), n_eigensolves=spaces.n_eigensolves)


def spaces_of(operand: Operand, rank: int) -> Spaces:
    """All eigenspaces of one rank."""
    if operand.matrices is None:
        return _growing_basis(operand, rank)
    return (ThinSpaces if _is_thin(operand, rank) else Eigenspaces)(operand, rank)


def _bases(
    operand: Operand, rank: int, start: Solution | None, on_one_line: bool
) -> Iterator[GrowingBasis]:
    """The bases worth a try, the fastest first; one that was grown for ``start`` serves again."""
    if start is not None and isinstance(start.found_in, GrowingBasis):
        yield start.found_in
    elif _is_thin(operand, rank):
        yield _growing_basis(operand, rank)
    d, enough = operand.n_features, max(_SNAPSHOTS_FROM, _SNAPSHOTS_PER_RANK * rank)
    if on_one_line and operand.matrices is not None and d >= enough:
        yield SnapshotBasis(operand, rank, limit=d // 2)


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
