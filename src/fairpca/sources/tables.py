"""Tables in files: CSV, TSV, Parquet and Arrow, read and written whole or a batch at a time.

The only file of this library that knows pyarrow; others see its tables through narwhals. Everything
that can be wrong with a file ends in a :class:`TableError` of one line that says what and where.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.feather as feather
import pyarrow.parquet as pq

_TEXT = {".csv": ",", ".txt": ",", ".tsv": "\t", ".tab": "\t"}
_PARQUET = {".parquet", ".pq"}
_ARROW = {".arrow", ".feather", ".ipc"}
_COMPRESSED = {".gz", ".bz2", ".zst", ".lz4", ".br"}


class TableError(ValueError):
    """A file that cannot be read as a table, or lacks a column."""


class TableFile:
    """A file, or CSV from standard input for the name ``-``.

    Parameters
    ----------
    name : str
    encoding : str
        Of text files.
    """

    def __init__(self, name: str, encoding: str = "utf-8") -> None:
        self.name = "standard input" if name == "-" else name
        self.encoding = encoding
        self._piped = pa.py_buffer(sys.stdin.buffer.read()) if name == "-" else None
        self._path = Path(name)
        suffixes = [s.lower() for s in self._path.suffixes if s.lower() not in _COMPRESSED]
        self.kind = ".csv" if name == "-" else (suffixes[-1] if suffixes else "")
        if name == "-":
            return
        if not self._path.exists():
            raise TableError(f"there is no file {name!r}{_neighbours(self._path) or '.'}")
        if self._path.is_dir():
            raise TableError(f"{name!r} is a folder; pass the name of one file.")
        if self.kind not in {*_TEXT, *_PARQUET, *_ARROW}:
            raise TableError(
                f"cannot tell the format of {name!r} from its ending; rename it to end in .csv, "
                ".tsv, .parquet, .arrow or .feather."
            )

    def read(self, as_text: Collection[str] = ()) -> pa.Table:
        """The whole table; columns ``as_text`` of a text file are not read as numbers."""
        try:
            table = self._read(as_text)
        except (pa.ArrowException, OSError, UnicodeError, LookupError) as error:
            raise self._explained(error) from error
        self._refuse_unusable(table.schema)
        if table.num_rows == 0:
            raise TableError(f"{self.name} has column names but no rows.")
        return table

    def column_names(self) -> list[str]:
        """The names of the columns, without reading the rows."""
        if self.kind in _TEXT:
            try:
                with pc.open_csv(self._stream(), **self._options()) as reader:
                    return list(reader.schema.names)
            except (pa.ArrowException, OSError, UnicodeError, LookupError) as error:
                raise self._explained(error) from error
        return list(self._schema().names)

    def batches(
        self, numbers: Sequence[str], text: Sequence[str] = (), unchanged: Sequence[str] = ()
    ) -> Iterator[pa.Table]:
        """Some columns, a batch of rows at a time.

        Columns ``numbers`` become float64, ``text`` strings, and those ``unchanged`` keep their
        type; in text files that is text.
        """
        known = self.column_names()
        for name in (*numbers, *text, *unchanged):
            if name not in known:
                raise unknown_column(name, known, self.name)
        as_they_are = None if self.kind in _TEXT else self._schema()
        types = {
            **{
                name: as_they_are.field(name).type if as_they_are else pa.string()
                for name in unchanged
            },
            **dict.fromkeys(numbers, pa.float64()),
            **dict.fromkeys(text, pa.string()),
        }
        try:
            for batch in self._batches(types):
                rows = pa.Table.from_batches([batch]).select(list(types))
                yield rows.cast(pa.schema(types), safe=False)
        except (pa.ArrowException, OSError, UnicodeError) as error:
            raise self._explained(error) from error

    def _read(self, as_text: Collection[str]) -> pa.Table:
        if self.kind in _TEXT:
            types = {name: pa.string() for name in as_text}
            return pc.read_csv(self._stream(), **self._options(types))
        if self.kind in _PARQUET:
            return pq.read_table(self._path)
        return feather.read_table(self._path)

    def _batches(self, types: dict[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
        if self.kind in _TEXT:
            options = self._options(types, only=list(types))
            with pc.open_csv(self._stream(), **options) as reader:
                yield from reader
        elif self.kind in _PARQUET:
            # Without pre-buffering the reader does not run ahead of us through the file.
            with pq.ParquetFile(self._path, pre_buffer=False) as file:
                yield from file.iter_batches(columns=list(types))
        else:
            with pa.memory_map(str(self._path)) as source, pa.ipc.open_file(source) as reader:
                for i in range(reader.num_record_batches):
                    yield reader.get_batch(i)

    def _schema(self) -> pa.Schema:
        try:
            if self.kind in _PARQUET:
                return pq.read_schema(self._path)
            with pa.memory_map(str(self._path)) as source, pa.ipc.open_file(source) as reader:
                return reader.schema
        except (pa.ArrowException, OSError) as error:
            raise self._explained(error) from error

    def _stream(self) -> Any:
        if self._piped is not None:
            return pa.BufferReader(self._piped)
        return pa.input_stream(str(self._path), compression="detect")

    def _options(
        self, types: dict[str, pa.DataType] | None = None, only: Sequence[str] | None = None
    ) -> dict[str, Any]:
        return {
            "read_options": pc.ReadOptions(encoding=self.encoding),
            "parse_options": pc.ParseOptions(delimiter=self._delimiter(), newlines_in_values=True),
            "convert_options": pc.ConvertOptions(
                column_types=types or {}, include_columns=only, strings_can_be_null=True
            ),
        }

    def _delimiter(self) -> str:
        """The usual one for the ending, unless the first line holds only another."""
        usual = _TEXT[self.kind]
        with self._stream() as stream:
            first = stream.read(1 << 16).split(b"\n")[0].decode(self.encoding)
        others = [mark for mark in (",", ";", "\t") if mark in first]
        return usual if usual in first or not others else others[0]

    def _refuse_unusable(self, schema: pa.Schema) -> None:
        names = schema.names
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise TableError(f"{self.name} has two columns named {twice[0]!r}; rename one.")
        if self.kind in _TEXT and any(pa.types.is_binary(kind) for kind in schema.types):
            raise self._explained(UnicodeError())

    def _explained(self, error: Exception) -> TableError:
        """What is wrong with the file, found by a second, slower look."""
        if isinstance(error, LookupError):
            return TableError(
                f"--encoding {self.encoding!r} is not known; try 'utf-8' or 'latin-1'."
            )
        if self.kind not in _TEXT:
            return TableError(
                f"{self.name} is damaged or not in the format its ending says: {error}"
            )
        if "Empty CSV" in str(error):
            return TableError(f"{self.name} is empty; it needs a line of column names and rows.")
        line = self._first_undecodable_line()
        if line:
            return TableError(
                f"{self.name} is not {self.encoding.upper()} text (line {line}); name its encoding"
                ", for example --encoding latin-1, or convert it with iconv."
            )
        return self._ragged() or TableError(f"cannot read {self.name}: {error}")

    def _first_undecodable_line(self) -> int:
        with self._stream() as stream:
            for number, line in enumerate(_lines(stream), start=1):
                try:
                    line.decode(self.encoding)
                except UnicodeDecodeError:
                    return number
        return 0

    def _ragged(self) -> TableError | None:
        found: list[Any] = []

        def note(row: Any) -> str:
            found.append(row)
            return "error"

        options = self._options()
        options["read_options"].use_threads = False  # only then are rows numbered
        options["parse_options"].invalid_row_handler = note
        with suppress(pa.ArrowException):
            pc.read_csv(self._stream(), **options)
        if not found:
            return None
        row = found[0]
        return TableError(
            f"line {row.number} of {self.name} has {row.actual_columns} values where the line of "
            f"column names has {row.expected_columns}; correct that line."
        )


class TableWriter:
    """Writes tables one after the other to a CSV or Parquet file.

    Parameters
    ----------
    target : path or None
        None is standard output.
    kind : str
        The ending: ".csv", ".parquet" or ".pq".
    """

    def __init__(self, target: Path | None, kind: str) -> None:
        if kind not in {".csv", *_PARQUET}:
            raise TableError(f"cannot write {kind!r} files; choose .csv or .parquet.")
        self._sink = sys.stdout.buffer if target is None else str(target)
        self._make = pc.CSVWriter if kind == ".csv" else pq.ParquetWriter
        self._writer: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(self, table: pa.Table) -> None:
        """Append a table; all have the same columns."""
        if self._writer is None:
            self._writer = self._make(self._sink, table.schema)
        self._writer.write_table(table)


def unknown_column(name: str, known: Sequence[str], where: str) -> TableError:
    """The error for a column that is not there, with the names most like it.

    Examples
    --------
    >>> unknown_column("Sexx", ["age", "sex", "bmi"], "people.csv")
    TableError("there is no column 'Sexx' in people.csv; did you mean 'sex'?")
    """
    folded = {column.casefold(): column for column in known}
    near = difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.5)
    if near:
        hint = f"did you mean {' or '.join(repr(folded[column]) for column in near)}?"
    else:
        more = ", ..." if len(known) > 8 else ""
        hint = f"its columns are {', '.join(repr(column) for column in known[:8])}{more}."
    return TableError(f"there is no column {name!r} in {where}; {hint}")


def _neighbours(path: Path) -> str:
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return ""
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.7)
    return f"; did you mean {str(path.with_name(near[0]))!r}?" if near else ""


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    while block := stream.read(1 << 20):
        *whole, rest = (rest + block).split(b"\n")
        yield from whole
    yield rest
