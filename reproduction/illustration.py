"""The paper's first figure: how PCA serves one group worse, and what fair PCA does about it."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairpca import FairPCA
from fairpca.datasets import make_two_groups
from reproduction import drawing
from reproduction.tools import Array


def draw_illustration() -> Any:
    """Six panels: scatter and both projection vectors, projections of A and of B; PCA, then fair.

    Group A is the one that PCA favours. Each histogram shows a group's scores on the first vector,
    measured from the overall mean; the reconstruction error is what the projection loses of it.
    """
    made = make_two_groups(random_state=0)
    X, groups = made.data, made.sensitive_features
    figure, axes = drawing.grid(2, 3, 9.4, 5.8)
    fits = {
        "pca": FairPCA(1, alpha=1.0).fit(X, sensitive_features=groups),
        "u-fpca": FairPCA(1, constraint="parity").fit(X, sensitive_features=groups),
    }
    reach = float(np.abs(X - X.mean(axis=0)).max()) * 1.2
    for (method, fit), row, letters in zip(fits.items(), axes, ("abc", "def"), strict=True):
        name, symbol = ("PCA", "u") if method == "pca" else ("Fair PCA", r"\bar{u}")
        errors = dict(zip(fit.groups_.tolist(), fit.group_errors_, strict=True))
        sides = {"A": fit.privileged_group_, "B": fit.harmed_group_}
        centred = {label: X[groups == group] - fit.mean_ for label, group in sides.items()}
        _scatter(row[0], centred, fit.components_[0], symbol, reach, drawing.LOOKS[method].color)
        row[0].set_title(f"({letters[0]}) {name}: data and vectors")
        row[0].set_ylabel("$x_2$")
        row[1].set_ylabel("Share of the group")
        for i, (label, group) in enumerate(sides.items()):
            scores = centred[label] @ fit.components_[0]
            _histogram(row[i + 1], scores, errors[group], reach, drawing.SIDE_COLORS[i])
            row[i + 1].set_title(f"({letters[i + 1]}) Group {label} on ${symbol}_1$")
    axes[1, 0].set_xlabel("$x_1$")
    for panel in axes[1, 1:]:
        panel.set_xlabel("Score")
    return figure


def _scatter(
    panel: Any, centred: dict[str, Array], u1: Array, symbol: str, reach: float, color: str
) -> None:
    """Both groups, the vector of the projection and the one perpendicular to it."""
    for (label, rows), side in zip(centred.items(), drawing.SIDE_COLORS, strict=True):
        panel.scatter(*rows.T, s=9, color=side, label=f"Group {label}", alpha=0.8)
    _vector(panel, u1, rf"${symbol}_1$", 0.82 * reach, color)
    _vector(panel, np.array([-u1[1], u1[0]]), rf"${symbol}_2$", 0.5 * reach, color)
    panel.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    panel.legend(loc="lower right", handletextpad=0.1, borderpad=0.1)


def _histogram(panel: Any, scores: Array, error: float, reach: float, color: str) -> None:
    """Scores of one group, with their variance and what the projection loses."""
    n = len(scores)
    bins = np.linspace(-reach, reach, 45)
    panel.hist(scores, bins=bins, weights=np.full(n, 1 / n), color=color)
    panel.plot(scores, np.full(n, -0.015), "|", color=color, alpha=0.6)
    panel.set(xlim=(-reach, reach), ylim=(-0.03, 0.27))
    text = f"variance {scores.var():.2f}\nerror {error:.2f}"
    panel.text(0.03, 0.95, text, transform=panel.transAxes, va="top")


def _vector(axes: Any, direction: Any, label: str, length: float, color: str) -> None:
    """An arrow from the overall mean, with its name at the tip."""
    tip = direction * length
    axes.annotate(
        "", xy=tip, xytext=(0, 0), arrowprops={"arrowstyle": "-|>", "color": color, "lw": 1.8}
    )
    axes.text(*(tip * 1.1), label, color=color, ha="center", va="center", fontsize=12)


def draw_intuition() -> Any:
    """Two panels: the line that PCA keeps, which follows the larger group, and the fair one."""
    made = make_two_groups(random_state=0)
    X, groups = made.data, made.sensitive_features
    figure, axes = drawing.grid(1, 2, 6.8, 3.2, sharex=True, sharey=True)
    fits = {
        "PCA": FairPCA(1, alpha=1.0).fit(X, sensitive_features=groups),
        "FairPCA": FairPCA(1).fit(X, sensitive_features=groups),
    }
    for panel, (name, fit) in zip(axes[0], fits.items(), strict=True):
        for color, group in zip(drawing.SIDE_COLORS, fit.groups_, strict=True):
            panel.scatter(*(X[groups == group] - fit.mean_).T, s=9, color=color, alpha=0.8)
        panel.axline((0, 0), fit.components_[0], color=drawing.LOOKS["pca"].color, linewidth=2)
        panel.set(title=name, aspect="equal", xlim=(-8, 8), ylim=(-7.2, 7.2), xticks=[], yticks=[])
        first, second = fit.group_errors_
        panel.set_xlabel(f"error: {fit.groups_[0]} {first:.1f}, {fit.groups_[1]} {second:.1f}")
    sizes = zip(drawing.SIDE_COLORS, fit.groups_, fit.group_sizes_, strict=True)
    entries = [drawing.handle(f"{group}, {n} rows", color, "o") for color, group, n in sizes]
    drawing.legend_below(figure, entries)
    return figure
