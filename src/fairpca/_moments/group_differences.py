"""Differences of means and covariances between groups, among all rows or the rows of a class.

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

A target is what scores are made for. Numbers are columns of the moments. For classes the covariance
of x with the indicator of class c is ``p_c (m_c - m)``, which follows from the means of cells.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.implicit import Moments
from fairpca._moments.operand import Operand, RowSpaceOperand
from fairpca._moments.small_groups import SettledGroups
from fairpca._moments.sums import varying_columns
from fairpca._moments.tolerances import EPS, MEAN_NOISE, NO_VARIATION
from fairpca._typing import Array, Codes, Label, Labels
from fairpca.exceptions import NotEnoughRows

Notion = Literal["demographic_parity", "equal_opportunity", "equalized_odds"]


@dataclass(frozen=True)
class Stratum:
    """Groups compared within some rows."""

    moments: Moments
    members: Codes  # which groups of the moments are compared

    @property
    def shares(self) -> Array:
        """``p_g``, as shares of all rows."""
        weights = self.moments.weights
        return np.asarray(weights[self.members] / weights.sum())


def _classes_that_count(labels: Labels | None, cells: Moments, outcomes: Codes) -> dict[Label, int]:
    """The classes of rows of positive weight, two or more, and their numbers."""
    classes = {}
    if labels is not None:
        classes = {label: c for c, label in enumerate(labels.tolist())}
    counting = set(outcomes[cells.weights > 0].tolist())
    classes = {label: c for label, c in classes.items() if c in counting}
    _refuse_one_class(list(classes))
    return classes


def _refuse_one_class(classes: list[Label]) -> None:
    if len(classes) < 2:
        held = "no classes"
        if classes:
            held = f"one class only ({classes[0]!r})"
        why = f"y holds {held}, so there is nothing to compare or predict"
        raise NotEnoughRows(f"{why}; pass y with two classes or more.")


def strata_of(settled: SettledGroups, notion: Notion, pos_label: Label) -> list[Stratum]:
    """The strata of a notion; ``pos_label`` is the class of equal opportunity."""
    if notion == "demographic_parity":
        return [Stratum(settled.moments, np.flatnonzero(settled.compared))]
    if settled.cells is None or settled.cells.outcomes is None:
        raise ValueError(
            f"notion={notion!r} compares people of one class, but these moments have no classes; "
            "pass y to fit, or GroupMoments.from_data(X, groups, target=y)."
        )
    cells, outcomes, groups = settled.cells._by_outcome()
    known = _classes_that_count(settled.cells.outcomes, cells, outcomes)
    members = np.flatnonzero(settled.compared).tolist()
    classes = list(known)
    if notion == "equal_opportunity":
        classes = [positive_class(classes, pos_label)]
    strata = []
    for outcome in classes:
        own = np.flatnonzero((outcomes == known[outcome]) & (cells.weights > 0))
        place = dict(zip(groups[own].tolist(), own.tolist(), strict=True))
        lacking = settled.moments.groups[[g for g in members if g not in place]].tolist()
        if lacking:
            names = f"group{'s' * (len(lacking) > 1)} {', '.join(map(repr, lacking[:5]))}"
            raise NotEnoughRows(
                f"no row of {names} has the outcome {outcome!r}, so there is no mean to compare; "
                "leave these groups out, merge them with min_group_size and small_groups='merge', "
                "or pass notion='demographic_parity'."
            )
        strata.append(Stratum(cells, np.array([place[g] for g in members])))
    return strata


def positive_class(classes: list[Label], pos_label: Label) -> Label:
    """The class that counts as positive: the larger of two, or the one that ``pos_label`` names.

    Labels from text files are text, so ``pos_label`` may also match a class as text.
    """
    _refuse_one_class(classes)
    if pos_label is None and len(classes) == 2:
        return classes[1]
    equal = [label for label in classes if label == pos_label]
    alike = equal or [label for label in classes if str(label) == str(pos_label)]
    if len(alike) == 1 and pos_label is not None:
        return alike[0]
    unseen = pos_label is not None and not alike
    raise (NotEnoughRows if unseen else ValueError)(
        f"y holds the classes {classes[:10]}, and pos_label={pos_label!r} does not say which of "
        f"them is the positive one; pass pos_label={classes[-1]!r}, for example."
    )


def mean_differences(strata: list[Stratum]) -> Array:
    """Rows D with ``D'D = B``; differences that are rounding of the means count as zero."""
    shares = [stratum.shares for stratum in strata]
    apart = []
    rounding = MEAN_NOISE * np.abs(strata[0].moments.mean)
    for stratum, p in zip(strata, shares, strict=True):
        means = stratum.moments.from_mean[stratum.members]
        means -= np.average(means, 0, p)
        means[np.abs(means) <= rounding] = 0.0
        apart.append(np.sqrt(p)[:, None] * means)
    D = np.vstack(apart) / np.sqrt(np.sum(shares))
    _, sizes, directions = np.linalg.svd(D, full_matrices=False)
    sizes[sizes <= np.max(rounding * D.any(axis=0))] = 0.0
    return np.asarray(sizes[:, None] * directions)


