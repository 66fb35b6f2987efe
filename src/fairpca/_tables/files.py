"""Which files a path stands for, and copies of those that DuckDB cannot read as they are.

DuckDB's own guess of a CSV dialect is not used: one short line would turn a table into a single
column of text, and lines that begin with ``#`` would vanish. We look at the first lines instead.
This is the only module that imports pyarrow.
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

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq
except ImportError as error:
    raise ImportError(
        "reading and writing files needs pyarrow; install it with pip install 'fairpca[files]'."
    ) from error

__all__ = ["pa", "pa_csv", "pc", "pq"]

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
_NOT_BY_DUCKDB = (".bz2", ".lz4", ".br")  # compressions
_HEAD_BYTES, _HEAD_LINES = 1 << 20, 50  # The dialect is told from these.
_DAMAGE = (OSError, EOFError, pa.ArrowException)


class TableError(ValueError):
    """A table that cannot be used as it was asked for.

    Attributes
    ----------
    problem : str
        A code, such as "encoding" or "missing".
    fact, advice : str
        What is wrong, and what to do about it in Python; the message is both.
    facts : dict
        Figures and names of the message.
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
    partition: Mapping[str, str] = field(default_factory=dict)


# -- paths -----------------------------------------------------------------------------------------


def find_files(paths: Any, file_format: str | None = None) -> list[TableFile]:
    """Every file of ``paths``: in the given order, those of a folder or pattern sorted by path.

    ``-`` is standard input. In a folder, files of unknown formats and hidden ones (``.`` or ``_``
    in front, such as Spark's ``_SUCCESS``) do not count. All must have one format.
    """
    if file_format not in (None, *_FORMATS.values()):
        advice = "pass 'csv', 'tsv', 'parquet' or 'arrow'"
        raise TableError("format", f"file_format={file_format!r} is not known", advice)
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
    path, text = Path(given), str(given)
    if path.is_dir():
        return _files_in(path, path.rglob("*"), file_format)
    if glob.has_magic(text) and not path.exists():
        folder = Path(re.split(r"[*?\[]", text)[0] + "x").parent
        return _files_in(folder, map(Path, glob.glob(text, recursive=True)), file_format)
    if not path.exists():
        fact = f"there is no file or folder {str(path)!r}"
        raise NoFileError("no_file", fact, _advice_for(path))
    known = file_format or _NAMED_FORMATS.get(path.suffix.lower()) or _format_of(path)
    if known is None:
        endings = ", ".join((*_FORMATS, *_NAMED_FORMATS))
        fact = f"the ending of {path} does not tell its format ({endings})"
        advice = "rename it, or pass file_format='csv', 'tsv', 'parquet' or 'arrow'"
        raise TableError("format", fact, advice)
    return [TableFile(path, str(path), known)]


def _files_in(folder: Path, paths: Iterable[Path], file_format: str | None) -> list[TableFile]:
    """The data files among the paths below a folder."""
    found = []
    for path in sorted(paths):
        inner, known = path.relative_to(folder).parts, file_format or _format_of(path)
        if known and path.is_file() and not any(part.startswith((".", "_")) for part in inner):
            partition = dict(unquote(part).split("=", 1) for part in inner[:-1] if "=" in part)
            found.append(TableFile(path, str(path), known, partition))
    if not found:
        fact = f"the folder {folder} holds no data files ({', '.join(_FORMATS)})"
        advice = "pass another folder, or file_format= if they are named differently"
        raise TableError("no_file", fact, advice)
    return found


def _format_of(path: Path) -> str | None:
    """The format by the ending of the name, in front of that of a compression."""
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] in (".gz", ".zst", *_NOT_BY_DUCKDB):
        endings.pop()
    return _FORMATS.get(endings[-1]) if endings else None


def _advice_for(path: Path) -> str:
    """What to do about a path that does not exist."""
    if path.is_symlink():
        return f"it is a link that leads nowhere ({os.readlink(path)!r}), so mend it"
    names = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.7)
    return f"did you mean {str(path.with_name(near[0]))!r}" if near else "pass another path"


# -- text and spreadsheets -------------------------------------------------------------------------


