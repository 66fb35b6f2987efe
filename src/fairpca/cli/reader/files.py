"""Which files a path stands for, and copies of those that DuckDB cannot read as they are.

DuckDB's own guess of a CSV dialect is not used: one short line would turn a table into a single
column of text, and lines that begin with ``#`` would vanish. We look at the first lines instead.
This is the only module that imports duckdb and pyarrow.
"""

from __future__ import annotations

import codecs
import csv
import difflib
import errno
import glob
import io
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from fairpca.exceptions import NoFileError, TableError

try:
    import duckdb
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq
except ImportError as error:
    raise ImportError(
        "files need duckdb and pyarrow; install them with pip install duckdb pyarrow."
    ) from error

__all__ = ["duckdb", "pa", "pa_csv", "pc", "pq"]

_FORMATS: dict[str, str] = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
}  # fmt: skip
#: Formats of files passed by name only: a folder may hold notes and spreadsheets beside data.
_NAMED_FORMATS = {
    ".xlsx": "excel", ".xls": "excel", ".xlsm": "excel", ".xlsb": "excel", ".ods": "excel",
    ".duckdb": "database", ".ddb": "database", ".db": "database", ".txt": "csv",
}  # fmt: skip
_HEAD_BYTES = 1 << 20  # the part of a file that tells its dialect
_HEAD_LINES = 50
#: Marks at the beginning of texts, the longer ones first.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    codecs.BOM_UTF8: "utf-8-sig",
}
_DAMAGE = (OSError, EOFError, pa.ArrowException)


@dataclass(frozen=True)
class TableFile:
    """One file."""

    path: Path
    name: str  # as messages call it
    format: str
    partition: Mapping[str, str] = field(default_factory=dict)  # the columns that its folders name

    def stream(self) -> Any:
        """The bytes, decompressed."""
        return pa.input_stream(str(self.path), compression="detect")

    def head(self) -> bytes:
        """The first bytes, decompressed."""
        try:
            with self.stream() as stream:
                return bytes(stream.read(_HEAD_BYTES))
        except _DAMAGE as error:
            raise damaged(self.name, error) from error

    def new_copy(self, folder: str, kind: str = "csv") -> TableFile:
        """A file that does not exist yet, below folders of the same ``key=value`` names."""
        keys = [part for part in self.path.parts[:-1] if "=" in part]
        if self.format == "tsv":
            kind = "tsv"
        path = Path(folder, str(len(os.listdir(folder))), *keys, f"copy.{kind}")
        path.parent.mkdir(parents=True)
        return replace(self, path=path, format=kind)


def find_files(paths: Any) -> list[TableFile]:
    """The files of ``paths`` in the given order; those of a folder or pattern sorted by path.

    ``-`` is standard input. In a folder, unknown formats and hidden files (``.`` or ``_`` in front,
    such as Spark's ``_SUCCESS``) are skipped. All files must have one format.
    """
    given = list_of(paths)
    files = [_absolute(file) for path in given for file in _files_at(path)]
    if not files:
        raise TableError("no_file", "no files were given", "pass a path, a folder or a query")
    for path, times in Counter(os.path.realpath(file.path) for file in files).items():
        if times > 1:
            fact = f"{path} is read {times} times, which would count its rows again"
            raise TableError("twin_files", fact, "name each file once")
    formats = sorted({file.format for file in files})
    if len(formats) > 1:
        where = "the list"
        if len(given) == 1:
            where = given[0]
        fact = f"{where} holds files of several formats ({', '.join(formats)})"
        advice = "pass the files of one format, or read them in a query"
        raise TableError("format", fact, advice)
    return files


def _absolute(file: TableFile) -> TableFile:
    """The file under its whole path: DuckDB takes ``~/x`` and ``md:x`` for other places."""
    if file.path == Path("-"):
        return file
    return replace(file, path=file.path.absolute())


def list_of(paths: Any) -> list[Any]:
    """The paths as a list, also if there is only one."""
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    return list(map(os.path.expanduser, paths))


