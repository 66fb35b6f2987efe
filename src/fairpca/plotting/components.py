"""Scores of the rows by group, and weights of the features in the components."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from fairpca._estimators.base import FairProjection
from fairpca._estimators.fair_pca import FairPCA
from fairpca._input.checks import check_integer
from fairpca._input.labels import encode_groups
from fairpca._input.stream import open_input, refuse_stream
from fairpca._linear_map import fitted_map, refuse_unfitted, steps_to_map
from fairpca._typing import Array
from fairpca.plotting._common import axes_for, escaped, group_options, style_of


class ScoresDisplay:
    """Scores of the rows (n_samples x n_components) on two components, by group.

    By variance, only all components together are fair, not the first two of them: for a fair
    picture, fit two, or fit with ``order="fair"``, which the axes then say.
    """

    def __init__(self, scores: Array, sensitive_features: Any, *, order: str = "variance") -> None:
        self.scores = scores
        self.order = order
        self.codes, self.groups, _ = encode_groups(sensitive_features, len(scores))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        sensitive_features: Any,
        *,
        components: tuple[int, int] = (0, 1),
        max_rows: int = 1000,
        ax: Any = None,
    ) -> Self:
        """Draw the scores of X under any fitted projection, or under the one in a pipeline.

        Steps after the projection in a pipeline, such as a classifier, are left out.
        """
        refuse_unfitted(estimator)
        refuse_stream(X, "a picture needs rows in memory", "pass a sample of them as a data frame")
        X, sensitive_features, *_ = open_input(X, sensitive_features)
        order = "variance"
        for step in steps_to_map(estimator, strict=False):
            X = step.transform(X)
            order = order_of(step)
        display = cls(np.asarray(X), sensitive_features, order=order)
        return display.plot(ax, components=components, max_rows=max_rows)

    def plot(
        self, ax: Any = None, *, components: tuple[int, int] = (0, 1), max_rows: int = 1000
    ) -> Self:
        """Draw two components (0 is the first) against each other.

        At most ``max_rows`` random rows of each group are drawn, small groups above large ones.
        """
        r = self.scores.shape[1]
        if len(components) != 2 or not {*components} <= {*range(r)}:
            raise ValueError(
                f"components={components} but the projection has {r}; pass two of 0 to {r - 1}, "
                "or fit more components."
            )
        check_integer("max_rows", max_rows, 1)
        self.ax_ = ax = axes_for(ax)
        sizes = np.bincount(self.codes)
        rng = np.random.default_rng(0)
        for g, label in enumerate(map(escaped, self.groups.tolist())):
            color, marker = style_of(g)
            rows = self.scores[self.codes == g][:, list(components)]
            if len(rows) > max_rows:
                rows = rows[np.sort(rng.choice(len(rows), max_rows, replace=False))]
            ax.plot(*rows.T, marker, ls="none", ms=4, alpha=0.5, color=color, label=label,
                    zorder=3 - sizes[g] / sizes.sum())  # fmt: skip
        x, y = (named_component(component, self.order) for component in components)
        ax.set(xlabel=x, ylabel=y)
        ax.legend(frameon=False)
        return self


def order_of(projection: Any) -> str:
    """By what the components are ordered."""
    if hasattr(projection, "score_covariance_"):
        return "fair"
    return "variance"


def named_component(component: int, order: str) -> str:
    """A component (0 is the first) as the axes call it."""
    return f"component {component + 1}" + " (fair order)" * (order == "fair")


class LoadingsDisplay:
    """Weights of the features in one component of one or several projections.

    ``loadings`` holds the weights (n_components x n_features) of each projection, by its name.
    Components of later projections are flipped to agree in sign with those of the first.
    """

    def __init__(
        self,
        loadings: Mapping[str, Array],
        feature_names: Sequence[str],
        *,
        order: str = "variance",
    ) -> None:
        self.order = order
        first = next(iter(loadings.values()))
        n_names = len(feature_names)
        d = first.shape[1]
        if n_names != d:
            raise ValueError(f"{n_names} feature names for {d} features; pass one for each.")
        self.loadings = {
            name: np.where(np.sum(values * first, axis=1) < 0, -1.0, 1.0)[:, np.newaxis] * values
            for name, values in loadings.items()
        }
        self.feature_names = list(feature_names)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        feature_names: Sequence[str] | None = None,
        component: int = 0,
        n_features: int = 15,
        ax: Any = None,
    ) -> Self:
        """Draw the loadings of any fitted projection, or of the one in a pipeline.

        For a fair projection, the loadings of PCA on the same rows are drawn too, unless it was
        loaded from a file. In a pipeline, the features are those that reach the projection.
        """
        refuse_unfitted(estimator)
        _, projection, own = fitted_map(estimator)
        fair = isinstance(projection, FairProjection)
        loadings = {"fair PCA" if fair else "PCA": own.directions}
        if fair and hasattr(projection, "moments_"):
            pca = FairPCA(projection.n_components_, alpha=1.0, **group_options(projection))
            loadings["PCA"] = pca.fit(projection.moments_).components_
        if feature_names is None:
            usual = [f"x{j}" for j in range(projection.n_features_in_)]
            feature_names = getattr(projection, "feature_names_in_", usual)
        display = cls(loadings, feature_names, order=order_of(projection))
        return display.plot(ax, component=component, n_features=n_features)

    def plot(self, ax: Any = None, *, component: int = 0, n_features: int = 15) -> Self:
        """Draw the ``n_features`` largest weights of one component (0 is the first)."""
        r = min(len(values) for values in self.loadings.values())
        if component not in range(r):
            raise ValueError(f"component={component}: pass one of 0 to {r - 1}.")
        check_integer("n_features", n_features, 1)
        self.ax_ = ax = axes_for(ax)
        weights = {name: values[component] for name, values in self.loadings.items()}
        largest = np.max([np.abs(values) for values in weights.values()], axis=0)
        shown = np.argsort(largest, kind="stable")[-n_features:]
        ax.axvline(0, color="0.7", lw=0.8)
        for i, (name, values) in enumerate(weights.items()):
            color, marker = style_of(i)
            ax.plot(values[shown], range(len(shown)), marker, color=color, label=escaped(name))
        ax.set_yticks(range(len(shown)), [escaped(self.feature_names[j]) for j in shown])
        ax.set_xlabel(f"weight in {named_component(component, self.order)}")
        ax.legend(frameon=False)
        return self