def mean_gap(differences: Array, basis: Array) -> float:
    """``tr U'BU``, the variance of the scores between the groups."""
    return float(np.sum((differences @ basis) ** 2))


def spanned(differences: Array, variance: float) -> Array:
    """An orthonormal basis of the rows, as columns, without directions that are rounding."""
    _, sizes, directions = np.linalg.svd(differences, full_matrices=False)
    return np.asarray(directions[sizes**2 > NO_VARIATION * variance].T)


class MeanGapOperand(Operand):
    """C and ``B = D'D`` in the place of two groups; only C counts in the overall error."""

    def __init__(self, operand: Operand, differences: Array) -> None:
        self._operand = operand
        self._differences = differences
        self.matrices = None
        if operand.matrices is not None:
            C = np.tensordot(operand.shares, operand.matrices, axes=1)
            self.matrices = np.array([C, differences.T @ differences])
        self.shares = np.array([1.0, 0.0])
        self.compared = np.ones(2, dtype=bool)
        self.traces = np.array([operand.shares @ operand.traces, np.sum(differences**2)])
        self.n_features = operand.n_features
        self.products_only = operand.products_only

    @classmethod
    def of(cls, operand: Operand, differences: Array) -> Operand:
        """C and B, within the space of the rows if these are few."""
        if operand.frame is None:
            return cls(operand, differences)
        inside = operand.frame.reduce(differences.T).T
        return RowSpaceOperand(cls(operand.compact, inside), operand.frame)

    def products(self, V: Array) -> Array:
        """``C V`` and ``B V``."""
        C_V = np.tensordot(self._operand.shares, self._operand.products(V), axes=1)
        return np.array([C_V, self._differences.T @ (self._differences @ V)])


@dataclass(frozen=True)
class Target:
    """Second moments of the targets: indicators of classes, or numbers in units of deviations."""

    covariance: Array  # S_xy, with the features, (d, m)
    variance: float  # tr S_yy
    classes: list[Label] | None  # None for numbers

    def explained(self, basis: Array, C: Array, total: float) -> float:
        """The share of the targets' variance that scores of covariance C explain linearly."""
        variances, directions = np.linalg.eigh(C)
        rounding = 8 * len(basis) * EPS * total  # smaller scores explain nothing
        kept = variances > max(1e-12 * float(variances[-1]), rounding)
        across = directions[:, kept].T @ (basis.T @ self.covariance)
        return float(np.sum(across**2 / variances[kept, None]) / self.variance)


def target_of(moments: Moments) -> Target:
    """The target of moments that are kept by outcome, or have targets as last columns."""
    if isinstance(moments, GroupMoments) and moments.n_targets:
        d = moments.n_features - moments.n_targets
        operand = moments.operand()
        last = np.eye(moments.n_features)[:, d:]
        C_y = np.tensordot(operand.shares, operand.products(last), axes=1)
        varying = varying_columns(np.add(*moments.variances()), moments.mean)[d:]
        if not varying.all():
            why = f"y does not vary in column {varying.argmin()}, so there is nothing to predict"
            raise NotEnoughRows(f"{why}; pass a y with different values.")
        return Target(C_y[:d] / np.sqrt(np.diagonal(C_y[d:])), float(moments.n_targets), None)
    cells, outcomes, _ = moments._by_outcome()
    known = _classes_that_count(moments.outcomes, cells, outcomes)
    shares = cells.weights / cells.weights.sum()
    members = outcomes == np.array(list(known.values()))[:, np.newaxis]
    p = members @ shares
    covariance = (members * shares) @ cells.from_mean
    return Target(covariance.T, float(np.sum(p * (1 - p))), list(known))
