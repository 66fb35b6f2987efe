"""Eigenvalues and eigenvectors of one symmetric matrix, by LAPACK: all, or the leading ones.

Folds need leading vectors and nothing else: no proof, and no more digits than the errors of
held-out rows can use. LAPACK finds them two to three times as fast in single precision. They are
off by about ``eps |M|`` over the distance between eigenvalues, so they are used where ``eps |M|``
is small beside the smallest eigenvalue asked for. Orthonormal to double precision, they make the
errors of held-out rows exact for a subspace that is a little off: these errors move by less than a
millionth.
"""

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dpotrf

from fairpca._moments.operand import FEW_FEATURES
from fairpca._moments.tolerances import EPS, NEGLIGIBLE
from fairpca._typing import Array

_SUBSET_UP_TO = 10  # LAPACK finds all eigenvectors sooner than more than a tenth of them
_SINGLE_UP_TO = 4  # in single precision, sooner than more than a quarter of them
_ROUNDING = 1e-3  # largest rounding of single precision beside the smallest eigenvalue asked for


def is_top(M: Array, basis: Array, values: Array, within: float = 4 * NEGLIGIBLE) -> bool:
    """Whether an invariant subspace of M is the top one, up to a share of the error.

    ``values`` are the eigenvalues of M within it. Its residual must be small beside the norm of M.

    The subspace is the top one if M has no eigenvalue above the least of these once they are
    moved out of the way: if ``2 |M| U U' + least - M`` is positive definite. Cholesky decides that
    at a tenth of the cost of a decomposition.
    """
    size = float(np.linalg.norm(M))
    lowest = values.min()
    error = np.trace(M) - values.sum()
    margin = max(within * abs(lowest), within * error, 4 * EPS * len(M) * size)
    shifted = 2 * size * basis @ basis.T
    shifted -= M
    shifted.flat[:: len(M) + 1] += lowest + margin
    failed_at = dpotrf(shifted.T, lower=1, clean=0, overwrite_a=1)[1]  # twice as fast as numpy
    return bool(failed_at == 0)


def values_within(M: Array, basis: Array) -> Array:
    """Eigenvalues of M within the span of orthonormal columns, ascending."""
    return np.asarray(np.linalg.eigvalsh(basis.T @ M @ basis), np.float64)


def top_eigenvectors(M: Array, r: int) -> tuple[Array, Array]:
    """The r largest eigenvalues, descending, and their eigenvectors as columns."""
    d = len(M)
    if d > FEW_FEATURES and r <= d // _SUBSET_UP_TO:
        values, vectors = eigh(M, subset_by_index=[d - r, d - 1], check_finite=False)
        if vectors.shape[1] == r:  # LAPACK may find fewer inside a cluster of equal eigenvalues
            return values[::-1], np.ascontiguousarray(vectors[:, ::-1])  # BLAS wants rising strides
    values, vectors = eigen(M)
    return values[: -r - 1 : -1], np.ascontiguousarray(vectors[:, : -r - 1 : -1])


def descending(M: Array) -> tuple[Array, Array]:
    """All eigenvalues, largest first, and eigenvectors."""
    values, vectors = eigen(M)
    return values[::-1], np.ascontiguousarray(vectors[:, ::-1])  # BLAS wants rising strides


def eigen(M: Array) -> tuple[Array, Array]:
    """All eigenvalues, ascending, and eigenvectors; if one LAPACK driver fails, by another."""
    try:
        return np.linalg.eigh(M)
    except np.linalg.LinAlgError:
        try:
            values, vectors = eigh(M, driver="ev")
        except (np.linalg.LinAlgError, ValueError) as error:
            raise ArithmeticError(
                f"LAPACK cannot decompose a matrix of the groups' second moments (largest entry "
                f"{np.abs(M).max():.3g}). Standardise the features first, for example with "
                "StandardScaler."
            ) from error
    return values, vectors


def leading_vectors(M: Array, rank: int) -> Array:
    """An orthonormal basis of the leading eigenspace of a symmetric matrix."""
    if len(M) > FEW_FEATURES and rank <= len(M) // _SINGLE_UP_TO:
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
