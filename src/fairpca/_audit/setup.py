"""Which groups an audit compares with which others, and how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairpca._audit.people import Folds, People
from fairpca._audit.record import Provenance
from fairpca._cv.held_out import Totals
from fairpca._typing import Array, Mask

_NEVER_BELOW = 10  # units: of fewer, no interval can be trusted
LEAST = 1e-300  # in place of a zero divisor; ratios to it stay finite


class Setup:
    """Which groups are compared with which others, and how.

    ``by_share`` judges shares of each group's own variation. ``set_aside`` lists groups that the
    fit did not compare. ``own`` holds the fields of the provenance that the folds do not know.
    """

    def __init__(self, folds: Folds, by_share: bool, set_aside: Sequence[Any], **own: Any) -> None:
        self.folds = folds
        self.by_share = by_share
        self.set_aside = set_aside
        self.people = folds if isinstance(folds, People) else None
        rows = folds.moments.counts
        sizes = folds.moments.n_units
        self.origin = Provenance(
            n_rows=int(rows.sum()),
            n_units=int(sizes.sum()) if folds.moments.has_units else None,
            fitted_here=own["n_folds"] > 0,
            feature_names=folds.feature_names,
            group_columns=folds.group_columns,
            not_computed=folds.not_computed,
            **own,
        )
        thresholds = self.origin.thresholds
        self.level = thresholds.level
        self.seed = self.origin.random_state
        self.others = _others(folds.labels, self.origin.reference)
        # A group is judged if it has enough units and the others have enough too.
        least = max(thresholds.judge_from, _NEVER_BELOW)
        enough = sizes >= least
        others_enough = self.others @ sizes >= least
        self.judged = np.asarray(enough & others_enough)
        self.n_judged = max(int(self.judged.sum()), 1)
        # Two groups are one comparison, seen from both sides.
        self.n_gaps = 1 if len(folds.labels) == 2 else self.n_judged

    def ratios(self, totals: Totals) -> Array:
        """``R_g / R_rest`` or ``R_g / R_reference``, of shape (n_choices, k)."""
        weights = np.maximum(self.others @ totals.weights, LEAST)
        rest = totals.errors @ self.others.T / weights
        return np.asarray(totals.group_errors / np.maximum(rest, LEAST))


def _others(labels: Sequence[Any], reference: Any) -> Mask:
    """Whom each group is compared with, a mask of shape (k, k)."""
    others: Mask = ~np.eye(len(labels), dtype=bool)
    if reference is None:
        return others
    is_reference = np.array([label == reference for label in labels])
    if not is_reference.any():
        raise ValueError(
            f"the reference {reference!r} is none of the groups; pass one of "
            f"{', '.join(map(repr, labels))}."
        )
    others[~is_reference] = is_reference  # the reference itself is compared with all others
    return others
