"""Errors of groups: against the overall error, by number of components, and in an audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from fairpca._estimators.base import FairProjection, settled_groups
from fairpca._estimators.fair_pca import FairPCA
from fairpca._typing import Array, Codes
from fairpca.exceptions import quietly
from fairpca.path import TradeoffPath, tradeoff_path
from fairpca.plotting._common import axes_for, escaped, fair_projection_in, group_options, style_of

if TYPE_CHECKING:
    from fairpca import Audit


@dataclass
class TradeoffDisplay:
    """The frontier of overall error against disparity: PCA on the left, parity on the right."""

    path: TradeoffPath
    chosen: tuple[float, float] | None = None  #: Disparity and overall error of a fit to mark.

    @classmethod
    def from_estimator(cls, estimator: Any, *, n_points: int = 41, ax: Any = None) -> Self:
        """Draw the frontier at the rank of a fitted estimator, which may be in a pipeline."""
        fair = fair_projection_in(estimator)
        options = group_options(fair) | {
            "relative_errors": fair.relative_errors,
            "n_points": n_points,
        }
        path = tradeoff_path(fair.moments_, n_components=fair.n_components_, **options)
        return cls(path, (fair.disparity_, fair.reconstruction_error_)).plot(ax)

    @classmethod
    def from_data(
        cls,
        X: Any,
        sensitive_features: Any,
        *,
        n_components: int,
        n_points: int = 41,
        ax: Any = None,
    ) -> Self:
        """Draw the frontier of the rows of X; arguments as for :func:`fairpca.tradeoff_path`."""
        path = tradeoff_path(X, sensitive_features, n_components=n_components, n_points=n_points)
        return cls(path).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on a new figure; the axes stay in ``ax_``."""
        self.ax_ = ax = axes_for(ax)
        path = self.path
        ax.plot(path.disparity, path.reconstruction_error, color="black", label="best possible")
        if len(path.groups) == 2 and not path.efficient.all():
            last = max(int(np.count_nonzero(path.efficient)) - 1, 0)
            beyond = path.disparity[last:], path.reconstruction_error[last:]
            ax.plot(*beyond, color="white")
            ax.plot(*beyond, color="black", linestyle=":", label="levelling down")
        points: dict[tuple[float, float], list[str]] = {}
        for name, mark in path.marks.items():  # methods that end at the same point share a marker
            at = mark.disparity, mark.reconstruction_error
            same = (other for other in points if np.allclose(at, other, rtol=1e-6, atol=1e-9))
            points.setdefault(next(same, at), []).append(name)
        for i, (at, names) in enumerate(points.items()):
            label = ", ".join(names)
            ax.plot(*at, style_of(i)[1], color="black", markerfacecolor="white", label=label)
        if self.chosen is not None:
            ax.plot(*self.chosen, "*", markersize=13, color=style_of(1)[0], label="this fit")
        difference = "largest minus smallest group error"
        if len(path.groups) == 2:
            sides = path.harmed_group, path.privileged_group
            difference = "error of {} minus {}".format(*map(escaped, sides))
        ax.set(xlabel=f"disparity: {difference}", ylabel="overall error")
        ax.xaxis.set_inverted(True)
        ax.legend(frameon=False)
        return self


