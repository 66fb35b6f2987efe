"""Which files a path stands for, and how their text is written.

DuckDB's own guess of a CSV dialect is not used: one short line would turn a table into a single
column of text, and lines that begin with ``#`` would vanish. We look at the first lines instead.
"""

from __future__ import annotations

import codecs
import csv
import difflib
import glob
import io
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, time
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

from fairpca._tables.arrow import pa

FileFormat = Literal["csv", "tsv", "parquet", "arrow"]

_FORMATS: dict[str, str] = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
}  # fmt: skip
#: Formats of a file that is named; a folder may hold notes and spreadsheets beside its data.
_NAMED_FORMATS = {
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"), "excel"),
    **dict.fromkeys((".duckdb", ".ddb", ".db"), "database"),
    ".txt": "csv",
}
_COMPRESSIONS = (".gz", ".bz2", ".zst", ".lz4", ".br")
_NOT_BY_DUCKDB = (".bz2", ".lz4", ".br")
_DELIMITERS = (",", ";", "\t", "|")
_HEAD_BYTES, _HEAD_LINES = 1 << 20, 50  # that tell the dialect
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # how Hive and its kin write null
_CONTINUATION, _STREAM_END = b"\xff\xff\xff\xff", b"\0\0\0\0"  # of an Arrow stream
_DAMAGE = (OSError, EOFError, pa.ArrowException)
_MOST_NAMES = 20  # in a message


class TableError(ValueError):
    """A table that cannot be used as it was asked for.

    Attributes
    ----------
    problem : str
        A code, such as "encoding" or "missing".
    fact, advice : str
        What is wrong, and what to do about it in Python; the message is both.
    facts : dict
        The figures and names in the message.
    """

    def __init__(self, problem: str, fact: str, advice: str, **facts: Any) -> None:
        super().__init__(f"{fact}; {advice}{'' if advice.endswith('?') else '.'}")
        self.problem, self.fact, self.advice, self.facts = problem, fact, advice, facts


class NoFileError(TableError, FileNotFoundError):
    """A file or folder that does not exist."""


@dataclass(frozen=True)
class TableFile:
    """One file: its path, its name in messages, and the columns that its folders name."""

    path: Path
    name: str
    format: str
    partition: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Dialect:
    """How a text file is written."""

    delimiter: str
    names: tuple[str, ...]
    longest_line: int


def find_files(paths: Any, file_format: str | None = None) -> list[TableFile]:
    """Every file of ``paths``: in the given order, those of a folder or pattern sorted by path.

    ``-`` is standard input. In a folder, files of unknown formats and hidden ones (``.`` or ``_``
    in front, such as Spark's ``_SUCCESS``) do not count. All must have one format.
    """
    if file_format is not None and file_format not in _FORMATS.values():
        fact = f"file_format={file_format!r} is not known"
        raise TableError("format", fact, "pass 'csv', 'tsv', 'parquet' or 'arrow'")
    given = list_of(paths)
    files = [file for path in given for file in _files_at(path, file_format)]
    if not files:
        advice = "pass a path, a list of paths, a folder or a query"
        raise TableError("no_file", "no files were given", advice)
    formats = sorted({file.format for file in files})
    if len(formats) > 1:
        where = f"the folder {given[0]}" if len(given) == 1 else "the list"
        fact = f"{where} holds files of several formats ({', '.join(formats)})"
        raise TableError("format", fact, "pass the files of one format, or read them in a query")
    return files


def list_of(paths: Any) -> list[Any]:
    """The paths as a list, also if there is only one."""
    if isinstance(paths, str | os.PathLike):
        return [paths]
    if not isinstance(paths, Iterable):
        raise TypeError(f"{paths!r} is not a path; pass a path, a list of paths, or a query.")
    return list(paths)


