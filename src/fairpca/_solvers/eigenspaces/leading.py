"""Leading eigenvectors for folds, found in single precision.

A fold asks for an eigenspace of its own matrix and for nothing else: no proof, and no more digits
than the errors of held-out rows can use. LAPACK finds leading eigenvectors two to three times as
fast in single precision. They are off by about ``eps |M|`` over the distance between eigenvalues,
so they are used where ``eps |M|`` is small beside the smallest eigenvalue asked for. Orthonormal
to double precision, they make the errors of held-out rows exact for a subspace that is a little
off: these errors move by less than a millionth.
"""

import numpy as np
from scipy.linalg import eigh

from fairpca._moments.operand import FEW_FEATURES
from fairpca._solvers.eigenspaces.dense import top_eigenvectors
from fairpca._typing import Array

_UP_TO = 4  # beyond a quarter of the vectors, all of them in double precision take no longer
_ROUNDING = 1e-3  # largest rounding of single precision beside the smallest eigenvalue asked for


def leading_vectors(M: Array, rank: int) -> Array:
    """An orthonormal basis of the leading eigenspace of a symmetric matrix."""
    if len(M) > FEW_FEATURES and rank <= len(M) // _UP_TO:
        basis = _in_single_precision(M, rank)
        if basis is not None:
            return basis
    return top_eigenvectors(M, rank)[1]


def _in_single_precision(M: Array, rank: int) -> Array | None:
    """The basis from single precision; None where that is not precise enough."""
    size = float(np.linalg.norm(M))
    if not size > 0:
        return None
    d = len(M)
    single = (M / size).astype(np.float32)  # numbers of any size are within its range
    values, vectors = eigh(single, subset_by_index=[d - rank, d - 1], check_finite=False)
    found_all = vectors.shape[1] == rank  # LAPACK may find fewer inside a cluster
    if not found_all or np.finfo(np.float32).eps > _ROUNDING * abs(float(values[0])):
        return None
    return np.asarray(np.linalg.qr(vectors.astype(np.float64))[0])