def as_utf8(file: TableFile, encoding: str | None, folder: str) -> TableFile:
    """The file, or a copy of it in ``folder`` where DuckDB could not read the bytes as they are.

    The copy is in UTF-8, not compressed, and has line ends of one kind.
    """
    if str(file.path) == "-":
        copy = _new_path(file, folder)
        with copy.open("wb") as spool:
            shutil.copyfileobj(sys.stdin.buffer, spool)
        file = replace(file, path=copy)
    head = _first_bytes(file)
    if not head.strip():
        advice = "it needs a line of column names, and rows"
        raise TableError("empty", f"{file.name} is empty", advice)
    plain = codecs.lookup(encoding or "utf-8").name
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        plain = "utf-16"
    mixed = b"\r\n" in head and re.search(rb"[^\r]\n", head) is not None
    packed = file.path.suffix.lower() in _NOT_BY_DUCKDB
    if plain in ("utf-8", "utf-8-sig") and not mixed and not packed:
        return file
    copy, line = _new_path(file, folder), 1
    try:
        with _stream(file) as stream, copy.open("w", encoding="utf-8", newline="\n") as sink:
            for text in io.TextIOWrapper(stream, plain):
                sink.write(text)
                line += 1
    except UnicodeError as error:
        raise undecodable(file.name, plain, line) from error
    except _DAMAGE as error:
        raise damaged(file.name, error) from error
    return replace(file, path=copy)


def _new_path(file: TableFile, folder: str) -> Path:
    """A new file below ``folder``, in folders of the same ``key=value`` names."""
    keys = [part for part in file.path.parts[:-1] if "=" in part]
    path = Path(folder, str(len(os.listdir(folder))), *keys, "copy.csv")
    path.parent.mkdir(parents=True)
    return path


def _stream(file: TableFile) -> Any:
    return pa.input_stream(str(file.path), compression="detect")


def _first_bytes(file: TableFile) -> bytes:
    try:
        with _stream(file) as stream:
            return bytes(stream.read(_HEAD_BYTES))
    except _DAMAGE as error:
        raise damaged(file.name, error) from error


def dialect_of(file: TableFile, header: bool) -> tuple[str, tuple[str, ...], int]:
    """Delimiter, names of the columns, and length of the longest of the first lines."""
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
        raise TableError("no_names", fact, advice)
    refuse_twin_names(file.name, names)
    return delimiter, names, max(map(len, lines))


def _delimiter(lines: Sequence[str], usual: str) -> str:
    """The delimiter that cuts most lines into as many values as the first one."""

    def score(mark: str) -> tuple[int, bool, int]:
        counts = [len(row) for row in csv.reader(lines, delimiter=mark) if row] or [0]
        regular = counts[0] > 1 and 2 * counts.count(counts[0]) > len(counts)
        return 2 * regular + (counts[0] > 1), mark == usual, max(counts)

    return max((",", ";", "\t", "|"), key=score)


def sheet_as_text(file: TableFile, sheet: str | None, folder: str) -> TableFile:
    """A temporary CSV file of the named sheet of a workbook, or of the only one with rows."""
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
            found = {name: workbook.get_sheet_by_name(name).to_python() for name in names}
    except CalamineError as error:
        fact = f"{file.name} cannot be read: it is damaged or not a spreadsheet ({error})"
        raise TableError("damaged", fact, "restore it, or save the sheet as CSV") from error
    full = {name: rows for name, rows in found.items() if rows and sheet in (None, name)}
    if len(full) != 1:
        fact = f"{file.name} is empty"
        if sheet is not None:
            fact = f"{file.name} has no sheet {sheet!r} with rows; it has {first_names(names)}"
        elif full:
            fact = f"{file.name} has several sheets, {first_names([*full])}"
        advice = f"choose one, for example sheet={next(iter(full or names), 'Sheet1')!r}"
        raise TableError("sheet", fact, advice, sheets=[*full] or names)
    copy = _new_path(file, folder)
    with copy.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(map(_cell, row) for row in full.popitem()[1])
    return replace(file, path=copy, format="csv")


