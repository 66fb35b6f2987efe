"""Group labels of any kind and library, turned into codes.

``groups`` is what a user passes, ``labels`` are the distinct labels in it, sorted, and ``codes``
say which of them each row has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from sys import maxsize
from typing import Any, NamedTuple, NoReturn

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from fairpca._input.checks import check_group_labels
from fairpca._input.device import on_host
from fairpca._typing import Codes, Labels, Mask

Coded = tuple[NDArray[np.integer[Any]], Sequence[Any] | NDArray[Any]]

_FIRST_ROWS = 10_000
_MOST_NUMBERED = 20  # classes that whole numbers may stand for, unless somebody says that they do
_GROUPS = "sensitive_features"  # what messages call the labels, unless these are outcomes


class CodedLabels(NamedTuple):
    """Groups that are coded already: row i has the label ``labels[codes[i]]``; none is missing."""

    codes: NDArray[np.integer[Any]]
    labels: Sequence[Any]


def encode_outcomes(outcomes: Any, n_rows: int) -> tuple[Codes, Labels]:
    """Codes and sorted labels of the classes in y, a column; numbers with fractions are refused."""
    if isinstance(outcomes, CodedLabels):
        return encode_groups(outcomes, n_rows)
    columns, _ = _label_columns(outcomes)
    values = _label_array(columns[0] if len(columns) == 1 else outcomes, "y")
    if values.dtype.kind == "f":
        broken = values[values != np.round(values)]
        if len(broken) and not np.isnan(broken).any():
            _refuse_fractions(broken[0])
    return _encode_column(values, n_rows, "y")


def holds_fractions(y: Any) -> bool:
    """Whether y is to be taken for numbers: it has fractions, or several columns."""
    if hasattr(y, "dask"):  # not computed for this
        return str(getattr(y, "dtype", "")).startswith("float")
    columns, _ = _label_columns(y)
    values = _label_array(columns[0], "y")
    fractions = values.dtype.kind == "f" and bool((values != np.round(values)).any())
    return len(columns) > 1 or fractions


def first_outcomes(y: Any) -> set[Any]:
    """The different labels in the first rows of y."""
    if hasattr(y, "dask") or isinstance(y, CodedLabels):
        return set()
    columns, _ = _label_columns(y)
    if len(columns) > 1:
        return set()
    labels = _label_array(columns[0], "y")[:_FIRST_ROWS].tolist()
    return {label for label in labels if not _is_missing(label)}


def refuse_counts(outcomes: Collection[Any], cure: str) -> None:
    """Refuse many different numbers: whole ones may be numbers just as well as classes.

    The labels of files may be texts of numbers.
    """
    try:
        numbers = sorted(map(float, outcomes)) if len(outcomes) > _MOST_NUMBERED else []
    except (TypeError, ValueError):
        return
    if not numbers:
        return
    for number in numbers:
        if not number.is_integer():
            _refuse_fractions(number)
    shown = ", ".join(f"{number:g}" for number in numbers[:4])
    raise ValueError(
        f"y holds many different whole numbers ({shown}, ...), at least {len(numbers)}, which are "
        f"not taken for classes unasked; {cure}."
    )


def _refuse_fractions(number: float) -> NoReturn:
    raise ValueError(
        f"y holds numbers that are not classes, such as {number:g}, but outcomes are compared "
        "class by class; pass classes, for example y > threshold."
    )


def encode_groups(groups: Any, n_rows: int) -> tuple[Codes, Labels]:
    """Turn labels of any kind into codes 0..k-1 and the sorted array of distinct labels.

    Several columns are crossed: each combination that occurs is a group.
    """
    if isinstance(groups, CodedLabels):
        _check_one_per_row(groups.codes, n_rows)
        return _sort_codes(groups)
    columns, names = _label_columns(groups)
    if len(columns) == 1:
        return _encode_column(columns[0], n_rows)
    codes, cells = cross_cells([_encode_column(column, n_rows) for column in columns])
    return _sort_codes(CodedLabels(codes, name_cells(cells, names)))


def encode_few_groups(
    groups: Any, n_rows: int, max_groups: int | None = None, min_group_size: int = 1
) -> CodedLabels:
    """Groups as codes; refuses labels that look like a continuous column."""
    codes, labels = encode_groups(groups, n_rows)
    check_group_labels(labels, np.bincount(codes), max_groups, min_group_size)
    return CodedLabels(codes, labels.tolist())


def _encode_column(column: Any, n_rows: int, name: str = _GROUPS) -> tuple[Codes, Labels]:
    values = _label_array(column, name)
    _check_one_per_row(values, n_rows, name)
    if values.dtype.kind in "biu":
        return encode_integers(values)
    return _encode_hashables(values, name)


def _check_one_per_row(values: NDArray[Any], n_rows: int, name: str = _GROUPS) -> None:
    if len(values) != n_rows:
        raise ValueError(
            f"{name} has {len(values)} labels but X has {n_rows} rows; "
            "pass exactly one label per row of X."
        )


def _sort_codes(groups: CodedLabels) -> tuple[Codes, Labels]:
    """Codes of the sorted labels that occur; there may be more labels, and the same one twice."""
    present = np.bincount(groups.codes, minlength=len(groups.labels)) > 0
    ordered = sort_labels(list({v for v, here in zip(groups.labels, present, strict=True) if here}))
    position = {label: code for code, label in enumerate(ordered)}
    codes = np.array([position.get(label, 0) for label in groups.labels], np.intp)
    return codes[groups.codes], label_vector(ordered)


def _label_columns(groups: Any) -> tuple[list[Any], list[str] | None]:
    """The columns of a data frame or 2-D array, with their names; anything else is one column."""
    columns: list[Any]
    names: list[str] | None
    native = groups
    if not isinstance(groups, (np.ndarray, list)):
        groups = on_host(groups)
        native = nw.from_native(groups, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(native, nw.DataFrame):
        columns, names = [native.get_column(name) for name in native.columns], list(native.columns)
    else:
        if isinstance(groups, (list, tuple)) and groups and isinstance(groups[0], (list, tuple)):
            groups = np.asarray(groups)
        if not isinstance(groups, np.ndarray) or groups.ndim != 2:
            return [groups], None
        columns, names = list(groups.T), None
    if not columns:
        raise ValueError(
            "sensitive_features is a table without columns; pass one column of group labels, or "
            "several to compare their intersections."
        )
    return columns, names


def _label_array(groups: Any, name: str) -> Labels:
    """Labels as a 1-D array; missing ones are refused."""
    native = groups
    if np.ma.is_masked(groups):
        _refuse_missing_labels(np.ma.getmaskarray(groups), name)
    if not isinstance(groups, (np.ndarray, list)):
        native = nw.from_native(groups, series_only=True, pass_through=True)
    if isinstance(native, nw.Series):
        if native.is_null().any():
            _refuse_missing_labels(native.is_null().to_numpy(), name)
        values = native.to_numpy()
    else:
        values = np.asarray(groups)
        if isinstance(groups, (list, tuple)) and values.ndim == 1:
            values = label_vector(groups)  # numpy would turn 1 and "one" into two strings
    if values.ndim == 0:
        column = "sex" if name == _GROUPS else "outcome"
        raise TypeError(
            f"{name}={groups!r} is not a column of labels; pass one label per row, for "
            f"example {name}=frame[{column!r}]."
        )
    if values.ndim != 1:
        crossed = name == _GROUPS
        raise ValueError(
            f"{name} has shape {values.shape}; pass a 1-D array with one label per "
            f"row{', or a 2-D array or data frame whose columns are to be crossed' * crossed}."
        )
    if values.dtype.kind == "c":
        raise TypeError(f"{name} is complex; pass strings, numbers or booleans.")
    return values


def _refuse_missing_labels(missing: Mask, name: str) -> NoReturn:
    rows = np.flatnonzero(missing)
    known = "X[known], groups[known]" if name == _GROUPS else "X[known], y[known], groups[known]"
    raise ValueError(
        f"{name} has {len(rows)} missing labels, the first in row {rows[0]}; "
        f"drop these rows ({known}) or give them a label of their own, "
        "such as 'unknown'."
    )


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas.NA is neither equal to itself nor unequal
        return True


def _encode_hashables(values: NDArray[Any], name: str) -> tuple[Codes, Labels]:
    """By a dictionary: for a million strings ten times as fast as sorting."""
    items = list(values) if values.dtype.kind in "mM" else values.tolist()  # dates stay dates
    seen = list(dict.fromkeys(items))
    if any(map(_is_missing, seen)):
        _refuse_missing_labels(np.fromiter(map(_is_missing, items), bool, len(items)), name)
    ordered = sort_labels(seen)
    position = {label: code for code, label in enumerate(ordered)}
    codes = np.fromiter(map(position.__getitem__, items), np.intp, len(items))
    return codes, label_vector(ordered)


def sort_labels(labels: Sequence[Any]) -> list[Any]:
    """Sorted where the labels can be compared, else by type and text; the order never varies."""
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))


def refuse_twin_labels(labels: Sequence[Any]) -> None:
    """Labels that differ by their type only, such as 1 and '1', are meant to be one group."""
    seen: dict[str, Any] = {}
    for label in labels:
        twin = seen.setdefault(str(label), label)
        if twin != label:
            raise ValueError(
                f"the labels {twin!r} and {label!r} differ by their type only and would be two "
                "groups; pass labels of one type with every block."
            )


def label_vector(labels: Sequence[Any]) -> Labels:
    """A 1-D array of labels; labels of mixed types stay the objects they are."""
    kinds = {type(label) for label in labels}
    if len(kinds) == 1 and kinds <= {str, bool, int, float}:
        return np.asarray(labels)
    vector = np.empty(len(labels), dtype=object)
    for i, label in enumerate(labels):  # all at once, numpy would take tuples for rows
        vector[i] = label
    return vector


# -- several sensitive columns: each combination of labels that occurs is a group, called a cell --


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
