"""Each group's error and variance by number of components, and how an audit changes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from fairpca._estimators.base import FairProjection
from fairpca._estimators.fair_pca import FairPCA
from fairpca._typing import Array
from fairpca.exceptions import quietly
from fairpca.plotting._common import axes_for, escaped, fair_projection_in, style_of

if TYPE_CHECKING:
    from fairpca import Audit


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
    >>> GroupErrorDisplay.from_data(X, groups)  # doctest: +SKIP
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
        pca, errors = (
            np.array([getattr(fit, name) for fit in fits])
            for name in ("pca_group_errors_", "group_errors_")
        )
        share = None
        if cls._as_shares:
            whole = fair._settle(fair.moments_).measured(fair.normalize).traces
            whole = np.where(whole > 0, whole, np.inf)  # a group that does not vary loses nothing
            pca, errors = 1 - pca / whole, 1 - errors / whole
            share = fair.n_components if isinstance(fair.n_components, float) else None
        return cls(chosen[: len(fits)], pca, errors, fair.groups_.tolist(), share).plot(ax)

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
            pca, fair = self.pca[:, g], self.fair[:, g]
            ax.plot(
                self.n_components, pca, f"{marker}--", c=color, mfc="none", label=f"{label}, PCA"
            )
            ax.plot(self.n_components, fair, f"{marker}-", c=color, label=f"{label}, fair")
        if self.share is not None:
            ax.axhline(self.share, c="0.5", ls=":", label=f"{self.share:.4g} of the variance")
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
    >>> fair = FairPCA(0.9).fit(X, sensitive_features=groups)  # doctest: +SKIP
    >>> GroupScreeDisplay.from_estimator(fair)  # doctest: +SKIP
    """

    _as_shares = True


def _ranks_to_draw(fair: FairProjection, ranks: Sequence[int] | None) -> NDArray[np.intp]:
    """The ranks asked for; by default all, or some thirty on a logarithmic scale."""
    limit = int(min(fair.n_features_in_, fair.moments_.counts.sum()))
    if ranks is None:
        some = np.arange(1, limit + 1) if limit <= 30 else np.geomspace(1, limit, 30).round()
        return np.unique(np.append(some, fair.n_components_)).astype(np.intp)
    if not len(ranks) or any(not 1 <= rank <= limit or int(rank) != rank for rank in ranks):
        raise ValueError(f"ranks={list(ranks)}: pass integers from 1 to {limit}.")
    return np.unique(np.asarray(ranks, dtype=np.intp))


@dataclass
class ChangesDisplay:
    """Change of each group's error for people not fitted to, with its confidence interval.

    Groups that gain lie to the left of the line, groups that pay to the right of it. An interval
    that crosses the line can be chance. A group with too few rows to be judged has a hollow marker
    and no interval.

    Parameters
    ----------
    groups : sequence of labels
    changes : ndarray of shape (k,)
        As fractions of the error under PCA: -0.1 is 10 % less.
    intervals : ndarray of shape (k, 2)
        NaN for a group that is not judged.
    sizes : sequence of int
        Rows of each group.

    Examples
    --------
    >>> ChangesDisplay.from_audit(audit(X, groups, FairPCACV(5)))  # doctest: +SKIP
    """

    groups: Sequence[Any]
    changes: Array
    intervals: Array
    sizes: Sequence[int]

    @classmethod
    def from_audit(cls, audit: Audit, *, ax: Any = None) -> Self:
        """Draw what the fair version of an audit changes for each group."""
        unknown, groups = (np.nan, np.nan, np.nan), audit.groups
        return cls(
            [group.name for group in groups],
            np.array([group.change_estimate for group in groups]),
            np.array([(group.change or unknown)[1:] for group in groups]),
            [group.n for group in groups],
        ).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on a new figure; the axes stay in ``ax_``."""
        self.ax_ = ax = axes_for(ax, height=1.2 + 0.6 * len(self.groups))
        ax.axvline(0, color="0.6", lw=1)
        for place, (change, (low, high)) in enumerate(
            zip(100 * self.changes, 100 * self.intervals, strict=True)
        ):
            judged = bool(np.isfinite(low) and np.isfinite(high))
            color = style_of(0 if change < 0 else 1)[0]
            ax.plot(change, place, "o", ms=8, color=color, mfc=color if judged else "white")
            said = f"{change:+.1f} %, too few rows"
            if judged:
                ax.plot([low, high], [place, place], color=color, lw=2.5, solid_capstyle="butt")
                said = f"{change:+.1f} % ({low:+.1f} to {high:+.1f})"
            behind = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
            ax.annotate(said, (change, place), (0, 8), textcoords="offset points", ha="center",
                        bbox=behind)  # fmt: skip
        labels = [f"{escaped(g)} ({n:,})" for g, n in zip(self.groups, self.sizes, strict=True)]
        ax.set_yticks(range(len(labels)), labels)
        ax.set_ylim(len(labels) - 0.4, -0.6)
        ax.margins(x=0.25)  # room for the figures
        ax.set_xlabel("change of the error on held-out rows, % of the error under PCA")
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(left=False)
        return self
