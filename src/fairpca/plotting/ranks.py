"""Groups against the number of components: their errors, and the variance they keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from fairpca._audit.figures import RankCurve
from fairpca._audit.rank_curve import rank_curve
from fairpca._estimators.base import FairProjection
from fairpca._estimators.fair_pca import FairPCA
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.small_groups import SettledGroups
from fairpca._typing import Array
from fairpca.plotting._fitted import kept_groups
from fairpca.plotting._style import axes_for, escaped, style_of


class GroupErrorDisplay:
    """Group errors against the number of components, PCA dashed and fair PCA solid.

    Parameters
    ----------
    curve : RankCurve
    groups : sequence of labels

    Examples
    --------
    >>> from fairpca.datasets import make_two_groups
    >>> from fairpca.plotting import GroupErrorDisplay
    >>> made = make_two_groups(n_features=4, random_state=0)
    >>> display = GroupErrorDisplay.from_data(made.data, made.sensitive_features)
    >>> display.curve.n_components
    array([1, 2, 3, 4])
    >>> display.plot()  # doctest: +SKIP
    """

    def __init__(self, curve: RankCurve, groups: Sequence[Any]) -> None:
        self.curve = curve
        self.groups = list(groups)

    @classmethod
    def from_estimator(
        cls, estimator: FairProjection, *, ranks: Sequence[int] | None = None
    ) -> Self:
        """Refit a fitted estimator at many ranks, from its moments."""
        return cls(*_curve(kept_groups(estimator), estimator, ranks))

    @classmethod
    def from_data(
        cls,
        X: Any,
        sensitive_features: Any,
        *,
        estimator: FairProjection | None = None,
        ranks: Sequence[int] | None = None,
    ) -> Self:
        """Fit ``estimator`` (``FairPCA()`` by default) to X at many ranks."""
        model = FairPCA(n_components=1) if estimator is None else estimator
        return cls(*_curve(_groups_of(model, X, sensitive_features), model, ranks))

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on a new figure; the axes stay in ``ax_``."""
        self.ax_ = ax = axes_for(ax)
        _draw_by_group(ax, self.curve.n_components, self.curve.pca, self.curve.fair, self.groups)
        ax.set_ylabel("average squared error")
        return self


class GroupScreeDisplay:
    """Share of its variance that each group keeps, against the number of components.

    A scree plot by group, PCA dashed and fair PCA solid. The shares are sums over all components
    up to a number, because those of a fair projection change with their number.

    Parameters
    ----------
    n_components : ndarray of shape (n_ranks,)
    pca, fair : ndarray of shape (n_ranks, n_groups)
        Shares from 0 to 1, the ``group_explained_variance_ratio_`` of each fit.
    groups : sequence of labels
    share : float, optional
        A share to mark: what ``FairPCA(share)`` asks for.

    Examples
    --------
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_rand_health
    >>> from fairpca.plotting import GroupScreeDisplay
    >>> people = load_rand_health()
    >>> fair = FairPCA(0.9).fit(people.data, sensitive_features=people.sensitive_features)
    >>> display = GroupScreeDisplay.from_estimator(fair)
    >>> display.share, fair.n_components_, display.least_rank(0.9)
    (0.9, 11, 11)
    >>> display.plot()  # doctest: +SKIP
    """

    def __init__(
        self,
        n_components: NDArray[np.int64],
        pca: Array,
        fair: Array,
        groups: Sequence[Any],
        share: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.pca = pca
        self.fair = fair
        self.groups = list(groups)
        self.share = share

    @classmethod
    def from_estimator(
        cls, estimator: FairProjection, *, ranks: Sequence[int] | None = None
    ) -> Self:
        """Refit a fitted estimator at many ranks, from its moments.

        If its ``n_components`` is a share, the share is marked.
        """
        return cls._of(kept_groups(estimator), estimator, ranks)

    @classmethod
    def from_data(
        cls,
        X: Any,
        sensitive_features: Any,
        *,
        estimator: FairProjection | None = None,
        ranks: Sequence[int] | None = None,
    ) -> Self:
        """Fit ``estimator`` (``FairPCA()`` by default) to X at many ranks."""
        model = FairPCA(n_components=1) if estimator is None else estimator
        return cls._of(_groups_of(model, X, sensitive_features), model, ranks)

    @classmethod
    def _of(
        cls, settled: SettledGroups, estimator: FairProjection, ranks: Sequence[int] | None
    ) -> Self:
        curve, groups = _curve(settled, estimator, ranks)
        operand = settled.measured(estimator.normalize)
        whole, wanted = operand.traces, estimator.n_components
        kept = [
            1 - np.divide(errors, whole, out=np.zeros(errors.shape), where=whole > 0)
            for errors in (curve.pca, curve.fair)
        ]
        share = wanted if isinstance(wanted, float) else None
        return cls(curve.n_components, kept[0], kept[1], groups, share)

    def least_rank(self, share: float, *, method: str = "fair") -> int | None:
        """The fewest components drawn with which every group keeps this share.

        Parameters
        ----------
        share : float
            From 0 to 1.
        method : {"fair", "pca"}

        Returns
        -------
        int, or None if no number drawn is enough
        """
        if method not in ("fair", "pca"):
            raise ValueError(f"method={method!r}: pass 'fair' or 'pca'.")
        kept = self.fair if method == "fair" else self.pca
        enough = np.flatnonzero((kept >= share - 1e-12).all(axis=1))
        return int(self.n_components[enough[0]]) if len(enough) else None

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on a new figure; the axes stay in ``ax_``."""
        self.ax_ = ax = axes_for(ax)
        _draw_by_group(ax, self.n_components, self.pca, self.fair, self.groups)
        if self.share is not None:
            ax.axhline(self.share, color="0.5", ls=":", label=f"{self.share:.4g} of the variance")
            ax.legend(frameon=False)
        ax.set_ylabel("share of the group's variance kept")
        return self


def _groups_of(estimator: FairProjection, X: Any, sensitive_features: Any) -> SettledGroups:
    """The groups of X as the estimator sees them, with folds if it chooses by them."""
    folds = estimator._fold_options()
    return estimator._settle(GroupMoments.from_data(X, sensitive_features, **folds))


def _curve(
    settled: SettledGroups, estimator: FairProjection, ranks: Sequence[int] | None
) -> tuple[RankCurve, list[Any]]:
    """Errors at many ranks, that of the estimator among them, and the groups."""
    moments, wanted = settled.moments, estimator.n_components
    assert isinstance(moments, GroupMoments)
    if wanted is None or isinstance(wanted, float):
        fitted = getattr(estimator, "n_components_", 1)
        estimator = clone(estimator).set_params(n_components=fitted)
    curve = rank_curve(moments, estimator, ranks, settled=settled)
    return curve, moments.groups.tolist()


def _draw_by_group(
    ax: Any, ranks: NDArray[np.int64], pca: Array, fair: Array, groups: Sequence[Any]
) -> None:
    for g, label in enumerate(map(escaped, groups)):
        color, marker = style_of(g)
        ax.plot(ranks, pca[:, g], marker, ls="--", mfc="none", color=color, label=f"{label}, PCA")
        ax.plot(ranks, fair[:, g], marker, ls="-", color=color, label=f"{label}, fair")
    ax.set_xlabel("components")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(frameon=False)
