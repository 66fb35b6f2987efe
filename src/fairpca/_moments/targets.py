"""What features and targets have in common, from joint moments.

For numbers the targets are columns of the moments. For classes they need not be: the covariance of
x with the indicator of class c is ``p_c (m_c - m)``, which the means of cells tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._input.labels import Cell
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.implicit import ImplicitMoments
from fairpca._moments.strata import classes_of
from fairpca._typing import Array


@dataclass(frozen=True)
class Target:
    """Second moments of the targets.

    Attributes
    ----------
    covariance : ndarray of shape (d, m)
        ``S_xy``: of the features with the indicator of each class, or with each number in units
        of its standard deviation.
    variance : float
        ``tr S_yy``.
    classes : list or None
        None for numbers.
    """

    covariance: Array
    variance: float
    classes: list[Any] | None

    def explained(self, basis: Array, C: Array) -> float:
        """The share of the targets' variance that a linear model of the scores explains.

        ``C`` is the covariance of the scores.
        """
        across = basis.T @ self.covariance
        fitted = np.linalg.pinv(C, rcond=1e-12, hermitian=True) @ across
        return float(np.sum(across * fitted) / self.variance)


def target_of(outcomes: GroupMoments | ImplicitMoments) -> Target:
    """The target of moments that know outcomes."""
    if isinstance(outcomes.groups.tolist()[0], Cell):
        return _of_classes(outcomes)
    assert isinstance(outcomes, GroupMoments)
    return _of_numbers(outcomes)


def _of_classes(cells: GroupMoments | ImplicitMoments) -> Target:
    classes = classes_of(cells)
    shares = cells.weights / cells.weights.sum()
    members = np.array([[cell.outcome == c for cell in cells.groups.tolist()] for c in classes])
    p = members @ shares
    covariance = (members * shares) @ cells.from_mean
    return Target(covariance.T, float(np.sum(p * (1 - p))), classes)


def _of_numbers(joint: GroupMoments) -> Target:
    d, operand = joint.n_features - joint.n_targets, joint.operand()
    C_y = np.tensordot(operand.shares, operand.products(np.eye(joint.n_features)[:, d:]), axes=1)
    varying = joint.varying[d:]
    if not varying.all():
        raise ValueError(
            f"y does not vary in column {int(np.flatnonzero(~varying)[0])}, so there is nothing to "
            "predict; pass a y with different values."
        )
    scale = np.sqrt(np.diagonal(C_y[d:]))
    return Target(C_y[:d] / scale, float(joint.n_targets), None)
