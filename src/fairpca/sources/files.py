"""CSV, Parquet and Arrow files as a stream of record batches, and scores written to files.

The only file that imports pyarrow. Memory is that of a few batches however long the files are:
Parquet is read through small buffers and without ``pre_buffer``, which would hold whole row groups,
and CSV columns get explicit types, so that whole numbers may turn to fractions later on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar
from uuid import uuid4

from fairpca._threads import ordered_map
from fairpca.sources.columns import Block, Layout, RecordBatch, decode
from fairpca.sources.paths import DataFile, find_files

try:
    import pyarrow as pa
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq
except ImportError as error:
    raise ImportError(
        "reading and writing files needs pyarrow; install it with pip install 'fairpca[files]'."
    ) from error

R = TypeVar("R")

_BATCH_ROWS = 1 << 16
_BATCH_ENTRIES = 1 << 20  # at most 8 MiB of float64 a batch, however many columns
_CSV_BLOCK = 1 << 23  # bytes
_CSV_LINES_FOR_TYPES = 1000
_PARQUET_BUFFER = 1 << 16  # bytes a column; without one, whole column chunks are read


class _Piece(NamedTuple):
    """A record batch, where it stands, and how far through the files it ends."""

    batch: RecordBatch
    path: Path
    first_row: int
    fraction: float


class FileTable:
    """The rows of one or many files as one long table, in the order of the files.

    Parameters
    ----------
    paths : path or list of paths
        See :func:`fairpca.sources.paths.find_files`.
    columns : sequence of str or None
        The features; None means all columns of numbers or booleans not used otherwise.
    group : str, sequence of str or None
        Columns of labels, crossed when there are several.
    weight : str or None
        Column of weights.
    keep : sequence of str
        Columns to be carried along.
    file_format : str, optional
    """

    def __init__(
        self,
        paths: Any,
        columns: Sequence[str] | None,
        group: str | Sequence[str] | None = None,
        weight: str | None = None,
        keep: Sequence[str] = (),
        file_format: str | None = None,
    ) -> None:
        self.files = find_files(paths, file_format)
        first = self.files[0]
        with _blaming(first.path):
            schema = _schema(first)
        self._types = {f.name: f.type for f in schema}
        if len(self._types) < len(schema):
            twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
            raise ValueError(f"{first.path} has several columns named {twice}; rename them.")
        own = {name: kind for name, kind in self._types.items() if name not in first.partition}
        self.layout = Layout.choose(str(first.path), own, _is_number, columns, group, weight, keep)
        self.layout.check(str(first.path), self._types, _is_number)
        # CSV tells types by its first rows only: numbers may have fractions later on.
        for name in self.layout.numbers:
            if self._types[name] != pa.bool_():
                self._types[name] = pa.float64()

    @property
    def kept_schema(self) -> list[tuple[str, Any]]:
        """Names and types of the columns carried along."""
        return [(name, self._types[name]) for name in self.layout.keep]

    def map(
        self,
        work: Callable[[Block], R],
        drop_missing: bool = False,
        progress: Callable[[float], object] | None = None,
    ) -> Iterator[R]:
        """``work`` of every block on a pool of threads, in row order; reports the fraction done."""

        def on_piece(piece: _Piece) -> tuple[R, float]:
            origin = str(piece.path)
            block = decode(piece.batch, self.layout, drop_missing, origin, piece.first_row)
            return work(block), piece.fraction

        last = 0.0
        for result, fraction in ordered_map(on_piece, self._pieces()):
            yield result
            last = fraction
            if progress is not None:
                progress(fraction)
        if progress is not None and last < 1.0:
            progress(1.0)

    def _pieces(self) -> Iterator[_Piece]:
        rows = min(_BATCH_ROWS, max(1024, _BATCH_ENTRIES // len(self.layout.columns)))
        sizes = [max(file.path.stat().st_size, 1) for file in self.files]
        done, total = 0, sum(sizes)
        for file, size in zip(self.files, sizes, strict=True):
            first_row = 0
            before = _identity(file.path)
            with _blaming(file.path, lambda: first_row):  # noqa: B023
                for batch, within in self._batches(file, rows):
                    yield _Piece(batch, file.path, first_row, (done + within * size) / total)
                    first_row += batch.num_rows
            if _identity(file.path) != before:
                raise ValueError(
                    f"{file.path} was changed while it was being read (after row {first_row}); "
                    "read it again when it is complete."
                )
            done += size

    def _batches(self, file: DataFile, rows: int) -> Iterator[tuple[RecordBatch, float]]:
        names = [name for name in self.layout.all if name not in file.partition]
        if file is not self.files[0]:
            types = {f.name: f.type for f in _schema(file)}
            self.layout.check(str(file.path), types, _is_number)
        for batch, within in _READERS[file.format](file, names, rows, self._types):
            for start in range(0, batch.num_rows, rows):
                part = batch.slice(start, rows)
                for name in self.layout.all:
                    if name in file.partition:
                        constant = pa.scalar(file.partition[name], self._types[name])
                        part = part.append_column(name, pa.repeat(constant, part.num_rows))
                yield part, within


def _is_number(kind: Any) -> bool:
    """Numbers and booleans; a column of nulls may still become one."""
    tests = ("is_integer", "is_floating", "is_decimal", "is_boolean", "is_null")
    return any(getattr(pa.types, test)(kind) for test in tests)


def _identity(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


@contextmanager
def _blaming(path: Path, row: Callable[[], int] = lambda: 0) -> Iterator[None]:
    """Turn what pyarrow raises into an error that says which file it is about, and where."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ValueError(
            f"{path} cannot be read past row {row()}: it is cut off, damaged or of another format "
            f"({error}). Restore the file, or leave it out."
        ) from error


