"""Several sensitive columns crossed into one: a group for each combination that occurs.

A cell is such a combination, the tuple of its labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from sys import maxsize
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca._typing import Codes

Coded = tuple[NDArray[np.integer[Any]], Sequence[Any] | NDArray[Any]]


def cross_cells(columns: Sequence[Coded]) -> tuple[Codes, list[tuple[Any, ...]]]:
    """Codes of the cells that occur, and the cells.

    Parameters
    ----------
    columns : sequence of (codes, labels)
        Row i of a column has the label ``labels[codes[i]]``.

    Examples
    --------
    >>> import numpy as np
    >>> sex = np.array([0, 0, 1, 0]), ["female", "male"]
    >>> over_40 = np.array([1, 0, 1, 1]), [False, True]
    >>> codes, cells = cross_cells([sex, over_40])
    >>> cells
    [('female', False), ('female', True), ('male', True)]
    >>> codes
    array([1, 0, 2, 1])
    """
    shape = tuple(len(labels) for _, labels in columns)
    cells = np.ravel_multi_index(tuple(codes for codes, _ in columns), shape)
    codes, found = encode_integers(cells)
    plain = [np.asarray(labels, object).tolist() for _, labels in columns]
    parts = zip(*(part.tolist() for part in np.unravel_index(found, shape)), strict=True)
    named = [tuple(label[i] for label, i in zip(plain, cell, strict=True)) for cell in parts]
    return codes, named


def encode_integers(values: NDArray[Any]) -> tuple[Codes, NDArray[Any]]:
    """Codes of integers, and the distinct ones, sorted.

    By counting, not sorting, where they lie in a small range, as they mostly do.
    """
    if len(values) == 0:
        return np.empty(0, np.intp), values
    lowest, highest = int(values.min()), int(values.max())
    if highest - lowest > max(1024, len(values)) or highest > maxsize:
        labels, codes = np.unique(values, return_inverse=True)
        return codes.astype(np.intp), labels
    offsets = values.astype(np.intp) - lowest
    present = np.bincount(offsets, minlength=highest - lowest + 1).nonzero()[0]
    labels = (present + lowest).astype(values.dtype)
    if len(present) == highest - lowest + 1:
        return offsets, labels
    return np.searchsorted(present, offsets), labels


def cell_text(cell: Any, names: Sequence[str] | None = None) -> str:
    """The labels of a cell joined by " & ", or a label that is no cell as text.

    Labels that are not strings are preceded by the name of their column.

    Examples
    --------
    >>> cell_text(("female", True), ["sex", "over_40"])
    'female & over_40=True'
    """
    if not isinstance(cell, tuple):
        return str(cell)
    return " & ".join(
        str(label) if names is None or isinstance(label, str) else f"{names[j]}={label}"
        for j, label in enumerate(cell)
    )


def name_cells(cells: Sequence[Any], names: Sequence[str] | None) -> list[str]:
    """The text of each cell; refuses two cells with the same text."""
    texts = [cell_text(cell, names) for cell in cells]
    twice = next((text for text, times in Counter(texts).items() if times > 1), None)
    if twice is not None:
        raise ValueError(
            f"two intersections of the columns of sensitive_features would both be called "
            f"{twice!r}; rename labels so that they do not contain ' & '."
        )
    return texts
