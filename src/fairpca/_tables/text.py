"""CSV and TSV files: a stream of record batches, and words for what is wrong with one.

Columns get explicit types when they are read, so that whole numbers may turn to fractions later.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from fairpca._tables.arrow import pa, pa_csv, pc
from fairpca._tables.paths import TableFile

_HEAD_BYTES = 1 << 23  # that tell the types
_BLOCK_BYTES = 1 << 21  # a few dozen blocks are read ahead
_NUMBER = r"^[ \t]*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?[ \t]*$"
_COMMA_NUMBER = r"^[ \t]*[-+]?\d+(,\d+)?[ \t]*$"
_MOSTLY = 0.75
_USUAL_MISSING = pa_csv.ConvertOptions().null_values
_LONGEST_NAMES = 1 << 28  # bytes, of the line of column names
_BYTES_A_VALUE = 40  # at most, on average over a line


def text_schema(file: TableFile) -> pa.Schema:
    """Names and types of the columns, as the first block has them."""
    if next(_chunks(file), b"")[:2] in (b"\xff\xfe", b"\xfe\xff") and file.encoding == "utf-8":
        raise ValueError(
            f"{file.name} is UTF-16 text; say so with --encoding utf-16, in Python with "
            "encoding='utf-16', or convert it with iconv."
        )
    try:
        with _reader(file, None, block=_HEAD_BYTES) as (_, reader):
            schema = reader.schema
            schema.names  # noqa: B018 - decodes them
    except (pa.ArrowException, UnicodeError) as error:
        raise _diagnosed(file, {}, error) from error
    if any(pa.types.is_binary(kind) for kind in schema.types):
        raise _not_this_encoding(file, _undecodable_line(file) or 1)
    return schema


def text_batches(
    file: TableFile, types: Mapping[str, pa.DataType]
) -> Iterator[tuple[pa.RecordBatch, float]]:
    """Batches of the columns named in ``types``, and how far through the file they end."""
    _refuse_open_quote(file)
    size = max(file.path.stat().st_size, 1)
    try:
        with _reader(file, types, threads=True) as (raw, reader):
            for batch in reader:
                yield batch, raw.tell() / size
    except (pa.ArrowException, UnicodeError) as error:
        raise _diagnosed(file, types, error) from error


def with_decimal_point(files: list[TableFile]) -> list[TableFile]:
    """The files, with the decimal point that the first one uses if it was left open.

    A comma if the values are not separated by commas and there is a text column of numbers that are
    written with commas.
    """
    first = files[0]
    if not first.is_text or first.text.decimal is not None or _delimiter(first) == ",":
        return files
    try:
        with _reader(first, None, block=_HEAD_BYTES) as (_, reader):
            head = next(iter(reader), None)
    except (pa.ArrowException, UnicodeError):
        return files  # what is wrong with it is said later
    texts = [] if head is None else [c for c in head.columns if pa.types.is_string(c.type)]
    commas = (pc.mean(pc.match_substring_regex(c, _COMMA_NUMBER)).as_py() or 0.0 for c in texts)
    decimal = "," if any(share >= _MOSTLY for share in commas) else "."
    return [replace(file, text=replace(file.text, decimal=decimal)) for file in files]


def refuse_almost_numbers(file: TableFile, names: Sequence[str]) -> bool:
    """Refuse text columns in which all but a few values are numbers.

    They would be left out without notice. Returns whether there were rows to judge by.
    """
    types = dict.fromkeys(names, pa.string())
    with _reader(file, types, block=_HEAD_BYTES) as (_, reader):
        head = next(iter(reader), pa.schema(types).empty_table())
    for name in names:
        numeric = pc.match_substring_regex(head[name], _NUMBER)
        if _MOSTLY <= (pc.mean(numeric).as_py() or 0.0) < 1.0:
            row = pc.index(numeric, False).as_py()
            value = head[name][row].as_py()
            raise ValueError(
                f"line {row + 1 + file.text.header} of {file.name} has {value!r} in column "
                f"{name!r}, which otherwise holds numbers; correct the value, say that it stands "
                f"for a missing one (--missing-value {value!r}), or leave the column out: --drop "
                f"{name!r}, in Python columns=[...]."
            )
    return bool(head.num_rows)


def _diagnosed(file: TableFile, types: Mapping[str, pa.DataType], error: Exception) -> ValueError:
    """An error that says what is wrong with the text, found by a second, slower look."""
    if not any(chunk.strip() for chunk in _chunks(file)):
        return ValueError(f"{file.name} is empty; it needs a line of column names, and rows.")
    undecodable = _undecodable_line(file)
    if undecodable is not None:
        return _not_this_encoding(file, undecodable)
    ragged: list[Any] = []
    try:
        wrong = _first_wrong_value(file, types, ragged)
    except pa.ArrowException:
        wrong = None
    if ragged:
        row = ragged[0]
        return ValueError(
            f"line {row.number} of {file.name} has {row.actual_columns} values where the line of "
            f"column names has {row.expected_columns}; correct that line, or restore the file if "
            "it was cut off there."
        )
    if wrong is not None:
        line, name, value = wrong
        what = "true or false" if types[name] == pa.bool_() else "a number"
        return ValueError(
            f"line {line} of {file.name} has {value!r} in column {name!r}, which is not {what}; "
            "correct the value, or leave the column out (--encode turns text into columns)."
        )
    return ValueError(f"{file.name} cannot be read: it is damaged or not a text table ({error}).")


def _first_wrong_value(
    file: TableFile, types: Mapping[str, pa.DataType], ragged: list[Any]
) -> tuple[int, str, str] | None:
    """Line, column and text of the first value that is not of its column's type, if any.

    Rows with too few or too many values are put into ``ragged``.
    """

    def note(row: Any) -> str:
        ragged.append(row)
        return "error"

    numbers = {name: kind for name, kind in types.items() if kind != pa.string()}
    line = 1 + file.text.header
    with _reader(file, dict.fromkeys(types, pa.string()), on_ragged=note) as (_, reader):
        for batch in reader:
            wrong = [
                (i, name)
                for name, kind in numbers.items()
                if (i := _first_inconvertible(batch[name], kind)) is not None
            ]
            if wrong:
                i, name = min(wrong)
                return line + i, name, batch[name][i].as_py()
            line += batch.num_rows
    return None


def _first_inconvertible(texts: pa.Array, kind: pa.DataType) -> int | None:
    trimmed = pc.utf8_trim_whitespace(texts)
    try:
        trimmed.cast(kind)
    except pa.ArrowInvalid:
        for i, value in enumerate(trimmed):
            try:
                value.cast(kind)
            except pa.ArrowInvalid:
                return i
    return None


@contextmanager
def _reader(
    file: TableFile,
    types: Mapping[str, pa.DataType] | None,
    threads: bool = False,
    block: int | None = None,
    on_ragged: Callable[[Any], str] | None = None,
) -> Iterator[tuple[pa.NativeFile, pa_csv.CSVStreamingReader]]:
    """The file, for its position, and a reader of these columns; of all without ``types``."""
    with pa.OSFile(str(file.path)) as raw:
        reader = pa_csv.open_csv(
            _uncompressed(raw, file),
            read_options=pa_csv.ReadOptions(
                block_size=max(block or _BLOCK_BYTES, _line_bytes(file)),
                use_threads=threads,
                encoding=file.encoding,
                column_names=None if file.text.header else _numbered(file),
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=_delimiter(file), newlines_in_values=True, invalid_row_handler=on_ragged
            ),
            convert_options=pa_csv.ConvertOptions(
                strings_can_be_null=True,
                decimal_point=file.text.decimal or ".",
                null_values=[*_USUAL_MISSING, *file.text.missing],
                column_types=types,
                include_columns=list(types) if types else None,
            ),
        )
        yield raw, reader


def _uncompressed(raw: pa.NativeFile, file: TableFile) -> pa.NativeFile:
    return pa.CompressedInputStream(raw, file.compression) if file.compression else raw


def _chunks(file: TableFile) -> Iterator[bytes]:
    with pa.OSFile(str(file.path)) as raw:
        stream = _uncompressed(raw, file)
        while chunk := stream.read(_BLOCK_BYTES):
            yield chunk


def _numbered(file: TableFile) -> list[str]:
    """Names for the columns of a file that has none."""
    first = next(_chunks(file), b"")[:_HEAD_BYTES].decode(file.encoding, errors="ignore")
    row = next(csv.reader(io.StringIO(first), delimiter=_delimiter(file)), [])
    return [f"c{j}" for j in range(len(row))]


def _line_bytes(file: TableFile) -> int:
    """What the longest line is likely to take; a block must hold one line at least."""
    names = b""
    for chunk in _chunks(file):
        names += chunk.partition(b"\n")[0]
        if b"\n" in chunk or len(names) > _LONGEST_NAMES:
            break
    n_columns = 1 + max(names.count(mark) for mark in (b",", b";", b"\t"))
    return len(names) + _BYTES_A_VALUE * n_columns


def _delimiter(file: TableFile) -> str:
    """The usual one for the format, unless the first line holds only another."""
    usual = "\t" if file.format == "tsv" else ","
    head = next(_chunks(file), b"")[: 1 << 20]
    first = head.decode(file.encoding, errors="ignore").split("\n")[0]
    others = [mark for mark in (",", ";", "\t") if mark in first]
    return usual if usual in first or not others else others[0]


def _refuse_open_quote(file: TableFile) -> None:
    """Refuse quotes that are never closed: they make one value of all lines that follow."""
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


def _undecodable_line(file: TableFile) -> int | None:
    """The first line that is not text in the encoding of the file, if any."""
    decoder, line = codecs.getincrementaldecoder(file.encoding)(), 1
    try:
        for chunk in _chunks(file):
            line += decoder.decode(chunk).count("\n")
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        return line + error.object[: error.start].count(b"\n")
    return None


def _not_this_encoding(file: TableFile, line: int) -> ValueError:
    return ValueError(
        f"{file.name} is not {file.encoding.upper()} text (line {line}); name its encoding, for "
        "example --encoding latin-1, in Python encoding='latin-1', or convert it with iconv."
    )