def _files_at(given: Any, file_format: str | None) -> list[TableFile]:
    """The files that one path stands for."""
    if given == "-":
        return [TableFile(Path("-"), "standard input", file_format or "csv")]
    path = Path(given)
    if path.is_dir():
        return _files_in(path, sorted(path.rglob("*")), file_format)
    if glob.has_magic(str(given)) and not path.exists():
        folder = Path(str(given)[: re.search(r"[*?\[]", str(given)).start()] + "x").parent  # type: ignore[union-attr]
        found = _files_in(
            folder, map(Path, sorted(glob.glob(str(given), recursive=True))), file_format
        )
        return found
    if not path.exists():
        fact = f"there is no file or folder {str(path)!r}"
        raise NoFileError("no_file", fact, _neighbour(path), path=str(path))
    known = file_format or _NAMED_FORMATS.get(path.suffix.lower()) or _format_of(path)
    if known is None:
        endings = ", ".join((*_FORMATS, *_NAMED_FORMATS))
        fact = f"the ending of {path} does not tell its format ({endings})"
        advice = "rename it, or pass file_format='csv', 'tsv', 'parquet' or 'arrow'"
        raise TableError("format", fact, advice, path=str(path), model=_is_model(path))
    return [TableFile(path, str(path), known)]


def _is_model(path: Path) -> bool:
    """Whether a file begins as models do that fairpca writes: a length, and JSON."""
    with path.open("rb") as stream:
        head = stream.read(9)
    return int.from_bytes(head[:8], "little") < path.stat().st_size and head[8:] == b"{"


def _files_in(folder: Path, paths: Iterable[Path], file_format: str | None) -> list[TableFile]:
    """The data files among the paths below a folder."""
    found = []
    for path in paths:
        inner, known = path.relative_to(folder), file_format or _format_of(path)
        hidden = any(part.startswith((".", "_")) for part in inner.parts)
        if known and not hidden and path.is_file():
            pairs = [part.split("=", 1) for part in inner.parts[:-1] if "=" in part]
            partition = {unquote(k): None if v == _NO_VALUE else unquote(v) for k, v in pairs}
            found.append(TableFile(path, str(path), known, partition))
    if not found:
        fact = f"the folder {folder} holds no data files ({', '.join(_FORMATS)})"
        raise TableError(
            "no_file", fact, "pass another folder, or file_format= if they are named differently"
        )
    return found


def _format_of(path: Path) -> str | None:
    """The format by the ending of the name, in front of that of a compression."""
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] in _COMPRESSIONS:
        endings.pop()
    return _FORMATS.get(endings[-1]) if endings else None


def _neighbour(path: Path) -> str:
    """Which existing file may have been meant."""
    if path.is_symlink():
        return f"it is a link that leads nowhere ({os.readlink(path)!r}), so mend it"
    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.exists()]
    except OSError:
        names = []
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.7)
    return f"did you mean {str(path.with_name(near[0]))!r}" if near else "pass another path"


# -- text ------------------------------------------------------------------------------------------


def as_utf8(file: TableFile, encoding: str | None, folder: str) -> TableFile:
    """The file, or a copy of it in ``folder`` where DuckDB could not read the bytes as they are.

    The copy is in UTF-8, not compressed, and has line ends of one kind.
    """
    path = file.path
    if str(path) == "-":
        path = _new_path(folder)
        with path.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        file = replace(file, path=path)
    head = _first_bytes(file)
    if not head.strip():
        fact = f"{file.name} is empty"
        advice = "it needs a line of column names, and rows"
        raise TableError("empty", fact, advice, file=file.name)
    plain = codecs.lookup(encoding or "utf-8").name
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        plain = "utf-16"
    mixed = b"\r\n" in head and re.search(rb"[^\r]\n", head) is not None
    if plain in ("utf-8", "utf-8-sig") and not mixed and path.suffix.lower() not in _NOT_BY_DUCKDB:
        return file
    copy_path, line = _new_path(folder), 1
    with _open(file) as stream, copy_path.open("w", encoding="utf-8", newline="\n") as copy_text:
        try:
            for text in io.TextIOWrapper(stream, plain):
                copy_text.write(text)
                line += 1
        except UnicodeError as error:
            raise undecodable(file.name, plain, line) from error
        except _DAMAGE as error:
            raise damaged(file.name, error) from error
    return replace(file, path=copy_path)


def _new_path(folder: str) -> Path:
    return Path(folder, f"{len(os.listdir(folder))}.csv")


def _open(file: TableFile) -> Any:
    return pa.input_stream(str(file.path), compression="detect")


