"""Several sensitive columns crossed into one: the groups at their intersections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.intp]
Coded = tuple[NDArray[np.integer[Any]], Sequence[Any] | NDArray[Any]]


def cross_labels(
    columns: Sequence[Coded], names: Sequence[str] | None = None
) -> tuple[Codes, list[str]]:
    """Codes and labels of the intersections that occur.

    Parameters
    ----------
    columns : sequence of (codes, labels)
        Row i of a column has the label ``labels[codes[i]]``.
    names : sequence of str, optional
        Names of the columns.

    Returns
    -------
    codes : ndarray of shape (n,)
    labels : list of str
        Sorted. The columns' labels joined by " & ", in the order of the columns; labels that are
        not strings are preceded by the name of their column, as in "female & over_40=True".

    Examples
    --------
    >>> import numpy as np
    >>> sex = np.array([0, 0, 1, 0]), np.array(["female", "male"])
    >>> over_40 = np.array([1, 0, 1, 1]), np.array([False, True])
    >>> codes, labels = cross_labels([sex, over_40], ["sex", "over_40"])
    >>> labels
    ['female & over_40=False', 'female & over_40=True', 'male & over_40=True']
    >>> codes
    array([1, 0, 2, 1])
    """
    codes, cells = cross_cells(columns)
    texts = name_cells(cells, names)
    ordered = sorted(texts)
    position = {label: code for code, label in enumerate(ordered)}
    return np.array([position[label] for label in texts], np.intp)[codes], ordered


def cross_cells(
    columns: Sequence[Coded],
) -> tuple[Codes, list[tuple[Any, ...]]]:
    """Codes of the intersections that occur, and for each the label of every column."""
    shape = tuple(len(labels) for _, labels in columns)
    cells = np.ravel_multi_index(tuple(codes for codes, _ in columns), shape)
    found, codes = np.unique(cells, return_inverse=True)
    plain = [np.asarray(labels, object).tolist() for _, labels in columns]
    parts = zip(*(part.tolist() for part in np.unravel_index(found, shape)), strict=True)
    named = [tuple(label[i] for label, i in zip(plain, cell, strict=True)) for cell in parts]
    return codes.astype(np.intp), named


def cell_text(cell: Any, names: Sequence[str] | None = None) -> str:
    """What an intersection is called; a label that is none as it is."""
    if not isinstance(cell, tuple):
        return str(cell)
    return " & ".join(
        str(label) if names is None or isinstance(label, str) else f"{names[j]}={label}"
        for j, label in enumerate(cell)
    )


def name_cells(cells: Sequence[Any], names: Sequence[str] | None) -> list[str]:
    """The label of each intersection; refuses two that would have the same."""
    texts = [cell_text(cell, names) for cell in cells]
    twice = next((text for text, times in Counter(texts).items() if times > 1), None)
    if twice is not None:
        raise ValueError(
            f"two intersections of the columns of sensitive_features would both be called "
            f"{twice!r}; rename labels so that they do not contain ' & '."
        )
    return texts