def _files_at(given: Any) -> list[TableFile]:
    """The files that one path stands for."""
    if given == "-":
        return [TableFile(Path("-"), "standard input", "csv")]
    path = Path(given)
    text = str(given)
    if path.is_dir():
        return _files_in(path, _paths_below(path))
    if path.exists():
        known = _NAMED_FORMATS.get(path.suffix.lower()) or _format_of(path)
        if known is None:
            fact = f"the ending of {path} does not tell its format ({', '.join(_FORMATS)})"
            raise TableError("format", fact, "rename it")
        return [TableFile(path, text, known)]
    if glob.has_magic(text) and (matches := glob.glob(text, recursive=True)):
        folder = Path(re.split(r"[*?\[]", text)[0] + "x").parent
        return _files_in(folder, map(Path, matches))
    names = list[str]()
    if path.parent.is_dir():
        names = [beside.name for beside in path.parent.iterdir() if beside.exists()]
    advice = "pass another path"
    if near := difflib.get_close_matches(path.name, names, n=1, cutoff=0.7):
        advice = f"did you mean {str(path.with_name(near[0]))!r}?"
    if "://" in text:
        advice = (
            "the command opens no addresses: download the file and pass its path, or read it with "
            f'DuckDB or polars in Python, for example audit(None, duckdb.sql("FROM {text!r}"), '
            "sensitive_features='sex')"
        )
    if text.startswith("file://"):
        advice = f"pass the path alone, {unquote(urlsplit(text).path)!r}"
    raise NoFileError("no_file", f"there is no file or folder {text!r}", advice)


def is_file_name(name: str) -> bool:
    """Whether a name in a query is that of files, by its ending."""
    named = _NAMED_FORMATS.get(Path(name.lower()).suffix)
    return named in ("excel", "csv") or _format_of(Path(name)) is not None


def _paths_below(folder: Path) -> Iterator[Path]:
    """All files below a folder; links to other folders are followed, each folder once."""
    seen = set[str]()
    for path, folders, names in os.walk(folder, followlinks=True):
        if (real := os.path.realpath(path)) in seen:
            folders.clear()
            continue
        seen.add(real)
        yield from (Path(path, name) for name in names)


def _files_in(folder: Path, paths: Iterable[Path]) -> list[TableFile]:
    """The data files among the paths below a folder."""
    found = []
    paths = sorted(paths)
    folders = {above for path in paths for above in path.parents}
    for path in paths:
        inner = path.relative_to(folder).parts
        known = _format_of(path)
        if known and path not in folders and not any(part.startswith((".", "_")) for part in inner):
            if not path.is_file():
                fact = f"{path} is a broken link or a folder"
                raise TableError("no_file", fact, "restore or remove it, or pass the files alone")
            partition = dict(unquote(part).split("=", 1) for part in inner[:-1] if "=" in part)
            found.append(TableFile(path, str(path), known, partition))
    if not found:
        fact = f"the folder {folder} holds no data files ({', '.join(_FORMATS)})"
        raise TableError("no_file", fact, "pass another folder, or rename the files")
    return found


def _format_of(path: Path) -> str | None:
    """The format by the ending of the name, apart from the ending of a compression."""
    *others, last = ["", *map(str.lower, path.suffixes)]
    if last in (".bz2", ".xz", ".lz4", ".br", ".zip") and others[-1] in _FORMATS:
        fact = f"{path} is compressed in a way that cannot be read"
        raise TableError("format", fact, "decompress it, or compress it with gzip")
    if last in (".gz", ".zst"):
        last = others[-1]
    return _FORMATS.get(last)


def as_utf8(file: TableFile, encoding: str | None, folder: str) -> TableFile:
    """The file, or a plain copy in UTF-8 where DuckDB could not read the bytes as they are."""
    if str(file.path) == "-":
        file = file.new_copy(folder)
        with file.path.open("wb") as spool:
            shutil.copyfileobj(sys.stdin.buffer, spool)
    head = file.head()
    mark = next((mark for mark in _MARKS if head.startswith(mark)), b"")
    if not head.removeprefix(mark).strip():
        raise TableError("empty", f"{file.name} is empty", "write column names and rows to it")
    plain = _MARKS.get(mark) or codecs.lookup(encoding or "utf-8").name
    if b"\0" in head and plain in ("utf-8", "utf-8-sig"):
        raise undecodable(file.name, plain, 1)
    mixed = b"\r\n" in head and re.search(rb"[^\r]\n", head) is not None
    if plain in ("utf-8", "utf-8-sig") and not mixed:
        return file
    copy = file.new_copy(folder)
    with copy.path.open("w", encoding="utf-8", newline="") as sink:
        sink.writelines(_lines(file, plain))
    return copy


