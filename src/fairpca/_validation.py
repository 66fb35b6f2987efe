"""Checks of what users pass in, and the wording of the errors they get back.

Every message says what was passed, what is allowed, and the call that fixes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from fairpca._intersections import cross_labels
from fairpca.sources.array_api import on_host

FORGOTTEN_GROUPS = (
    "sensitive_features is missing: {name}.{method} needs one group label per row. "
    "Pass {name}(...).{method}(X, sensitive_features=groups); inside a Pipeline pass "
    "pipeline.fit(X, {step}__sensitive_features=groups), or enable metadata routing with "
    "sklearn.set_config(enable_metadata_routing=True)."
)


class CodedLabels(NamedTuple):
    """Labels that are coded already: row i has the label ``labels[codes[i]]``, none missing."""

    codes: NDArray[np.integer[Any]]
    labels: Sequence[Any]


def name_of(column: int, feature_names: Sequence[str] | None) -> str:
    """How an error message calls a column: by its name where there is one."""
    return f"column {column}" if feature_names is None else f"column {feature_names[column]!r}"


def refuse_unusable_columns(source: str, types: Mapping[str, Any]) -> NoReturn:
    """Columns that are neither numbers nor booleans, with their types, cannot be features."""
    named = [f"{name!r} ({kind})" for name, kind in types.items()]
    raise TypeError(
        f"{source} has columns that are not numbers: {', '.join(named[:5])}"
        f"{' and others' if len(named) > 5 else ''}; drop them or encode them, for "
        "example with sklearn.preprocessing.OneHotEncoder."
    )


def encode_groups(groups: Any, n_rows: int) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Turn labels of any kind into codes 0..k-1 and the sorted array of distinct labels.

    Several columns are crossed: each combination that occurs is a group.
    """
    if isinstance(groups, CodedLabels):
        _check_one_per_row(groups.codes, n_rows)
        return _sort_codes(groups)
    columns, names = _label_columns(groups)
    if len(columns) > 1:
        codes, labels = cross_labels([_encode_column(c, n_rows) for c in columns], names)
        return codes, label_vector(labels)
    return _encode_column(columns[0], n_rows)


def members_of(labels: NDArray[Any], groups: Any, n_rows: int) -> list[NDArray[np.intp]] | None:
    """The rows of each of these labels, or None where there are others."""
    if _compare_at_once(labels, groups):
        members = [(groups == label).nonzero()[0] for label in labels]
        if sum(map(len, members)) == n_rows == len(groups):
            return members
    codes, present = encode_groups(groups, n_rows)
    position = {label: g for g, label in enumerate(labels.tolist())}
    found = [position.get(label, -1) for label in present.tolist()]
    if -1 in found:
        return None
    codes = np.array(found, np.intp)[codes]
    starts = np.cumsum(np.bincount(codes, minlength=len(labels)))[:-1]
    return np.split(np.argsort(codes, kind="stable"), starts)


def _compare_at_once(labels: NDArray[Any], groups: Any) -> bool:
    """Whether a few comparisons of whole arrays tell more quickly than looking up every label."""
    if not isinstance(groups, np.ndarray) or groups.ndim != 1 or len(labels) > 8:
        return False
    kinds = labels.dtype.kind + groups.dtype.kind
    return kinds == "UU" or all(kind in "biu" for kind in kinds)


def _encode_column(column: Any, n_rows: int) -> tuple[NDArray[np.intp], NDArray[Any]]:
    values = _label_array(column)
    _check_one_per_row(values, n_rows)
    if values.dtype == bool or np.issubdtype(values.dtype, np.integer):
        return _encode_integers(values)
    return _encode_hashables(values)


def _check_one_per_row(values: NDArray[Any], n_rows: int) -> None:
    if len(values) != n_rows:
        raise ValueError(
            f"sensitive_features has {len(values)} labels but X has {n_rows} rows; "
            "pass exactly one label per row of X."
        )


