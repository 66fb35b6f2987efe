"""What tells groups apart: their means and covariances, among all rows or among those of a class.

A *stratum* is a set of rows within which groups are to look alike. Demographic parity has one, all
rows; equal opportunity has one, the rows of the positive class; equalised odds has one for each
class. With ``m_g`` and ``S_g`` the mean and covariance of group g within a stratum, ``m`` and ``S``
those of its groups together (S about the groups' own means), and ``p_g`` shares of the rows that
are compared at all:

* ``B = sum p_g (m_g - m)(m_g - m)'`` over all groups and strata. Scores ``U'x`` have equal group
  means exactly if ``U'BU = 0``, and ``tr U'BU`` is their variance between the groups, among the
  positives for equal opportunity and averaged over the classes for equalised odds.
* ``K = sum p_g (S_g - S)^2``. Directions of small K have nearly equal covariances. For two groups
  ``K = p_0 p_1 (S_1 - S_0)^2``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Any, Literal, TypeVar

import numpy as np

from fairpca._input.labels import Cell, sort_labels
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.implicit import ImplicitMoments
from fairpca._moments.operand import Operand, RowSpaceOperand
from fairpca._moments.small_groups import REST, SettledGroups
from fairpca._typing import Array, Codes

Known = TypeVar("Known", GroupMoments, ImplicitMoments, GroupMoments | ImplicitMoments)
Notion = Literal["demographic_parity", "equal_opportunity", "equalized_odds"]

_NEGLIGIBLE = 1e-12  # of the standard deviation: a difference of means that is rounding


@dataclass(frozen=True)
class Stratum:
    """Groups compared within some rows.

    Attributes
    ----------
    moments : GroupMoments or ImplicitMoments
        Whose groups ``members`` are the ones compared.
    members : ndarray of int, shape (k,)
    """

    moments: GroupMoments | ImplicitMoments
    members: Codes

    @property
    def shares(self) -> Array:
        """``p_g``, of all rows."""
        weights = self.moments.weights
        return np.asarray(weights[self.members] / weights.sum())

    def mean_differences(self) -> Array:
        """``sqrt(p_g) (m_g - m)``, of shape (k, d), with shares of all rows."""
        shares, means = self.shares, self.moments.from_mean[self.members]
        return np.asarray(np.sqrt(shares)[:, None] * (means - np.average(means, 0, shares)))

    def covariance_differences(self, covariances: Array) -> Array:
        """``sum_g p_g (S_g - S)^2``, given the covariances of all groups of the moments."""
        own, shares = covariances[self.members], self.shares
        apart = own - np.average(own, 0, shares)
        return np.asarray(np.tensordot(shares, apart @ apart, axes=1))


def without_outcomes(moments: Known) -> Known:
    """The same rows without their outcomes."""
    if isinstance(moments, GroupMoments) and moments.n_targets:
        return moments.select(range(moments.n_features - moments.n_targets))
    cells = {label: label.group for label in moments.groups.tolist() if isinstance(label, Cell)}
    return moments.relabel(cells) if cells else moments


def settled_outcomes(
    moments: GroupMoments | ImplicitMoments, settled: SettledGroups
) -> GroupMoments | ImplicitMoments | None:
    """The rows with their outcomes, and small groups merged; None where these are not known."""
    if isinstance(moments, GroupMoments) and moments.n_targets:
        return moments
    cells = moments.groups.tolist()
    if not isinstance(cells[0], Cell):
        return None
    known = set(settled.moments.groups.tolist())
    renamed = {c: Cell(REST, c.outcome) for c in cells if c.group not in known}
    weightless = [c for c, weight in zip(cells, moments.weights, strict=True) if weight == 0]
    if weightless:  # they add nothing wherever they are put
        some = cells[int(moments.weights.argmax())]
        renamed |= dict.fromkeys(weightless, renamed.get(some, some))
    return moments.relabel(renamed) if renamed else moments


def outcomes_in(moments: GroupMoments | ImplicitMoments) -> set[Any]:
    """The classes that occur; none where there are no cells."""
    return {cell.outcome for cell in moments.groups.tolist() if isinstance(cell, Cell)}


def classes_of(cells: GroupMoments | ImplicitMoments) -> list[Any]:
    """The classes that occur, sorted; there must be two at least."""
    classes = sort_labels(list(outcomes_in(cells)))
    if len(classes) < 2:
        raise ValueError(
            f"y holds one class only ({classes[0]!r}), so there is nothing to compare or to "
            "predict; pass y with two classes or more."
        )
    return classes


def strata_of(settled: SettledGroups, notion: Notion, pos_label: Any = None) -> list[Stratum]:
    """The strata of a notion.

    Parameters
    ----------
    settled : SettledGroups
        With outcomes, unless the notion is demographic parity.
    notion : {"demographic_parity", "equal_opportunity", "equalized_odds"}
    pos_label : label, optional
        The class of equal opportunity; by default the larger of two.
    """
    if notion == "demographic_parity":
        return [Stratum(settled.moments, np.flatnonzero(settled.compared))]
    cells = settled.outcomes
    if cells is None or not isinstance(cells.groups.tolist()[0], Cell):
        raise ValueError(
            f"notion={notion!r} compares people of the same class, but these moments do not know "
            "classes; pass y to fit, or target to fit_files and to the methods of GroupMoments, "
            "for example GroupMoments.from_data(X, groups, target=y)."
        )
    classes = classes_of(cells)
    if notion == "equal_opportunity":
        classes = [positive_class(classes, pos_label)]
    return [_stratum(settled, cells, outcome) for outcome in classes]


def _stratum(
    settled: SettledGroups, cells: GroupMoments | ImplicitMoments, outcome: Any
) -> Stratum:
    place = {cell: i for i, cell in enumerate(cells.groups.tolist())}
    compared = settled.moments.groups[settled.compared].tolist()
    lacking = [group for group in compared if Cell(group, outcome) not in place]
    if lacking:
        raise ValueError(
            f"no row of {'groups' if len(lacking) > 1 else 'group'} "
            f"{', '.join(map(repr, lacking[:5]))} has the outcome {outcome!r}, so there is no mean "
            "to compare; leave such groups out, merge them with min_group_size and "
            "small_groups='merge', or pass notion='demographic_parity'."
        )
    return Stratum(cells, np.array([place[Cell(group, outcome)] for group in compared]))


def positive_class(classes: list[Any], pos_label: Any) -> Any:
    """The class that counts as positive; labels that came from text files are text."""
    if pos_label is None and len(classes) == 2:
        return classes[1]
    found = label_meant(classes, pos_label)
    if pos_label is None or found is None:
        raise ValueError(
            f"y holds the classes {classes[:10]}, and pos_label={pos_label!r} does not say which "
            f"of them is the positive one; pass pos_label={classes[-1]!r}, for example."
        )
    return found


def label_meant(labels: list[Any], given: Any) -> Any:
    """The label that is the same, has the same text, or is the same number; None if none is.

    None too if several are the same number, such as "1" and "01".
    """

    def number(label: Any) -> float:
        try:
            return float(label)
        except (TypeError, ValueError):
            return nan

    for view in (lambda label: label, str, number):
        found = [label for label in labels if view(label) == view(given)]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def mean_differences(strata: list[Stratum]) -> Array:
    """Rows D with ``D'D = B``."""
    compared = sum(float(stratum.shares.sum()) for stratum in strata)
    apart = np.vstack([stratum.mean_differences() for stratum in strata])
    return np.asarray(apart / np.sqrt(compared))


