"""Units: which rows belong to the same person, household or other thing that was sampled.

The rows of one unit stay in one fold, and whoever judges counts units, not rows. A unit is known by
a 64-bit number that depends on its label alone. So 7, 7.0 and "7" are one unit wherever they are
read, in any order, on any machine; "007" and "7.0" are other labels. Folds, and the parts that a
fold is split into, are keyed hashes of this number.

How many units a group has is not a sum: a unit's rows may lie in several blocks. Moments keep the
smallest numbers of each group, which merge in any order: exact up to ``_KEPT`` units, and beyond
that an estimate (Bar-Yossef et al. 2002) that is off by 2 to 3 %.
"""

from datetime import date
from decimal import Decimal
from hashlib import blake2b
from math import isfinite
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairpca._input.device import on_host
from fairpca._input.labels import is_missing

#: The numbers of units.
Units = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_KEPT = 4096
_FEW_REPEATS = 0.05  # of all rows


class NumberedUnits(NamedTuple):
    """Units whose numbers are known already."""

    numbers: Units


def mixed(numbers: Units) -> Units:
    """SplitMix64: numbers that look random, the same on every machine."""
    with np.errstate(over="ignore"):
        z = numbers * _GOLDEN + _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def keyed(units: Units, salt: int, n: int) -> NDArray[np.intp]:
    """A number below n for each unit; another salt gives numbers that are unrelated to these."""
    key = mixed(np.array([salt % 2**64], np.uint64))
    return (mixed(units ^ key) % np.uint64(n)).astype(np.intp)


def encode_units(labels: Any, n_rows: int, before: int = 0) -> Units:
    """The number of each row's unit; a row without a label is a unit by itself.

    ``before`` counts the rows of earlier blocks, so that rows without labels stay apart.
    """
    if isinstance(labels, NumberedUnits):
        return labels.numbers
    values = _values(labels)
    if values.ndim != 1:
        raise ValueError(
            f"units has shape {values.shape}; pass a 1-D array with one label per row, for example "
            "units=frame['person']."
        )
    if len(values) != n_rows:
        raise ValueError(
            f"units has {len(values)} labels but X has {n_rows} rows; pass exactly one label per "
            "row of X."
        )
    if values.dtype.kind in "bi":
        return mixed(values.astype(np.int64).view(np.uint64))
    known: dict[Any, int] = {}
    numbers = np.empty(n_rows, np.uint64)
    for row, label in enumerate(values.tolist()):
        if is_missing(label):
            numbers[row] = _number_of(f"row {before + row}, which has no label")
            continue
        if label not in known:
            known[label] = _number_of(label)
        numbers[row] = known[label]
    return numbers


def smallest(units: Units) -> Units:
    """What is kept of the units of a group: the smallest of their numbers, sorted."""
    return np.unique(units)[:_KEPT]


def how_many(kept: Units) -> int:
    """The number of different units, given the smallest of their numbers."""
    if len(kept) < _KEPT:
        return len(kept)
    return round((_KEPT - 1) * 2**64 / float(kept[-1]))


def hashed(X: NDArray[Any], codes: NDArray[Any]) -> Units:
    """A number for each row and its group, the same for rows that are alike."""
    numbers = mixed(codes.astype(np.uint64))
    for column in X.T:
        numbers = mixed(numbers ^ np.asarray(column + 0.0, np.float64).view(np.uint64))
    return numbers


def repeats_among(rows: Units) -> str:
    """How many rows repeat others, in words, given a number for each; "" if they are few."""
    _, times = np.unique(rows, return_counts=True)
    n_rows = len(rows)
    if n_rows - len(times) <= _FEW_REPEATS * n_rows:
        return ""
    often = times[times > 1]
    if (often == often[0]).all():
        return f"{len(often):,} rows occur {often[0]} times each"
    return f"{n_rows - len(times):,} of {n_rows:,} rows repeat an earlier one"


def _values(labels: Any) -> NDArray[Any]:
    """The labels as a 1-D array whose missing values are None or unequal to themselves."""
    native = labels
    if not isinstance(labels, (np.ndarray, list, tuple)):
        native = on_host(labels)
    series = nw.from_native(native, allow_series=True, eager_only=True, pass_through=True)
    if isinstance(series, nw.DataFrame) and len(series.columns) == 1:
        series = series.get_column(series.columns[0])
    if isinstance(series, nw.Series):
        if not series.is_null().any():
            values = np.asarray(series.to_numpy())
            if values.dtype.kind in "iu":
                return values
        series = series.to_list()
    if isinstance(series, (list, tuple)):
        return np.fromiter(series, dtype=object, count=len(series))
    values = np.asarray(series)
    if values.dtype.kind == "M":
        return values.astype("datetime64[us]")
    return values


def _number_of(label: Any) -> int:
    """The number of one label."""
    if isinstance(label, np.generic):
        label = label.item()
    whole = _whole_number(label)
    if whole is not None and -(2**63) <= whole < 2**63:
        return int(mixed(np.array([whole], np.int64).view(np.uint64))[0])
    text = label.isoformat() if isinstance(label, date) else str(label)
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def _whole_number(label: Any) -> int | None:
    """The whole number that a label stands for, if it does."""
    if isinstance(label, int):
        return int(label)
    if isinstance(label, (float, Decimal)):
        if isfinite(label) and label == int(label):
            return int(label)
        return None
    if isinstance(label, str) and label.isascii() and label.isdigit():
        if label == "0" or not label.startswith("0"):
            return int(label)
        return None
    return None
