"""Moments of very many features: counts and means, but no d x d matrix is ever formed."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np

from fairpca._input.checks import check_group_weights, check_sample_weight
from fairpca._input.labels import CodedLabels, encode_groups
from fairpca._input.rows import Rows, SparseRows, refuse_unusable_numbers
from fairpca._moments.operand import Operand, relative_units
from fairpca._moments.products import DenseProducts, SparseProducts, shift_far_columns
from fairpca._typing import Array, Center, Mask


class ImplicitMoments:
    """Counts and means of each group, and the rows, from which products are formed when needed.

    Stands in for :class:`GroupMoments` where these would be too large; it cannot be merged.

    Attributes
    ----------
    groups, counts, weights, means, mean, from_mean, n_features, feature_names
        As in :class:`GroupMoments`.
    """

    def __init__(self, rows: Rows, groups: Any, sample_weight: Any = None) -> None:
        codes, self.groups = encode_groups(groups, rows.n_rows)
        self._origin = rows, codes, sample_weight
        weights = check_sample_weight(sample_weight, rows.n_rows)
        k = len(self.groups)
        self.n_features, self.feature_names = rows.n_features, rows.feature_names
        self.counts = np.bincount(codes[weights > 0] if weights is not None else codes, minlength=k)
        self.weights = np.bincount(codes, weights, minlength=k).astype(np.float64)
        check_group_weights(self.groups, self.weights)
        shift: Any = 0.0
        if isinstance(rows, SparseRows):
            X, shift = shift_far_columns(rows.block(0, rows.n_rows), weights)
            self._rows: SparseProducts | DenseProducts = SparseProducts(X, codes, k, weights)
        else:
            self._rows = DenseProducts(rows, codes, k, weights)
        with np.errstate(over="ignore", invalid="ignore"):
            self._means = self._rows.sums() / self.weights[:, None]
            self._mean = self.weights @ self._means / self.weights.sum()
            self.means, self.mean = self._means + shift, self._mean + shift
            squares = self._rows.squares(self._centers("overall"))
        if not np.isfinite(squares).all():
            refuse_unusable_numbers(rows)

    @property
    def from_mean(self) -> Array:
        """Group means seen from the overall mean."""
        return np.asarray(self._means - self._mean)

    def operand(self, center: Center = "overall", compared: Mask | None = None) -> ImplicitOperand:
        """Products of the second moments about the overall mean, or each group's own."""
        return ImplicitOperand(self._rows, self.weights, self._centers(center), compared)

    def variances(self) -> tuple[Array, Array]:
        """Of each feature about the groups' means, and of these about the overall mean."""
        squares = self._rows.squares(self._centers("group")).sum(axis=0)
        of_means = self.weights @ np.square(self._means - self._mean)
        total = self.weights.sum()
        return np.maximum(squares, 0.0) / total, of_means / total

    def relabel(self, names: Mapping[Any, Any]) -> ImplicitMoments:
        """The same rows with some groups renamed, as in :meth:`GroupMoments.relabel`."""
        rows, codes, sample_weight = self._origin
        new = [names.get(label, label) for label in self.groups.tolist()]
        return ImplicitMoments(rows, CodedLabels(codes, new), sample_weight)

    def _centers(self, center: Center) -> Array:
        return self._means if center == "group" else np.tile(self._mean, (len(self.groups), 1))


class ImplicitOperand(Operand):
    """Second moments known by their products only."""

    matrices = None

    def __init__(
        self,
        rows: SparseProducts | DenseProducts,
        weights: Array,
        centers: Array,
        compared: Mask | None = None,
    ) -> None:
        self._rows = rows
        self._divisors = weights
        self._centers = centers
        self.shares = weights / weights.sum()
        self.compared = np.ones(len(weights), dtype=bool) if compared is None else compared
        self.n_features = centers.shape[1]
        self.traces = np.maximum(rows.squares(centers).sum(axis=1) / weights, 0.0)

    def relative(self) -> ImplicitOperand:
        """The same groups, with each error a share of the group's own total variance."""
        units, shares = relative_units(self.shares, self.traces)
        twin = copy(self)
        twin.shares, twin.traces = shares, self.traces / units
        twin._divisors = self._divisors * units
        return twin

    def products(self, V: Array) -> Array:
        """``C_g V`` for every group."""
        products = self._rows.products(np.ascontiguousarray(V), self._centers)
        products /= self._divisors[:, None, None]
        return products
