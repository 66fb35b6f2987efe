"""CSV and TSV files: a stream of record batches, and words for what is wrong with one.

Columns get explicit types when they are read, so that whole numbers may turn to fractions later.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from fairpca._tables.arrow import pa, pa_csv, pc
from fairpca._tables.paths import DataFile

_HEAD = 1 << 23  # bytes that tell the types
_BLOCK = 1 << 21  # bytes; a few dozen are read ahead
_NUMBER = r"^[ \t]*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?[ \t]*$"
_MOSTLY = 0.75
_RAGGED = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
_CONVERSION = re.compile(
    r"column #(\d+): Row #(\d+): CSV conversion error to (\w+): invalid value '(.*)'", re.DOTALL
)


def text_schema(file: DataFile) -> pa.Schema:
    """Names and types as the first block has them."""
    if next(_chunks(file), b"")[:2] in (b"\xff\xfe", b"\xfe\xff") and file.encoding == "utf-8":
        raise ValueError(
            f"{file.name} is UTF-16 text; say so with --encoding utf-16, in Python with "
            "encoding='utf-16', or convert it with iconv."
        )
    try:
        with _reader(file, None, threads=False, block=_HEAD) as (_, reader):
            schema = reader.schema
            if not any(pa.types.is_binary(kind) for kind in schema.types):
                schema.names  # noqa: B018 - decodes them
                return schema
    except (pa.ArrowException, UnicodeError) as error:
        raise explained(file, error, None) from error
    raise _undecodable(file)


def text_batches(
    file: DataFile, types: Mapping[str, pa.DataType]
) -> Iterator[tuple[pa.RecordBatch, float]]:
    """Batches of the columns named in ``types``, and how far through the file they end."""
    _refuse_open_quote(file)
    size = max(file.path.stat().st_size, 1)
    try:
        with _reader(file, types) as (raw, reader):
            for batch in reader:
                yield batch, raw.tell() / size
    except (pa.ArrowException, UnicodeError) as error:
        raise explained(file, error, types) from error


def refuse_almost_numbers(file: DataFile, names: Sequence[str]) -> bool:
    """Columns of text that were numbers but for a few values would be left out unnoticed.

    Returns whether there were rows to judge by.
    """
    types = dict.fromkeys(names, pa.string())
    with _reader(file, types, threads=False, block=_HEAD) as (_, reader):
        head = next(iter(reader), pa.schema(types).empty_table())
    for name in names:
        numeric = pc.match_substring_regex(head[name], _NUMBER)
        if _MOSTLY <= (pc.mean(numeric).as_py() or 0.0) < 1.0:
            row = pc.index(numeric, False).as_py()
            value = head[name][row].as_py()
            raise ValueError(
                f"line {row + 2} of {file.name} has {value!r} in column {name!r}, which otherwise "
                "holds numbers; correct the value (a missing one is written as nothing at all), or "
                f"leave the column out: --drop {name!r}, in Python columns=[...]."
            )
    return bool(head.num_rows)


def explained(
    file: DataFile, error: Exception, types: Mapping[str, pa.DataType] | None
) -> ValueError:
    """What is wrong with the text, found by a second, slower look where need be."""
    message = str(error)
    if "Empty CSV" in message:
        return ValueError(f"{file.name} is empty; it needs a line of column names, and rows.")
    if isinstance(error, UnicodeError) or "UTF8" in message:
        return _undecodable(file)
    if "Row #" not in message:
        message = _message_in_order(file, types) or message
    if ragged := _RAGGED.search(message):
        line, expected, found = ragged.groups()
        return ValueError(
            f"line {line} of {file.name} has {found} values where the line of column names has "
            f"{expected}; correct that line, or restore the file if it was cut off there."
        )
    if conversion := _CONVERSION.search(message):
        column, line, kind, value = conversion.groups()
        name = text_schema(file).names[int(column)]
        what = {"double": "a number", "bool": "true or false"}.get(kind, kind)
        return ValueError(
            f"line {line} of {file.name} has {value!r} in column {name!r}, which is not {what}; "
            "correct the value, or leave the column out."
        )
    return ValueError(f"{file.name} cannot be read: it is damaged or no text table ({message}).")


@contextmanager
def _reader(
    file: DataFile,
    types: Mapping[str, pa.DataType] | None,
    threads: bool = True,
    block: int | None = None,
) -> Iterator[tuple[pa.NativeFile, pa_csv.CSVStreamingReader]]:
    """The file, for its position, and a reader of these columns (None: of all)."""
    with pa.OSFile(str(file.path)) as raw:
        reader = pa_csv.open_csv(
            _uncompressed(raw, file),
            read_options=pa_csv.ReadOptions(
                block_size=block or _BLOCK, use_threads=threads, encoding=file.encoding
            ),
            parse_options=pa_csv.ParseOptions(delimiter=_delimiter(file), newlines_in_values=True),
            convert_options=pa_csv.ConvertOptions(
                strings_can_be_null=True,
                column_types=types,
                include_columns=None if types is None else list(types),
            ),
        )
        yield raw, reader


def _uncompressed(raw: pa.NativeFile, file: DataFile) -> pa.NativeFile:
    return pa.CompressedInputStream(raw, file.compression) if file.compression else raw


def _chunks(file: DataFile) -> Iterator[bytes]:
    with pa.OSFile(str(file.path)) as raw:
        stream = _uncompressed(raw, file)
        while chunk := stream.read(_BLOCK):
            yield chunk


def _delimiter(file: DataFile) -> str:
    """The usual one for the format, unless the first line holds only another."""
    usual = "\t" if file.format == "tsv" else ","
    head = next(_chunks(file), b"")[: 1 << 20]
    first = head.decode(file.encoding, errors="ignore").split("\n")[0]
    others = [mark for mark in (",", ";", "\t") if mark in first]
    return usual if usual in first or not others else others[0]


def _refuse_open_quote(file: DataFile) -> None:
    """Quotes that are never closed would make one value of all lines that follow."""
    if sum(chunk.count(b'"') for chunk in _chunks(file)) % 2 == 0:
        return
    line = 1
    with pa.OSFile(str(file.path)) as raw:
        stream = _uncompressed(raw, file)
        text = io.TextIOWrapper(stream, file.encoding, errors="replace", newline="")
        rows = csv.reader(text, delimiter=_delimiter(file), strict=True)
        try:
            for _ in rows:
                line = rows.line_num + 1
        except csv.Error as error:
            if "unexpected end" in str(error) or "field limit" in str(error):
                raise ValueError(
                    f"the quotes opened in line {line} of {file.name} are never closed; close "
                    "them, or restore the file if it was cut off."
                ) from error


def _undecodable(file: DataFile) -> ValueError:
    number, rest = 0, b""
    for chunk in _chunks(file):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            number += 1
            try:
                line.decode(file.encoding)
            except UnicodeDecodeError:
                return _not_this_encoding(file, number)
    return _not_this_encoding(file, number + 1)


def _not_this_encoding(file: DataFile, line: int) -> ValueError:
    return ValueError(
        f"{file.name} is not {file.encoding.upper()} text (line {line}); name its encoding, for "
        "example --encoding latin-1, in Python encoding='latin-1', or convert it with iconv."
    )


def _message_in_order(file: DataFile, types: Mapping[str, pa.DataType] | None) -> str:
    """The same error once more from a single thread, which counts rows."""
    try:
        with _reader(file, types, threads=False) as (_, reader):
            for _batch in reader:
                pass
    except pa.ArrowException as error:
        return str(error)
    return ""
