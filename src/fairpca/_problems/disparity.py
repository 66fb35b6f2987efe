"""How unequal group errors are, as one number."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairpca._typing import Array, Mask


def disparity(errors: Array, compared: Mask, harmed: int, privileged: int) -> Any:
    """The difference between group errors, over the last axis of ``errors``.

    With two groups it is signed: the error of the harmed group minus that of the privileged one.
    With more it is the largest error minus the smallest.

    Parameters
    ----------
    errors : ndarray of shape (..., k)
    compared : ndarray of bool, shape (k,)
        Which groups count.
    harmed, privileged : int
        The groups that PCA treats worst and best.

    Returns
    -------
    float or ndarray of shape (...)

    Examples
    --------
    >>> import numpy as np
    >>> errors = np.array([1.0, 4.0, 2.0])
    >>> float(disparity(errors, np.array([True, False, True]), harmed=0, privileged=2))
    -1.0
    >>> float(disparity(errors, np.array([True, True, True]), harmed=0, privileged=2))
    3.0
    """
    if np.count_nonzero(compared) == 2:
        return errors[..., harmed] - errors[..., privileged]
    return np.ptp(errors[..., compared], axis=-1)
