"""The rows behind an audit: in memory, or streamed from files again for every question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from scipy.sparse import issparse

from fairpca._audit.held_out import (
    FoldFit,
    HeldOut,
    assign_folds,
    cross_fit,
    fit_folds,
    largest_errors,
)
from fairpca._audit.influence import LargestErrors, n_kept
from fairpca._audit.intervals import MOST_UNITS
from fairpca._audit.refits import refit_effects
from fairpca._estimators.base import FairProjection
from fairpca._input.checks import check_sample_weight
from fairpca._input.labels import CodedLabels, encode_groups
from fairpca._input.rows import as_rows
from fairpca._moments.group_moments import GroupMoments, block_moments
from fairpca._moments.small_groups import REST, SettledGroups
from fairpca._progress import Progress
from fairpca._tables.decode import TableBlock
from fairpca._typing import Array, Codes

if TYPE_CHECKING:
    from fairpca._moments.prepare import Prepared


@dataclass(frozen=True)
class SampledRows:
    """A sample of the rows: their numbers, groups and values."""

    rows: Codes
    codes: Codes
    values: Array


class RowsInMemory:
    """Rows of an array, sparse matrix or data frame; those of weight zero do not count."""

    def __init__(self, X: Any, sensitive_features: Any, sample_weight: Any = None) -> None:
        rows = as_rows(X)
        self.feature_names = rows.feature_names or [f"x{j}" for j in range(rows.n_features)]
        whole = rows.block(0, rows.n_rows)
        values: Any = whole if issparse(whole) else np.array(whole, dtype=np.float64)
        codes, self._labels = encode_groups(sensitive_features, rows.n_rows)
        weights = check_sample_weight(sample_weight, rows.n_rows)
        self.weighted = weights is not None
        self.moments = GroupMoments.from_data(X, sensitive_features, weights)
        self._kept = np.arange(len(codes)) if weights is None else np.flatnonzero(weights)
        self._values = values if weights is None else values[self._kept]
        self._codes = codes[self._kept]
        self._weights = None if weights is None else weights[self._kept]

    def by_fold(
        self, settled: SettledGroups, n_folds: int, rng: np.random.Generator, progress: Progress
    ) -> GroupMoments:
        """Moments of the settled groups in each fold."""
        codes = _settled_codes(self._labels.tolist(), settled)[self._codes]
        fold, labels = assign_folds(codes, n_folds, rng), settled.moments.groups.tolist()
        groups = CodedLabels(codes, labels)
        return GroupMoments.from_data(self._values, groups, self._weights, folds=fold)

    def cross_fit(
        self,
        settled: SettledGroups,
        n_folds: int,
        estimators: Sequence[FairProjection],
        whole: FoldFit,
        rng: np.random.Generator,
        progress: Progress,
    ) -> HeldOut:
        """Errors under projections that were fitted without the row; ``whole`` has seen all."""
        codes = _settled_codes(self._labels.tolist(), settled)[self._codes]
        held_out = cross_fit(
            self._values,
            codes,
            assign_folds(codes, n_folds, rng),
            estimators,
            whole.scale is not None,
            whole=whole,
            sample_weight=self._weights,
            compared=settled.compared,
            progress=progress,
        )
        largest = [replace(top, rows=self._kept[top.rows]) for top in held_out.largest]
        return replace(held_out, largest=largest)

    def sample(
        self, settled: SettledGroups, n_scores: int, rng: np.random.Generator, progress: Progress
    ) -> SampledRows:
        """At most ``n_scores`` rows, the same number of every group that has as many."""
        codes = _settled_codes(self._labels.tolist(), settled)[self._codes]
        sizes = np.bincount(codes, minlength=len(settled.moments.groups))
        drawn = _draw(sizes, n_scores, rng)
        members = [np.flatnonzero(codes == g)[numbers] for g, numbers in enumerate(drawn)]
        return self._sampled(np.sort(np.concatenate(members)), codes)

    def random_sample(
        self, settled: SettledGroups, n: int, rng: np.random.Generator
    ) -> SampledRows:
        """At most n rows, each as likely as any other."""
        codes = _settled_codes(self._labels.tolist(), settled)[self._codes]
        drawn = rng.choice(len(codes), min(n, len(codes)), replace=False)
        return self._sampled(np.sort(drawn), codes)

    def _sampled(self, rows: Codes, codes: Codes) -> SampledRows:
        values: Any = self._values[rows]
        dense = values if isinstance(values, np.ndarray) else values.toarray()
        return SampledRows(self._kept[rows], codes[rows], dense)


class StreamedRows:
    """Rows of files, never in memory at once; each question is a pass over them.

    Held-out errors are summed up in at most ``MOST_UNITS`` units of each group, to which rows are
    dealt at random: what the bootstrap makes of many rows in memory too.

    Parameters
    ----------
    table : FileTable
    roles : Roles
    moments : GroupMoments
    before : mapping of (str, int) to mapping of str to int
        For each block, by the file and the first row in it: rows of each group in earlier blocks.
    seed : int
    """

    weighted = False

    def __init__(
        self,
        table: Any,
        roles: Any,
        moments: GroupMoments,
        before: Mapping[tuple[str, int], Mapping[str, int]],
        seed: int,
    ) -> None:
        self.moments, self.feature_names = moments, roles.feature_names
        self._table, self._roles, self._before, self._seed = table, roles, before, seed
        self._ordinals = {place: i for i, place in enumerate(before)}

    def by_fold(
        self, settled: SettledGroups, n_folds: int, rng: np.random.Generator, progress: Progress
    ) -> GroupMoments:
        """Moments of the settled groups in each fold, in one pass."""
        labels = settled.moments.groups.tolist()

        def fold_moments(block: TableBlock) -> GroupMoments:
            X, codes, before = self._read(block, settled)
            fold = assign_folds(codes, n_folds, self._random(block, "choice"), before)
            return block_moments(X, CodedLabels(codes, labels), None, folds=fold)

        parts = self._pass(fold_moments, "reading the folds of the choice", progress)
        merged: GroupMoments = reduce(GroupMoments.merge, parts)
        return merged

    def cross_fit(
        self,
        settled: SettledGroups,
        n_folds: int,
        estimators: Sequence[FairProjection],
        whole: FoldFit,
        rng: np.random.Generator,
        progress: Progress,
    ) -> HeldOut:
        """In one pass for the moments and one for the errors."""
        sizes, n = settled.moments.counts, int(settled.moments.counts.sum())
        n_units = np.minimum(sizes, MOST_UNITS)
        first_unit = np.concatenate([[0], np.cumsum(n_units)])

        def fold_moments(block: TableBlock) -> list[GroupMoments]:
            X, codes, before = self._read(block, settled)
            fold = assign_folds(codes, n_folds, self._random(block, "fold"), before)
            return [
                block_moments(X[fold == k], CodedLabels(codes[fold == k], range(len(sizes))), None)
                for k in range(n_folds)
            ]

        def unit_sums(block: TableBlock) -> tuple[Array, list[LargestErrors]]:
            X, codes, before = self._read(block, settled)
            fold = assign_folds(codes, n_folds, self._random(block, "fold"), before)
            unit = assign_folds(codes, n_units, self._random(block, "unit"), before)
            errors = np.ones((len(estimators) + 2, len(codes)))  # the last row counts rows
            for k, fit in enumerate(fits):
                errors[:-1, fold == k] = fit.errors(X[fold == k])
            unit += first_unit[codes]
            numbers = np.arange(len(codes)) + before.sum()
            largest = largest_errors(numbers, codes, errors[:-1], errors[-1], n_kept(n))
            sums = [np.bincount(unit, e, minlength=first_unit[-1]) for e in errors]
            return np.array(sums), largest

        parts = [GroupMoments() for _ in range(n_folds)]
        for moments in self._pass(fold_moments, "reading the folds", progress):
            parts = [part.merge(new) for part, new in zip(parts, moments, strict=True)]
        standardize = whole.scale is not None
        fits = fit_folds(parts, estimators, standardize, settled.compared, progress)
        sums = np.zeros((len(estimators) + 2, first_unit[-1]))
        largest: list[LargestErrors] = []
        for part, top in self._pass(unit_sums, "reading for the held-out errors", progress):
            sums += part
            pairs = zip(largest or top, top, strict=True)
            largest = [a.join(b).keep(n_kept(n)) for a, b in pairs] if largest else top
        codes = np.repeat(np.arange(len(sizes)), n_units)
        refits = refit_effects(parts, fits, whole)
        return HeldOut(sums[:-2], sums[-2], sums[-1], codes, refits, largest)

    def sample(
        self, settled: SettledGroups, n_scores: int, rng: np.random.Generator, progress: Progress
    ) -> SampledRows:
        """Drawn from the numbers of rows, and then looked for."""
        drawn = _draw(settled.moments.counts, n_scores, rng)

        def drawn_rows(block: TableBlock) -> tuple[Codes, Codes, Array]:
            X, codes, before = self._read(block, settled)
            is_drawn = np.zeros(len(codes), bool)
            for g in np.unique(codes).tolist():
                members = np.flatnonzero(codes == g)
                is_drawn[members] = np.isin(before[g] + np.arange(len(members)), drawn[g])
            rows = np.flatnonzero(is_drawn)
            return rows + before.sum(), codes[rows], X[rows]

        parts = list(self._pass(drawn_rows, "reading for the scores", progress))
        return SampledRows(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def _pass(self, work: Callable[[TableBlock], Any], doing: str, progress: Progress) -> Any:
        """What ``work`` makes of each block, in order."""
        return self._table.map(self._roles, work, True, partial(progress, doing))

    def _read(self, block: TableBlock, settled: SettledGroups) -> tuple[Array, Codes, Codes]:
        """Values and groups of a block, and the rows of each group before it."""
        assert block.groups is not None
        earlier = self._before[block.origin.name, block.origin.first_row]
        before = np.zeros(len(settled.moments.groups), np.intp)
        np.add.at(before, _settled_codes(list(earlier), settled), list(earlier.values()))
        known = self.moments.groups.tolist()
        labels = [self._roles.label_text(label) for label in block.groups.labels]
        # A label that only dropped rows have is not known, and no row here has its code.
        labels = [label if label in known else known[0] for label in labels]
        X = np.asarray(block.rows.block(0, block.rows.n_rows), np.float64)
        return X, _settled_codes(labels, settled)[block.groups.codes], before

    def _random(self, block: TableBlock, purpose: str) -> np.random.Generator:
        """The same numbers whenever this block is read for this purpose."""
        ordinal = self._ordinals[block.origin.name, block.origin.first_row]
        return np.random.default_rng([self._seed, ordinal, crc32(purpose.encode())])


#: The rows of an audit, wherever they are.
AuditedRows = RowsInMemory | StreamedRows


def rows_of(prepared: Prepared, seed: int) -> AuditedRows:
    """The rows of a table that was read for the command line."""
    if prepared.X is None:
        return StreamedRows(prepared.table, prepared.roles, prepared.moments, prepared.before, seed)
    # Summed up again, as by the code that the report shows: both agree to the last bit.
    return RowsInMemory(prepared.X, prepared.groups)


def _settled_codes(labels: Sequence[Any], settled: SettledGroups) -> Codes:
    """Codes of groups among the settled ones, where small groups may have become the rest."""
    groups = settled.moments.groups.tolist()
    return np.array([groups.index(label if label in groups else REST) for label in labels], np.intp)


def _draw(sizes: Codes, n_scores: int, rng: np.random.Generator) -> list[Codes]:
    """Numbers of rows within each group, the same number of every group that has as many."""
    most = max(n_scores // len(sizes), 1)
    return [rng.choice(int(n), min(int(n), most), replace=False) for n in sizes]
