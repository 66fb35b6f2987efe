"""The only file that imports pyarrow; and what the types of its columns are good for."""

from __future__ import annotations

from typing import Any

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq
except ImportError as error:
    raise ImportError(
        "reading and writing files needs pyarrow; install it with pip install 'fairpca[files]'."
    ) from error

__all__ = ["is_empty", "is_number", "is_text_like", "label_kind", "pa", "pa_csv", "pc", "pq"]


def is_number(kind: Any) -> bool:
    """Numbers and booleans; a column without values may hold some in another file."""
    tests = ("is_integer", "is_floating", "is_decimal", "is_boolean", "is_null")
    return any(getattr(pa.types, test)(kind) for test in tests)


def is_empty(kind: Any) -> bool:
    """The type of a column without any value."""
    return bool(pa.types.is_null(kind))


def is_text_like(kind: Any) -> bool:
    """Whether a value of this type can be written as text."""
    return not (pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_null(kind))


def label_kind(kind: Any) -> str:
    """Two labels whose types are of one kind are equal if their values are."""
    if pa.types.is_dictionary(kind):
        return label_kind(kind.value_type)
    text = str(kind)
    return "number" if is_number(kind) else "string" if "string" in text else text.split("[")[0]
