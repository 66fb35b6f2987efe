"""Several sensitive columns crossed into one: the groups at their intersections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.intp]


def cross_labels(
    columns: Sequence[tuple[Codes, NDArray[Any]]], names: Sequence[str] | None = None
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
    shape = tuple(len(labels) for _, labels in columns)
    cells = np.ravel_multi_index(tuple(codes for codes, _ in columns), shape)
    found, codes = np.unique(cells, return_inverse=True)
    texts = [_texts(labels, names[j] if names else None) for j, (_, labels) in enumerate(columns)]
    parts = zip(*np.unravel_index(found, shape), strict=True)
    joined = [" & ".join(text[i] for text, i in zip(texts, cell, strict=True)) for cell in parts]
    ordered = sorted(set(joined))
    if len(ordered) < len(joined):
        twice = next(label for label in ordered if joined.count(label) > 1)
        raise ValueError(
            f"two intersections of the columns of sensitive_features would both be called "
            f"{twice!r}; rename labels so that they do not contain ' & '."
        )
    position = {label: code for code, label in enumerate(ordered)}
    return np.array([position[label] for label in joined], np.intp)[codes], ordered


def _texts(labels: NDArray[Any], name: str | None) -> list[str]:
    return [
        str(label) if name is None or isinstance(label, str) else f"{name}={label}"
        for label in labels.tolist()
    ]
