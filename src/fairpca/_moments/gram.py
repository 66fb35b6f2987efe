"""``G += Z' Z`` without a temporary matrix, on several threads at once.

``G += Z.T @ Z`` makes a new matrix, mirrors its triangle and adds it, which for a wide table takes
an eighth of the time of the product. BLAS adds in place and to one triangle only, but scipy's own
wrapper of it keeps the interpreter locked while it runs. scipy also publishes the addresses of its
BLAS, for Cython; ctypes calls them with the interpreter unlocked.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_blas

from fairpca._typing import Array

_ONE = ctypes.c_double(1.0)


def _dsyrk() -> Callable[..., None] | None:
    """BLAS's dsyrk, or None where scipy publishes one with other integers than C's int."""
    capsule: Any = cython_blas.__pyx_capi__["dsyrk"]
    name, address = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.argtypes, name.restype = [ctypes.py_object], ctypes.c_char_p
    address.argtypes, address.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    signature = name(capsule)
    if signature.replace(b"__pyx_t_5scipy_6linalg_11cython_blas_d", b"double") != (
        b"void (char *, char *, int *, int *, double *, double *, int *, double *, double *, int *)"
    ):
        return None
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 10)(address(capsule, signature))


_dsyrk_in_place = _dsyrk()


def add_gram(G: Array, Z: Array) -> None:
    """Add ``Z' Z`` to the lower triangle of G, which must be C-contiguous.

    Consecutive rows of a C-ordered array, or of one in Fortran order, are used where they are. What
    becomes of the upper triangle is left open: call :func:`mirror` in the end.
    """
    m, d = Z.shape
    row, column = (step // Z.itemsize for step in Z.strides)
    by_rows, by_columns = column == 1 and row >= d, row == 1 and column >= m
    if _dsyrk_in_place is None or not (by_rows or by_columns):
        G += Z.T @ Z
        return
    leading = ctypes.c_int(row if by_rows else column)
    n_rows, n_columns = ctypes.c_int(m), ctypes.c_int(d)
    at = ctypes.byref
    # In Fortran's eyes rows are columns: our Z is its transpose, our lower triangle its upper one.
    _dsyrk_in_place(
        b"U", b"N" if by_rows else b"T", at(n_columns), at(n_rows), at(_ONE), Z.ctypes.data,
        at(leading), at(_ONE), G.ctypes.data, at(n_columns),
    )  # fmt: skip


def mirror(G: Array) -> None:
    """Copy the lower triangle of every matrix in G, of shape (k, d, d), to its upper one."""
    np.copyto(G, G.transpose(0, 2, 1), where=_above_diagonal(G.shape[1]))


@lru_cache(maxsize=1)
def _above_diagonal(d: int) -> NDArray[np.bool_]:
    return np.triu(np.ones((d, d), dtype=bool), 1)