def _first_bytes(file: TableFile) -> bytes:
    try:
        with _open(file) as stream:
            return bytes(stream.read(_HEAD_BYTES))
    except _DAMAGE as error:
        raise damaged(file.name, error) from error


def dialect_of(file: TableFile, header: bool) -> Dialect:
    """Delimiter and names of a text file in UTF-8."""
    text = _first_bytes(file).decode("utf-8-sig", errors="replace")
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)[:_HEAD_LINES]
    delimiter = _delimiter(lines, "\t" if file.format == "tsv" else ",")
    first = next((row for row in csv.reader(lines, delimiter=delimiter) if row), [])
    names = tuple(name.strip() for name in first)
    if not header:
        names = tuple(f"c{j}" for j in range(len(first)))
    elif all(map(is_number, names)) and not all(name.isdecimal() for name in names):
        fact = f"the first line of {file.name} holds numbers, such as {names[0]!r}"
        advice = "pass header=False to call the columns c0, c1, ..., or add a line of names"
        raise TableError("no_names", fact, advice, file=file.name)
    refuse_twin_names(file.name, names)
    return Dialect(delimiter, names, max(map(len, lines)))


def _delimiter(lines: Sequence[str], usual: str) -> str:
    """The delimiter that cuts most lines into as many values as the first one."""

    def score(mark: str) -> tuple[int, bool, int]:
        counts = [len(row) for row in csv.reader(lines, delimiter=mark) if row]
        alike = sum(count == counts[0] for count in counts) if counts else 0
        regular = bool(counts) and counts[0] > 1 and 2 * alike > len(counts)
        return (2 if regular else 0) + (counts[:1] > [1]), mark == usual, max(counts, default=0)

    return max(_DELIMITERS, key=score)


def calamine(name: str) -> tuple[Any, Any]:
    """The classes that read a workbook, and the error that they raise."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError as error:
        raise ImportError(
            f"reading {name} needs python-calamine; install it with pip install "
            '"fairpca[excel]", or save the sheet as CSV (File, Save as, or soffice --convert-to '
            "csv)."
        ) from error
    return CalamineError, CalamineWorkbook


def sheet_as_text(file: TableFile, sheet: str | None, folder: str) -> TableFile:
    """A temporary CSV file of the named sheet of a workbook, or of the only one with rows."""
    CalamineError, CalamineWorkbook = calamine(file.name)
    try:
        with CalamineWorkbook.from_path(file.path) as workbook:
            names = workbook.sheet_names
            wanted = [name for name in names if sheet in (None, name)]
            found = {name: workbook.get_sheet_by_name(name).to_python() for name in wanted}
    except CalamineError as error:
        fact = f"{file.name} cannot be read: it is damaged or not a spreadsheet ({error})"
        raise TableError(
            "damaged", fact, "restore it, or save the sheet as CSV", file=file.name
        ) from error
    full = {name: rows for name, rows in found.items() if rows}
    if len(full) != 1:
        if sheet is not None and not found:
            fact = f"{file.name} has no sheet {sheet!r}; its sheets are {first_names(names)}"
        elif full:
            fact = f"{file.name} has several sheets, {first_names([*full])}"
        else:
            fact = f"{file.name} is empty"
        advice = f"choose one, for example sheet={next(iter(full), 'Sheet1')!r}"
        raise TableError("sheet", fact, advice, file=file.name, sheets=[*full] or names)
    copy = _new_path(folder)
    with copy.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([_cell(value) for value in row] for row in full.popitem()[1])
    return replace(file, path=copy, format="csv")


def _cell(value: Any) -> Any:
    """A cell as text: whole numbers without a fraction, dates as ISO writes them."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value.isoformat() if isinstance(value, date | time) else value


# -- Arrow files, which DuckDB cannot read by itself -----------------------------------------------


def arrow_schema(file: TableFile) -> pa.Schema:
    """Names and types of the columns of an Arrow file."""
    try:
        with pa.OSFile(str(file.path)) as source:
            schema = _open_arrow(source).schema
            schema.names, schema.pandas_metadata  # noqa: B018 - decodes them
            return schema
    except (*_DAMAGE, UnicodeDecodeError, ValueError) as error:
        raise damaged(file.name, error) from error