def _sort_codes(groups: CodedLabels) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Codes for the sorted labels that occur; dictionaries may hold more, and repeat themselves."""
    present = np.bincount(groups.codes, minlength=len(groups.labels)) > 0
    ordered = sort_labels(list({v for v, here in zip(groups.labels, present, strict=True) if here}))
    position = {label: code for code, label in enumerate(ordered)}
    codes = np.array([position.get(label, 0) for label in groups.labels], np.intp)
    return codes[groups.codes], label_vector(ordered)


def _label_columns(groups: Any) -> tuple[list[Any], list[str] | None]:
    """The columns of a data frame or 2-D array, with their names; anything else is one column."""
    columns: list[Any]
    names: list[str] | None
    native = groups = on_host(groups)
    if not isinstance(groups, (np.ndarray, list)):
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


def _label_array(groups: Any) -> NDArray[Any]:
    """Labels as a 1-D array; missing ones are refused."""
    native = groups
    if np.ma.is_masked(groups):
        _refuse_missing(np.ma.getmaskarray(groups))
    if not isinstance(groups, (np.ndarray, list)):
        native = nw.from_native(groups, series_only=True, pass_through=True)
    if isinstance(native, nw.Series):
        if native.is_null().any():
            _refuse_missing(native.is_null().to_numpy())
        values = native.to_numpy()
    else:
        values = np.asarray(groups)
        if isinstance(groups, (list, tuple)) and values.ndim == 1:
            values = label_vector(groups)  # numpy would turn 1 and "one" into two strings
    if values.ndim == 0:
        raise TypeError(
            f"sensitive_features={groups!r} is not a column of labels; pass one label per row, for "
            "example sensitive_features=frame['sex']."
        )
    if values.ndim != 1:
        raise ValueError(
            f"sensitive_features has shape {values.shape}; pass a 1-D array with one label per "
            "row, or a 2-D array or data frame whose columns are to be crossed."
        )
    if np.issubdtype(values.dtype, np.complexfloating):
        raise TypeError("sensitive_features is complex; pass strings, numbers or booleans.")
    return values


def _refuse_missing(missing: NDArray[np.bool_]) -> None:
    rows = np.flatnonzero(missing)
    raise ValueError(
        f"sensitive_features has {len(rows)} missing labels, the first in row {rows[0]}; "
        "drop these rows (X[known], groups[known]) or give them a label of their own, "
        "such as 'unknown'."
    )


def _encode_integers(values: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Counting instead of sorting: labels in a small range, as group labels mostly are."""
    if len(values) == 0:
        return np.empty(0, np.intp), values
    lowest, highest = int(values.min()), int(values.max())
    if highest - lowest > max(1024, len(values)):
        labels, codes = np.unique(values, return_inverse=True)
        return codes.astype(np.intp), labels
    offsets = values.astype(np.intp) - lowest
    present = np.flatnonzero(np.bincount(offsets, minlength=highest - lowest + 1))
    labels = (present + lowest).astype(values.dtype)
    if len(present) == highest - lowest + 1:
        return offsets, labels
    return np.searchsorted(present, offsets), labels


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas.NA is neither equal to itself nor unequal
        return True


def _encode_hashables(values: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Look labels up in a dictionary: an order faster than sorting a million strings."""
    items = list(values) if values.dtype.kind in "mM" else values.tolist()  # dates stay dates
    missing = np.fromiter(map(_is_missing, items), bool, len(items))
    if missing.any():
        _refuse_missing(missing)
    seen = list(dict.fromkeys(items))
    ordered = sort_labels(seen)
    position = {label: code for code, label in enumerate(ordered)}
    codes = np.fromiter((position[v] for v in items), np.intp, len(items))
    return codes, label_vector(ordered)


def sort_labels(labels: Sequence[Any]) -> list[Any]:
    """Sorted where the labels can be compared, else by type and text: never by accident."""
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))


def refuse_twin_labels(labels: Sequence[Any]) -> None:
    """Labels that differ by their type only, as 1 and '1', are one group to whoever wrote them."""
    seen: dict[str, Any] = {}
    for label in labels:
        twin = seen.setdefault(str(label), label)
        if twin != label:
            raise ValueError(
                f"the labels {twin!r} and {label!r} differ by their type only and would be two "
                "groups; pass labels of one type with every block."
            )


def label_vector(labels: Sequence[Any]) -> NDArray[Any]:
    """A 1-D array of labels; labels of mixed types stay the objects they are."""
    kinds = {type(label) for label in labels}
    if len(kinds) == 1 and kinds <= {str, bool, int, float}:
        return np.asarray(labels)
    vector = np.empty(len(labels), dtype=object)
    for i, label in enumerate(labels):  # at once, numpy would take tuples for rows
        vector[i] = label
    return vector


def check_integer(name: str, value: Any, least: int) -> None:
    """A count; fractions, NaN and booleans are none."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name}={value!r}: pass an integer of at least {least}.")


