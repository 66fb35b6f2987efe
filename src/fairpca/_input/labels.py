"""Group labels of any kind and library, turned into codes.

``groups`` is what a user passes, ``labels`` are the distinct labels in it, sorted, and ``codes``
say which of them each row has.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from sys import maxsize
from typing import Any, NamedTuple, NoReturn

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from fairpca._input.checks import refuse_continuous, refuse_ids
from fairpca._input.device import is_dask, on_host
from fairpca._input.rows import Rows, dense_blocks
from fairpca._typing import Codes, Labels, Mask
from fairpca.exceptions import warn

Coded = tuple[NDArray[np.integer[Any]], Sequence[Any] | NDArray[Any]]

_MOST_NUMBERED = 20  # more different whole numbers count as classes only on request
_GROUPS = "sensitive_features"  # the name of the labels in messages, unless they are outcomes


class CodedLabels(NamedTuple):
    """Labels that are coded already: row i has the label ``labels[codes[i]]``."""

    codes: NDArray[np.integer[Any]]
    labels: Sequence[Any]


class Groups(NamedTuple):
    """Groups as the moments want them: labels are sorted, and each of them has a row.

    Several columns, here called attributes, are crossed. ``margins`` then names the group of each
    label in each attribute, such as ``{"f & old": {"sex": "sex = f", "age": "age = old"}}``.
    """

    codes: Codes
    labels: Labels
    margins: dict[Any, dict[str, str]]

    def side_by_side(self) -> tuple[Groups, int]:
        """The groups of rows that are repeated once for each attribute, and how many these are."""
        names = [self.margins[label] for label in self.labels.tolist()]
        flat = [own[attribute] for attribute in names[0] for own in names]
        m = len(names[0])
        codes = np.concatenate([self.codes + a * len(names) for a in range(m)])
        return Groups(*_encode_coded(CodedLabels(codes, flat), _GROUPS), {}), m


def encode_groups(groups: Any, n_rows: int) -> Groups:
    """Codes 0..k-1 and the sorted labels; with several columns, each combination is a label."""
    if isinstance(groups, Groups):
        return groups
    columns, names = _label_columns(groups)
    encoded = [_encode_column(column, n_rows) for column in columns]
    if len(encoded) == 1:
        return Groups(*encoded[0], {})
    codes, cells = cross_cells(encoded)
    texts = [cell_text(cell, names) for cell in cells]
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        problem = f"two intersections of sensitive_features would both be called {twice!r}"
        raise ValueError(f"{problem}; pass labels of one type in each column.")
    names = names or [f"column {j}" for j in range(len(columns))]
    margins = dict(zip(texts, (margins_of(cell, names) for cell in cells), strict=True))
    return Groups(*_encode_coded(CodedLabels(codes, texts), _GROUPS), margins)


def margins_of(cell: tuple[Any, ...], names: Sequence[str]) -> dict[str, str]:
    """The group of a cell in each attribute."""
    return {str(name): f"{name} = {label}" for name, label in zip(names, cell, strict=True)}


def encode_few_groups(
    groups: Any, rows: Rows, least: int | None = 1, crossing: bool = True
) -> Groups:
    """Groups as codes; refuses what are no groups, and warns of columns that reveal them.

    Groups of fewer than ``least`` rows are not compared. None is for a block, too few rows to tell.
    Without crossing, the groups are those of each column.
    """
    coded = encode_groups(groups, rows.n_rows)
    if least is not None:
        refuse_unlike_groups(groups, coded, least, crossing)
    if rows.feature_names is not None:
        if getattr(groups, "ndim", 0) == 1:
            groups = coded
        warn_of_group_columns(rows, groups)
    return coded


def refuse_unlike_groups(groups: Any, coded: Groups, least: int, crossing: bool) -> None:
    """Refuse labels that look continuous, or like the names of rows."""
    compared: list[Groups] = [coded]
    if coded.margins and not crossing:
        columns = []
        if not isinstance(groups, Groups):
            columns = _label_columns(groups)[0]
        compared = [encode_groups(column, len(coded.codes)) for column in columns]
    for own in compared:
        counts = np.bincount(own.codes)
        refuse_continuous(own.labels, counts, least)
        refuse_ids(own.labels, counts, least)


def warn_of_group_columns(rows: Rows, groups: Any) -> None:
    """Warn that a column of a data frame is the group, or one of the columns that were crossed."""
    names = rows.feature_names or []
    n = rows.n_rows
    columns = [groups]
    if not isinstance(groups, Groups):
        columns = _label_columns(groups)[0]
    what = "one of the sensitive features"
    if len(columns) == 1:
        what = "the group"
    for codes, labels, _ in [encode_groups(column, n) for column in columns]:
        k = len(labels)
        if k < 2 or n < 2 * k:  # where most groups have one row, any column tells them apart
            continue
        first = np.unique(codes, return_index=True)[1]  # a row of each group
        values = np.vstack([rows.block(i, i + 1) for i in first.tolist()])
        same = np.array([len(set(column)) == k for column in values.T.tolist()])
        for place, block in dense_blocks(rows):
            same &= (block == values[codes[place]]).all(axis=0)
            if not same.any():
                break
        for name in [names[j] for j in np.flatnonzero(same)]:
            warn(
                f"column {name!r} of X tells {what} of every row, so that the components may "
                f"describe the group itself; leave it out, for example X.drop(columns={name!r}).",
                UserWarning,
            )


def _encode_column(
    values: Labels | CodedLabels, n_rows: int, name: str = _GROUPS
) -> tuple[Codes, Labels]:
    """Codes and sorted labels of a column; by a dictionary, ten times as fast as sorting texts."""
    length = len(getattr(values, "codes", values))
    if length != n_rows:
        lengths = f"{name} has {length} labels but X has {n_rows} rows"
        raise ValueError(f"{lengths}; pass exactly one label per row of X.")
    if isinstance(values, CodedLabels):
        return _encode_coded(values, name)
    if values.dtype.kind in "biu":
        return _encode_integers(values)
    items = values.tolist()
    if values.dtype.kind in "mM":
        items = list(values)  # dates stay dates
    seen = list(dict.fromkeys(items))
    if any(map(is_missing, seen)):
        _refuse_missing_labels(np.fromiter(map(is_missing, items), bool, len(items)), name)
    ordered = sort_labels([_plain(label) for label in seen])
    position = {label: code for code, label in enumerate(ordered)}
    codes = np.fromiter(map(position.__getitem__, items), np.intp, len(items))
    return codes, label_vector(ordered)


def _encode_coded(values: CodedLabels, name: str) -> tuple[Codes, Labels]:
    """Codes and sorted labels, where there may be duplicates and labels that no row has."""
    present = np.bincount(values.codes, minlength=len(values.labels)) > 0
    seen = [label for label, here in zip(values.labels, present, strict=True) if here]
    if any(map(is_missing, seen)):
        missing = np.array([is_missing(label) for label in values.labels])
        _refuse_missing_labels(missing[values.codes], name)
    ordered = sort_labels([_plain(label) for label in dict.fromkeys(seen)])
    position = {label: code for code, label in enumerate(ordered)}
    codes = np.array([position.get(label, 0) for label in values.labels], np.intp)
    return codes[values.codes], label_vector(ordered)


def _encode_integers(values: NDArray[Any]) -> tuple[Codes, NDArray[Any]]:
    """Codes and distinct values; by counting, not sorting, if they lie in a small range."""
    if len(values) == 0:
        return values.astype(np.intp), values
    lowest = int(values.min())
    highest = int(values.max())
    if highest - lowest > max(1024, len(values)) or highest > maxsize:
        labels, codes = np.unique(values, return_inverse=True)
        return codes.astype(np.intp), labels
    offsets = values.astype(np.intp) - lowest
    present = np.bincount(offsets) > 0
    labels = (np.flatnonzero(present) + lowest).astype(values.dtype)
    if not present.all():
        offsets = (np.cumsum(present) - 1)[offsets]
    return offsets, labels


def _label_columns(groups: Any, name: str = _GROUPS) -> tuple[list[Any], list[str] | None]:
    """Labels as 1-D arrays: the columns of a table, with names if it has any, or a single one.

    Missing labels are refused where the library marks them.
    """
    names = None
    if isinstance(groups, CodedLabels):
        return [groups], None
    if isinstance(groups, dict):  # the columns of a batch
        return list(groups.values()), list(groups)
    if isinstance(groups, (list, tuple)) and groups and isinstance(groups[0], (list, tuple)):
        groups = np.asarray(groups)
    elif not isinstance(groups, (np.ndarray, list)):
        native = on_host(groups)
        groups = nw.from_native(native, eager_only=True, allow_series=True, pass_through=True)
    columns: list[Any] = [groups]
    if isinstance(groups, nw.DataFrame):
        columns = [groups.get_column(column) for column in groups.columns]
        names = groups.columns
    elif isinstance(groups, np.ndarray) and groups.ndim == 2:
        columns = list(groups.T)
    if not columns:
        raise ValueError(f"{name} is a table without columns; pass one label per row.")
    arrays = []
    for column in columns:
        if np.ma.is_masked(column):
            _refuse_missing_labels(np.ma.getmaskarray(column), name)
        if isinstance(column, nw.Series):
            if column.is_null().any():
                _refuse_missing_labels(column.is_null().to_numpy(), name)
            values = column.to_numpy()
        else:
            values = np.asarray(column)
            if isinstance(column, (list, tuple)) and values.ndim == 1:
                values = label_vector(column)  # numpy would turn 1 and "one" into two strings
        if values.ndim == 0:
            example = "frame['outcome']"
            if name == _GROUPS:
                example = "frame['sex']"
            problem = f"{name}={column!r} is not a column of labels"
            raise TypeError(f"{problem}; pass one label per row, for example {name}={example}.")
        if values.ndim != 1:
            crossed = ", or a 2-D array or data frame to cross its columns" * (name == _GROUPS)
            problem = f"{name} has shape {values.shape}"
            raise ValueError(f"{problem}; pass a 1-D array with one label per row{crossed}.")
        if values.dtype.kind == "c":
            raise TypeError(f"{name} is complex; pass strings, numbers or booleans.")
        arrays.append(values)
    return arrays, names


def _refuse_missing_labels(missing: Mask, name: str) -> NoReturn:
    rows = np.flatnonzero(missing)
    known = "X[known], y[known], groups[known]"
    if name == _GROUPS:
        known = "X[known], groups[known]"
    problem = f"{name} has {len(rows)} missing labels, the first in row {rows[0]}"
    raise ValueError(f"{problem}; drop them ({known}), or give them a label such as 'unknown'.")


def is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas.NA is neither equal to itself nor unequal
        return True


def _plain(label: Any) -> Any:
    """A label of Python in place of an equal one of numpy."""
    if isinstance(label, np.str_ | np.bool_ | np.number):
        return label.item()
    return label


def sort_labels(labels: Sequence[Any]) -> list[Any]:
    """Sorted where the labels can be compared, else by type and text; the order never varies."""
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))


def union(some: Labels, more: Labels) -> Labels:
    """The sorted labels of both; refuses pairs such as 1 and '1', which differ only by type."""
    if some.tolist() == more.tolist():
        return some
    labels = list(dict.fromkeys([*some.tolist(), *more.tolist()]))
    seen: dict[str, Any] = {}
    for label in labels:
        twin = seen.setdefault(str(label), label)
        if twin != label:
            problem = f"the labels {twin!r} and {label!r} differ by their type only"
            raise ValueError(f"{problem}; pass labels of one type with every block.")
    return label_vector(sort_labels(labels))


def label_vector(labels: Sequence[Any]) -> Labels:
    """A 1-D array of labels; labels of mixed types stay the objects they are."""
    kinds = {type(label) for label in labels}
    if len(kinds) == 1 and kinds <= {str, bool, int, float}:
        return np.asarray(labels)
    return np.fromiter(labels, dtype=object, count=len(labels))  # np.array splits tuples


# -- several sensitive columns: each combination of labels that occurs is a group, called a cell --


def cross_cells(columns: Sequence[Coded]) -> tuple[Codes, list[tuple[Any, ...]]]:
    """Codes of the cells that occur, and the cells; columns are given as codes and labels."""
    codes, places = cross_codes([codes for codes, _ in columns])
    parts = [
        np.asarray(labels, object)[at] for (_, labels), at in zip(columns, places, strict=True)
    ]
    return codes, list(zip(*(part.tolist() for part in parts), strict=True))


def cross_codes(columns: Sequence[NDArray[np.integer[Any]]]) -> tuple[Codes, tuple[Codes, ...]]:
    """Codes of the combinations of codes that occur, and the codes that each of them combines."""
    shape = tuple(int(codes.max(initial=0)) + 1 for codes in columns)
    codes, present = _encode_integers(np.ravel_multi_index(tuple(columns), shape))
    return codes, np.unravel_index(present, shape)


def cell_text(cell: Any, names: Sequence[str] | None) -> str:
    """The labels of a cell, say "female & over_40=True", or a label that is no cell as text.

    An & within a label is doubled, so that no two cells have the same text.
    """
    if not isinstance(cell, tuple):
        return str(cell)
    texts = list(map(str, cell))
    for j, label in enumerate(cell):
        if names is not None and not isinstance(label, str):
            texts[j] = f"{names[j]}={label}"
    return " & ".join(re.sub(r"(?<![^ ])(&+)(?![^ ])", r"&\1", text) for text in texts)


# -- outcomes: classes, unless they are numbers ----------------------------------------------------


def encode_outcomes(outcomes: Any, n_rows: int) -> tuple[Codes, Labels]:
    """Codes and sorted labels of the classes in y, a column; numbers with fractions are refused."""
    if isinstance(outcomes, Groups | CodedLabels):
        codes, labels, _ = encode_groups(outcomes, n_rows)
        return codes, labels
    (column, *more), _ = _label_columns(outcomes, "y")
    if more:
        shape = len(column), 1 + len(more)
        raise ValueError(f"y has shape {shape}; pass a 1-D array with one label per row.")
    broken = _fractions(column)
    if len(broken) and not np.isnan(broken).any():
        _refuse_fractions(broken[0])
    return _encode_column(column, n_rows, "y")


def holds_fractions(y: Any) -> bool:
    """Whether y is to be taken for numbers: it has fractions, or several columns."""
    if is_dask(y):  # its type decides, so that nothing is computed
        return str(getattr(y, "dtype", "")).startswith("float")
    if isinstance(y, CodedLabels):
        return False
    columns, _ = _label_columns(y, "y")
    return len(columns) > 1 or len(_fractions(columns[0])) > 0


def classes_in(y: Any) -> set[Any]:
    """The different labels in y, where they are in memory."""
    if is_dask(y) or isinstance(y, CodedLabels):
        return set()
    (column, *more), _ = _label_columns(y, "y")
    if more:
        return set()
    return {label for label in set(column.tolist()) if not is_missing(label)}


def refuse_counts(outcomes: Collection[Any], cure: str) -> None:
    """Refuse many different numbers, or numbers as text: they may not be classes."""
    if len(outcomes) <= _MOST_NUMBERED:
        return
    try:
        numbers = sorted(map(float, outcomes))
    except (TypeError, ValueError):
        return
    except OverflowError as error:
        problem = "y holds many different numbers, some too large for float64"
        raise ValueError(f"{problem}; {cure}.") from error
    for number in numbers:
        if not number.is_integer():
            _refuse_fractions(number)
    shown = ", ".join(f"{number:g}" for number in numbers[:4])
    problem = f"y holds many different whole numbers ({shown}, ...), at least {len(numbers)}"
    raise ValueError(f"{problem}, which may be amounts or classes; {cure}.")


def _fractions(values: Labels) -> Labels:
    """The values that are missing or not whole numbers."""
    if values.dtype.kind != "f":
        return values[:0]
    broken: Labels = values[values != np.round(values)]
    return broken


def _refuse_fractions(number: float) -> NoReturn:
    problem = f"y holds numbers that are not classes, such as {number:g}"
    raise ValueError(f"{problem}; pass classes, for example y > threshold.")
