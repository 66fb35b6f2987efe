"""The paper's first figure: how PCA serves one group worse, and what fair PCA does about it."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairpca import FairPCA
from fairpca.datasets import make_two_groups
from fairpca.reproduction import drawing


def draw_illustration() -> Any:
    """Six panels: scatter and both projection vectors, projections of A and of B; PCA, then fair.

    Group A is the one that PCA favours. Each histogram shows a group's scores on the first vector
    about the overall mean; what the projection loses of the group is its reconstruction error.
    """
    made = make_two_groups(random_state=0)
    X, groups = made.data, made.sensitive_features
    figure, axes = drawing.grid(2, 3, 9.4, 5.8)
    fits = {
        "pca": FairPCA(1, alpha=1.0).fit(X, sensitive_features=groups),
        "u-fpca": FairPCA(1, constraint=None).fit(X, sensitive_features=groups),
    }
    reach = float(np.abs(X - X.mean(axis=0)).max()) * 1.2
    for (method, fit), row, letters in zip(fits.items(), axes, ("abc", "def"), strict=True):
        name = "PCA" if method == "pca" else "Fair PCA"
        symbol = "u" if method == "pca" else r"\bar{u}"
        members = {"A": groups == fit.privileged_group_, "B": groups == fit.harmed_group_}
        errors = dict(zip(fit.groups_.tolist(), fit.group_errors_, strict=True))
        labelled = {"A": errors[fit.privileged_group_], "B": errors[fit.harmed_group_]}
        centred = X - fit.mean_
        for (label, rows), color in zip(members.items(), drawing.GROUP_COLORS, strict=True):
            row[0].scatter(*centred[rows].T, s=9, color=color, label=f"Group {label}", alpha=0.8)
        u1 = fit.components_[0]
        _vector(row[0], u1, rf"${symbol}_1$", 0.82 * reach, drawing.LOOKS[method].color)
        u2 = np.array([-u1[1], u1[0]])
        _vector(row[0], u2, rf"${symbol}_2$", 0.5 * reach, drawing.LOOKS[method].color)
        row[0].set_title(f"({letters[0]}) {name}: data and vectors")
        row[0].set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
        row[0].legend(loc="lower right", handletextpad=0.1, borderpad=0.1)
        bins = np.linspace(-reach, reach, 45)
        for panel, letter, (label, rows), color in zip(
            row[1:], letters[1:], members.items(), drawing.GROUP_COLORS, strict=True
        ):
            scores = centred[rows] @ u1
            panel.hist(
                scores, bins=bins, weights=np.full(len(scores), 1 / len(scores)), color=color
            )
            panel.plot(scores, np.full(len(scores), -0.015), "|", color=color, alpha=0.6)
            panel.set_title(f"({letter}) Group {label} on ${symbol}_1$")
            panel.set(xlim=(-reach, reach), ylim=(-0.03, 0.27))
            panel.text(
                0.03, 0.95, f"variance {scores.var():.2f}\nerror {labelled[label]:.2f}",
                transform=panel.transAxes, va="top",
            )  # fmt: skip
    for row in axes:
        row[1].set_ylabel("Share of the group")
        row[0].set_ylabel("$x_2$")
    axes[1, 0].set_xlabel("$x_1$")
    for panel in axes[1, 1:]:
        panel.set_xlabel("Score")
    return figure


def _vector(axes: Any, direction: Any, label: str, length: float, color: str) -> None:
    """An arrow from the overall mean, with its name at the tip."""
    tip = direction * length
    axes.annotate(
        "", xy=tip, xytext=(0, 0), arrowprops={"arrowstyle": "-|>", "color": color, "lw": 1.8}
    )
    axes.text(*(tip * 1.1), label, color=color, ha="center", va="center", fontsize=12)
