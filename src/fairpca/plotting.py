"""Figures of fitted projections, as display objects in scikit-learn's manner.

Each display holds the numbers it draws. Make one with ``from_estimator`` or ``from_data``, draw it
with ``plot(ax=...)``. matplotlib is imported when something is drawn, not before
(``pip install "fairpca[plot]"``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from fairpca._audit.fits import agreeing_signs
from fairpca._audit.rank_curve import rank_curve
from fairpca._audit.result import RankCurve
from fairpca._estimators.base import FairProjection
from fairpca._estimators.fair_pca import FairPCA
from fairpca._input.checks import check_integer
from fairpca._input.labels import encode_groups
from fairpca._moments.group_moments import GroupMoments
from fairpca._typing import Array
from fairpca.path import MarkedPoint, TradeoffPath, tradeoff_path

__all__ = ["GroupErrorDisplay", "LoadingsDisplay", "ScoresDisplay", "TradeoffDisplay"]

# Of the groups: readable with any colour vision (Okabe and Ito), and in grey by the markers.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
_MARKERS = ("o", "^", "s", "D", "v", "P", "X")


class TradeoffDisplay:
    """The frontier of overall error against disparity.

    Parameters
    ----------
    path : TradeoffPath
    chosen : (float, float), optional
        Disparity and overall error of a projection to mark.

    Examples
    --------
    >>> from fairpca.datasets import make_two_groups
    >>> from fairpca.plotting import TradeoffDisplay
    >>> made = make_two_groups(random_state=0)
    >>> display = TradeoffDisplay.from_data(made.data, made.sensitive_features, n_components=1)
    >>> display.plot()  # doctest: +SKIP
    """

    def __init__(self, path: TradeoffPath, chosen: tuple[float, float] | None = None) -> None:
        self.path = path
        self.chosen = chosen

    @classmethod
    def from_estimator(cls, estimator: FairProjection, *, n_points: int = 41) -> Self:
        """Frontier at the rank of a fitted estimator, with the estimator marked on it."""
        moments = _kept_moments(estimator)
        if estimator.small_groups == "ignore" and estimator.small_groups_:
            raise ValueError(
                f"the frontier compares all groups, but {estimator!r} left out "
                f"{estimator.small_groups_}; leave out their rows, or use small_groups='merge'."
            )
        path = tradeoff_path(
            moments,
            n_components=estimator.n_components_,
            n_points=n_points,
            normalize=estimator.normalize,
        )
        return cls(path, (estimator.disparity_, estimator.reconstruction_error_))

    @classmethod
    def from_data(
        cls, X: Any, sensitive_features: Any, *, n_components: int, n_points: int = 41
    ) -> Self:
        """Frontier of the rows of X; arguments as for :func:`fairpca.tradeoff_path`."""
        return cls(
            tradeoff_path(X, sensitive_features, n_components=n_components, n_points=n_points)
        )

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on a new figure; the axes stay in ``ax_``."""
        self.ax_ = ax = _axes(ax)
        path = self.path
        ax.plot(path.disparity, path.reconstruction_error, color="black", label="best possible")
        if len(path.groups) == 2 and not path.efficient.all():
            last = max(int(np.count_nonzero(path.efficient)) - 1, 0)
            beyond = path.disparity[last:], path.reconstruction_error[last:]
            ax.plot(*beyond, color="white")
            ax.plot(*beyond, color="black", linestyle=":", label="levelling down")
        for (at, names), marker in zip(_distinct(path.marks).items(), _MARKERS, strict=False):
            ax.plot(*at, marker, color="black", markerfacecolor="white", label=", ".join(names))
        if self.chosen is not None:
            ax.plot(*self.chosen, "*", markersize=13, color=_COLORS[1], label="this fit")
        difference = "largest minus smallest group error"
        if len(path.groups) == 2:
            sides = path.harmed_group, path.privileged_group
            difference = "error of {} minus {}".format(*map(_escaped, sides))
        ax.set_xlabel(f"disparity: {difference}")
        ax.set_ylabel("overall error")
        ax.legend(frameon=False)
        return self


