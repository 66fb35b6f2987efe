"""The rows behind an audit, streamed from files again for every question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import Any
from zlib import crc32

import numpy as np

from fairpca._audit.dealt import Dealt
from fairpca._audit.held_out import FoldFit, HeldOut, fit_folds, largest_errors
from fairpca._audit.influence import LargestErrors, n_kept
from fairpca._audit.intervals import MOST_UNITS
from fairpca._audit.refits import refit_effects
from fairpca._audit.sampling import SampledRows, draw_evenly, settled_codes
from fairpca._estimators.base import FairProjection
from fairpca._input.labels import CodedLabels
from fairpca._moments.dealing import deal_folds
from fairpca._moments.from_tables import block_moments
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.small_groups import SettledGroups
from fairpca._progress import Progress
from fairpca._tables.decode import TableBlock
from fairpca._typing import Array, Codes


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

    def deal(self, settled: SettledGroups, cv: Any, random_state: Any, progress: Progress) -> Dealt:
        """So many folds, in one pass; the seed of the audit deals them."""
        if not isinstance(cv, Integral):
            raise ValueError(
                f"cv={cv} needs all rows at once, but these are read as a stream; pass a number of "
                "folds, for example cv=10."
            )
        groups, n_folds = range(len(settled.moments.groups)), int(cv)

        def fold_moments(block: TableBlock) -> list[GroupMoments]:
            X, codes, before = self._read(block, settled)
            fold = self._folds(block, codes, n_folds, before)
            return [
                block_moments(X[fold == k], CodedLabels(codes[fold == k], groups), None)
                for k in range(n_folds)
            ]

        parts = [GroupMoments() for _ in range(n_folds)]
        for moments in self._pass(fold_moments, "reading the folds", progress):
            parts = [part.merge(new) for part, new in zip(parts, moments, strict=True)]
        return Dealt({(0, k): part for k, part in enumerate(parts)}, [])

    def cross_fit(
        self,
        settled: SettledGroups,
        dealt: Dealt,
        estimators: Sequence[FairProjection],
        whole: FoldFit,
        progress: Progress,
    ) -> HeldOut:
        """In one pass."""
        sizes, n = settled.moments.counts, int(settled.moments.counts.sum())
        n_units = np.minimum(sizes, MOST_UNITS)
        first_unit = np.concatenate([[0], np.cumsum(n_units)])

        standardize = whole.scale is not None
        fits = fit_folds(dealt, estimators, standardize, settled.compared, progress)

        def unit_sums(block: TableBlock) -> tuple[Array, list[LargestErrors]]:
            X, codes, before = self._read(block, settled)
            folds = self._folds(block, codes, len(fits), before)
            unit = deal_folds(codes, n_units, self._random(block, "unit"), before)
            errors = np.ones((len(estimators) + 2, len(codes)))  # the last row counts rows
            for (_, fold), fit in fits.items():
                errors[:-1, folds == fold] = fit.errors(X[folds == fold])
            unit += first_unit[codes]
            numbers = np.arange(len(codes)) + before.sum()
            largest = largest_errors(numbers, codes, errors[:-1], errors[-1], n_kept(n))
            sums = [np.bincount(unit, e, minlength=first_unit[-1]) for e in errors]
            return np.array(sums), largest

        sums = np.zeros((len(estimators) + 2, first_unit[-1]))
        largest: list[LargestErrors] = []
        for part, top in self._pass(unit_sums, "reading for the held-out errors", progress):
            sums += part
            pairs = zip(largest or top, top, strict=True)
            largest = [a.join(b).keep(n_kept(n)) for a, b in pairs] if largest else top
        codes = np.repeat(np.arange(len(sizes)), n_units)
        refits = refit_effects(dealt, fits, whole)
        return HeldOut(sums[:-2], sums[-2], sums[-1], codes, refits, largest)

    def sample(
        self, settled: SettledGroups, n_scores: int, rng: np.random.Generator, progress: Progress
    ) -> SampledRows:
        """Drawn from the numbers of rows, and then looked for."""
        drawn = draw_evenly(settled.moments.counts, n_scores, rng)

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
        np.add.at(before, settled_codes(list(earlier), settled), list(earlier.values()))
        known = self.moments.groups.tolist()
        labels = [self._roles.label_text(label) for label in block.groups.labels]
        # A label that only dropped rows have is not known, and no row here has its code.
        labels = [label if label in known else known[0] for label in labels]
        X = np.asarray(block.rows.block(0, block.rows.n_rows), np.float64)
        return X, settled_codes(labels, settled)[block.groups.codes], before

    def _folds(self, block: TableBlock, codes: Codes, n_folds: int, before: Codes) -> Codes:
        return deal_folds(codes, n_folds, self._random(block, "fold"), before)

    def _random(self, block: TableBlock, purpose: str) -> np.random.Generator:
        """The same numbers whenever this block is read for this purpose."""
        ordinal = self._ordinals[block.origin.name, block.origin.first_row]
        return np.random.default_rng([self._seed, ordinal, crc32(purpose.encode())])