def _cell(value: Any) -> Any:
    """A cell as text: whole numbers without a fraction, dates as ISO writes them."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value.isoformat() if isinstance(value, date | time) else value


# -- schemas, and Arrow files, which DuckDB cannot read by itself ----------------------------------


def schemas_of(files: Sequence[TableFile]) -> list[Any]:
    """The Arrow schemas of files; refuses those that lack a column of the first, or have it twice.

    Types are plain: the values of a dictionary are what other files and DuckDB can use.
    """
    schemas: list[Any] = []
    for file in files:
        try:
            with pa.OSFile(str(file.path)) as source:
                parquet = file.format == "parquet"
                schema = pq.read_schema(source) if parquet else _open_arrow(source).schema
                plain = pa.schema(
                    [(f.name, getattr(f.type, "value_type", f.type))
                     if pa.types.is_dictionary(f.type) else f for f in schema],
                    metadata={} if schema.pandas_metadata is None else schema.metadata,
                )  # fmt: skip
        except (*_DAMAGE, UnicodeDecodeError, ValueError) as error:
            raise damaged(file.name, error) from error
        schemas.append(plain)
        wanted = set(schemas[0].names)
        refuse_twin_names(file.name, [name for name in plain.names if name in wanted])
        for name in schemas[0].names:
            if name not in plain.names:
                raise unknown_column(name, plain.names, file.name)
    return schemas


def arrow_batches(files: Sequence[TableFile], schema: Any) -> Iterator[Any]:
    """Record batches of these files; the last column is the path of the file."""
    for file in files:
        try:
            # Not a memory map: a file cut short while it is mapped kills the process that reads it.
            with pa.OSFile(str(file.path)) as source:
                reader = _open_arrow(source)
                n_batches = getattr(reader, "num_record_batches", None)
                for batch in (
                    reader if n_batches is None else map(reader.get_batch, range(n_batches))
                ):
                    batch.validate(full=True)  # offsets outside of the batch would end the process
                    columns = [batch.column(f.name).cast(f.type) for f in [*schema][:-1]]
                    columns.append(pa.repeat(pa.scalar(str(file.path)), len(batch)))
                    yield pa.RecordBatch.from_arrays(columns, schema=schema)
        except _DAMAGE as error:
            raise damaged(file.name, error) from error


def _open_arrow(source: Any) -> Any:
    """A reader of the file format, or of the stream format, which has no magic number."""
    magic = source.read(6)
    source.seek(0)
    if magic == b"ARROW1":
        return pa.ipc.open_file(source)
    # A stream that is cut off between two batches looks complete, but for its last bytes.
    end = b"\0\0\0\0"
    if magic.startswith(b"\xff\xff\xff\xff"):
        end = b"\xff\xff\xff\xff" + end
    source.seek(max(source.size() - len(end), 0))
    if source.read() != end:
        raise pa.ArrowInvalid("the mark at the end of the stream is missing")
    source.seek(0)
    return pa.ipc.open_stream(source)


# -- errors ----------------------------------------------------------------------------------------


def damaged(name: str, error: object) -> TableError:
    """The error for a file that cannot be read."""
    fact = f"{name} cannot be read: it is cut off, damaged or of another format ({error})"
    return TableError("damaged", fact, "restore the file, or leave it out")


def undecodable(name: str, encoding: str, line: int) -> TableError:
    """The error for bytes that are not text in an encoding."""
    fact = f"{name} is not {encoding.upper()} text (line {line})"
    return TableError("encoding", fact, "name its encoding, for example encoding='latin-1'")


def refuse_twin_names(where: str, names: Iterable[str]) -> None:
    """Refuse a file with two columns of one name."""
    for name, count in Counter(names).items():
        if count > 1 and name:
            fact = f"{where} has two columns named {name!r}"
            raise TableError("twin_columns", fact, "rename one", column=name)


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
    if sum(map(is_number, known)) > len(known) / 2:
        advice += f"{'' if near else '.'} If its first line holds no names, pass header=False"
    fact = f"there is no column {name!r} in {where}"
    return TableError("unknown_column", fact, advice, column=name)


def first_names(names: Sequence[str], most: int = 20) -> str:
    """The first names of a list, and how many more there are."""
    shown = names if len(names) <= most + 1 else names[:most]
    more = len(names) - len(shown)
    return f"{', '.join(map(repr, shown))}{f' and {more} more' if more else ''}"


def is_number(text: str) -> bool:
    """Whether a text is a finite number."""
    try:
        return abs(float(text)) < float("inf")
    except ValueError:
        return False
