"""The way from one subspace to another."""

from collections.abc import Callable

import numpy as np

from fairpca._typing import Array

_HALVINGS = 60


def last_allowed(first: Array, second: Array, allowed: Callable[[Array], bool]) -> Array:
    """The last basis on the way from one subspace to another that is allowed, by bisection.

    The first one counts as allowed.
    """
    left, _, right = np.linalg.svd(second.T @ first)
    second = second @ left @ right  # as close to the first basis as its span allows
    best = first
    low = 0.0
    high = 1.0
    for _ in range(_HALVINGS):
        share = 0.5 * (low + high)
        basis = np.linalg.qr((1.0 - share) * first + share * second)[0]
        if allowed(basis):
            best = basis
            low = share
        else:
            high = share
    return best