def _distinct(marks: dict[str, MarkedPoint]) -> dict[tuple[float, float], list[str]]:
    """Disparity and overall error of each mark; methods that end at the same point share it."""
    points: dict[tuple[float, float], list[str]] = {}
    for name, mark in marks.items():
        at = mark.disparity, mark.reconstruction_error
        same = (other for other in points if np.allclose(at, other, rtol=1e-6, atol=1e-9))
        points.setdefault(next(same, at), []).append(name)
    return points


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
        moments = _kept_moments(estimator)
        return cls(rank_curve(moments, estimator, ranks), moments.groups.tolist())

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
        moments = _settled(model, GroupMoments.from_data(X, sensitive_features))
        return cls(rank_curve(moments, model, ranks), moments.groups.tolist())

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on a new figure; the axes stay in ``ax_``."""
        self.ax_ = ax = _axes(ax)
        r = self.curve.n_components
        for g, label in enumerate(map(_escaped, self.groups)):
            color, marker = _style(g)
            ax.plot(r, self.curve.pca[:, g], marker, ls="--", mfc="none", color=color,
                    label=f"{label}, PCA")  # fmt: skip
            ax.plot(r, self.curve.fair[:, g], marker, ls="-", color=color, label=f"{label}, fair")
        ax.set_xlabel("components")
        ax.set_ylabel("average squared error")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend(frameon=False)
        return self


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
        self.feature_names = list(feature_names)
        if len(self.feature_names) != first.shape[1]:
            raise ValueError(
                f"{len(self.feature_names)} feature names for {first.shape[1]} features; pass one "
                "for each."
            )

    @classmethod
    def from_estimator(
        cls, estimator: FairProjection, *, feature_names: Sequence[str] | None = None
    ) -> Self:
        """Loadings of a fitted estimator beside those of PCA on the same rows."""
        pca = FairPCA(estimator.n_components_, alpha=1.0).fit_moments(_kept_moments(estimator))
        if feature_names is None:
            d = estimator.n_features_in_
            feature_names = getattr(estimator, "feature_names_in_", [f"x{j}" for j in range(d)])
        return cls({"fair PCA": estimator.components_, "PCA": pca.components_}, feature_names)

    def plot(self, ax: Any = None, *, component: int = 0, n_features: int = 15) -> Self:
        """Draw the ``n_features`` largest weights of one component (0 is the first)."""
        r = min(len(values) for values in self.loadings.values())
        if component not in range(r):
            raise ValueError(f"component={component}: pass one of 0 to {r - 1}.")
        check_integer("n_features", n_features, 1)
        self.ax_ = ax = _axes(ax)
        weights = {name: values[component] for name, values in self.loadings.items()}
        largest = np.max([np.abs(values) for values in weights.values()], axis=0)
        shown = np.argsort(largest, kind="stable")[-n_features:]
        ax.axvline(0, color="0.7", lw=0.8)
        for i, (name, values) in enumerate(weights.items()):
            ax.plot(values[shown], range(len(shown)), _style(i)[1], color=_style(i)[0],
                    label=_escaped(name))  # fmt: skip
        ax.set_yticks(range(len(shown)), [_escaped(self.feature_names[j]) for j in shown])
        ax.set_xlabel(f"weight in component {component + 1}")
        ax.legend(frameon=False)
        return self


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
        self.ax_ = ax = _axes(ax)
        above = np.argsort(np.argsort(-np.bincount(self.codes), kind="stable"))
        rng = np.random.default_rng(0)
        for g, label in enumerate(map(_escaped, self.groups.tolist())):
            color, marker = _style(g)
            rows = self.scores[self.codes == g][:, list(components)]
            if len(rows) > max_rows:
                rows = rows[np.sort(rng.choice(len(rows), max_rows, replace=False))]
            ax.plot(*rows.T, marker, ls="none", ms=4, alpha=0.5, color=color, label=label,
                    zorder=2 + above[g] / len(above))  # fmt: skip
        ax.set_xlabel(f"component {components[0] + 1}")
        ax.set_ylabel(f"component {components[1] + 1}")
        ax.legend(frameon=False)
        return self


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'drawing needs matplotlib; install it with pip install "fairpca[plot]".'
        ) from error
    return plt.subplots()[1]


def _escaped(name: Any) -> str:
    """A name as matplotlib shows it: it hides labels that start with _ and reads $ as formulas."""
    text = str(name).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def _style(i: int) -> tuple[str, str]:
    return _COLORS[i % len(_COLORS)], _MARKERS[i % len(_MARKERS)]


def _kept_moments(estimator: FairProjection) -> GroupMoments:
    moments = getattr(estimator, "moments_", None)
    if moments is None:
        raise ValueError(
            f"this {type(estimator).__name__} holds no moments (not fitted, or loaded from a "
            "file); fit it, or use from_data with the rows."
        )
    return _settled(estimator, moments)


def _settled(estimator: FairProjection, moments: GroupMoments) -> GroupMoments:
    """The groups as the estimator sees them, small ones merged if it does so."""
    settled = estimator._settle(moments).moments
    assert isinstance(settled, GroupMoments)
    return settled
