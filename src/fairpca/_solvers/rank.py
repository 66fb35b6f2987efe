"""The rank below which no projection keeps a given share of the variance of every group."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from fairpca._moments.operand import Operand
from fairpca._typing import Array

_STEPS = 0.7 ** np.arange(8)


def least_rank(operand: Operand, may_lose: Array) -> int:
    """A lower bound on the number of components with which no group loses more than it may.

    Let ``a_g`` be what group g may lose. A projection that will do has
    ``sum_g w_g R_g(U) / a_g <= 1`` for all weights w of sum one, and one eigendecomposition gives
    the least value of this sum over the projections of each rank. From equal weights they move
    towards the groups that lose too much (multiplicative weights), until none does.
    """
    assert operand.matrices is not None
    varies = operand.traces > 0
    if not varies.any():
        return 1
    matrices = operand.matrices[varies] / may_lose[varies, None, None]
    whole, least = operand.traces[varies] / may_lose[varies], 1
    weights = np.full(len(matrices), 1 / len(matrices))
    for step in _STEPS:
        values, V = np.linalg.eigh(np.tensordot(weights, matrices, axes=1))
        lost = weights @ whole - np.cumsum(values[::-1])[:-1]  # with rank 1, ..., d - 1
        least = max(least, 1 + int(np.count_nonzero(lost > 1 + 1e-9)))
        U = V[:, -least:]
        errors = whole - np.einsum("kij,ij->k", matrices @ U, U)
        if errors.max() <= 1:
            break
        weights = softmax(np.log(weights) + step * errors / max(np.ptp(errors), 1e-9))
    return least
