"""Which of PCA's own components to keep (MOFPCA)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Rule = Literal["balanced", "weighted", "least_error", "fairest"]


@dataclass(frozen=True)
class SubsetProblem:
    """Trade the overall error R against ``F = D^2``, and pick one point of the Pareto front.

    Parameters
    ----------
    selection : {"balanced", "weighted", "least_error", "fairest"}
        The rule that picks the point.
    solver : {"auto", "exact", "spea2"}
        ``"exact"`` looks at every subset, ``"spea2"`` searches as the authors do, and ``"auto"`` is
        exact where that is possible.
    random_state : int, RandomState or None
        Seed of the search.
    """

    selection: Rule = "balanced"
    solver: Literal["auto", "exact", "spea2"] = "auto"
    random_state: Any = None
