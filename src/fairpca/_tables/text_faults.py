"""What is wrong with a text file that cannot be read, found by a second, slower look."""

from __future__ import annotations

import codecs
import csv
import io
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from fairpca._tables.arrow import pa, pc
from fairpca._tables.paths import TableFile
from fairpca._tables.roles import looks_like_a_value
from fairpca._tables.text_reader import chunks_of, delimiter_of, open_text, uncompressed

_THOUSANDS = re.compile(r"\d{1,3}(\.\d{3}){2,}")


def diagnosed(file: TableFile, types: Mapping[str, pa.DataType], error: Exception) -> ValueError:
    """An error that says what is wrong with the text, found by a second, slower look."""
    if not any(chunk.strip() for chunk in chunks_of(file)):
        return ValueError(f"{file.name} is empty; it needs a line of column names, and rows.")
    undecodable = undecodable_line(file)
    if undecodable is not None:
        return not_this_encoding(file, undecodable)
    ragged: list[Any] = []
    try:
        wrong = _first_wrong_value(file, types, ragged)
    except pa.ArrowException:
        wrong = None
    if ragged:
        row = ragged[0]
        title = "leave out the line above if it is a title, " if row.expected_columns == 1 else ""
        return ValueError(
            f"line {row.number} of {file.name} has {row.actual_columns} values where the line of "
            f"column names has {row.expected_columns}; {title}correct that line, or restore the "
            "file if it was cut off there."
        )
    if wrong is not None:
        what = "true or false" if types[wrong[1]] == pa.bool_() else "a number"
        return odd_value(file, *wrong, f"which is not {what} (--encode turns text into columns)")
    return ValueError(f"{file.name} cannot be read: it is damaged or not a text table ({error}).")


def odd_value(
    file: TableFile,
    row: int,
    name: str,
    value: str,
    why: str = "which otherwise holds numbers",
) -> ValueError:
    """The error for a text among numbers, in a row counted from 0."""
    line = row + 1 + file.text.header
    value_or_line = "the value" if row else "the value, leave out this line if it holds names"
    if _THOUSANDS.fullmatch(value):
        why += " (if its points separate thousands, pass --decimal , in Python decimal=',')"
    return ValueError(
        f"line {line} of {file.name} has {value!r} in column {name!r}, {why}; "
        f"correct {value_or_line}, say that it stands for a missing one (--missing-value "
        f"{shlex.quote(value)}, in Python read_table(..., missing_values=[{value!r}])), or leave "
        f"the column out (--drop-column {shlex.quote(name)}, in Python drop or columns)."
    )


def refuse_values_as_names(where: str, names: Sequence[str]) -> None:
    """Refuse names of columns that are numbers, some with a fraction or a sign: they are values."""
    if all(map(looks_like_a_value, names)) and not all(name.isdecimal() for name in names):
        raise ValueError(
            f"the first line of {where} holds numbers, such as {names[0]!r}, where names of "
            "columns belong; pass --no-header (in Python read_table(..., no_header=True)) to call "
            "them c0, c1, ..."
        )


def _first_wrong_value(
    file: TableFile, types: Mapping[str, pa.DataType], ragged: list[Any]
) -> tuple[int, str, str] | None:
    """Row, column and text of the first value that is not of its column's type, if any.

    Rows with too few or too many values are put into ``ragged``.
    """

    def note(row: Any) -> str:
        ragged.append(row)
        return "error"

    numbers = {name: kind for name, kind in types.items() if kind != pa.string()}
    row = 0
    with open_text(file, dict.fromkeys(types, pa.string()), on_ragged=note) as (_, reader):
        for batch in reader:
            wrong = [
                (i, name)
                for name, kind in numbers.items()
                if (i := _first_inconvertible(batch[name], kind)) is not None
            ]
            if wrong:
                i, name = min(wrong)
                return row + i, name, batch[name][i].as_py()
            row += batch.num_rows
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


def refuse_open_quote(file: TableFile) -> None:
    """Refuse quotes that are never closed: they make one value of all lines that follow."""
    if sum(chunk.count(b'"') for chunk in chunks_of(file)) % 2 == 0:
        return
    line = 1
    with pa.OSFile(str(file.path)) as raw:
        stream = uncompressed(raw, file)
        text = io.TextIOWrapper(stream, file.encoding, errors="replace", newline="")
        rows = csv.reader(text, delimiter=delimiter_of(file), strict=True)
        try:
            for _ in rows:
                line = rows.line_num + 1
        except csv.Error as error:
            if "unexpected end" in str(error) or "field limit" in str(error):
                raise ValueError(
                    f"the quotes opened in line {line} of {file.name} are never closed; close "
                    "them, or restore the file if it was cut off."
                ) from error


def undecodable_line(file: TableFile) -> int | None:
    """The first line that is not text in the encoding of the file, if any."""
    decoder, line = codecs.getincrementaldecoder(file.encoding)(), 1
    try:
        for chunk in chunks_of(file):
            line += decoder.decode(chunk).count("\n")
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        return line + error.object[: error.start].count(b"\n")
    return None


def not_this_encoding(file: TableFile, line: int) -> ValueError:
    return ValueError(
        f"{file.name} is not {file.encoding.upper()} text (line {line}); name its encoding, for "
        "example --encoding latin-1, in Python encoding='latin-1', or convert it with iconv."
    )
