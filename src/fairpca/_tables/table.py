"""The rows of CSV, TSV, Parquet and Arrow files as a stream of decoded blocks.

Memory is that of a few batches however long the files are: Parquet is read through small buffers
and without ``pre_buffer``, which would hold whole row groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from json import JSONDecodeError
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from fairpca._tables.arrow import pa, pq
from fairpca._tables.decode import Block, Origin, RecordBatch, decode
from fairpca._tables.paths import DataFile, find_files, spooled
from fairpca._tables.roles import Layout
from fairpca._tables.text import refuse_almost_numbers, text_batches, text_schema
from fairpca._threads import ordered_map

R = TypeVar("R")
Batches = Iterator[tuple[RecordBatch, float]]

_BATCH_ROWS = 1 << 16
_BATCH_ENTRIES = 1 << 20  # at most 8 MiB of float64 a batch, however many columns
_HEAD_ROWS = 10_000
_PARQUET_BUFFER = 1 << 16  # bytes a column; without one, whole column chunks are read
_CONTINUATION = b"\xff\xff\xff\xff"  # before each message of an Arrow stream, since version 0.15
_STREAM_END = b"\0\0\0\0"


class _Piece(NamedTuple):
    """A record batch, where it stands, and how far through the files it ends."""

    batch: RecordBatch
    origin: Origin
    fraction: float


class FileTable:
    """The rows of one or many files as one long table, in the order of the files.

    Parameters
    ----------
    paths : path or list of paths
        See :func:`fairpca._tables.paths.find_files`.
    file_format : str, optional
    encoding : str
        Of text files.

    Attributes
    ----------
    name : str
        What messages call the table.
    types : dict of str to pyarrow.DataType
        Columns of the first file, and those in its path.
    """

    def __init__(self, paths: Any, file_format: str | None = None, encoding: str = "utf-8") -> None:
        self.files = find_files(paths, file_format, encoding)
        first, *others = self.files
        self.name = f"{first.name} and {len(others)} more" if others else first.name
        with _blaming(first):
            schema = _schema(first)
            self.types = {f.name: f.type for f in schema}
            self._index_columns = _index_columns(schema)
        for file in others:  # of text without values the type is known by later files only
            empty = [name for name, kind in self.types.items() if is_empty(kind)]
            if not (file.is_text and empty):
                break
            with _blaming(file):
                later = _schema(file)
            self.types |= {f.name: f.type for f in later if f.name in empty}
        _refuse_twins(first, schema.names, self.types)

    @property
    def own_columns(self) -> list[str]:
        """The columns that stand in the files, not in their paths."""
        return [name for name in self.types if name not in self.files[0].partition]

    @property
    def default_columns(self) -> list[str]:
        """Those of them that may become features unasked: not the index of a pandas frame."""
        return [name for name in self.own_columns if name not in self._index_columns]

    def choose(
        self,
        columns: Sequence[str] | None,
        group: str | Sequence[str] | None = None,
        weight: str | None = None,
        keep: str | Sequence[str] = (),
    ) -> Layout:
        """The layout asked for; without ``columns``, all columns of numbers not used otherwise."""
        own = {name: self.types[name] for name in self.default_columns}
        layout = Layout.choose(self.files[0].name, own, is_number, columns, group, weight, keep)
        self.check(layout)
        if columns is None:
            self.refuse_almost_numbers([name for name in own if name not in layout.all])
        return layout

    def refuse_almost_numbers(self, left_out: Sequence[str]) -> None:
        """Of columns that will be left out, refuse those a few values keep from being numbers."""
        texts = [name for name in left_out if pa.types.is_string(self.types[name])]
        for file in self.files if texts else ():
            with _blaming(file):
                if not file.is_text or refuse_almost_numbers(file, texts):
                    break

    def check(self, layout: Layout, file: DataFile | None = None) -> None:
        """Refuse a file (by default the first) without these columns, or text for numbers.

        In text files that is judged value by value, when they are read.
        """
        file = file or self.files[0]
        types = self.types
        if file is not self.files[0]:
            schema = _schema(file)
            _refuse_twins(file, schema.names, layout.all)
            types = {f.name: f.type for f in schema}
        layout.check(file.name, types, (lambda _: True) if file.is_text else is_number)
        if not (file.is_text or layout.text_groups):
            for name in layout.groups:
                self._check_labels(file, name, types[name])

    def _check_labels(self, file: DataFile, name: str, kind: Any) -> None:
        """Refuse types that cannot name groups, and labels that differ by their type only."""
        first, known = self.files[0], self.types[name]
        if pa.types.is_duration(kind) or pa.types.is_nested(kind):
            raise ValueError(
                f"column {name!r} of {file.name} ({kind}) cannot name groups; write it as text or "
                "as whole numbers."
            )
        different = _label_kind(kind) != _label_kind(known)
        if different and not (is_empty(kind) or is_empty(known) or name in file.partition):
            raise ValueError(
                f"the group column {name!r} is {known} in {first.name} but {kind} in {file.name}, "
                "so that 1 and '1' would be two groups; write it with the same type in both files."
            )

    def kept_schema(self, layout: Layout) -> list[tuple[str, Any]]:
        """Names and types of the columns carried along."""
        types = self._reading_types(layout, self.files[0])
        return [(name, types[name]) for name in layout.keep]

    def map(
        self,
        layout: Layout,
        work: Callable[[Block], R],
        drop_missing: bool = False,
        progress: Callable[[float], object] | None = None,
    ) -> Iterator[R]:
        """``work`` of every block on a pool of threads, in row order; reports the fraction done."""

        def on_piece(piece: _Piece) -> tuple[R, float]:
            return work(decode(piece.batch, layout, drop_missing, piece.origin)), piece.fraction

        last = 0.0
        for result, fraction in ordered_map(on_piece, self._pieces(layout)):
            yield result
            last = fraction
            if progress is not None:
                progress(fraction)
        if progress is not None and last < 1.0:
            progress(1.0)

    def head(self, texts: Sequence[str] = ()) -> Any:
        """The first rows of the first file, as a pyarrow table; some columns as their text."""
        types = {name: self.types[name] for name in self.own_columns}
        if self.files[0].is_text:
            types |= dict.fromkeys(texts, pa.string())
        with _blaming(self.files[0]):
            for batch, _ in _batches(self.files[0], types, _HEAD_ROWS):
                return pa.Table.from_batches([batch.slice(0, _HEAD_ROWS)])
        return pa.schema(types).empty_table()

    def _pieces(self, layout: Layout) -> Iterator[_Piece]:
        n_features = max(len(layout.feature_names), 1)
        rows = min(_BATCH_ROWS, max(1024, _BATCH_ENTRIES // n_features))
        sizes = [max(file.path.stat().st_size, 1) for file in self.files]
        done, total = 0, sum(sizes)
        for file, size in zip(self.files, sizes, strict=True):
            unit, first_row = "line" if file.is_text else "row", 0
            before, types = _identity(file.path), self._reading_types(layout, file)
            with _blaming(file, lambda: first_row):  # noqa: B023
                self.check(layout, file)
                for whole, within in _batches(file, types, rows):
                    for start in range(0, whole.num_rows, rows):
                        batch = _with_partition(whole.slice(start, rows), file, types)
                        origin = Origin(file.name, first_row, unit)
                        yield _Piece(batch, origin, (done + within * size) / total)
                        first_row += batch.num_rows
            if _identity(file.path) != before:
                raise ValueError(
                    f"{file.name} was changed while it was being read (after row {first_row}); "
                    "read it again when it is complete."
                )
            done += size

    def _reading_types(self, layout: Layout, file: DataFile) -> dict[str, Any]:
        """Types of the columns; text, which has none, is read as what it is wanted for."""
        types = {name: self.types.get(name) for name in layout.all}
        if file.is_text:
            for name in layout.keep:
                types[name] = pa.string()
            for name in layout.groups:
                types[name] = self.types.get(name)
            for name in layout.numbers:  # true or false, or with fractions later on
                types[name] = pa.bool_() if self.types.get(name) == pa.bool_() else pa.float64()
            for name in layout.texts:
                types[name] = pa.string()
        return types


def is_number(kind: Any) -> bool:
    """Numbers and booleans; a column of nulls may still become one."""
    tests = ("is_integer", "is_floating", "is_decimal", "is_boolean", "is_null")
    return any(getattr(pa.types, test)(kind) for test in tests)


def is_empty(kind: Any) -> bool:
    """A column without any value."""
    return bool(pa.types.is_null(kind))


def is_label(kind: Any) -> bool:
    """Whether values of this type have a text."""
    return not (pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_null(kind))


def _label_kind(kind: Any) -> str:
    """Labels of types of one kind are equal when their values are."""
    if pa.types.is_dictionary(kind):
        return _label_kind(kind.value_type)
    text = str(kind)
    return "number" if is_number(kind) else "string" if "string" in text else text.split("[")[0]


def spooled_table(title: str, columns: Mapping[str, Any]) -> DataFile:
    """These columns as a temporary file."""
    file, batch = spooled(title, "arrow"), as_batch(dict(columns))
    with pa.ipc.new_file(str(file.path), batch.schema) as writer:
        writer.write_batch(batch)
    return file


def as_batch(columns: dict[str, Any]) -> RecordBatch:
    """A record batch of these columns, numpy arrays or Arrow ones."""
    return pa.RecordBatch.from_pydict(columns)


def as_table(columns: dict[str, Any]) -> Any:
    """A pyarrow table of these columns."""
    return pa.table(columns)


def _identity(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


@contextmanager
def _blaming(file: DataFile, row: Callable[[], int] = lambda: 0) -> Iterator[None]:
    """Turn what pyarrow raises into an error that says which file it is about, and where."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError, JSONDecodeError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ValueError(
            f"{file.name} cannot be read past row {row()}: it is cut off, damaged or of another "
            f"format ({error}). Restore the file, or leave it out."
        ) from error


