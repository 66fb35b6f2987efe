"""Text files and sheets as tables: what each column holds, judged by its first rows.

Labels stay as they are written: 01 and 1 are two groups. A column whose first rows hold plain
numbers is cast as it is, which is fast; a later value in another notation is an error. Other
columns of numbers go through the macro ``fairpca_number``, which knows marks of thousands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fairpca.cli.reader import files
from fairpca.cli.reader.files import refuse_unknown
from fairpca.cli.reader.table import (
    AMOUNT,
    COMMA_NUMERAL,
    MARKS,
    NUMERAL,
    SIGNS,
    Column,
    Table,
    head_rows,
    quoted,
    with_comma,
)
from fairpca.exceptions import TableError

_MOSTLY = 0.75  # A column with this share of numbers is meant to hold numbers.
_FORMS = {
    "points": NUMERAL,
    "commas": COMMA_NUMERAL,
    "amounts": AMOUNT,
    "comma_amounts": with_comma(AMOUNT),
    "thousands": r"\D*\d{1,3}(\.\d{3})+\D*",
    "marks": MARKS,
    "signs": SIGNS,
}
_DATE = r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d.*)?"


def define_text(table: Table) -> None:
    """Define a table by text files or sheets, whose columns are judged by their first rows."""
    reading = table.reading
    folder = table.folder
    if table.files[0].format == "excel":
        table.files = [files.sheet_as_text(file, reading.sheet, folder) for file in table.files]
        reading = table.reading = replace(reading, encoding=None, decimal=".")
    table.files = [files.as_utf8(file, reading.encoding, folder) for file in table.files]
    dialects = [files.dialect_of(file, reading.header) for file in table.files]
    delimiter, names = dialects[0]
    for file, dialect in zip(table.files, dialects, strict=True):
        refuse_unknown(names, dialect[1], file.name)
        if dialect != dialects[0]:
            fact = f"{file.name} does not begin with the same line as {table.files[0].name}"
            advice = "write all files alike, or join them in a query: "
            advice += "SELECT x, y FROM 'a.csv' UNION ALL SELECT x, y FROM 'b.csv'"
            raise TableError("columns", fact, advice)
    table.from_sql = (
        f"read_csv({table.paths_in_sql()}, auto_detect=false, delim={quoted(delimiter)}, "
        f"header={reading.header}, quote='\"', escape='\"', comment='', skip=0, "
        "strict_mode=true"
    )
    table.text_columns = [f"c{j}" for j in range(len(names))]
    table.allow_memory(len(names))
    for sql, name in zip(table.text_columns, names, strict=True):
        if name not in table.columns:  # several columns may have no name
            label = f"fairpca_label({sql})"
            table.columns[name] = Column(name, "empty", sql, sql, label, label, usual=bool(name))
    head = _head_of(table)
    table.decimal = reading.decimal or _told_decimal(table.name, head)
    for name, found in head.items():
        table.columns[name] = _judged(table, table.columns[name], found)


def _head_of(table: Table) -> dict[str, dict[str, Any]]:
    """Describe the texts in the first rows of each column; columns without any are left out.

    ``points`` and ``commas`` are the shares of numbers and amounts with these decimal marks.
    """
    forms = {name: quoted(sql) for name, sql in _FORMS.items()}
    plain = f"regexp_full_match(text, {forms['points']})"
    plain_comma = f"regexp_full_match(text, {forms['commas']})"
    columns = {column.raw: column.name for column in table.columns.values()}
    texts = f"""
        SELECT name, raw, fairpca_known(raw) AS text FROM (UNPIVOT (
            SELECT {", ".join(columns)} FROM {table.source()} LIMIT {head_rows(len(columns))}
        ) ON COLUMNS(*) INTO NAME name VALUE raw)
    """
    found = table.rows(
        rf"""
        SELECT
            name, list(DISTINCT raw) FILTER (WHERE fairpca_label(raw) IS NULL) AS nulls,
            bool_and(regexp_full_match(text, {quoted(_DATE)})) AS dates,
            bool_and(lower(text) IN ('true', 'false')) AS flags,
            avg(CAST({plain} OR regexp_full_match(bare, {forms["amounts"]}) AS INT)) AS points,
            avg(CAST({plain_comma} OR regexp_full_match(bare, {forms["comma_amounts"]}) AS INT))
                AS commas,
            min(text) FILTER (WHERE contains(text, ',')) AS comma,
            min(text) FILTER (WHERE contains(text, '.')) AS point,
            min(text) FILTER (WHERE NOT ({plain} OR {plain_comma})) AS amount,
            bool_or(regexp_matches(text, {forms["marks"]})) AS marks,
            bool_or(regexp_full_match(text, '0\d+')) AS padded,
            bool_or(regexp_matches(bare, '[kKMB]')) AS letters,
            bool_and(NOT contains(text, '.') OR regexp_full_match(bare, {forms["thousands"]}))
                AS thousands,
            list(DISTINCT regexp_extract(text, {forms["signs"]})) FILTER (WHERE text IS NOT NULL)
                AS signs
        FROM (
            SELECT *, regexp_replace(text, {forms["signs"]}, '', 'g') AS bare FROM ({texts})
        ) GROUP BY name
        """,
        as_dicts=True,
    )
    for row in found:
        table.nulls.update(row["nulls"] or ())
    head = {columns[row["name"]]: row for row in found if row["points"] is not None}
    return {name: head[name] for name in table.columns if name in head}


def _told_decimal(where: str, head: Mapping[str, dict[str, Any]]) -> str:
    """The decimal mark that the first rows imply; refuses to guess if they allow both."""
    commas, points = (
        {name for name, found in head.items() if found["comma"] and found[share] == 1}
        for share in ("commas", "points")
    )
    commas -= {name for name in commas if {*head[name]["signs"]} & {*"$£¥"}}
    for name, found in head.items():
        if "€" in found["signs"] and found["point"] and not found["comma"] and found["thousands"]:
            fact = f"{where} has {found['point']!r} in column {name!r}"
            fact += ": the point may be a decimal mark or separate thousands"
            raise TableError("decimal", fact, "say which with decimal=',' or decimal='.'")
    if not commas or points - commas:
        return "."
    dotted = {name for name, found in head.items() if found["point"]}
    plain = [name for name in head if name in dotted and head[name]["points"] == 1]
    if commas - points and (commas & dotted or not plain):
        return ","
    asked = min(commas)
    seen = f"{where} has {head[asked]['comma']!r} in column {asked!r}"
    if plain:
        seen += f" and {head[plain[0]]['point']!r} in column {plain[0]!r}"
    fact = f"{seen}: the comma may be a decimal mark or separate thousands"
    raise TableError("decimal", fact, "say which with decimal=',' or decimal='.'")


def _judged(table: Table, column: Column, found: Mapping[str, Any]) -> Column:
    """Tell from the first rows whether a column of text holds numbers."""
    share = "points"
    fraction = "point"
    thousands = "comma"
    if table.decimal == ",":
        share = "commas"
        fraction = "comma"
        thousands = "point"
    padded = bool(found["padded"]) and not found["point"] and not found["comma"]
    column = replace(column, number=table.parsed(column.raw), padded=padded)
    if found["dates"]:
        return replace(column, kind="date", typed=f"CAST({column.label} AS TIMESTAMP)")
    if found["flags"]:
        digit = (
            f"CASE lower(fairpca_trim({column.raw})) WHEN 'true' THEN '1' WHEN 'false' THEN '0' "
        )
        number = f"fairpca_number({digit} ELSE {column.raw} END, {digit} ELSE {column.raw} END)"
        return replace(column, kind="number", number=number, typed=f"CAST({number} AS BOOLEAN)")
    if found[share] == 1 and found["amount"]:
        return _as_amount(table, column, found, has_fraction=bool(found[fraction]))
    if found[share] < 1:
        mixed = found[share] >= _MOSTLY
        typed = column.label
        if mixed:
            typed = column.number
        return replace(column, kind="text", typed=typed, odd=True, mixed=mixed)
    told = table.reading.decimal or len(table.missing) > len(table.codes)
    plain = not (told or found[thousands] or found["marks"])
    number = column.number
    if plain:
        number = f"CAST({table.with_points(column.raw)} AS DOUBLE)"
    typed = ""
    if found[fraction]:
        typed = number
    return replace(column, kind="number", number=number, typed=typed, plain=plain)


def _as_amount(
    table: Table, column: Column, found: Mapping[str, Any], has_fraction: bool
) -> Column:
    """A column of amounts of money or shares, which all have one sign, or of texts."""
    signs = sorted({*found["signs"]} - {""})
    alike = len(signs) <= 1 and not (signs == ["%"] and "" in found["signs"])
    if not alike or (found["letters"] and not signs and not has_fraction):  # 23M may be a man
        return replace(column, kind="text", typed=column.label, odd=True)
    sign = quoted("".join(signs))
    number = f"fairpca_amount({column.raw}, {table.with_points(column.raw)}, {sign})"
    return replace(column, kind="number", number=number, typed=number, example=str(found["amount"]))
