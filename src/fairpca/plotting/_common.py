"""Helpers of all displays: the estimator they draw, axes, colours, markers and names."""

from typing import Any

from fairpca._estimators.base import FairProjection
from fairpca._linear_map import fitted_map, refuse_unfitted
from fairpca._moments.group_moments import GroupMoments

# The colours suit any colour vision (Okabe and Ito); in grey, markers tell the groups apart.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
_MARKERS = ("o", "^", "s", "D", "v", "P", "X")


def axes_for(ax: Any, height: float | None = None) -> Any:
    """The given axes, or those of a new figure with this height in inches."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "drawing needs matplotlib; install it with pip install matplotlib."
        ) from error
    figure, ax = plt.subplots(layout="constrained")
    if height is not None:
        figure.set_figheight(height)
    return ax


def escaped(name: Any) -> str:
    """A name as matplotlib shows it: it hides labels that start with _ and reads $ as formulas."""
    text = str(name).replace("$", r"\$")
    if text.startswith("_"):
        return f" {text}"
    return text


def style_of(i: int) -> tuple[str, str]:
    """Colour and marker of the i-th group."""
    return _COLORS[i % len(_COLORS)], _MARKERS[i % len(_MARKERS)]


def fair_projection_in(estimator: Any) -> FairProjection:
    """A fair projection that keeps the moments of its rows, taken out of its pipeline."""
    refuse_unfitted(estimator)
    projection = fitted_map(estimator).estimator
    if not isinstance(projection, FairProjection):
        raise TypeError(
            f"{type(projection).__name__} knows no groups; use from_data with rows and groups, or "
            "fit an estimator of fairpca, for example FairPCA(2, alpha=1) for plain PCA."
        )
    if not isinstance(getattr(projection, "moments_", None), GroupMoments):
        raise ValueError(
            f"this {type(projection).__name__} holds no moments: it was loaded from a file, or "
            "fitted to too many features. Use from_data with the rows."
        )
    return projection


def group_options(fair: FairProjection) -> dict[str, Any]:
    """The parameters that say which groups are compared, and in which units."""
    names = ("standardize", "min_group_size", "small_groups")
    return {name: getattr(fair, name) for name in names}