def _schema(file: DataFile) -> Any:
    """Names and types of all columns, those of the path included."""
    if file.is_text:
        schema = text_schema(file)
    elif file.format == "parquet":
        schema = pq.read_schema(file.path)
    else:
        with pa.OSFile(str(file.path)) as source:
            schema = _open_arrow(source).schema
    for key, value in file.partition.items():
        if key not in schema.names:
            kind = pa.int64() if isinstance(value, int) else pa.string()
            schema = schema.append(pa.field(key, kind))
    return schema


def _refuse_twins(file: DataFile, names: Sequence[str], used: Iterable[str]) -> None:
    """Of two columns of one name nobody knows which is meant."""
    counts = Counter(names)
    for name in used:
        if counts[name] > 1:
            raise ValueError(f"{file.name} has two columns named {name!r}; rename one.")


def _index_columns(schema: Any) -> list[Any]:
    """The columns that hold the index of the pandas frame that was written, if it was one.

    In text it has no name.
    """
    return ["", *(schema.pandas_metadata or {}).get("index_columns", ())]


def _batches(file: DataFile, types: Mapping[str, Any], rows: int) -> Batches:
    """The columns of ``types`` that stand in the file itself, and how far each batch reaches."""
    own = {name: kind for name, kind in types.items() if name not in file.partition}
    if file.is_text:
        return text_batches(file, own)
    return (_read_parquet if file.format == "parquet" else _read_arrow)(file, list(own), rows)


