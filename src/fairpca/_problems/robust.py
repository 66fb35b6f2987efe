"""The least error that can be promised if the groups' moments are only nearly right.

Vu et al. (2022) let the distribution of each group differ from the sample by at most ``eps_g`` (in
the Wasserstein distance of moments). The largest error that group g can then have is

    S_g = (sqrt(R_g) + sqrt(eps_g))^2

and the objective is ``sum_g p_g S_g + lambda |S_A - S_B|``: the overall error and a price on the
disparity, both at their worst. For ``lambda <= min(p_A, p_B)`` neither error is rewarded, so the
optimum is Pareto efficient: on the frontier with non-negative weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairpca._typing import Array


@dataclass(frozen=True)
class RobustProblem:
    """Minimise the robust error of two groups.

    Parameters
    ----------
    radius : float
        ``eps_g = radius / sqrt(n_g)``, in squared units of the data.
    penalty : float
        ``lambda`` as a fraction of the smaller share, from 0 to 1.
    sizes : pair of float
        ``n_g``, the rows of both groups, or their total weight.
    """

    radius: float
    penalty: float
    sizes: tuple[float, float] = (1.0, 1.0)

    def worst(self, errors: Array) -> Array:
        """``S_g``."""
        radii = self.radius / np.sqrt(self.sizes)
        return np.asarray((np.sqrt(np.maximum(errors, 0.0)) + np.sqrt(radii)) ** 2)

    def measure(self, errors: Array, shares: Array) -> float:
        """The objective."""
        return self.side(errors, shares, int(self.worst(errors).argmax()))

    def side(self, errors: Array, shares: Array, worse: int) -> float:
        """The same as if group ``worse`` were the one with the larger ``S_g``."""
        price = self.penalty * float(shares.min())
        weights = shares - price
        weights[worse] += 2 * price
        return float(weights @ self.worst(errors))
