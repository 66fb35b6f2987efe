"""The rows of CSV, TSV, Parquet and Arrow files as a stream of decoded blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from fairpca._tables.arrow import is_empty, is_number, is_text_like, label_kind, pa
from fairpca._tables.decode import Origin, RecordBatch, TableBlock, decode
from fairpca._tables.formats import read_batches, read_schema
from fairpca._tables.paths import TableFile, TextFormat, find_files, listed
from fairpca._tables.roles import Roles, choose_roles, refuse_unknown_columns
from fairpca._tables.text import as_written, refuse_almost_numbers
from fairpca._tables.text_faults import refuse_values_as_names
from fairpca._threads import ordered_map

WorkResult = TypeVar("WorkResult")

_BATCH_ROWS = 1 << 16
_BATCH_ENTRIES = 1 << 20  # at most 8 MiB of float64 a batch, ...
_BATCH_FEW_ROWS = 1 << 10  # unless that were fewer rows than these ...
_BATCH_MOST_ENTRIES = 1 << 24  # and these took no more than 128 MiB


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
    text : TextFormat or str, optional
        How text files are to be read, or their encoding.

    Attributes
    ----------
    name : str
        The name in messages.
    reads : list of paths
        The files and folders that were asked for.
    types : dict of str to pyarrow.DataType
        Columns of the first file, and those in its path.
    """

    def __init__(
        self, paths: Any, file_format: str | None = None, text: TextFormat | str = "utf-8"
    ) -> None:
        given = listed(paths)
        text = text if isinstance(text, TextFormat) else TextFormat(text)
        self.files = as_written(find_files(given, file_format, text))
        self.reads = [path.path if isinstance(path, TableFile) else path for path in given]
        self.name = _name_of(self.files)
        first = self.files[0]
        schema = read_schema(first)
        self.types = {field.name: field.type for field in schema}
        index = (schema.pandas_metadata or {}).get("index_columns", ())
        # Columns that are features unless told otherwise: not the path, not a pandas index, which
        # has no name in text.
        self._usual = [name for name in self.types if name not in ("", *index, *first.partition)]
        self._complete_types()
        if first.is_text and first.text.header:
            refuse_values_as_names(first.name, schema.names)
        _refuse_twin_columns(first, schema.names, self.types)

    def _complete_types(self) -> None:
        """Look into later files for the types of columns that are empty in the first."""
        for file in self.files[1:]:
            empty = [name for name, kind in self.types.items() if is_empty(kind)]
            if not empty:
                break
            self.types |= {f.name: f.type for f in read_schema(file) if f.name in empty}

    @property
    def all_columns(self) -> Roles:
        """Roles under which every column is read, in text files as text."""
        return Roles((), keep=tuple(self.types))

    def choose(
        self,
        columns: Sequence[str] | None = None,
        group: str | Sequence[str] | None = None,
        weight: str | None = None,
        keep: str | Sequence[str] = (),
        drop: Sequence[str] = (),
        encode: bool = False,
    ) -> Roles:
        """The roles of the columns; see :func:`fairpca._tables.roles.choose_roles`.

        Without ``columns`` the features are all columns of numbers, with ``encode`` also those of
        text, except for ``drop`` and those with another role.
        """
        usual = [name for name in self._usual if self._may_be_feature(name, encode)]
        if not usual and columns is None and self.head(self.all_columns) is None:
            raise ValueError(f"{self.name} has column names but no rows.")
        if not usual and columns is None:  # one odd value in each column may be why
            self._refuse_almost_numbers(self.left_out(Roles((), keep=tuple(drop))))
        roles = choose_roles(self.name, list(self.types), usual, columns, group, weight, keep, drop)
        if encode:
            text = [name for name in roles.columns if not is_number(self.types[name])]
            roles = replace(roles, categories=dict.fromkeys(text, ()))
        self.check(roles)
        if columns is None:
            self._refuse_almost_numbers(self.left_out(roles, drop))
        return roles

    def is_floating(self, name: str) -> bool:
        """Whether a column holds numbers with fractions, by its type."""
        refuse_unknown_columns([name], self.types, self.name)
        return bool(pa.types.is_floating(self.types[name]))

    def left_out(self, roles: Roles, drop: Sequence[str] = ()) -> list[str]:
        """The columns that are neither used nor in ``drop``, because they do not hold numbers."""
        used = {*roles.all, *roles.identifiers, *drop}
        return [name for name in self._usual if name not in used]

    def check(self, roles: Roles, file: TableFile | None = None) -> None:
        """Refuse a file, by default the first, that lacks a column or has one of a wrong type.

        The numbers in text files are judged one by one, when they are read.
        """
        file = file or self.files[0]
        types = self.types
        if file is not self.files[0]:
            schema = read_schema(file)
            _refuse_twin_columns(file, schema.names, roles.all)
            types = {field.name: field.type for field in schema}
        roles.check(file.name, types, (lambda _: True) if file.is_text else is_number)
        for name in roles.groups:
            self._check_labels(file, name, types[name])

    def kept_schema(self, roles: Roles) -> list[tuple[str, Any]]:
        """Names and types of the columns that are carried along."""
        types = self._reading_types(roles, self.files[0])
        return [(name, types[name]) for name in roles.keep]

    def map(
        self,
        roles: Roles,
        work: Callable[[TableBlock], WorkResult],
        drop_missing: bool = False,
        progress: Callable[[float], object] | None = None,
    ) -> Iterator[WorkResult]:
        """``work`` of every block on a pool of threads, in row order; reports the fraction done."""

        def on_piece(piece: _Piece) -> tuple[WorkResult, float]:
            return work(decode(piece.batch, roles, drop_missing, piece.origin)), piece.fraction

        last = 0.0
        for result, fraction in ordered_map(on_piece, self._pieces(roles)):
            yield result
            last = fraction
            if progress is not None:
                progress(fraction)
        if progress is not None and last < 1.0:
            progress(1.0)

    def head(self, roles: Roles) -> RecordBatch | None:
        """The first rows, as they are read for these roles; None if there are no rows."""
        with closing(self._pieces(roles)) as pieces:
            return next((piece.batch for piece in pieces), None)

    def _may_be_feature(self, name: str, encode: bool) -> bool:
        kind = self.types[name]
        return (is_number(kind) and not is_empty(kind)) or (encode and is_text_like(kind))

    def _refuse_almost_numbers(self, names: Sequence[str]) -> None:
        """Refuse text columns, about to be left out, that a few values keep from being numbers."""
        texts = [name for name in names if pa.types.is_string(self.types[name])]
        for file in self.files if texts else ():
            if not file.is_text or refuse_almost_numbers(file, texts):
                break

    def _check_labels(self, file: TableFile, name: str, kind: Any) -> None:
        """Refuse types that cannot name groups, and labels that differ by their type only."""
        first = self.files[0]
        known = _text_type(first, name, self.types[name])
        kind = _text_type(file, name, kind)
        if pa.types.is_duration(kind) or pa.types.is_nested(kind):
            raise ValueError(
                f"column {name!r} of {file.name} ({kind}) cannot name groups; write it as text or "
                "as whole numbers."
            )
        if label_kind(kind) != label_kind(known) and not (is_empty(kind) or is_empty(known)):
            raise ValueError(
                f"the group column {name!r} is {known} in {first.name} but {kind} in {file.name}, "
                "so that 1 and '1' would be two groups; write it with the same type in both files."
            )

    def _pieces(self, roles: Roles) -> Generator[_Piece, None, None]:
        n_columns = max(len(roles.feature_names), len(roles.keep), 1)
        few = min(_BATCH_FEW_ROWS, max(1, _BATCH_MOST_ENTRIES // n_columns))
        rows = min(_BATCH_ROWS, max(few, _BATCH_ENTRIES // n_columns))
        sizes = [max(file.path.stat().st_size, 1) for file in self.files]
        done, numbers = 0, _numbers(self.files)
        for file, size, number in zip(self.files, sizes, numbers, strict=True):
            has_names = file.is_text and file.text.header
            unit, first_row, before = "line" if has_names else "row", 0, _identity(file.path)
            self.check(roles, file)
            for batch, within in read_batches(file, self._reading_types(roles, file), rows):
                fraction = (done + within * size) / sum(sizes)
                yield _Piece(batch, Origin(file.name, first_row, unit, number), fraction)
                first_row += batch.num_rows
            if _identity(file.path) != before:
                raise ValueError(
                    f"{file.name} was changed while it was being read (after row {first_row}); "
                    "read it again when it is complete."
                )
            done += size

    def _reading_types(self, roles: Roles, file: TableFile) -> dict[str, Any]:
        """Types of the columns; text, which has none, is read as what it is wanted for."""
        types = {name: self.types.get(name) for name in roles.all}
        if file.is_text:
            types = {name: _text_type(file, name, kind) for name, kind in types.items()}
            for name in roles.numbers:  # booleans, or numbers that may have fractions later on
                types[name] = pa.bool_() if self.types.get(name) == pa.bool_() else pa.float64()
        return types


def _name_of(files: Sequence[TableFile]) -> str:
    """What messages call the table."""
    first, *others = files
    if not others:
        return first.name
    return f"{first.name} and {others[0].name if len(others) == 1 else f'{len(others)} more'}"


def _numbers(files: Sequence[TableFile]) -> list[int]:
    """The number of each file in the order of names, whatever the order in which they are read."""
    by_name = sorted(range(len(files)), key=lambda i: files[i].name)
    numbers = {place: number for number, place in enumerate(by_name)}
    return [numbers[place] for place in range(len(files))]


def _text_type(file: TableFile, name: str, kind: Any) -> Any:
    """Text in text files: labels are compared as they are written, so 01 and 1 are two groups."""
    return pa.string() if file.is_text and name not in file.partition else kind


def _refuse_twin_columns(file: TableFile, names: Sequence[str], used: Iterable[str]) -> None:
    counts = Counter(names)
    for name in used:
        if counts[name] > 1:
            raise ValueError(f"{file.name} has two columns named {name!r}; rename one.")


def _identity(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns
