"""Weights of the features in a component."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from fairpca._audit.fits import agreeing_signs
from fairpca._estimators.base import FairProjection
from fairpca._estimators.fair_pca import FairPCA
from fairpca._input.checks import check_integer
from fairpca._typing import Array
from fairpca.plotting._fitted import feature_names_of, kept_moments, named_features
from fairpca.plotting._style import axes_for, escaped, style_of


class LoadingsDisplay:
    """Weights of the features in one component of one or several projections.

    Parameters
    ----------
    loadings : dict of str to ndarray of shape (n_components, n_features)
        By name of the projection. Components of the later ones are turned to agree in sign with
        those of the first.
    feature_names : sequence of str

    Examples
    --------
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_diabetes_by_sex
    >>> from fairpca.plotting import LoadingsDisplay
    >>> diabetes = load_diabetes_by_sex()
    >>> fair = FairPCA(2).fit(diabetes.data, sensitive_features=diabetes.sensitive_features)
    >>> display = LoadingsDisplay.from_estimator(fair, feature_names=diabetes.feature_names)
    >>> sorted(display.loadings)
    ['PCA', 'fair PCA']
    >>> display.plot(component=1)  # doctest: +SKIP
    """

    def __init__(self, loadings: dict[str, Array], feature_names: Sequence[str]) -> None:
        first = next(iter(loadings.values()))
        self.loadings = {
            name: values * agreeing_signs(values, first)[:, None]
            for name, values in loadings.items()
        }
        self.feature_names = named_features(feature_names, first.shape[1])

    @classmethod
    def from_estimator(
        cls, estimator: FairProjection, *, feature_names: Sequence[str] | None = None
    ) -> Self:
        """Loadings of a fitted estimator beside those of PCA on the same rows."""
        pca = FairPCA(estimator.n_components_, alpha=1.0).fit_moments(kept_moments(estimator))
        if feature_names is None:
            feature_names = feature_names_of(estimator)
        return cls({"fair PCA": estimator.components_, "PCA": pca.components_}, feature_names)

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
            ax.plot(values[shown], range(len(shown)), style_of(i)[1], color=style_of(i)[0],
                    label=escaped(name))  # fmt: skip
        ax.set_yticks(range(len(shown)), [escaped(self.feature_names[j]) for j in shown])
        ax.set_xlabel(f"weight in component {component + 1}")
        ax.legend(frameon=False)
        return self
