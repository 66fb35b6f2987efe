"""The held-out errors along a path: each fold is fitted to the other folds' rows and judged.

:meth:`CrossFit.at` gives a :class:`Curve`: sums of held-out errors by fold, stop and group.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from fairpca._blas import parallel_map
from fairpca._cv.held_out import HeldOut, Intervals
from fairpca._cv.leave_out import Fold, LeaveOut
from fairpca._cv.path import FoldPath, Path
from fairpca._moments.operand import Operand
from fairpca._moments.tolerances import MEAN_NOISE
from fairpca._problems.solution import disparity
from fairpca._typing import Array, Mask


class Sides(NamedTuple):
    """Which groups are compared, and which of them PCA of all rows treats worst and best."""

    compared: Mask
    harmed: int
    privileged: int


@dataclass(frozen=True)
class Curve:
    """Held-out errors along a path: the projections of ``held_out`` are the stops, PCA first."""

    stops: Array
    held_out: HeldOut
    sides: Sides

    @property
    def disparity(self) -> Array:
        """The held-out disparity at each stop, of shape (n_stops,)."""
        return disparity(self.held_out.totals.group_errors, *self.sides)


def kept_directions(operand: Operand, basis: Array) -> int:
    """In how many directions of a subspace the rows of all groups together vary."""
    shares = operand.shares
    traces = operand.traces
    M_U = np.tensordot(shares, operand.products(basis), axes=1)
    values = np.linalg.eigvalsh(basis.T @ M_U)
    return int(np.count_nonzero(values > MEAN_NOISE * float(shares @ traces)))


def disparity_interval(held_out: HeldOut, projection: int, sides: Sides) -> Intervals:
    """The interval of the disparity under one of the projections."""
    if np.count_nonzero(sides.compared) > 2:
        return held_out.spread_interval(projection, sides.compared)
    return held_out.interval(lambda totals: disparity(totals.group_errors[projection], *sides))


@dataclass
class CrossFit:
    """The held-out errors at stops, computed when they are asked for."""

    folds: LeaveOut
    path: Path
    relative_errors: bool  # whether errors are shares of each group's own variation
    n_eigensolves: int = 0
    _errors: dict[float, Array] = field(default_factory=dict)  # by stop
    _paths: dict[int, FoldPath] = field(default_factory=dict)  # those kept, by fold

    def at(self, stops: Iterable[float]) -> Curve:
        """Held-out errors at PCA, at these stops, and at those asked for before."""
        new = sorted({0.0, *map(float, stops)} - self._errors.keys())
        if new:
            self._measure(new)
        known = sorted(self._errors)
        errors = np.stack([self._errors[stop] for stop in known], axis=1)
        folds = self.folds
        path = self.path
        held_out = HeldOut(errors, self._weights, self._variation, folds.odds, folds.repeats)
        if self.relative_errors:
            held_out = held_out.relative()
        sides = Sides(path.operand.compared, path.pca.harmed, path.pca.privileged)
        return Curve(np.array(known), held_out, sides)

    def _measure(self, stops: list[float]) -> None:
        """Fit all folds at these stops, and measure the rows left out."""
        self.n_eigensolves += self.path.prepare(stops)

        def measure(numbered: tuple[int, Fold]) -> tuple[Array, Array, Array, int]:
            number, fold = numbered
            path = self._path_of(number, fold)
            before = path.n_eigensolves
            bases = path.bases(stops)
            if stops[0] == 0.0:
                self._refuse_lower_rank(fold.operand, bases[0])
            errors, variation = fold.errors(bases)
            return errors, fold.left_out.weights, variation, path.n_eigensolves - before

        found = list(parallel_map(measure, enumerate(self.folds), self.folds.n_threads))
        of_folds, weights, variation, counts = zip(*found, strict=True)
        self._weights = np.array(weights)
        self._variation = np.array(variation)
        self._errors |= dict(zip(stops, np.array(of_folds).swapaxes(0, 1), strict=True))
        self.n_eigensolves += sum(counts)

    def _refuse_lower_rank(self, operand: Operand, pca: Array) -> None:
        """Refuse training rows with fewer directions than components, unless all rows have as few.

        Further components of the fold would be arbitrary, and so would the held-out errors.
        """
        if kept_directions(operand, pca) == pca.shape[1]:
            return
        whole = self.path.operand
        allowed = kept_directions(operand, np.eye(len(pca)))
        if allowed < min(pca.shape[1], kept_directions(whole, np.eye(len(pca)))):
            raise ValueError(
                f"n_components={pca.shape[1]}, but without one of the folds the rows vary in only "
                f"{allowed} directions; pass n_components={allowed} or fewer, or more folds."
            )

    def _path_of(self, number: int, fold: Fold) -> FoldPath:
        """The path of a fold, kept as long as the fold is."""
        path = self._paths.get(number)
        if path is None:
            operand = fold.operand
            if self.relative_errors:
                operand = operand.relative()
            path = self.path.of_fold(operand)
        if self.folds.are_kept:
            self._paths[number] = path
        return path
