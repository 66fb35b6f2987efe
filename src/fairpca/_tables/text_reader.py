"""Opening CSV and TSV files: their encoding, compression, delimiter and column names."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from fairpca._tables.arrow import pa, pa_csv
from fairpca._tables.paths import TableFile

_HEAD_BYTES = 1 << 23  # that tell the types
_BLOCK_BYTES = 1 << 21  # a few dozen blocks are read ahead
_USUAL_MISSING = pa_csv.ConvertOptions().null_values
_LONGEST_NAMES = 1 << 28  # bytes, of the line of column names
_DELIMITERS = (",", ";", "\t", "|")
_BYTES_A_VALUE = 40  # at most, on average over a line


@contextmanager
def open_text(
    file: TableFile,
    types: Mapping[str, pa.DataType] | None,
    threads: bool = False,
    head: bool = False,
    on_ragged: Callable[[Any], str] | None = None,
) -> Iterator[tuple[pa.NativeFile, pa_csv.CSVStreamingReader]]:
    """The file, for its position, and a reader of these columns; of all without ``types``.

    The first batch of a ``head`` is large enough to tell types.
    """
    with pa.OSFile(str(file.path)) as raw:
        reader = pa_csv.open_csv(
            uncompressed(raw, file),
            read_options=pa_csv.ReadOptions(
                block_size=max(_HEAD_BYTES if head else _BLOCK_BYTES, _line_bytes(file)),
                use_threads=threads,
                encoding=file.encoding,
                column_names=None if file.text.header else _numbered(file),
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=delimiter_of(file), newlines_in_values=True, invalid_row_handler=on_ragged
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


def uncompressed(raw: pa.NativeFile, file: TableFile) -> pa.NativeFile:
    """The text of an open file."""
    return pa.CompressedInputStream(raw, file.compression) if file.compression else raw


def chunks_of(file: TableFile) -> Iterator[bytes]:
    """The bytes of the text, block by block."""
    with pa.OSFile(str(file.path)) as raw:
        stream = uncompressed(raw, file)
        while chunk := stream.read(_BLOCK_BYTES):
            yield chunk


def _numbered(file: TableFile) -> list[str]:
    """Names for the columns of a file that has none."""
    first = next(chunks_of(file), b"").decode(file.encoding, errors="ignore")
    row = next(csv.reader(io.StringIO(first), delimiter=delimiter_of(file)), [])
    return [f"c{j}" for j in range(len(row))]


def _line_bytes(file: TableFile) -> int:
    """What the longest line is likely to take; a block must hold one line at least."""
    names = b""
    for chunk in chunks_of(file):
        names += chunk.partition(b"\n")[0]
        if b"\n" in chunk or len(names) > _LONGEST_NAMES:
            break
    n_columns = 1 + max(names.count(mark) for mark in map(str.encode, _DELIMITERS))
    return len(names) + _BYTES_A_VALUE * n_columns


def delimiter_of(file: TableFile) -> str:
    """The usual one for the format, unless the first line holds only another."""
    usual = "\t" if file.format == "tsv" else ","
    head = next(chunks_of(file), b"")[: 1 << 20]
    first = head.decode(file.encoding, errors="ignore").split("\n")[0]
    others = [mark for mark in _DELIMITERS if mark in first]
    return usual if usual in first or not others else others[0]