def arrow_batches(files: Sequence[TableFile], schema: pa.Schema) -> Iterator[Any]:
    """Record batches of these files, with the columns of their paths and of their names."""
    for file in files:
        constants = {**file.partition, "filename": str(file.path)}
        try:
            # Not a memory map: a file cut short while it is mapped kills the process that reads it.
            with pa.OSFile(str(file.path)) as source:
                reader = _open_arrow(source)
                is_file = isinstance(reader, pa.RecordBatchFileReader)
                numbers = range(reader.num_record_batches) if is_file else None
                for batch in map(reader.get_batch, numbers) if numbers is not None else reader:
                    batch.validate(full=True)  # offsets outside of the batch would end the process
                    columns = [
                        pa.repeat(pa.scalar(constants[name], pa.string()), len(batch))
                        if name in constants
                        else batch.column(name).cast(kind)
                        for name, kind in zip(schema.names, schema.types, strict=True)
                    ]
                    yield pa.RecordBatch.from_arrays(columns, schema=schema)
        except _DAMAGE as error:
            raise damaged(file.name, error) from error


def _open_arrow(source: Any) -> Any:
    """A reader of the file format, or of the stream format, which has no magic number."""
    magic = source.read(6)
    if magic == b"ARROW1":
        source.seek(0)
        return pa.ipc.open_file(source)
    # A stream that is cut off between two batches looks complete, but for its last bytes.
    end = _CONTINUATION + _STREAM_END if magic.startswith(_CONTINUATION) else _STREAM_END
    source.seek(max(source.size() - len(end), 0))
    if source.read() != end:
        raise pa.ArrowInvalid("the mark at the end of the stream is missing")
    source.seek(0)
    return pa.ipc.open_stream(source)


# -- errors ----------------------------------------------------------------------------------------


def damaged(name: str, error: object) -> TableError:
    """The error for a file that cannot be read."""
    fact = f"{name} cannot be read: it is cut off, damaged or of another format ({error})"
    return TableError("damaged", fact, "restore the file, or leave it out", file=name)


def undecodable(name: str, encoding: str, line: int) -> TableError:
    """The error for bytes that are not text in an encoding."""
    fact = f"{name} is not {encoding.upper()} text (line {line})"
    advice = "name its encoding, for example encoding='latin-1'"
    return TableError("encoding", fact, advice, file=name, line=line)


def refuse_twin_names(where: str, names: Sequence[str]) -> None:
    """Refuse a file with two columns of one name."""
    for name, count in Counter(names).items():
        if count > 1 and name:
            fact = f"{where} has two columns named {name!r}"
            raise TableError("twin_columns", fact, "rename one", file=where, column=name)


def unknown_column(name: str, known: Sequence[str], where: str) -> TableError:
    """The error for a column that does not exist, with the most similar names.

    Examples
    --------
    >>> unknown_column("Sexx", ["age", "sex", "bmi"], "people.csv").args[0]
    "there is no column 'Sexx' in people.csv; did you mean 'sex'?"
    """
    folded = {column.casefold(): column for column in known}
    near = [folded[n] for n in difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.6)]
    if f"{name}=" in where:
        advice = f"it is in the path: pass the folder above {name}=... instead"
    elif near:
        advice = f"did you mean {' or '.join(map(repr, near))}?"
    else:
        advice = f"its columns are {first_names(known)}"
    facts = {"column": name, "columns": list(known), "near": near}
    if sum(map(is_number, known)) > len(known) / 2:
        advice += f"{'' if near else '.'} If its first line holds no names, pass header=False"
    return TableError("unknown_column", f"there is no column {name!r} in {where}", advice, **facts)


def first_names(names: Sequence[str]) -> str:
    """The first names of a list, and how many more there are."""
    shown = names if len(names) <= _MOST_NAMES + 1 else names[:_MOST_NAMES]
    more = len(names) - len(shown)
    return f"{', '.join(map(repr, shown))}{f' and {more} more' if more else ''}"


def is_number(text: str) -> bool:
    """Whether a text is a finite number."""
    try:
        return abs(float(text)) < float("inf")
    except ValueError:
        return False
