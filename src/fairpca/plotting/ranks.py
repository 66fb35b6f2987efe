"""Groups against the number of components: their errors, and the variance they keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from fairpca._estimators.base import FairProjection
from fairpca._estimators.fair_pca import FairPCA
from fairpca._typing import Array
from fairpca.exceptions import quietly
from fairpca.plotting._common import axes_for, escaped, fair_projection_in, style_of

_MOST_RANKS = 30  # drawn by default


@dataclass
class GroupErrorDisplay:
    """Group errors against the number of components, PCA dashed and fair PCA solid.

    Parameters
    ----------
    n_components : ndarray of shape (n_ranks,)
    pca, fair : ndarray of shape (n_ranks, n_groups)
        Errors, the ``group_errors_`` of each fit.
    groups : sequence of labels

    Examples
    --------
    >>> from fairpca.datasets import make_two_groups
    >>> from fairpca.plotting import GroupErrorDisplay
    >>> made = make_two_groups(n_features=4, random_state=0)
    >>> display = GroupErrorDisplay.from_data(
    ...     made.data, made.sensitive_features
    ... )  # doctest: +SKIP
    """

    n_components: NDArray[np.intp]
    pca: Array
    fair: Array
    groups: Sequence[Any]
    share: float | None = None
    _as_shares: ClassVar[bool] = False  # of the group's variance

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ranks: Sequence[int] | None = None, ax: Any = None
    ) -> Self:
        """Refit a fitted estimator at many ranks, from its moments, and draw.

        The estimator may be the projection of a pipeline. By default all ranks are fitted, at most
        30 of them.
        """
        fair = fair_projection_in(estimator)
        chosen, fits = _ranks_to_draw(fair, ranks), []
        for rank in chosen:
            if rank == fair.n_components_:
                fits.append(fair)
                continue
            model = clone(fair).set_params(n_components=int(rank))
            try:
                with quietly():
                    fits.append(model.fit_moments(fair.moments_))
            except ValueError:
                if ranks is not None or rank <= fair.n_components_:
                    raise
                break  # the directions that the estimator hides leave no room for more components
        pca = np.array([fit.pca_group_errors_ for fit in fits])
        errors = np.array([fit.group_errors_ for fit in fits])
        fitted, groups = chosen[: len(fits)], fair.groups_.tolist()
        if not cls._as_shares:
            return cls(fitted, pca, errors, groups).plot(ax)
        whole = fair._settle(fair.moments_).measured(fair.normalize).traces
        whole = np.where(whole > 0, whole, np.inf)  # a group that does not vary keeps everything
        share = fair.n_components if isinstance(fair.n_components, float) else None
        return cls(fitted, 1 - pca / whole, 1 - errors / whole, groups, share).plot(ax)

    @classmethod
    def from_data(
        cls,
        X: Any,
        sensitive_features: Any,
        *,
        estimator: FairProjection | None = None,
        ranks: Sequence[int] | None = None,
        ax: Any = None,
    ) -> Self:
        """Fit ``estimator`` (``FairPCA()`` by default) to X at many ranks, and draw."""
        model = FairPCA(1) if estimator is None else clone(estimator)
        with quietly():
            model.fit(X, sensitive_features=sensitive_features)
        return cls.from_estimator(model, ranks=ranks, ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on a new figure; the axes stay in ``ax_``."""
        self.ax_ = ax = axes_for(ax)
        for g, label in enumerate(map(escaped, self.groups)):
            color, marker = style_of(g)
            for figures, name, how in (
                (self.pca, "PCA", {"ls": "--", "mfc": "none"}),
                (self.fair, "fair", {"ls": "-"}),
            ):
                ax.plot(self.n_components, figures[:, g], marker, color=color,
                        label=f"{label}, {name}", **how)  # fmt: skip
        if self.share is not None:
            label = f"{self.share:.4g} of the variance"
            ax.axhline(self.share, color="0.5", ls=":", label=label)
        kept, lost = "share of the group's variance kept", "average squared error"
        ax.set(xlabel="components", ylabel=kept if self._as_shares else lost)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend(frameon=False)
        return self


class GroupScreeDisplay(GroupErrorDisplay):
    """Share of its variance that each group keeps, against the number of components.

    A scree plot by group, PCA dashed and fair PCA solid. The shares are sums over all components
    up to a number, because those of a fair projection change with their number.

    Parameters
    ----------
    n_components, groups
        As for :class:`GroupErrorDisplay`.
    pca, fair : ndarray of shape (n_ranks, n_groups)
        Shares from 0 to 1, the ``group_explained_variance_ratio_`` of each fit.
    share : float, optional
        A share to mark: the one that ``FairPCA(share)`` asks for.

    Examples
    --------
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_rand_health
    >>> from fairpca.plotting import GroupScreeDisplay
    >>> people = load_rand_health()
    >>> fair = FairPCA(0.9).fit(people.data, sensitive_features=people.sensitive_features)
    >>> display = GroupScreeDisplay.from_estimator(fair)  # doctest: +SKIP
    """

    _as_shares = True


def _ranks_to_draw(fair: FairProjection, ranks: Sequence[int] | None) -> NDArray[np.intp]:
    """The ranks asked for; by default all, or some thirty on a logarithmic scale."""
    limit = int(min(fair.n_features_in_, fair.moments_.counts.sum()))
    if ranks is None:
        grid = np.geomspace(1, limit, _MOST_RANKS).round()
        every = np.arange(1, limit + 1) if limit <= _MOST_RANKS else grid
        return np.unique(np.append(every, fair.n_components_)).astype(np.intp)
    if not len(ranks) or any(not 1 <= rank <= limit or int(rank) != rank for rank in ranks):
        raise ValueError(f"ranks={list(ranks)}: pass integers from 1 to {limit}.")
    return np.unique(np.asarray(ranks, dtype=np.intp))