def _schema(file: DataFile) -> Any:
    """Names and types of all columns, those of the path included."""
    if file.format == "parquet":
        schema = pq.read_schema(file.path)
    elif file.format == "arrow":
        with pa.OSFile(str(file.path)) as source:
            schema = _open_arrow(source).schema
    else:
        schema = _csv_schema(file)
    for key, value in file.partition.items():
        if key not in schema.names:
            kind = pa.int64() if isinstance(value, int) else pa.string()
            schema = schema.append(pa.field(key, kind))
    return schema


def _read_parquet(
    file: DataFile, names: list[str], rows: int, types: dict[str, Any]
) -> Iterator[tuple[RecordBatch, float]]:
    with pq.ParquetFile(
        file.path,
        pre_buffer=False,
        buffer_size=_PARQUET_BUFFER,
        page_checksum_verification=True,
    ) as parquet:
        done, total = 0, max(parquet.metadata.num_rows, 1)
        for batch in parquet.iter_batches(rows, columns=names):
            done += batch.num_rows
            yield batch, done / total


def _open_arrow(source: Any, **options: Any) -> Any:
    """A reader of the file format, or of the stream format, which has no magic number."""
    magic = source.read(6)
    source.seek(0)
    opener = pa.ipc.open_file if magic == b"ARROW1" else pa.ipc.open_stream
    return opener(source, options=pa.ipc.IpcReadOptions(**options))


def _read_arrow(
    file: DataFile, names: list[str], rows: int, types: dict[str, Any]
) -> Iterator[tuple[RecordBatch, float]]:
    # Not a memory map: a file cut short while it is mapped kills the process that reads it.
    schema = _schema(file)
    with pa.OSFile(str(file.path)) as source:
        positions = sorted(schema.get_field_index(name) for name in names)
        reader = _open_arrow(source, included_fields=positions)
        if isinstance(reader, pa.RecordBatchFileReader):
            for i in range(reader.num_record_batches):
                yield reader.get_batch(i), (i + 1) / reader.num_record_batches
        else:
            size = max(source.size(), 1)
            for batch in reader:
                yield batch, source.tell() / size


def _open_csv(
    source: Any, file: DataFile, threads: bool = True, types: dict[str, Any] | None = None
) -> Any:
    return pa_csv.open_csv(
        source,
        read_options=pa_csv.ReadOptions(block_size=_CSV_BLOCK, use_threads=threads),
        parse_options=pa_csv.ParseOptions(delimiter="\t" if file.format == "tsv" else ","),
        convert_options=pa_csv.ConvertOptions(
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            column_types=types,
            include_columns=None if types is None else list(types),
        ),
    )


