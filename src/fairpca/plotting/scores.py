"""Rows on two components, by group."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from fairpca._input.checks import check_integer
from fairpca._input.labels import encode_groups
from fairpca._typing import Array
from fairpca.metrics.projection import refuse_unfitted, steps_to_projection
from fairpca.plotting._common import axes_for, escaped, style_of


class ScoresDisplay:
    """Scores of the rows on two components, by group.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, n_components)
    sensitive_features : array-like of shape (n_samples,)

    Examples
    --------
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_checkup
    >>> from fairpca.plotting import ScoresDisplay
    >>> people = load_checkup()
    >>> X, groups = people.data, people.sensitive_features
    >>> fair = FairPCA(5, standardize=True).fit(X, sensitive_features=groups)
    >>> ScoresDisplay.from_estimator(fair, X, groups)  # doctest: +SKIP
    """

    def __init__(self, scores: Array, sensitive_features: Any) -> None:
        self.scores = scores
        self.codes, self.groups = encode_groups(sensitive_features, len(scores))

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

        What follows the projection in a pipeline, such as a classifier, is left out.
        """
        refuse_unfitted(estimator)
        for step in steps_to_projection(estimator, strict=False):
            X = step.transform(X)
        return cls(np.asarray(X), sensitive_features).plot(
            ax, components=components, max_rows=max_rows
        )

    def plot(
        self, ax: Any = None, *, components: tuple[int, int] = (0, 1), max_rows: int = 1000
    ) -> Self:
        """Draw two components (0 is the first) against each other.

        At most ``max_rows`` random rows of each group are drawn, small groups above large ones.
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
        ax.set(xlabel=f"component {components[0] + 1}", ylabel=f"component {components[1] + 1}")
        ax.legend(frameon=False)
        return self