def mean_gap(differences: Array, basis: Array) -> float:
    """``tr U'BU``, the variance of the scores between the groups."""
    return float(np.sum((differences @ basis) ** 2))


def spanned(differences: Array, variance: float) -> Array:
    """An orthonormal basis of the rows, as columns, without what is rounding."""
    _, sizes, directions = np.linalg.svd(differences, full_matrices=False)
    return np.asarray(directions[sizes > _NEGLIGIBLE * np.sqrt(variance)].T)


class MeanGapOperand(Operand):
    """C and B in the place of two groups, with C all that counts in the overall error.

    Parameters
    ----------
    operand : Operand
        Of the groups; ``C`` is their weighted sum.
    differences : ndarray of shape (m, d)
        ``D``, with ``D'D = B``.
    """

    def __init__(self, operand: Operand, differences: Array) -> None:
        self._operand, self._differences = operand, differences
        shares = np.array([1.0, 0.0])
        if operand.matrices is not None:
            C = np.tensordot(operand.shares, operand.matrices, axes=1)
            super().__init__(np.array([C, differences.T @ differences]), shares)
            return
        self.matrices, self.shares = None, shares
        self.compared = np.ones(2, dtype=bool)
        self.traces = np.array([operand.shares @ operand.traces, np.sum(differences**2)])
        self.n_features = operand.n_features

    @classmethod
    def of(cls, operand: Operand, differences: Array) -> Operand:
        """The two, within the space of the rows if these are few."""
        if operand.frame is None:
            return cls(operand, differences)
        return RowSpaceOperand(cls(operand.compact, differences @ operand.frame), operand.frame)

    def products(self, V: Array) -> Array:
        """``C V`` and ``B V``."""
        C_V = np.tensordot(self._operand.shares, self._operand.products(V), axes=1)
        return np.array([C_V, self._differences.T @ (self._differences @ V)])
