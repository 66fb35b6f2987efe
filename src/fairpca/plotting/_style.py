"""Axes, colours, markers and names, the same in all displays."""

from __future__ import annotations

from typing import Any

# Of the groups: readable with any colour vision (Okabe and Ito), and in grey by the markers.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
MARKERS = ("o", "^", "s", "D", "v", "P", "X")


def axes_for(ax: Any) -> Any:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'drawing needs matplotlib; install it with pip install "fairpca[plot]".'
        ) from error
    return plt.subplots()[1]


def escaped(name: Any) -> str:
    """A name as matplotlib shows it: it hides labels that start with _ and reads $ as formulas."""
    text = str(name).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def style_of(i: int) -> tuple[str, str]:
    """Colour and marker of the i-th group."""
    return COLORS[i % len(COLORS)], MARKERS[i % len(MARKERS)]
