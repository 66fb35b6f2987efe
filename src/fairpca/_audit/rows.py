"""The rows behind an audit: in memory, or streamed from files again for every question."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from fairpca._audit.held_out import MOST_UNITS, HeldOut, assign_folds, cross_fit, fit_folds
from fairpca._estimators.base import FairProjection
from fairpca._input.checks import (
    check_sample_weight,
)
from fairpca._input.crossing import cell_text
from fairpca._input.labels import (
    CodedLabels,
    encode_groups,
)
from fairpca._input.rows import as_rows
from fairpca._moments.group_moments import GroupMoments, block_moments
from fairpca._moments.small_groups import REST, SettledGroups
from fairpca._progress import Step
from fairpca._tables.decode import Block
from fairpca._typing import Array

Codes = NDArray[np.intp]


@dataclass(frozen=True)
class Sample:
    """Some rows: their numbers, groups and values."""

    rows: Codes
    codes: Codes
    values: Array


class AuditedRows(Protocol):
    """What an audit asks of the rows."""

    moments: GroupMoments
    feature_names: list[str]
    weighted: bool

    def cross_fit(
        self,
        settled: SettledGroups,
        n_folds: int,
        estimators: Sequence[FairProjection],
        standardize: bool,
        rng: np.random.Generator,
    ) -> Generator[Step, None, HeldOut]:
        """Errors under projections fitted without the row; see :mod:`fairpca._audit.held_out`."""

    def sample(
        self, settled: SettledGroups, n_scores: int, rng: np.random.Generator
    ) -> Generator[Step, None, Sample]:
        """At most ``n_scores`` rows, as many of every group where it has them."""


class RowsInMemory:
    """Rows of an array, sparse matrix or data frame; those of weight zero do not count."""

    def __init__(self, X: Any, sensitive_features: Any, sample_weight: Any = None) -> None:
        rows = as_rows(X)
        self.feature_names = rows.feature_names or [f"x{j}" for j in range(rows.n_features)]
        whole = rows.block(0, rows.n_rows)
        values = whole if rows.is_sparse else np.array(whole, dtype=np.float64)
        codes, self._labels = encode_groups(sensitive_features, rows.n_rows)
        weights = check_sample_weight(sample_weight, rows.n_rows)
        self.weighted = weights is not None
        self.moments = GroupMoments.from_data(X, sensitive_features, weights)
        self._kept = np.arange(len(codes)) if weights is None else np.flatnonzero(weights)
        self._values = values if weights is None else values[self._kept]
        self._codes = codes[self._kept]
        self._weights = None if weights is None else weights[self._kept]

    def cross_fit(
        self,
        settled: SettledGroups,
        n_folds: int,
        estimators: Sequence[FairProjection],
        standardize: bool,
        rng: np.random.Generator,
    ) -> Generator[Step, None, HeldOut]:
        """In one pass for the moments and one for the errors."""
        codes = _places(self._labels.tolist(), settled)[self._codes]
        return cross_fit(
            self._values,
            codes,
            assign_folds(codes, n_folds, rng),
            estimators,
            standardize,
            sample_weight=self._weights,
            compared=settled.compared,
        )

    def sample(
        self, settled: SettledGroups, n_scores: int, rng: np.random.Generator
    ) -> Generator[Step, None, Sample]:
        """Drawn from the rows of each group."""
        yield from ()  # it takes no time
        codes = _places(self._labels.tolist(), settled)[self._codes]
        sizes = np.bincount(codes, minlength=len(settled.moments.groups))
        drawn = [
            np.flatnonzero(codes == g)[some] for g, some in enumerate(_drawn(sizes, n_scores, rng))
        ]
        rows = np.sort(np.concatenate(drawn))
        values: Any = self._values[rows]
        dense = values if isinstance(values, np.ndarray) else values.toarray()
        return Sample(self._kept[rows], codes[rows], dense)


class StreamedRows:
    """Rows of files, never in memory at once; each question is a pass over them.

    Held-out errors are summed up in at most ``MOST_UNITS`` units of each group, to which rows are
    dealt at random: what the bootstrap makes of many rows in memory too.

    Parameters
    ----------
    table : FileTable
    layout : Layout
    moments : GroupMoments
    before : mapping of (str, int) to mapping of str to int
        For each block, by the file and the first row in it: rows of each group in earlier blocks.
    seed : int
    """

    weighted = False

    def __init__(
        self,
        table: Any,
        layout: Any,
        moments: GroupMoments,
        before: Mapping[tuple[str, int], Mapping[str, int]],
        seed: int,
    ) -> None:
        self.moments, self.feature_names = moments, layout.feature_names
        self._table, self._layout, self._before, self._seed = table, layout, before, seed
        self._ordinals = {place: i for i, place in enumerate(before)}

    def cross_fit(
        self,
        settled: SettledGroups,
        n_folds: int,
        estimators: Sequence[FairProjection],
        standardize: bool,
        rng: np.random.Generator,
    ) -> Generator[Step, None, HeldOut]:
        """In one pass for the moments and one for the errors."""
        sizes = settled.moments.counts
        n_units = np.minimum(sizes, MOST_UNITS)
        first_unit = np.concatenate([[0], np.cumsum(n_units)])

        def fold_moments(block: Block) -> list[GroupMoments]:
            X, codes, before = self._read(block, settled)
            fold = assign_folds(codes, n_folds, self._random(block, "fold"), before)
            return [
                block_moments(X[fold == k], CodedLabels(codes[fold == k], range(len(sizes))), None)
                for k in range(n_folds)
            ]

        def unit_sums(block: Block) -> Array:
            X, codes, before = self._read(block, settled)
            fold = assign_folds(codes, n_folds, self._random(block, "fold"), before)
            unit = assign_folds(codes, n_units, self._random(block, "unit"), before)
            errors = np.ones((len(estimators) + 2, len(codes)))
            for k, fit in enumerate(fits):
                errors[:-1, fold == k] = fit.errors(X[fold == k])
            unit += first_unit[codes]
            return np.array([np.bincount(unit, e, minlength=first_unit[-1]) for e in errors])

        parts = [GroupMoments() for _ in range(n_folds)]
        for found in self._pass(fold_moments):
            for part, more in zip(parts, found, strict=True):
                part._absorb(more)
            yield Step("reading the folds")
        fits = yield from fit_folds(parts, estimators, standardize, settled.compared)
        sums = np.zeros((len(estimators) + 2, first_unit[-1]))
        for found in self._pass(unit_sums):
            sums += found
            yield Step("reading for the held-out errors")
        codes = np.repeat(np.arange(len(sizes)), n_units)
        return HeldOut(sums[:-2], sums[-2], sums[-1], codes)

    def sample(
        self, settled: SettledGroups, n_scores: int, rng: np.random.Generator
    ) -> Generator[Step, None, Sample]:
        """Drawn from the numbers of rows, and then looked for."""
        drawn = _drawn(settled.moments.counts, n_scores, rng)

        def wanted(block: Block) -> tuple[Codes, Codes, Array]:
            X, codes, before = self._read(block, settled)
            here = np.zeros(len(codes), bool)
            for g in np.unique(codes).tolist():
                members = np.flatnonzero(codes == g)
                here[members] = np.isin(before[g] + np.arange(len(members)), drawn[g])
            rows = np.flatnonzero(here)
            return rows + before.sum(), codes[rows], X[rows]

        parts = []
        for found in self._pass(wanted):
            parts.append(found)
            yield Step("reading for the scores")
        return Sample(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def _pass(self, work: Any) -> Any:
        return self._table.map(self._layout, work, drop_missing=True)

    def _read(self, block: Block, settled: SettledGroups) -> tuple[Array, Codes, Codes]:
        """Values and groups of a block, and the rows of each group before it."""
        assert block.groups is not None
        earlier = self._before[block.origin.name, block.origin.first_row]
        before = np.zeros(len(settled.moments.groups), np.intp)
        np.add.at(before, _places(list(earlier), settled), list(earlier.values()))
        known = self.moments.groups.tolist()
        labels = [cell_text(label) for label in block.groups.labels]
        places = _places([label if label in known else known[0] for label in labels], settled)
        X = np.asarray(block.rows.block(0, block.rows.n_rows), np.float64)
        return X, places[block.groups.codes], before

    def _random(self, block: Block, purpose: str) -> np.random.Generator:
        """The same numbers whenever this block is read for this purpose."""
        ordinal = self._ordinals[block.origin.name, block.origin.first_row]
        return np.random.default_rng([self._seed, ordinal, crc32(purpose.encode())])


def _places(labels: Sequence[Any], settled: SettledGroups) -> Codes:
    """Where groups stand among those that were compared: small ones may have become the rest."""
    new = settled.moments.groups.tolist()
    return np.array([new.index(label if label in new else REST) for label in labels], np.intp)


def _drawn(sizes: NDArray[Any], n_scores: int, rng: np.random.Generator) -> list[Codes]:
    """Numbers of rows within each group, as many of every group where it has them."""
    most = max(n_scores // len(sizes), 1)
    return [rng.choice(int(n), min(int(n), most), replace=False) for n in sizes]