def check_sample_weight(
    sample_weight: Any, n_rows: int, may_all_be_zero: bool = False
) -> NDArray[np.float64] | None:
    """Weights as float64, or None; negative, missing and misfitting ones are refused.

    So are those that are all zero, unless this block may add nothing to others.
    """
    if sample_weight is None:
        return None
    try:
        if np.ma.is_masked(sample_weight):
            raise TypeError("some are masked")
        values = np.asarray(on_host(sample_weight))
        if np.iscomplexobj(values):
            raise TypeError("they are complex")
        weights = values.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"sample_weight must be numbers, one per row of X, but could not be read: {error}"
        ) from error
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.ndim != 1 or len(weights) != n_rows:
        raise ValueError(
            f"sample_weight has shape {weights.shape} but X has {n_rows} rows; "
            f"pass a 1-D array of {n_rows} non-negative weights, or sample_weight=None."
        )
    bad = np.flatnonzero(~(weights >= 0) | np.isinf(weights))
    if len(bad):
        raise ValueError(
            f"sample_weight must be finite and non-negative, but row {bad[0]} has "
            f"{weights[bad[0]]}; give rows that should not count the weight 0."
        )
    if not may_all_be_zero and not weights.any():
        raise ValueError(
            "sample_weight is zero in every row, so there is nothing to fit; "
            "give at least one row of each group a positive weight, or pass sample_weight=None."
        )
    return weights


def check_feature_names(
    known: Sequence[str] | None, given: Sequence[str] | None, method: str
) -> None:
    """Blocks that belong together must have the same columns in the same order."""
    if known is None or given is None or list(known) == list(given):
        return
    unseen = [name for name in given if name not in known]
    lacking = [name for name in known if name not in given]
    if unseen or lacking:
        detail = f"unexpected: {unseen[:5]}, missing: {lacking[:5]}"
    else:
        detail = "the same names in another order"
    raise ValueError(
        f"{method} got columns that differ from those seen before ({detail}); "
        f"pass the columns {list(known)[:5]}{'...' if len(known) > 5 else ''} in this order."
    )


def check_n_features(known: int, given: int, method: str) -> None:
    """Blocks that belong together must have the same number of columns."""
    if known != given:
        raise ValueError(
            f"{method} got X with {given} features, but the rows before had {known}; "
            "pass the same columns each time, or start again with a new object."
        )


def check_several_groups(labels: Sequence[Any], n_samples: int) -> None:
    """With one group there is nothing to be fair about."""
    if len(labels) < 2:
        held = f"one group only ({labels[0]!r}, " if labels else "no group large enough ("
        raise ValueError(
            f"sensitive_features holds {held}n_samples = {n_samples}), so "
            "there is nothing to compare; pass labels of two groups or more, or use "
            "sklearn.decomposition.PCA."
        )


def check_two_groups(labels: Sequence[Any], what: str) -> None:
    """Some methods compare two groups and no more."""
    if len(labels) > 2:
        raise ValueError(
            f"{what} compares two groups, but sensitive_features holds {len(labels)}: "
            f"{labels[:5]}{'...' if len(labels) > 5 else ''}; compare one with the rest, for "
            f"example sensitive_features=(groups == {labels[0]!r}), or use FairPCA(n_components), "
            "which takes any number of groups."
        )
