"""Tolerances below which figures count as zero. All of them follow from three numbers.

=====================  =====================================================================
number                 meaning
=====================  =====================================================================
``EPS``                machine epsilon
``tol``                the user's: how far from the best an answer may be, as a share of what is
                       minimised; a parameter of the estimators, by default ``1e-6``
the problem's noise    ``arithmetic_noise(d)`` and ``moment_noise(traces)``, below
=====================  =====================================================================
"""

import numpy as np

from fairpca._typing import Array, Mask

EPS = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)  # takes the place of a zero divisor
ROOT_EPS = float(np.sqrt(EPS))  # beside 1, squares of smaller numbers vanish
SAFE_TO_SQUARE = 1e150  # squares of larger numbers, summed up, may overflow

ROUNDED = 64 * EPS  # numbers that differ by less than this share of their size are equal
NEGLIGIBLE = 1e-9  # smaller shares of PCA's largest error, or of a line of weights, are nothing
KEPT = 8.0  # limits are kept to this many times the rounding; bases differ by twice as much
MEAN_NOISE = 4096 * EPS  # rounding of a mean, or of the largest trace, as sums over many rows
NO_VARIATION = 1e-20  # smaller shares of a variance are rounding, squared


def arithmetic_noise(d: int) -> float:
    """Rounding of sums over d x d matrices, relative to the norm of the matrices."""
    return 2.0 * EPS * max(1.0, float(np.sqrt(d)) / 4)


def moment_noise(traces: Array) -> float:
    """Errors below this count as zero: the second moments are not known more exactly."""
    return MEAN_NOISE * float(traces.max())


def parity_tolerance(pca_errors: Array, traces: Array) -> float:
    """Groups whose errors differ by no more than this are treated alike."""
    return max(NEGLIGIBLE * float(pca_errors.max()), moment_noise(traces))


def varying_groups(traces: Array) -> Mask:
    """The groups that vary; rows that are all at the mean differ from it by rounding only."""
    return np.asarray(traces > NO_VARIATION * traces.max(initial=0.0))
