"""The paper's figures, laid out as in the paper, from results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction import drawing
from reproduction.experiments import DATASETS, METHODS, METHODS_SHOWN, PAPER_DATASETS, VARIANTS
from reproduction.illustration import draw_illustration, draw_intuition
from reproduction.results import Result
from reproduction.tools import Array


def draw_all(results: Sequence[Result], folder: Path) -> list[Path]:
    """Draw every figure that there are results for; return the files."""
    figures: dict[str, Callable[[], Any]] = {
        "illustration": draw_illustration,
        "intuition": draw_intuition,
    }
    for variant in VARIANTS:
        chosen = [result for result in results if result.variant == variant]
        present = [name for name in DATASETS if any(r.dataset == name for r in chosen)]
        of_paper = [name for name in PAPER_DATASETS if name in present]
        if of_paper:
            figures[f"errors_{variant}"] = partial(draw_errors, chosen, of_paper)
        for name in present:
            of_one = [result for result in chosen if result.dataset == name]
            if any(METHODS[result.method].shown for result in of_one):
                figures[f"groups_{name}_{variant}"] = partial(draw_groups, of_one)
    paths: list[Path] = []
    for name, draw in figures.items():
        paths += drawing.save(draw, folder / "figures", name)
    return paths


def draw_errors(results: Sequence[Result], datasets: Sequence[str]) -> Any:
    """Overall error (above) and fairness measure (below), one column per dataset."""
    figure, axes = drawing.grid(2, len(datasets), 0.6 + 3.1 * len(datasets), 5.6, sharex="col")
    for dataset, (top, bottom) in zip(datasets, axes.T, strict=True):
        for method in METHODS_SHOWN:
            ranks, columns = _columns(results, dataset, method, "overall_error", "fairness_measure")
            if len(ranks):
                drawing.line(top, method, ranks, columns[0])
                drawing.line(bottom, method, ranks, np.maximum(columns[1], drawing.FLOOR))
                drawing.count_axis(bottom, ranks)
        top.set_title(DATASETS[dataset].title)
        top.set_ylim(bottom=0)
        drawing.fairness_axis(bottom)
        bottom.set_xlabel("Number of components r")
    axes[0, 0].set_ylabel("Overall reconstruction error R")
    axes[1, 0].set_ylabel("Fairness measure F")
    present = {result.method for result in results}
    drawing.legend_below(
        figure,
        [
            drawing.handle(METHODS[m].title, drawing.LOOKS[m].color, drawing.LOOKS[m].marker)
            for m in METHODS_SHOWN
            if m in present
        ],
    )
    return figure


def draw_groups(results: Sequence[Result]) -> Any:
    """Errors of both groups, one panel per method; in grey the harmed group under PCA."""
    dataset = results[0].dataset
    present = {result.method for result in results}
    methods = [name for name in METHODS_SHOWN if name in present]
    figure, axes = drawing.grid(
        1, len(methods), 0.7 + 2.15 * len(methods), 2.9, sharex=True, sharey=True
    )
    for method, panel in zip(methods, axes[0], strict=True):
        ranks, (first, second, cap) = _columns(
            results, dataset, method, "error_1", "error_2", "pca_harmed_error"
        )
        panel.plot(ranks, cap, color="0.72", linewidth=4, solid_capstyle="round", zorder=1)
        drawing.line(panel, method, ranks, first, zorder=3)
        drawing.line(panel, method, ranks, second, second=True, zorder=2)
        drawing.count_axis(panel, ranks)
        panel.set_title(METHODS[method].title)
        panel.set_xlabel("r")
    axes[0, 0].set_ylim(bottom=0)
    axes[0, 0].set_ylabel(f"{DATASETS[dataset].title}: group error")
    drawing.legend_below(
        figure,
        [
            drawing.handle(results[0].group_1, "0.25", "o"),
            drawing.handle(results[0].group_2, "0.25", "o", linestyle="--", **drawing.RING),
            drawing.handle("harmed group under PCA: the cap of c-FPCA", "0.72", linewidth=4),
        ],
    )
    return figure


def _columns(
    results: Iterable[Result], dataset: str, method: str, *fields: str
) -> tuple[NDArray[np.intp], Array]:
    """Numbers of components, and the fields as rows of an array."""
    chosen = sorted(
        (r for r in results if (r.dataset, r.method) == (dataset, method)), key=lambda r: r.r
    )
    ranks = np.array([result.r for result in chosen], dtype=np.intp)
    return ranks, np.array([[getattr(result, field) for result in chosen] for field in fields])
