"""Eigenvalues and eigenvectors by LAPACK; where one driver fails, by another."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from fairpca._typing import Array

_FULL_DRIVER_UP_TO = 128  # features up to which all eigenvectors take no longer than some


def top_eigenvectors(M: Array, r: int) -> tuple[Array, Array]:
    """The r largest eigenvalues, descending, and their eigenvectors as columns."""
    d = len(M)
    if d > _FULL_DRIVER_UP_TO and r <= d // 2:
        values, vectors = eigh(M, subset_by_index=[d - r, d - 1], check_finite=False)
        if vectors.shape[1] == r:  # LAPACK may find fewer inside a cluster of equal eigenvalues
            return values[::-1], np.ascontiguousarray(vectors[:, ::-1])  # BLAS wants rising strides
    values, vectors = descending(M)
    return values[:r], vectors[:, :r]


def values_within(M: Array, basis: Array) -> Array:
    """Eigenvalues of M within the span of orthonormal columns, ascending."""
    return np.asarray(np.linalg.eigvalsh(basis.T @ M @ basis), np.float64)


def descending(M: Array) -> tuple[Array, Array]:
    """All eigenvalues, largest first, and eigenvectors."""
    values, vectors = eigen(M)
    return values[::-1], np.ascontiguousarray(vectors[:, ::-1])  # BLAS wants rising strides


def eigen(M: Array) -> tuple[Array, Array]:
    """All eigenvalues, ascending, and eigenvectors of a matrix or of a stack of matrices."""
    try:
        values, vectors = np.linalg.eigh(M)
    except np.linalg.LinAlgError:
        if M.ndim > 2:
            each = [eigen(one) for one in M]
            return np.array([v for v, _ in each]), np.array([U for _, U in each])
        try:
            values, vectors = eigh(M, driver="ev")
        except (np.linalg.LinAlgError, ValueError) as error:
            raise ArithmeticError(
                f"LAPACK cannot decompose a matrix of the groups' second moments (largest entry "
                f"{np.abs(M).max():.3g}). Standardise the features first, for example with "
                "StandardScaler."
            ) from error
    return values, vectors
