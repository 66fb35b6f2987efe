"""Moments of very many features: no d x d matrix is formed, only products with thin matrices.

With ``c`` the centre (the overall mean, say, or the group's own) and ``W_g`` the weights of group
g, a product with a thin V is

    C_g V = (X_g - 1 c')' W_g ((X_g - 1 c') V) / n_g

which takes 4 n_g d m operations for m columns (over the non-zeros only where X is sparse) and
memory of order d m. Dense rows are centred block by block, so that large offsets lose no digits;
sparse ones by a correction of rank two, so that zeros stay zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array

from fairpca._blas import blas_threads, parallel_map
from fairpca._input.checks import check_group_weights, check_sample_weight
from fairpca._input.device import ENTRIES_AT_A_TIME, DeviceRows
from fairpca._input.folds import FoldRule
from fairpca._input.labels import CodedLabels, encode_groups, encode_outcomes
from fairpca._input.rows import (
    DenseRows,
    FrameRows,
    NumericTarget,
    Rows,
    SparseRows,
    as_rows,
    refuse_unusable_numbers,
)
from fairpca._input.stream import Input, in_memory
from fairpca._moments.accumulate import by_group
from fairpca._moments.few_rows import are_few
from fairpca._moments.group_moments import GroupMoments, moments_of_rows
from fairpca._moments.operand import Operand, relative_units
from fairpca._moments.sums import all_at_center
from fairpca._typing import Array, Center, Codes, Label, Labels, Mask

_GRAMS_UP_TO = 5000  # features
_FEW_ENTRIES = 1 << 26  # With more features, so many numbers of few rows are copied: 512 MiB.
_FAR = 100  # squared mean over variance; beyond it, at most one entry in a hundred is zero


class ImplicitMoments:
    """Counts and means of each group, and the rows, from which products are formed when needed.

    Stands in for :class:`GroupMoments`, with the same attributes, where that would be too large.
    """

    n_folds = 0
    n_targets = 0
    has_units = False  # units are for folds, which very many features do not have
    has_missing = False
    clipped_variance: Array  # only where values may be missing

    def __init__(
        self, rows: Rows, groups: Any, sample_weight: Any = None, target: Any = None
    ) -> None:
        codes, self.groups, _ = encode_groups(groups, rows.n_rows)
        weights = check_sample_weight(sample_weight, rows.n_rows)
        self.outcomes: Labels | None = None
        self._outcome_codes: Codes | None = None
        if target is not None:
            self._outcome_codes, self.outcomes = encode_outcomes(target, rows.n_rows)
        self._origin = rows, codes, weights
        k = len(self.groups)
        self.n_features = rows.n_features
        self.feature_names = rows.feature_names
        self.counts = np.bincount(codes if weights is None else codes[weights > 0], minlength=k)
        self.n_units = self.counts
        self.weights = np.bincount(codes, weights, minlength=k).astype(np.float64)
        check_group_weights(self.groups, self.weights)
        self._divisors = np.ones(rows.n_features)
        shift: Array | float = 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            if isinstance(rows, SparseRows):
                X, shift = _shift_far_columns(rows.block(0, rows.n_rows), weights)
                self._rows: Products = SparseProducts(X, codes, k, weights)
            else:
                self._rows = DenseProducts(rows, codes, k, weights)
            self._means = self._rows.sums / self.weights[:, None]
            self._mean = self.weights @ self._means / self.weights.sum()
            self.means = self._means + shift
            self.mean = self._mean + shift
            squares = self._rows.squares(self._centers("overall"))
        if not np.isfinite(squares).all():
            refuse_unusable_numbers(rows)

    @property
    def attributes(self) -> dict[str, Mask]:
        """None: groups of several attributes do not overlap here."""
        return {}

    @property
    def partitions(self) -> list[Mask]:
        """One mask of all groups; see :class:`GroupMoments`."""
        return [np.ones(len(self.groups), bool)]

    @property
    def n_rows(self) -> int:
        """Number of rows with a positive weight."""
        return int(self.counts.sum())

    def by_attribute(self) -> ImplicitMoments:
        """The same moments."""
        return self

    @property
    def from_mean(self) -> Array:
        """Group means relative to the overall mean."""
        return np.asarray(self._means - self._mean) / self._divisors

    def operand(self, center: Center = "overall", compared: Mask | None = None) -> ImplicitOperand:
        """Products of the second moments about this centre."""
        return ImplicitOperand(self, self._centers(center, compared), compared)

    def refuse_rare_pairs(self, compared: Mask) -> None:
        """All values are there."""

    def variances(self) -> tuple[Array, Array]:
        """Variances of the columns about the group means, and of the group means about the mean."""
        squares = self._rows.squares(self._centers("group")).sum(axis=0)
        of_means = self.weights @ np.square(self._means - self._mean)
        units = self.weights.sum() * self._divisors**2
        return np.maximum(squares, 0.0) / units, of_means / units

    def divided(self, scale: Array) -> ImplicitMoments:
        """The same rows with each feature divided by its scale."""
        scaled = copy(self)
        scaled._divisors = self._divisors * scale
        scaled.means = self.means / scale
        scaled.mean = self.mean / scale
        return scaled

    def keep(self) -> ImplicitMoments:
        """The same rows, with outcomes forgotten."""
        if self.outcomes is None:
            return self
        kept = copy(self)
        kept.outcomes = kept._outcome_codes = None
        return kept

    def _by_outcome(self) -> tuple[ImplicitMoments, Codes, Codes]:
        """Moments of each pair of an outcome and a group, and which outcome and group that is."""
        rows, codes, weights = self._origin
        k = len(self.groups)
        if self._outcome_codes is None:
            return self, np.zeros(k, np.intp), np.arange(k)
        pairs = self._outcome_codes * k + codes
        if weights is not None:  # a pair without weight adds nothing wherever it is put
            pairs = np.where(weights > 0, pairs, pairs[weights.argmax()])
        flat = ImplicitMoments(rows, pairs, weights)
        outcomes, groups = np.divmod(flat.groups, k)
        return flat.divided(self._divisors), outcomes, groups

    def renamed(self, names: Mapping[Label, Label]) -> ImplicitMoments:
        """The same rows with some groups renamed, as in :meth:`GroupMoments.renamed`."""
        rows, codes, weights = self._origin
        new = [names.get(label, label) for label in self.groups.tolist()]
        target = None
        if self._outcome_codes is not None and self.outcomes is not None:
            target = CodedLabels(self._outcome_codes, self.outcomes.tolist())
        return ImplicitMoments(rows, CodedLabels(codes, new), weights, target)

    def _centers(self, center: Center, compared: Mask | None = None) -> Array:
        if center == "group":
            return self._means
        counted = self._means
        if compared is not None:
            counted = self._means[compared]
        origin = self._mean
        if center == "balanced":
            origin = counted.mean(axis=0)
        return np.tile(origin, (len(self.groups), 1))


class ImplicitOperand(Operand):
    """Second moments known by their products only."""

    matrices = None
    products_only = True

    def __init__(self, moments: ImplicitMoments, centers: Array, compared: Mask | None) -> None:
        scale = moments._divisors
        weights = moments.weights
        self._rows = moments._rows
        self._centers = centers
        self._scale = scale[:, None]
        self._divisors = weights
        self.shares = weights / weights.sum()
        if compared is None:
            compared = np.ones(len(weights), dtype=bool)
        self.compared = compared
        self.n_features = centers.shape[1]
        squares = self._rows.squares(centers) / weights[:, None]
        squares[all_at_center(squares, moments.mean * scale)] = 0.0
        self.traces = np.maximum(squares @ scale**-2.0, 0.0)

    def relative(self) -> ImplicitOperand:
        units, shares = relative_units(self.shares, self.traces)
        twin = copy(self)
        twin.shares = shares
        twin.traces = self.traces / units
        twin._divisors = self._divisors * units
        return twin

    def products(self, V: Array) -> Array:
        products = self._rows.products(np.ascontiguousarray(V / self._scale), self._centers)
        products /= self._scale * self._divisors[:, None, None]
        return products


class DenseProducts:
    """Dense rows, centred block by block and group by group; ``sums`` are those of each group."""

    def __init__(
        self, rows: DenseRows | DeviceRows, codes: Codes, k: int, weights: Array | None
    ) -> None:
        # A frame becomes an array once, because every product passes over it.
        self._source: Rows = rows
        if isinstance(rows, FrameRows):
            self._source = as_rows(rows.block(0, rows.n_rows))
        self._codes = codes
        self._k = k
        if weights is None:
            weights = np.ones(len(codes))
        self._weights = weights
        origin = np.asarray(self._source.block(0, 1)[0], dtype=np.float64)
        from_origin = self._reduce(lambda Z, w: w @ Z, np.tile(origin, (k, 1)), 1)[:, 0]
        self.sums = from_origin + np.bincount(codes, weights, minlength=k)[:, None] * origin

    def squares(self, centers: Array) -> Array:
        """Weighted sum of squared distances to the centre, by group and column."""
        return self._reduce(lambda Z, w: np.einsum("ij,ij,i->j", Z, Z, w), centers, 1)[:, 0]

    def products(self, V: Array, centers: Array) -> Array:
        """``(X_g - 1 c')' W_g ((X_g - 1 c') V)``, of shape (k, d, m)."""
        total = self._reduce(lambda Z, w: (w[:, None] * (Z @ V)).T @ Z, centers, V.shape[1])
        return np.ascontiguousarray(total.transpose(0, 2, 1))

    def _reduce(self, function: Callable[[Array, Array], Array], centers: Array, m: int) -> Array:
        """For each group, the sum of ``function(Z, w)``, m x d, over its centred rows Z."""
        n = self._source.n_rows
        d = self._source.n_features
        size = max(64, ENTRIES_AT_A_TIME // d)
        n_threads = blas_threads()

        def part(edges: tuple[int, int]) -> Array:
            total = np.zeros((self._k, m, d))
            for low in range(*edges, size):
                high = min(low + size, edges[1])
                order, groups = by_group(self._codes[low:high], self._k)
                block = self._source.block(low, high)
                w = self._weights[low:high]
                for g, place in groups:
                    members = order[place]
                    total[g] += function(block[members] - centers[g], w[members])
            return total

        edges = [n * i // n_threads for i in range(n_threads + 1)]
        return reduce(np.add, parallel_map(part, pairwise(edges), n_threads))


class SparseProducts:
    """Sparse rows times the roots of their weights, copied in one part per group and thread."""

    def __init__(self, X: Any, codes: Codes, k: int, weights: Array | None) -> None:
        roots = np.ones(X.shape[0]) if weights is None else np.sqrt(weights)
        self._parts: list[tuple[int, Any, Array]] = []
        for g in range(k):
            for members in np.array_split(np.flatnonzero(codes == g), blas_threads()):
                part = diags_array(roots[members]) @ X[members]
                self._parts.append((g, part, roots[members]))
        self._totals = np.bincount(codes, weights, minlength=k)
        self.sums = self._per_group(lambda X, roots: X.T @ roots, X.shape[1:])

    def squares(self, centers: Array) -> Array:
        """Weighted sum of squared distances to the centre, by group and column."""
        raw = self._per_group(lambda X, _: X.power(2).sum(axis=0), self.sums.shape[1:])
        return np.asarray(raw + centers * (self._totals[:, None] * centers - 2 * self.sums))

    def products(self, V: Array, centers: Array) -> Array:
        """``(X_g - 1 c')' W_g ((X_g - 1 c') V)``, of shape (k, d, m)."""
        products = self._per_group(lambda X, _: X.T @ (X @ V), V.shape)
        for g, c in enumerate(centers):
            left = np.stack([self.sums[g], c])
            sums_V, c_V = left @ V
            products[g] -= left.T @ np.stack([c_V, sums_V - self._totals[g] * c_V])
        return products

    def _per_group(self, function: Callable[[Any, Array], Array], shape: tuple[int, ...]) -> Array:
        """For each group, the sum of ``function(rows, roots)`` over its parts."""

        def on_part(item: tuple[int, Any, Array]) -> Array:
            with np.errstate(over="ignore", invalid="ignore"):  # callers check the result
                return function(item[1], item[2])

        total = np.zeros((len(self._totals), *shape))
        results = parallel_map(on_part, self._parts)
        for (g, _, _), result in zip(self._parts, results, strict=True):
            total[g] += result
        return total


Products = SparseProducts | DenseProducts


def _shift_far_columns(X: Any, weights: Array | None) -> tuple[Any, Array]:
    """Shift columns whose mean is large beside their spread; also returns the shifts.

    Centring them by products of means would cost digits, and hardly any of their entries are zero.
    """
    counted = X
    if weights is not None:
        counted = X[weights > 0]
    n = counted.shape[0]
    means = np.asarray(counted.sum(axis=0)).ravel() / n
    variances = np.asarray(counted.power(2).sum(axis=0)).ravel() / n - means**2
    far = means**2 > _FAR * np.abs(variances)
    shift = np.where(far, means, 0.0)
    if far.any():
        X = csr_array(X - csr_array(np.ones((X.shape[0], 1))) @ csr_array(shift[None]))
    return X, shift


#: What a fit learns from the rows: moments, or the rows where these would be too large.
Moments = GroupMoments | ImplicitMoments


def learn(given: Input, folds: FoldRule | Codes | None = None) -> Moments:
    """The first step of every fit: the moments by fold, outcome and group.

    The rows take their place where moments would be too large.
    """
    if not in_memory(given.X):
        return GroupMoments().add(given, folds)
    rows = as_rows(given.X)
    given = given._replace(X=rows)
    n = rows.n_rows
    d = rows.n_features
    small = 2 * n <= _GRAMS_UP_TO and n * d <= _FEW_ENTRIES
    if d <= _GRAMS_UP_TO or (are_few(n, d) and (small or folds is not None)):
        return moments_of_rows(given, folds)
    if folds is not None:
        problem = f"cross-validation works for up to {_GRAMS_UP_TO} features"
        remedy = "pass fewer columns, or do without it (FairPCA, or tradeoff_path without cv)"
        raise ValueError(f"{problem}, or half as many rows as features, not {n} x {d}; {remedy}.")
    if not given.crossing and encode_groups(given.sensitive_features, n).margins:
        raise ValueError(
            f"crossing=False works for up to {_GRAMS_UP_TO} features, not {d}; pass fewer columns, "
            "or one of the sensitive features."
        )
    if given.may_miss:
        problem = f"missing='available' works for up to {_GRAMS_UP_TO} features, not {d}"
        raise ValueError(f"{problem}: it keeps a matrix of all pairs; pass fewer columns.")
    if isinstance(given.y, NumericTarget):
        problem = f"with {d} features a target must be classes, not numbers"
        raise ValueError(f"{problem}; pass fewer features, or classes such as y > threshold.")
    return ImplicitMoments(rows, given.sensitive_features, given.sample_weight, given.y)
