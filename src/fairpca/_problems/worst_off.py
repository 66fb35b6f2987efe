"""The worst-off group made as well off as possible.

All criteria minimise ``max_g (R_g - b_g)``. The *loss* of Samadi et al. has
``b_g = min_V R_g(V)``, the error under a projection of the group's own. The *error* has
``b_g = 0``. To make the least explained *variance* as large as possible, take ``b_g = tr C_g``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Criterion = Literal["loss", "error", "variance"]


@dataclass(frozen=True)
class WorstOffProblem:
    """Minimise the largest loss or error of a group, or maximise the least variance it keeps.

    Parameters
    ----------
    criterion : {"loss", "error", "variance"}
    solver : {"exact", "multiplicative_weights"}
        The latter is the iteration of Samadi et al. as published.
    eta, n_iter : float, int
        Step size and number of rounds of that iteration.
    """

    criterion: Criterion = "loss"
    solver: Literal["exact", "multiplicative_weights"] = "exact"
    eta: float = 1.0
    n_iter: int = 10
