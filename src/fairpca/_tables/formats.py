"""The columns of a file of any format, and its rows as a stream of record batches.

Memory is that of a few batches however long the file is: Parquet is read through small buffers and
without ``pre_buffer``, which would hold whole row groups. Damaged files are refused by their name,
with the row up to which they could be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from json import JSONDecodeError
from typing import Any

from fairpca._tables.arrow import pa, pq
from fairpca._tables.decode import RecordBatch
from fairpca._tables.paths import TableFile, temporary_file
from fairpca._tables.text import text_batches, text_schema

Batches = Iterator[tuple[RecordBatch, float]]

_PARQUET_BUFFER = 1 << 16  # bytes a column; without one, whole column chunks are read
_CONTINUATION = b"\xff\xff\xff\xff"  # before each message of an Arrow stream, since version 0.15
_STREAM_END = b"\0\0\0\0"
_DAMAGE = (pa.ArrowException, OSError, UnicodeDecodeError, JSONDecodeError)


def read_schema(file: TableFile) -> pa.Schema:
    """Names and types of all columns, those in the path included."""
    try:
        schema = _own_schema(file)
        schema.names, schema.pandas_metadata  # noqa: B018 - decodes them
    except _DAMAGE as error:
        raise _damaged(file, 0, error) from error
    for key, value in file.partition.items():
        if key not in schema.names:
            kind = pa.int64() if isinstance(value, int) else pa.string()
            schema = schema.append(pa.field(key, kind))
    return schema


def read_batches(file: TableFile, types: Mapping[str, Any], rows: int) -> Batches:
    """Batches of at most ``rows`` rows, and how far through the file each reaches.

    ``types`` are those of the columns that are wanted; the files that have types keep their own.
    Columns in the path have the same value in every row.
    """
    own = {name: kind for name, kind in types.items() if name not in file.partition}
    n_rows = 0
    try:
        for whole, fraction in _own_batches(file, own, rows):
            for start in range(0, whole.num_rows, rows):
                batch = _with_partition(whole.slice(start, rows), file, types)
                yield batch, fraction
                n_rows += batch.num_rows
    except _DAMAGE as error:
        raise _damaged(file, n_rows, error) from error


def write_temporary(title: str, columns: Mapping[str, Any]) -> TableFile:
    """A temporary Arrow file of these columns."""
    file, batch = temporary_file(title, "arrow"), pa.RecordBatch.from_pydict(dict(columns))
    with pa.ipc.new_file(str(file.path), batch.schema) as writer:
        writer.write_batch(batch)
    return file


def _damaged(file: TableFile, row: int, error: Exception) -> ValueError:
    return ValueError(
        f"{file.name} cannot be read past row {row}: it is cut off, damaged or of another format "
        f"({error}). Restore the file, or leave it out."
    )


def _own_schema(file: TableFile) -> pa.Schema:
    if file.is_text:
        return text_schema(file)
    if file.format == "parquet":
        return pq.read_schema(file.path)
    with pa.OSFile(str(file.path)) as source:
        return _open_arrow(source).schema


def _own_batches(file: TableFile, types: Mapping[str, Any], rows: int) -> Batches:
    if file.is_text:
        return text_batches(file, types)
    return (_read_parquet if file.format == "parquet" else _read_arrow)(file, list(types), rows)


def _with_partition(batch: RecordBatch, file: TableFile, types: Mapping[str, Any]) -> RecordBatch:
    for name in types:
        if name in file.partition:
            constant = pa.scalar(file.partition[name]).cast(types[name])
            batch = batch.append_column(name, pa.repeat(constant, batch.num_rows))
    return batch


def _read_parquet(file: TableFile, names: list[str], rows: int) -> Batches:
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


def _read_arrow(file: TableFile, names: list[str], rows: int) -> Batches:
    # Not a memory map: a file cut short while it is mapped kills the process that reads it.
    schema = _own_schema(file)
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
    """Refuse a stream without its last bytes: cut off between two batches, it looks complete."""
    end = _STREAM_END if legacy else _CONTINUATION + _STREAM_END
    source.seek(max(source.size() - len(end), 0))
    if source.read() != end:
        raise pa.ArrowInvalid("the mark at the end of the stream is missing")
