"""One dial from the average group to the worst-off one.

The *welfare* of a projection is the power mean of the variances ``V_g = tr U'C_gU`` that the groups
keep, each group counted once whatever its size::

    E_a(V) = (mean_g V_g^(1-a))^(1/(1-a))

It has the unit of a variance: it is the variance that all groups alike would have to keep for the
same welfare. The *inequality aversion* ``a`` says how much the worse-off groups count.

========  ===============================================================
a         E_a
========  ===============================================================
0         mean variance: group-balanced PCA
1         geometric mean: Nash welfare
infinity  least variance: max-min
========  ===============================================================

``E_a`` is concave and homogeneous, so for all V and V'::

    E_a(V') <= w'V',    w = gradient of E_a at V

and the top-r eigenvalues of ``sum_g w_g C_g`` bound the welfare of every projection.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf

import numpy as np
from scipy.special import softmax

from fairpca._moments.operand import TINY
from fairpca._typing import Array


@dataclass(frozen=True)
class WelfareProblem:
    """Make the welfare of the groups as large as possible.

    Parameters
    ----------
    inequality_aversion : float
        ``a`` above, from 0 to infinity.
    """

    inequality_aversion: float = 1.0

    def measure(self, kept: Array) -> float:
        """``E_a`` of the variances kept.

        Examples
        --------
        >>> import numpy as np
        >>> [round(WelfareProblem(a).measure(np.array([1.0, 4.0])), 3) for a in (0, 1, 2, np.inf)]
        [2.5, 2.0, 1.6, 1.0]
        """
        logs = np.log(np.maximum(kept, TINY))
        power = 1.0 - self.inequality_aversion
        if power == -inf:
            return float(kept.min())
        if power == 0.0:
            return exp(logs.mean())
        most = logs[(power * logs).argmax()]  # the group that counts most
        return exp(most + np.log1p(np.expm1(power * (logs - most)).mean()) / power)

    def portions(self, kept: Array) -> Array:
        """How much each group counts: elasticities of ``E_a``, which add up to one."""
        logs = np.log(np.maximum(kept, TINY))
        return np.asarray(softmax((1.0 - self.inequality_aversion) * logs))

    def gradient(self, kept: Array) -> Array:
        """The weights with which no projection has more welfare than weighted variance."""
        return self.measure(kept) * self.portions(kept) / np.maximum(kept, TINY)
