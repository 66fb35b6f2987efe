"""Rows on two components, by group, alone or with the features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from fairpca._input.checks import check_integer
from fairpca._input.labels import encode_groups
from fairpca._typing import Array
from fairpca.metrics.projection import seen_by_projection
from fairpca.plotting._fitted import feature_names_of, named_features
from fairpca.plotting._style import axes_for, escaped, style_of


class ScoresDisplay:
    """Scores of the rows on two components, by group.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, n_components)
    sensitive_features : array-like of shape (n_samples,)

    Examples
    --------
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_diabetes_by_sex
    >>> from fairpca.plotting import ScoresDisplay
    >>> diabetes = load_diabetes_by_sex()
    >>> X, sex = diabetes.data, diabetes.sensitive_features
    >>> fair = FairPCA(2).fit(X, sensitive_features=sex)
    >>> ScoresDisplay.from_estimator(fair, X, sex).plot()  # doctest: +SKIP
    """

    def __init__(self, scores: Array, sensitive_features: Any) -> None:
        self.scores = scores
        self.codes, self.groups = encode_groups(sensitive_features, len(scores))

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, sensitive_features: Any) -> Self:
        """Scores of X under any fitted projection, scikit-learn's PCA too."""
        return cls(np.asarray(estimator.transform(X)), sensitive_features)

    def plot(
        self, ax: Any = None, *, components: tuple[int, int] = (0, 1), max_rows: int = 1000
    ) -> Self:
        """Draw two components (0 is the first) against each other.

        Of each group at most ``max_rows`` random rows are drawn, small groups above large ones.
        """
        r = self.scores.shape[1]
        if not {*components} <= {*range(r)}:
            raise ValueError(
                f"components={components} but the projection has {r}; pass two of 0 to {r - 1}, "
                "or fit more components."
            )
        check_integer("max_rows", max_rows, 1)
        self.ax_ = ax = axes_for(ax)
        above = np.argsort(np.argsort(-np.bincount(self.codes), kind="stable"))
        rng = np.random.default_rng(0)
        for g, label in enumerate(map(escaped, self.groups.tolist())):
            color, marker = style_of(g)
            rows = self.scores[self.codes == g][:, list(components)]
            if len(rows) > max_rows:
                rows = rows[np.sort(rng.choice(len(rows), max_rows, replace=False))]
            ax.plot(*rows.T, marker, ls="none", ms=4, alpha=0.5, color=color, label=label,
                    zorder=2 + above[g] / len(above))  # fmt: skip
        ax.set_xlabel(f"component {components[0] + 1}")
        ax.set_ylabel(f"component {components[1] + 1}")
        ax.legend(frameon=False)
        return self


class BiplotDisplay(ScoresDisplay):
    """Scores of the rows on two components, by group, and the features as arrows.

    An arrow points to where its feature grows. The further a row lies in its direction, the larger
    is the feature in the row's reconstruction from the two components.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, n_components)
    sensitive_features : array-like of shape (n_samples,)
    loadings : ndarray of shape (n_components, n_features)
        What one unit of each score adds to the features.
    feature_names : sequence of str

    Examples
    --------
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_diabetes_by_sex
    >>> from fairpca.plotting import BiplotDisplay
    >>> diabetes = load_diabetes_by_sex()
    >>> X, sex = diabetes.data, diabetes.sensitive_features
    >>> fair = FairPCA(2).fit(X, sensitive_features=sex)
    >>> display = BiplotDisplay.from_estimator(fair, X, sex, feature_names=diabetes.feature_names)
    >>> display.plot(n_features=5)  # doctest: +SKIP
    """

    def __init__(
        self,
        scores: Array,
        sensitive_features: Any,
        loadings: Array,
        feature_names: Sequence[str],
    ) -> None:
        super().__init__(scores, sensitive_features)
        self.loadings = loadings
        self.feature_names = named_features(feature_names, loadings.shape[1])

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        sensitive_features: Any,
        *,
        feature_names: Sequence[str] | None = None,
    ) -> Self:
        """Scores and features of any fitted projection, or of a pipeline with one.

        In a pipeline, the features are those that arrive at the projection.
        """
        projection, seen = seen_by_projection(estimator, X)
        scores = np.asarray(projection.transform(seen))
        origin, *ends = projection.inverse_transform(np.eye(scores.shape[1] + 1)[:, 1:])
        if feature_names is None:
            feature_names = feature_names_of(projection)
        return cls(scores, sensitive_features, np.array(ends) - origin, feature_names)

    def plot(
        self,
        ax: Any = None,
        *,
        components: tuple[int, int] = (0, 1),
        max_rows: int = 1000,
        n_features: int = 8,
    ) -> Self:
        """Draw two components (0 is the first), and the ``n_features`` longest arrows.

        One factor stretches all arrows, so that the longest reaches as far as the rows do.
        Of each group at most ``max_rows`` random rows are drawn.
        """
        check_integer("n_features", n_features, 1)
        super().plot(ax, components=components, max_rows=max_rows)
        arrows, rows = self.loadings[list(components)].T, self.scores[:, list(components)]
        lengths = np.linalg.norm(arrows, axis=1)
        far = np.quantile(np.linalg.norm(rows, axis=1), 0.99)
        ends = arrows * (far / max(float(lengths.max()), np.finfo(float).tiny))
        shown = np.argsort(-lengths, kind="stable")[:n_features]
        names = [escaped(self.feature_names[j]) for j in shown]
        _draw_arrows(self.ax_, names, ends[shown])
        return self


def _draw_arrows(ax: Any, names: list[str], ends: Array) -> None:
    """Arrows from the origin, with names beyond their ends that do not cover each other."""
    ax.update_datalim(ends)
    ax.margins(x=0.3, y=0.15)  # room for the names
    ax.autoscale_view()
    heights = ax.transData.transform(ends)[:, 1] * 72 / ax.figure.dpi
    behind = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.5}
    for side, here in (("left", ends[:, 0] >= 0), ("right", ends[:, 0] < 0)):
        lifted, x = _apart(heights[here]) - heights[here], 4 if side == "left" else -4
        for j, lift in zip(np.flatnonzero(here), lifted, strict=True):
            ax.annotate("", ends[j], (0, 0), arrowprops={"arrowstyle": "->", "shrinkA": 0})
            ax.annotate(names[j], ends[j], (x, lift), textcoords="offset points", ha=side,
                        va="center", bbox=behind, zorder=4)  # fmt: skip


def _apart(heights: Array, gap: float = 13) -> Array:
    """Heights in the same order, each at least ``gap`` above the one below it."""
    order = np.argsort(heights, kind="stable")
    steps = gap * np.arange(len(heights))
    apart = np.empty(len(heights))
    apart[order] = np.maximum.accumulate(heights[order] - steps) + steps
    return apart
