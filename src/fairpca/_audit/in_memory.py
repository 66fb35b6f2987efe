"""The rows behind an audit, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_random_state

from fairpca._audit.dealt import Dealt
from fairpca._audit.held_out import FoldFit, HeldOut, cross_fit
from fairpca._audit.sampling import (
    SampledRows,
    cells_of,
    draw_evenly,
    fewest_in_cells,
    settled_codes,
)
from fairpca._estimators.base import FairProjection
from fairpca._input.checks import check_sample_weight
from fairpca._input.labels import encode_groups
from fairpca._input.missing_numbers import MissingNumbers
from fairpca._input.rows import ColumnRows, as_rows
from fairpca._moments.dealing import fold_numbers
from fairpca._moments.fold_labels import NEVER
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.small_groups import SettledGroups
from fairpca._progress import Progress
from fairpca._typing import Array, Codes
from fairpca.metrics.probes import sample_of_groups


class RowsInMemory:
    """Rows of an array, sparse matrix or data frame; those of weight zero do not count.

    ``target`` is the class of each row, for an estimator that looks at it: then the moments are
    those of cells. With ``impute``, missing values are replaced by medians; in cross-validation, by
    those of the rows fitted to.
    """

    def __init__(
        self,
        X: Any,
        sensitive_features: Any,
        sample_weight: Any = None,
        target: Any = None,
        impute: bool = False,
    ) -> None:
        rows = as_rows(X)
        self.feature_names = rows.feature_names or [f"x{j}" for j in range(rows.n_features)]
        whole = rows.block(0, rows.n_rows)
        values: Any = whole if issparse(whole) else np.array(whole, dtype=np.float64)
        self._all_codes, self._labels = encode_groups(sensitive_features, rows.n_rows)
        weights = check_sample_weight(sample_weight, rows.n_rows)
        self.weighted = weights is not None
        self._kept = np.arange(rows.n_rows) if weights is None else np.flatnonzero(weights)
        self._gaps = MissingNumbers(values, self._kept, self.feature_names) if impute else None
        if self._gaps is not None:
            values = self._gaps.values
            X = ColumnRows(list(values.T), self.feature_names) if rows.feature_names else values
        self.moments = GroupMoments.from_data(X, sensitive_features, weights, target)
        self._values = values if weights is None else values[self._kept]
        self._weights = None if weights is None else weights[self._kept]
        self._target = None if target is None else target[self._kept]

    def deal(self, settled: SettledGroups, cv: Any, random_state: Any, progress: Progress) -> Dealt:
        """The folds that an estimator with this ``cv`` and ``random_state`` would choose by.

        A number of folds is dealt to the rows that count, a splitter sees all of them.
        """
        rng, codes = check_random_state(random_state), self._settled(settled)
        if self._target is not None:
            fewest_in_cells(codes, settled.moments.groups[codes], self._target)
        if isinstance(cv, Integral):
            cells = codes if self._target is None else cells_of(codes, self._target)
            kept = list(fold_numbers(cv, cells, rng))
        else:
            kept = [folds[self._kept] for folds in fold_numbers(cv, self._all_codes, rng)]
        left_out = np.unique(codes[(np.array(kept) != NEVER).any(axis=0)])
        for g in np.setdiff1d(codes, left_out).tolist():
            raise ValueError(
                f"cv={cv} leaves out no row of group {settled.moments.groups.tolist()[g]!r}, so "
                "nothing can be said about new rows of it; pass a splitter that stratifies by "
                "group, or a number of folds."
            )
        return Dealt.of(self._values, codes, kept, self._weights, self._target)

    def cross_fit(
        self,
        settled: SettledGroups,
        dealt: Dealt,
        estimators: Sequence[FairProjection],
        whole: FoldFit,
        progress: Progress,
    ) -> HeldOut:
        """Errors under projections that were fitted without the row; ``whole`` has seen all."""
        codes, gaps = self._settled(settled), self._gaps

        def filled_by_others(numbers: Codes, fold: int) -> tuple[Array, Dealt]:
            assert gaps is not None
            values = gaps.filled_by(numbers != fold)
            return values, Dealt.of(values, codes, [numbers], self._weights, self._target)

        held_out = cross_fit(
            self._values,
            codes,
            dealt,
            estimators,
            whole.scale is not None,
            whole=whole,
            sample_weight=self._weights,
            compared=settled.compared,
            filled_in=None if gaps is None else filled_by_others,
            progress=progress,
        )
        largest = [replace(top, rows=self._kept[top.rows]) for top in held_out.largest]
        return replace(held_out, largest=largest)

    def sample(
        self, settled: SettledGroups, n_scores: int, rng: np.random.Generator, progress: Progress
    ) -> SampledRows:
        """At most ``n_scores`` rows, the same number of every group that has as many."""
        codes = self._settled(settled)
        sizes = np.bincount(codes, minlength=len(settled.moments.groups))
        drawn = draw_evenly(sizes, n_scores, rng)
        members = [np.flatnonzero(codes == g)[numbers] for g, numbers in enumerate(drawn)]
        return self._sampled(np.sort(np.concatenate(members)), codes)

    def random_sample(self, settled: SettledGroups, n: int, seed: int) -> SampledRows:
        """At most about n rows: of each group in proportion, but more of small groups."""
        codes = self._settled(settled)
        return self._sampled(sample_of_groups(codes, n, np.random.RandomState(seed)), codes)

    def _settled(self, settled: SettledGroups) -> Codes:
        """The group of each row that counts."""
        return settled_codes(self._labels.tolist(), settled)[self._all_codes[self._kept]]

    def _sampled(self, rows: Codes, codes: Codes) -> SampledRows:
        values: Any = self._values[rows]
        dense = values if isinstance(values, np.ndarray) else values.toarray()
        return SampledRows(self._kept[rows], codes[rows], dense)