def _lines(file: TableFile, encoding: str) -> Iterator[str]:
    """The lines of a file, with ends of one kind, except within quotes."""
    n_lines = 0
    quoted = False
    try:
        with file.stream() as source:
            for line in io.TextIOWrapper(source, encoding, newline=""):
                n_lines += 1
                quoted ^= line.count('"') % 2 == 1
                if not quoted:
                    line = line.rstrip("\r\n") + "\n"
                yield line
    except UnicodeError as error:
        raise undecodable(file.name, encoding, n_lines + 1) from error
    except _DAMAGE as error:
        raise damaged(file.name, error) from error


def dialect_of(file: TableFile, header: bool) -> tuple[str, tuple[str, ...]]:
    """Delimiter and names of the columns.

    The delimiter is the one that cuts most lines into as many values as the first.
    """
    head = file.head()
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(head)  # it may end in a letter
    except UnicodeDecodeError as error:
        raise undecodable(file.name, "utf-8", head[: error.start].count(b"\n") + 1) from error
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)[:_HEAD_LINES]
    csv.field_size_limit(_HEAD_BYTES)  # with another delimiter, a line is a single field

    def score(mark: str) -> tuple[int, bool, int]:
        counts = [len(row) for row in csv.reader(lines, delimiter=mark) if row] or [0]
        regular = counts[0] > 1 and 2 * counts.count(counts[0]) > len(counts)
        usual = mark == {"tsv": "\t"}.get(file.format, ",")
        return 2 * regular + (counts[0] > 1), usual, max(counts)

    delimiter = max((",", ";", "\t", "|"), key=score)
    first = next((row for row in csv.reader(lines, delimiter=delimiter) if row), [])
    names = tuple(f"c{j}" for j in range(len(first)))
    if header:
        names = tuple(map(str.strip, first))
    if header and all(map(is_number, names)) and not all(name.isdecimal() for name in names):
        fact = f"the first line of {file.name} holds numbers, such as {names[0]!r}"
        advice = "pass header=False to call the columns c0, c1, ..., or add a line of names"
        raise TableError("no_names", fact, advice)
    refuse_twin_names(file.name, names, "rename one, or pass header=False if these are values")
    return delimiter, names


def line_of(file: TableFile, n_before: int) -> int:
    """The line that ends a row of a text file, given how many rows come before."""
    with file.stream() as stream:
        reader = csv.reader(
            io.TextIOWrapper(stream, "utf-8-sig", newline=""), delimiter=dialect_of(file, False)[0]
        )
        lines = (reader.line_num for row in reader if row)
        return next(islice(lines, n_before, None), n_before + 1)


