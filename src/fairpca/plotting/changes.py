"""What an audit's alternative changes for each group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fairpca._typing import Array
from fairpca.plotting._common import COLORS, axes_for, escaped

if TYPE_CHECKING:
    from fairpca import Audit


@dataclass
class ChangesDisplay:
    """Change of each group's error for people not fitted to, with its confidence interval.

    Groups that gain lie to the left of the line, groups that pay to the right of it. An interval
    that crosses the line can be chance. A group with too few rows to be judged has a hollow marker
    and no interval.

    Parameters
    ----------
    groups : sequence of labels
    changes : ndarray of shape (k,)
        As fractions of the error under PCA: -0.1 is 10 % less.
    intervals : ndarray of shape (k, 2)
        NaN for a group that is not judged.
    sizes : sequence of int
        Rows of each group.

    Examples
    --------
    >>> from fairpca import FairPCA, audit
    >>> from fairpca.datasets import load_checkup
    >>> from fairpca.plotting import ChangesDisplay
    >>> people = load_checkup()
    >>> fair = FairPCA(5, standardize=True)
    >>> found = audit(people.data, people.sensitive_features, fair)  # doctest: +SKIP
    >>> ChangesDisplay.from_audit(found)  # doctest: +SKIP
    """

    groups: Sequence[Any]
    changes: Array
    intervals: Array
    sizes: Sequence[int]

    @classmethod
    def from_audit(cls, audit: Audit, *, ax: Any = None) -> Self:
        """Draw what the fair version of an audit changes for each group."""
        unknown = (np.nan, np.nan)
        return cls(
            [group.name for group in audit.groups],
            np.array([group.change_estimate for group in audit.groups]),
            np.array([(group.change or (0.0, *unknown))[1:] for group in audit.groups]),
            [group.n for group in audit.groups],
        ).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or on a new figure; the axes stay in ``ax_``."""
        self.ax_ = ax = axes_for(ax, height=1.2 + 0.6 * len(self.groups))
        ax.axvline(0, color="0.6", lw=1)
        for place, (change, (low, high)) in enumerate(
            zip(100 * self.changes, 100 * self.intervals, strict=True)
        ):
            judged = bool(np.isfinite(low) and np.isfinite(high))
            color = COLORS[0] if change < 0 else COLORS[1]
            ax.plot(change, place, "o", ms=8, color=color, mfc=color if judged else "white")
            said = f"{change:+.1f} %, too few rows"
            if judged:
                ax.plot([low, high], [place, place], color=color, lw=2.5, solid_capstyle="butt")
                said = f"{change:+.1f} % ({low:+.1f} to {high:+.1f})"
            behind = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
            ax.annotate(said, (change, place), (0, 8), textcoords="offset points", ha="center",
                        bbox=behind)  # fmt: skip
        labels = [f"{escaped(g)} ({n:,})" for g, n in zip(self.groups, self.sizes, strict=True)]
        ax.set_yticks(range(len(labels)), labels)
        ax.set_ylim(len(labels) - 0.4, -0.6)
        ax.margins(x=0.25)  # room for the figures
        ax.set_xlabel("change of the error on held-out rows, % of the error under PCA")
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(left=False)
        return self