@dataclass
class GroupErrorDisplay:
    """Group errors against the number of components, PCA dashed and fair PCA solid."""

    n_components: Codes
    pca: Array  #: (n_ranks, n_groups), the ``pca_group_errors_`` of each fit.
    fair: Array  #: (n_ranks, n_groups), the ``group_errors_`` of each fit.
    groups: Sequence[Any]
    share: float | None = None  #: What ``FairPCA(share)`` asks for: a line in a scree plot.
    _as_shares: ClassVar[bool] = False

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ranks: Sequence[int] | None = None, ax: Any = None
    ) -> Self:
        """Refit a fitted estimator, or the one in a pipeline, at many ranks, and draw.

        By default all ranks are fitted, or some thirty on a logarithmic scale.
        """
        fair = fair_projection_in(estimator)
        chosen = _ranks_to_draw(fair, ranks)
        fits = []
        for rank in chosen:
            if rank == fair.n_components_:
                fits.append(fair)
                continue
            model = clone(fair).set_params(n_components=int(rank))
            try:
                with quietly():
                    fits.append(model.fit(fair.moments_))
            except ValueError:
                if ranks is not None or rank <= fair.n_components_:
                    raise
                break  # the directions that the estimator hides leave no room for more components
        pca = np.array([fit.pca_group_errors_ for fit in fits])
        errors = np.array([fit.group_errors_ for fit in fits])
        share = None
        if cls._as_shares:
            whole = settled_groups(fair, fair.moments_).measured(fair.relative_errors).traces
            whole = np.where(whole > 0, whole, np.inf)  # a group that does not vary loses nothing
            pca = 1 - pca / whole
            errors = 1 - errors / whole
            share = None
            if isinstance(fair.n_components, float):
                share = fair.n_components
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
        if estimator is None:
            estimator = FairPCA(1)
        model = clone(estimator)
        with quietly():
            model.fit(X, sensitive_features=sensitive_features)
        return cls.from_estimator(model, ranks=ranks, ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on a new figure; the axes stay in ``ax_``."""
        self.ax_ = ax = axes_for(ax)
        x = self.n_components
        for g, label in enumerate(map(escaped, self.groups)):
            c, marker = style_of(g)
            ax.plot(x, self.pca[:, g], f"{marker}--", c=c, mfc="none", label=f"{label}, PCA")
            ax.plot(x, self.fair[:, g], f"{marker}-", c=c, label=f"{label}, fair")
        if self.share is not None:
            ax.axhline(self.share, c="0.5", ls=":", label=f"{self.share:.4g} of the variance")
        ylabel = "average squared error"
        if self._as_shares:
            ylabel = "share of the group's variance kept"
        ax.set(xlabel="components", ylabel=ylabel)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend(frameon=False)
        return self


@dataclass
class GroupScreeDisplay(GroupErrorDisplay):
    """A scree plot by group: the share of its variance that each group keeps.

    Like :class:`GroupErrorDisplay`, but ``pca`` and ``fair`` are shares from 0 to 1. They are
    cumulative, because the components of a fair projection change with their number.
    """

    _as_shares = True

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ranks: Sequence[int] | None = None, ax: Any = None
    ) -> Self:
        """As :meth:`GroupErrorDisplay.from_estimator`."""
        return super().from_estimator(estimator, ranks=ranks, ax=ax)

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
        """As :meth:`GroupErrorDisplay.from_data`."""
        return super().from_data(X, sensitive_features, estimator=estimator, ranks=ranks, ax=ax)


def _ranks_to_draw(fair: FairProjection, ranks: Sequence[int] | None) -> Codes:
    """The ranks asked for; by default all, or some thirty on a logarithmic scale."""
    limit = int(min(fair.n_features_in_, fair.n_samples_))
    if ranks is None:
        some = np.arange(1.0, limit + 1)
        if limit > 30:
            some = np.geomspace(1, limit, 30).round()
        return np.unique(np.append(some, fair.n_components_)).astype(np.intp)
    known = np.isin(ranks, np.arange(1, limit + 1))
    if np.ndim(ranks) != 1 or not known.size or not known.all():
        raise ValueError(f"ranks={ranks}: pass integers from 1 to {limit}, such as [1, {limit}].")
    return np.unique(np.asarray(ranks, dtype=np.intp))


@dataclass
class ChangesDisplay:
    """Change of each group's error on held-out rows, with its confidence interval.

    Groups that gain lie to the left of the line, groups that pay to the right of it. If the
    interval crosses the line, the change may be chance. A group with too few rows to be judged has
    a hollow marker and no interval.
    """

    groups: Sequence[Any]
    changes: Array  #: As fractions of the error under PCA: -0.1 is 10 % less.
    intervals: Array  #: (k, 2); NaN for a group that is not judged.
    sizes: Sequence[int]  #: Rows of each group.

    @classmethod
    def from_audit(cls, audit: Audit, *, ax: Any = None) -> Self:
        """Draw what the fair version of an audit changes for each group."""
        groups = audit.groups
        return cls(
            [group.name for group in groups],
            np.array([group.change.value for group in groups]),
            np.array([group.change[1:] for group in groups]),
            [group.n for group in groups],
        ).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on a new figure; the axes stay in ``ax_``."""
        self.ax_ = ax = axes_for(ax, height=1.2 + 0.6 * len(self.groups))
        ax.axvline(0, color="0.6", lw=1)
        figures = 100 * np.column_stack([self.changes, self.intervals])
        for place, (change, low, high) in enumerate(figures):
            judged = bool(np.isfinite(low) and np.isfinite(high))
            color = style_of(0 if change < 0 else 1)[0]
            ax.plot(change, place, "o", ms=8, color=color, mfc=color if judged else "white")
            label = f"{change:+.1f} %, too few rows"
            if judged:
                ax.plot([low, high], [place, place], color=color, lw=2.5, solid_capstyle="butt")
                label = f"{change:+.1f} % ({low:+.1f} to {high:+.1f})"
            behind = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
            ax.annotate(label, (change, place), (0, 8), textcoords="offset points", ha="center",
                        bbox=behind)  # fmt: skip
        labels = [f"{escaped(g)} ({n:,})" for g, n in zip(self.groups, self.sizes, strict=True)]
        ax.set_yticks(range(len(labels)), labels)
        ax.set_ylim(len(labels) - 0.4, -0.6)
        ax.margins(x=0.25)  # room for the figures
        ax.set_xlabel("change of the error on held-out rows, % of the error under PCA")
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(left=False)
        return self