def sheet_as_text(file: TableFile, sheet: str | None, folder: str) -> TableFile:
    """A temporary CSV file of the named sheet of a workbook, or of the only one with rows."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError as error:
        raise ImportError(
            f"reading {file.name} needs python-calamine; install it with pip install "
            "python-calamine, or save the sheet as CSV (File, Save as)."
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
        fact = "is empty"
        if sheet is not None:
            fact = f"has no sheet {sheet!r} with rows; its sheets are {first_names(names)}"
        elif full:
            fact = f"has several sheets, {first_names([*full])}"
        advice = f"choose one, for example sheet={next(iter(full or names))!r}"
        raise TableError("sheet", f"{file.name} {fact}", advice)
    copy = file.new_copy(folder)
    with copy.path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(  # whole numbers without a fraction
            [int(v) if isinstance(v, float) and v.is_integer() else v for v in row]
            for row in full.popitem()[1]
        )
    return copy


def as_parquet(file: TableFile, folder: str) -> TableFile:
    """A temporary Parquet file with the rows of an Arrow file."""
    copy = file.new_copy(folder, "parquet")
    try:
        # Not a memory map: a file cut short while it is mapped kills the process that reads it.
        with pa.OSFile(str(file.path)) as source:
            reader = pa.ipc.open_file(source)
            schema = reader.schema
            for i, field in enumerate(schema):  # what polars writes and Parquet cannot hold
                kind = field.type
                if pa.types.is_dictionary(kind) and kind.value_type == pa.string_view():
                    plain = pa.dictionary(kind.index_type, pa.string())
                    schema = schema.set(i, field.with_type(plain))
            how = {"compression": "none", "use_dictionary": False}
            with pq.ParquetWriter(copy.path, schema, **how) as writer:
                for batch in map(reader.get_batch, range(reader.num_record_batches)):
                    batch.validate(full=True)  # offsets outside the batch would crash
                    writer.write_batch(batch.cast(schema))
    except (*_DAMAGE, ValueError) as error:
        raise damaged(file.name, error) from error
    return copy


def first_schema(files: Sequence[TableFile]) -> tuple[Any, set[str], int]:
    """The schema of the first Parquet file, columns of numbers in any of them, and all rows.

    Refuses files that lack a column or have it twice.
    """
    first: Any = None
    numbers = set[str]()
    n_rows = 0
    for file in files:
        try:
            with pa.OSFile(str(file.path)) as source:
                about = pq.read_metadata(source)
                schema = about.schema.to_arrow_schema()
                n_rows += about.num_rows
        except (*_DAMAGE, ValueError) as error:
            raise damaged(file.name, error) from error
        if first is None:
            first = schema
        refuse_twin_names(file.name, [name for name in schema.names if name in first.names])
        refuse_unknown(first.names, schema.names, file.name)
        refuse_unknown(schema.names, first.names, files[0].name)
        types = list(zip(schema.names, schema.types, strict=True))
        for name, kind in types:
            own = first.field(name).type
            if pa.types.is_temporal(kind) != pa.types.is_temporal(own):
                fact = f"column {name!r} is {kind} in {file.name}, but {own} in {files[0].name}"
                raise TableError("columns", fact, "write all files alike")
        numbers |= {n for n, t in types if pa.types.is_integer(t) or pa.types.is_floating(t)}
    if len(files) > 1 and len(set(map(str.casefold, first.names))) < len(first.names):
        fact = f"columns of {files[0].name} differ only in case"
        raise TableError("twin_columns", fact, "rename them, or read the files one by one")
    return first, numbers, n_rows


def bad_page(file: TableFile) -> str:
    """The error in the content of a Parquet file; "" if it can be read."""
    try:
        with pq.ParquetFile(file.path) as source:
            for batch in source.iter_batches():
                batch.validate()
    except (*_DAMAGE, ValueError) as error:
        return str(error)
    return ""


def damaged(name: str, error: object) -> TableError:
    """The error for a file that cannot be read."""
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        fact = f"the temporary folder {tempfile.gettempdir()} has no room for a copy of {name}"
        return TableError("full", fact, "let TMPDIR name a folder with more room")
    fact = f"{name} cannot be read: it is cut off, damaged or of another format ({error})"
    return TableError("damaged", fact, "restore the file, or leave it out")


def undecodable(name: str, encoding: str, line: int) -> TableError:
    """The error for bytes that are not text in an encoding."""
    fact = f"{name} is not {encoding.upper()} text (line {line})"
    return TableError("encoding", fact, "name its encoding, for example encoding='latin-1'")


def refuse_twin_names(where: str, names: Iterable[str], advice: str = "rename one") -> None:
    """Refuse two columns of one name."""
    for name, count in Counter(names).items():
        if count > 1 and name:
            raise TableError("twin_columns", f"{where} has two columns named {name!r}", advice)


def refuse_unknown(names: Iterable[str], known: Sequence[str], where: str) -> None:
    """Refuse a name that is not among the known ones, and say which are similar."""
    name = next((name for name in names if name not in known), None)
    if name is None:
        return
    folded = {column.casefold(): column for column in known}
    near = difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.6)
    advice = f"its columns are {first_names(known)}"
    if f"{name}=" in where:
        advice = f"it is in the path: pass the folder above {name}=... instead"
    elif near:
        advice = f"did you mean {' or '.join(repr(folded[column]) for column in near)}?"
    if sum(map(is_number, known)) > len(known) / 2:
        if not near:
            advice += "."
        advice += " If its first line holds no names, pass header=False"
    raise TableError("unknown_column", f"there is no column {name!r} in {where}", advice)


def first_names(names: Sequence[str]) -> str:
    """The first names of a list, and how many more there are."""
    if len(names) > 21:
        return f"{first_names(names[:20])} and {len(names) - 20} more"
    return ", ".join(map(repr, names))


def is_number(text: str) -> bool:
    """Whether a text is a finite number."""
    try:
        return isfinite(float(text))
    except ValueError:
        return False
