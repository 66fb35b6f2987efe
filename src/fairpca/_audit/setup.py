"""Which groups an audit compares with which others, and how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairpca._audit.people import Folds, People
from fairpca._audit.record import Provenance
from fairpca._cv.held_out import HeldOut, Totals
from fairpca._typing import Array, Mask

_NEVER_BELOW = 10  # units: of fewer, no interval can be trusted
LEAST = 1e-300  # in place of a zero divisor; ratios to it stay finite


class Setup:
    """Which groups are compared with which others, and how.

    ``by_share`` judges shares of each group's own variation. ``set_aside`` lists groups that the
    fit did not compare. Columns in ``described_by`` may describe subgroups. ``own`` holds the
    fields of the provenance that the folds do not know.
    """

    def __init__(
        self,
        folds: Folds,
        by_share: bool,
        set_aside: Sequence[Any],
        described_by: Any = None,
        **own: Any,
    ) -> None:
        self.folds = folds
        self.by_share = by_share
        self.set_aside = set_aside
        self.described_by = described_by
        self.people: People | None = None
        if isinstance(folds, People):
            self.people = folds
        moments = folds.moments
        sizes = moments.n_units
        partitions = moments.partitions
        n_units = None
        if moments.has_units:
            n_units = int(sizes[partitions[0]].sum())
        self.origin = Provenance(
            n_rows=moments.n_rows,
            n_units=n_units,
            crossing=not moments.attributes,
            n_complete=_n_complete(self.people),
            fitted_here=own["n_folds"] > 0,
            feature_names=folds.feature_names,
            group_columns=folds.group_columns,
            not_computed=folds.not_computed,
            **own,
        )
        thresholds = self.origin.thresholds
        self.level = thresholds.level
        self.seed = self.origin.random_state
        self.others = _others(folds.labels, partitions, self.origin.reference)
        # A group is judged if it has enough units and the others have enough too.
        least = max(thresholds.judge_from, _NEVER_BELOW)
        enough = sizes >= least
        others_enough = self.others @ sizes >= least
        self.judged = np.asarray(enough & others_enough)
        #: Groups without an interval that can be compared nevertheless.
        self.too_small = np.asarray((sizes >= _NEVER_BELOW) & ~enough & others_enough)
        self.n_judged = max(int(self.judged.sum()), 1)
        # Two groups are one comparison, seen from both sides.
        self.n_gaps = self.n_judged
        if len(folds.labels) == 2:
            self.n_gaps = 1

    def as_judged(self, held_out: HeldOut) -> HeldOut:
        """Held-out errors on the scale of the audit."""
        if self.by_share:
            return held_out.relative()
        return held_out

    def ratios(self, totals: Totals) -> Array:
        """``R_g / R_rest`` or ``R_g / R_reference``, of shape (n_choices, k)."""
        weights = np.maximum(self.others @ totals.weights, LEAST)
        rest = totals.errors @ self.others.T / weights
        return np.asarray(totals.group_errors / np.maximum(rest, LEAST))


def _n_complete(people: People | None) -> int | None:
    if people is None or people.observed is None:
        return None
    return int(people.looked_at.sum())


def _others(labels: Sequence[Any], partitions: Sequence[Mask], reference: Any) -> Mask:
    """Whom each group is compared with, a mask of shape (k, k).

    Each of the partitions holds the groups of one attribute, which are compared with each other.
    """
    others = np.zeros((len(labels), len(labels)), bool)
    for members in partitions:
        others[np.ix_(members, members)] = True
    np.fill_diagonal(others, False)
    if reference is None:
        return others
    is_reference = np.array([label == reference for label in labels])
    if not is_reference.any():
        raise ValueError(
            f"the reference {reference!r} is none of the groups; pass one of "
            f"{', '.join(map(repr, labels))}."
        )
    beside = others[is_reference][0]  # the reference itself is compared with all these
    others[beside] = is_reference
    return others
