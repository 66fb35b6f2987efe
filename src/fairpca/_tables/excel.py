"""Spreadsheets: one sheet of a workbook, as a temporary CSV file that is read like any other."""

from __future__ import annotations

import csv
import shlex
from dataclasses import replace
from datetime import date, time
from typing import Any

from fairpca._tables.paths import TableFile, TextFormat, temporary_file


def sheet_as_text(file: TableFile, text: TextFormat) -> TableFile:
    """A text file of the rows of the sheet that ``text`` names, or of the only one with rows."""
    rows, copy = _rows(file, text.sheet), temporary_file(file.name, "csv")
    with copy.path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([_written(value) for value in row] for row in rows)
    return replace(copy, text=replace(text, encoding="utf-8", decimal="."))


def _rows(file: TableFile, sheet: str | None) -> list[list[Any]]:
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError as error:
        raise ImportError(
            f"reading {file.name} needs python-calamine; install it with pip install "
            '"fairpca[excel]", or save the sheet as CSV (File, Save as, or soffice --convert-to '
            "csv)."
        ) from error
    try:
        with CalamineWorkbook.from_path(file.path) as workbook:
            names = workbook.sheet_names
            wanted = [name for name in names if sheet in (None, name)]
            found = {name: workbook.get_sheet_by_name(name).to_python() for name in wanted}
    except CalamineError as error:
        raise ValueError(
            f"{file.name} cannot be read: it is damaged or not a spreadsheet ({error}); restore "
            "it, or save the sheet as CSV."
        ) from error
    full = {name: rows for name, rows in found.items() if rows}
    if sheet is not None and not found:
        raise ValueError(f"{file.name} has no sheet {sheet!r}; its sheets are {_listed(names)}.")
    if not full:
        raise ValueError(f"{file.name} is empty; it needs a row of column names, and rows.")
    if len(full) > 1:
        raise ValueError(
            f"{file.name} has the sheets {_listed(full)}; choose one, for example --sheet "
            f"{shlex.quote(next(iter(full)))} (in Python read_table(..., sheet=))."
        )
    return next(iter(full.values()))


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names))


def _written(value: Any) -> Any:
    """A cell as text: whole numbers without a fraction, dates as ISO writes them."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value.isoformat() if isinstance(value, date | time) else value
