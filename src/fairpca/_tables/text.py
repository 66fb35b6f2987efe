"""CSV and TSV files: a stream of record batches.

Columns get explicit types when they are read, so that whole numbers may turn to fractions later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from fairpca._tables.arrow import pa
from fairpca._tables.numerals import (
    are_numerals,
    doubtful_thousands,
    first_other,
    numbers_of,
    told_decimal,
)
from fairpca._tables.paths import TableFile
from fairpca._tables.text_faults import (
    diagnosed,
    not_this_encoding,
    odd_value,
    refuse_open_quote,
    undecodable_line,
)
from fairpca._tables.text_reader import chunks_of, delimiter_of, open_text

_MOSTLY = 0.75


def text_schema(file: TableFile) -> pa.Schema:
    """Names and types of the columns, as the first block has them."""
    if next(chunks_of(file), b"")[:2] in (b"\xff\xfe", b"\xfe\xff") and file.encoding == "utf-8":
        raise ValueError(
            f"{file.name} is UTF-16 text; say so with --encoding utf-16, in Python with "
            "encoding='utf-16', or convert it with iconv."
        )
    try:
        with open_text(file, None, head=True) as (_, reader):
            schema = reader.schema
            schema.names  # noqa: B018 - decodes them
    except (pa.ArrowException, UnicodeError) as error:
        raise diagnosed(file, {}, error) from error
    if any(pa.types.is_binary(kind) for kind in schema.types):
        raise not_this_encoding(file, undecodable_line(file) or 1)
    for name in file.text.numerals:
        schema = schema.set(schema.get_field_index(name), pa.field(name, pa.float64()))
    return schema


def text_batches(
    file: TableFile, types: Mapping[str, pa.DataType]
) -> Iterator[tuple[pa.RecordBatch, float]]:
    """Batches of the columns named in ``types``, and how far through the file they end."""
    refuse_open_quote(file)
    size, row = max(file.path.stat().st_size, 1), 0
    written = [name for name in file.text.numerals if types.get(name) == pa.float64()]
    read = {**types, **dict.fromkeys(written, pa.string())}
    try:
        with open_text(file, read, threads=True) as (raw, reader):
            for batch in reader:
                yield _with_numbers(batch, written, file, row), raw.tell() / size
                row += batch.num_rows
    except (pa.ArrowException, UnicodeError) as error:
        raise diagnosed(file, read, error) from error


def _with_numbers(
    batch: pa.RecordBatch, names: Sequence[str], file: TableFile, row: int
) -> pa.RecordBatch:
    """The batch, with these columns of texts turned into numbers."""
    decimal = file.text.decimal or "."
    for name in names:
        column = batch[name]
        i = first_other(column, decimal)
        if i is not None:
            raise odd_value(file, row + i, name, column[i].as_py())
        place = batch.schema.get_field_index(name)
        batch = batch.set_column(place, name, numbers_of(column, decimal))
    return batch


def as_written(files: list[TableFile]) -> list[TableFile]:
    """The files, with what the first rows of the first one tell of how numbers are written.

    The decimal point, if it was left open and values are not separated by commas, and the columns
    of numbers with thousands separators, currency or percent signs.
    """
    first = files[0]
    if not first.is_text:
        return files
    try:
        if first.text.decimal is None:
            decimal = "." if delimiter_of(first) == "," else _told_decimal(first)
            first = replace(first, text=replace(first.text, decimal=decimal))
        decimal, texts = first.text.decimal or ".", _texts(first)
    except (pa.ArrowException, UnicodeError):
        return files  # what is wrong with it is said later
    numerals = tuple(name for name, column in texts.items() if are_numerals(column, decimal))
    return [
        replace(file, text=replace(file.text, decimal=decimal, numerals=numerals)) for file in files
    ]


def _told_decimal(file: TableFile) -> str:
    """The decimal point, as the first rows tell it; refuses those that leave it open."""
    texts = _texts(file)
    decimal = told_decimal([*texts.values()])
    if decimal is None:
        found = (c.drop_null() for c in texts.values() if are_numerals(c, ",", _MOSTLY))
        raise _ambiguous(file, next(v for c in found for v in c.to_pylist() if "," in v))
    if decimal == ".":
        doubtful = doubtful_thousands([*_texts(file, pa.types.is_floating).values()])
        if doubtful is not None:
            raise _ambiguous(file, doubtful)
    return decimal


def _texts(
    file: TableFile, is_wanted: Callable[[pa.DataType], bool] = pa.types.is_string
) -> dict[str, pa.Array]:
    """The first rows, as they are written, of the columns that hold text, or of another type."""
    with open_text(file, None, head=True) as (_, reader):
        schema = reader.schema
    wanted, counts = [field for field in schema if is_wanted(field.type)], Counter(schema.names)
    names = [f.name for f in wanted if counts[f.name] == 1]  # others are refused later
    head = _head(file, names) if names else None
    return {} if head is None else {name: head[name] for name in names}


def _head(file: TableFile, names: Sequence[str]) -> pa.RecordBatch | None:
    """The first rows of these columns, as text; None if there are no rows."""
    with open_text(file, dict.fromkeys(names, pa.string()), head=True) as (_, reader):
        return next(iter(reader), None)


def _ambiguous(file: TableFile, value: str) -> ValueError:
    return ValueError(
        f"{value!r} in {file.name} may be a fraction or thousands; say which with --decimal , or "
        "--decimal . (in Python read_table(..., decimal=','))."
    )


def refuse_almost_numbers(file: TableFile, names: Sequence[str]) -> bool:
    """Refuse text columns in which all but a few values are numbers.

    They would be left out without notice. Returns whether there were rows to judge by.
    """
    head = _head(file, names)
    if head is None:
        return False
    decimal = file.text.decimal or "."
    for name in names:
        row = first_other(head[name], decimal)
        if row is not None and are_numerals(head[name], decimal, _MOSTLY):
            raise odd_value(file, row, name, head[name][row].as_py())
        other = "," if decimal == "." else "."
        if are_numerals(head[name], other):
            value = head[name].drop_null()[0].as_py()
            raise ValueError(
                f"column {name!r} of {file.name} holds numbers such as {value!r}; say that the "
                f"decimal point is {other!r} with --decimal {other} (in Python read_table(..., "
                f"decimal={other!r}))."
            )
    return bool(head.num_rows)