def _with_partition(batch: RecordBatch, file: DataFile, types: Mapping[str, Any]) -> RecordBatch:
    for name in types:
        if name in file.partition:
            constant = pa.scalar(file.partition[name]).cast(types[name])
            batch = batch.append_column(name, pa.repeat(constant, batch.num_rows))
    return batch


def _read_parquet(file: DataFile, names: list[str], rows: int) -> Batches:
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


def _read_arrow(file: DataFile, names: list[str], rows: int) -> Batches:
    # Not a memory map: a file cut short while it is mapped kills the process that reads it.
    schema = _schema(file)
    with pa.OSFile(str(file.path)) as source:
        positions = sorted(schema.get_field_index(name) for name in names)
        reader = _open_arrow(source, included_fields=positions)
        if isinstance(reader, pa.RecordBatchFileReader):
            for i in range(reader.num_record_batches):
                yield _intact(reader.get_batch(i)), (i + 1) / reader.num_record_batches
        else:
            size = max(source.size(), 1)
            for batch in reader:
                yield _intact(batch), source.tell() / size


def _intact(batch: RecordBatch) -> RecordBatch:
    """The batch, if its offsets and indices stay inside it: others end the whole process."""
    batch.validate(full=True)
    return batch


def _open_arrow(source: Any, **options: Any) -> Any:
    """A reader of the file format, or of the stream format, which has no magic number."""
    magic = source.read(6)
    if magic == b"ARROW1":
        opener = pa.ipc.open_file
    else:
        opener = pa.ipc.open_stream
        _refuse_open_end(source, legacy=not magic.startswith(_CONTINUATION))
    source.seek(0)
    return opener(source, options=pa.ipc.IpcReadOptions(**options))


def _refuse_open_end(source: Any, legacy: bool) -> None:
    """Without its last bytes a stream cut off between two batches looks like a whole one."""
    end = _STREAM_END if legacy else _CONTINUATION + _STREAM_END
    source.seek(max(source.size() - len(end), 0))
    if source.read() != end:
        raise pa.ArrowInvalid("the mark at the end of the stream is not there")
