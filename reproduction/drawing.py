"""How the figures look: the one file of the reproduction that imports matplotlib.

The colours are those of Okabe and Ito, which people with any kind of colour blindness can tell
apart. Each method has its own marker too, the same in every figure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from reproduction.tools import writable_folder

_RC: Any = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "lines.markersize": 4.5,
    "svg.hashsalt": "fairpca",  # the same figure gives the same file
}


@dataclass(frozen=True)
class Look:
    """Colour and marker of a method."""

    color: str
    marker: str


LOOKS = {
    "pca": Look("#000000", "o"),
    "fairpca": Look("#E69F00", "s"),
    "mofpca": Look("#009E73", "^"),
    "u-fpca": Look("#0072B2", "D"),
    "c-fpca": Look("#D55E00", "v"),
}
SIDE_COLORS = ("#56B4E9", "#CC79A7")
RING: Any = {"markerfacecolor": "white", "markersize": 7.0}
FLOOR = 1e-12  # a fairness measure below this is a rounding error


def save(draw: Callable[[], Figure], folder: Path, name: str) -> list[Path]:
    """Draw a figure in our style and write it as PNG and SVG."""
    writable_folder(folder)
    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    with rc_context(_RC):
        figure = draw()
        figure.savefig(paths[0], dpi=160)
        figure.savefig(paths[1], metadata={"Date": None})
    return paths


def grid(rows: int, columns: int, width: float, height: float, **share: Any) -> Any:
    """A figure of equal panels and its axes, as a 2-D array."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **share)


def count_axis(axes: Axes, ranks: NDArray[Any]) -> None:
    """The axis of the number of components: whole numbers only."""
    margin = min(0.9, 0.3 + 0.04 * float(np.ptp(ranks)))  # no room for r = 0
    axes.set_xlim(ranks.min() - margin, ranks.max() + margin)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8, steps=[1, 2, 5, 10]))


def fairness_axis(axes: Axes) -> None:
    """A logarithmic axis on which everything at rounding level is drawn at the bottom."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    if low > FLOOR:
        return
    axes.set_ylim(FLOOR / 8, high * 2)
    axes.yaxis.set_major_locator(LogLocator(base=10, numticks=6))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(
        FuncFormatter(
            lambda y, _: "≈ 0" if y <= FLOOR * 1.01 else rf"$10^{{{round(np.log10(y))}}}$"
        )
    )


def line(
    axes: Axes,
    method: str,
    x: NDArray[Any],
    y: NDArray[Any],
    *,
    second: bool = False,
    **options: Any,
) -> None:
    """A line in the look of a method; the ``second`` of two is dashed, its markers are rings.

    The rings are wide enough to be seen around the markers of the first where both lines meet.
    """
    look = LOOKS[method]
    axes.plot(
        x,
        y,
        color=look.color,
        marker=look.marker,
        linestyle="--" if second else "-",
        clip_on=False,
        **(RING if second else {}),
        **options,
    )


def legend_below(figure: Figure, handles: list[Line2D]) -> None:
    """One legend for all panels."""
    fitting = max(1, int(figure.get_figwidth() / 1.1))
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), fitting))


def handle(label: str, color: str, marker: str = "", **options: Any) -> Line2D:
    """An entry of a legend."""
    return Line2D([], [], color=color, marker=marker, label=label, **options)