def _csv_schema(file: DataFile) -> Any:
    """Types as the first lines have them; what differs later is refused with its row."""
    with file.path.open("rb") as lines:
        head = pa.BufferReader(b"".join(islice(lines, _CSV_LINES_FOR_TYPES)))
    try:
        return _open_csv(head, file).schema
    except pa.ArrowInvalid:  # a line break within quotes may stand at the cut
        return _open_csv(str(file.path), file).schema


def _read_csv(
    file: DataFile, names: list[str], rows: int, types: dict[str, Any]
) -> Iterator[tuple[RecordBatch, float]]:
    wanted = {name: types[name] for name in names}
    with pa.OSFile(str(file.path)) as source:
        size = source.size()
        _refuse_unfinished_line(file.path, source)
        try:
            for batch in _open_csv(source, file, types=wanted):
                yield batch, source.tell() / size
        except pa.ArrowInvalid:
            source.seek(0)
            for _ in _open_csv(source, file, threads=False, types=wanted):
                pass  # until the same error comes back with its row number
            raise


def _refuse_unfinished_line(path: Path, source: Any) -> None:
    source.seek(max(source.size() - 1, 0))
    last = source.read(1)
    source.seek(0)
    if last not in (b"\n", b"\r", b""):
        raise ValueError(
            f"the last line of {path} does not end, as if the file had been cut off; "
            f"if it is complete, end it with a line break: echo >> {path}"
        )


_READERS = {"parquet": _read_parquet, "arrow": _read_arrow, "csv": _read_csv, "tsv": _read_csv}


def as_batch(columns: dict[str, Any]) -> RecordBatch:
    """A record batch of these columns, numpy arrays or Arrow ones."""
    return pa.RecordBatch.from_pydict(columns)


class ScoreFile:
    """A Parquet or CSV file that appears under its name only when it is complete.

    It is written under a name of its own in the same folder and renamed at the end, which file
    systems do at once: whoever looks sees the old file or the new one, and of two processes that
    write the same file the last one wins, whole.
    """

    def __init__(self, path: str | os.PathLike[str], schema: Sequence[tuple[str, Any]]) -> None:
        self.path = Path(path)
        self._schema = pa.schema(schema)
        if len(set(self._schema.names)) < len(self._schema.names):
            raise ValueError(
                f"two columns of {self.path} would have the same name ({self._schema.names}); "
                "leave the clashing one out of keep."
            )
        if self.path.suffix.lower() not in (".csv", ".tsv", ".parquet", ".pq"):
            raise ValueError(
                f"the name of {self.path} does not say what to write; end it in .parquet or .csv."
            )
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {self.path.parent}; make it first.")
        self._unfinished = self.path.with_name(f".{self.path.name}.{os.getpid()}-{uuid4().hex}.tmp")

    def __enter__(self) -> Self:
        if self.path.suffix.lower() in (".parquet", ".pq"):
            self._writer: Any = pq.ParquetWriter(self._unfinished, self._schema)
        else:
            delimiter = "\t" if self.path.suffix.lower() == ".tsv" else ","
            options = pa_csv.WriteOptions(delimiter=delimiter)
            self._writer = pa_csv.CSVWriter(self._unfinished, self._schema, write_options=options)
        return self

    def write(self, kept: RecordBatch, scores: Any) -> None:
        """Append rows: columns carried along, then the columns of scores."""
        columns = [*kept.columns, *(pa.array(column) for column in scores.T)]
        columns = [c.cast(f.type) for c, f in zip(columns, self._schema, strict=True)]
        self._writer.write_batch(pa.record_batch(columns, schema=self._schema))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self._writer.close()
            if kind is None:
                with self._unfinished.open("rb+") as file:
                    os.fsync(file.fileno())
                self._unfinished.replace(self.path)
        finally:
            with suppress(FileNotFoundError):
                self._unfinished.unlink()
