"""Which files a path stands for, in which format, and what their folders say about them.

``pyarrow.dataset`` lists folders too and reads ``key=value`` in their names. But it takes every
file of a folder, or opens each to see whether it fits, and it reads through a scanner that neither
keeps memory small nor knows the row where a file is damaged.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import mkstemp
from typing import Any, Literal
from urllib.parse import unquote
from weakref import finalize

from fairpca._tables.atomic import errors_naming

FileFormat = Literal["csv", "tsv", "parquet", "arrow"]

_FORMATS: dict[str, FileFormat] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4", ".br": "brotli"}
#: Only of a file that is named: a folder may hold notes and spreadsheets beside its data.
_NAMED_FORMATS = {
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"), "excel"),
    ".txt": "csv",
}
_INT64_DIGITS = 19  # fewer than these always fit
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # how Hive and its kin write null


@dataclass(frozen=True)
class TextFormat:
    """How numbers, names and missing values are written in text files.

    Attributes
    ----------
    encoding : str
    decimal : str or None
        The decimal point, ``.`` or ``,``; None until it is told from the first rows.
    missing : tuple of str
        Texts that stand for a missing value, besides the usual ones.
    header : bool
        Whether the first line holds the names of the columns; otherwise they are c0, c1, ...
    numerals : tuple of str
        Columns of numbers with thousands separators, currency or percent signs, once they are told
        from the first rows.
    sheet : str or None
        The sheet of a spreadsheet, which becomes text.
    """

    encoding: str = "utf-8"
    decimal: str | None = None
    missing: tuple[str, ...] = ()
    header: bool = True
    numerals: tuple[str, ...] = ()
    sheet: str | None = None

    def __post_init__(self) -> None:
        try:
            "a".encode(self.encoding)
        except (LookupError, TypeError):
            raise ValueError(
                f"the encoding {self.encoding!r} is not known; try 'utf-8' or 'latin-1'."
            ) from None
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"the decimal point {self.decimal!r} is not known; pass '.' or ','.")


@dataclass(frozen=True)
class TableFile:
    """One file and how to read it.

    Attributes
    ----------
    path : Path
    format : {"csv", "tsv", "parquet", "arrow", "excel"}
    partition : dict
        Columns that stand in its path as ``key=value``.
    text : TextFormat
        How text is to be read.
    title : str
        The name in messages, if that is not the path.
    holder : object
        Keeps a temporary file from being deleted.
    """

    path: Path
    format: str
    partition: dict[str, Any] = field(default_factory=dict)
    text: TextFormat = field(default_factory=TextFormat)
    title: str = ""
    holder: Any = None

    @property
    def name(self) -> str:
        """The name in messages."""
        return self.title or str(self.path)

    @property
    def encoding(self) -> str:
        """The encoding of text."""
        return self.text.encoding

    @property
    def is_text(self) -> bool:
        """Whether it holds text, which has no types of its own."""
        return self.format in ("csv", "tsv")

    @property
    def compression(self) -> str | None:
        """How text is compressed, by the last ending of the name."""
        return _COMPRESSIONS.get(self.path.suffix.lower()) if self.is_text else None


def find_files(
    paths: Any, file_format: str | None, text: TextFormat | None = None
) -> list[TableFile]:
    """Every file of ``paths``: files in the given order, those of a folder sorted by path.

    ``-`` is CSV from standard input, put into a temporary file. In a folder, files of unknown
    formats and hidden ones (``.`` or ``_`` in front, such as Spark's ``_SUCCESS``) do not count.
    """
    if file_format is not None and file_format not in _FORMATS.values():
        raise ValueError(
            f"file_format={file_format!r} is not known; pass 'csv', 'tsv', 'parquet' or 'arrow'."
        )
    text = text or TextFormat()
    files = [file for path in listed(paths) for file in _files_at(path, file_format)]
    if not files:
        raise ValueError("no files were given; pass a path, a list of paths or a folder.")
    if text.sheet is not None and not any(file.format == "excel" for file in files):
        raise ValueError(
            f"the sheet {text.sheet!r} is for spreadsheets, and {files[0].name} is not one; "
            "leave it out."
        )
    return [_readable(file, text) for file in _with_typed_partitions(files)]


def _readable(file: TableFile, text: TextFormat) -> TableFile:
    """The file, with how to read text; of a spreadsheet, a text file of its sheet."""
    if file.format != "excel":
        return replace(file, text=text)
    from fairpca._tables.excel import sheet_as_text

    return sheet_as_text(file, text)


def listed(paths: Any) -> list[Any]:
    """The paths as a list, also if there is only one."""
    if isinstance(paths, (str, os.PathLike, TableFile)):
        return [paths]
    if not isinstance(paths, Iterable):
        raise TypeError(f"paths={paths!r} is not a path; pass a path, a list of paths or a folder.")
    return list(paths)


def _files_at(given: Any, file_format: str | None) -> list[TableFile]:
    """The files that one path stands for."""
    if isinstance(given, TableFile):
        return [given]
    if given == "-":
        return [_standard_input(file_format or "csv")]
    path = Path(given)
    if not path.exists():
        raise FileNotFoundError(f"there is no file or folder {str(path)!r}; {_neighbour(path)}")
    if path.is_dir():
        return _files_in(path, file_format)
    known = file_format or _NAMED_FORMATS.get(path.suffix.lower()) or _format_of(path)
    if known is None and _is_model(path):
        raise ValueError(
            f"{path} is a model, not a table; to judge it, pass --model {path} and the file to "
            "judge it by."
        )
    if known is None:
        raise ValueError(
            f"cannot tell the format of {path} from its ending ({', '.join(_FORMATS)}); rename "
            "it, or in Python pass file_format='csv', 'tsv', 'parquet' or 'arrow'."
        )
    return [TableFile(path, known)]


def _is_model(path: Path) -> bool:
    """Whether a file begins as those that ``fairpca fit`` writes: a length, and JSON."""
    with path.open("rb") as stream:
        head = stream.read(9)
    return int.from_bytes(head[:8], "little") < path.stat().st_size and head[8:] == b"{"


def _files_in(folder: Path, file_format: str | None) -> list[TableFile]:
    """The files of a folder and its subfolders, which must be of one format."""
    found = []
    for path in sorted(folder.rglob("*")):
        inner, known = path.relative_to(folder), file_format or _format_of(path)
        hidden = any(part.startswith((".", "_")) for part in inner.parts)
        if known and not hidden and path.is_file():
            found.append(TableFile(path, known, _partition_of(inner)))
    formats = sorted({file.format for file in found})
    if not found:
        raise ValueError(
            f"the folder {folder} holds no data files ({', '.join(_FORMATS)}); pass another "
            "folder, or file_format= if its files are named differently."
        )
    if len(formats) > 1:
        raise ValueError(
            f"the folder {folder} holds files of several formats ({', '.join(formats)}), perhaps "
            "the same data twice; pass a list of the files that you mean."
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
        return f"it is a link that leads nowhere ({os.readlink(path)!r}); mend it."
    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.exists()]
    except OSError:
        names = []
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.7)
    return f"did you mean {str(path.with_name(near[0]))!r}?" if near else "pass another path."


def _partition_of(inner: Path) -> dict[str, Any]:
    """The columns that the folders of a path name, as ``key=value``."""
    pairs = [part.split("=", 1) for part in inner.parts[:-1] if "=" in part]
    return {unquote(key): None if value == _NO_VALUE else unquote(value) for key, value in pairs}


def _with_typed_partitions(files: list[TableFile]) -> list[TableFile]:
    """The files, with integers as the values of a key if all are written as integers are."""
    values: dict[str, set[Any]] = {}
    for file in files:
        for key, value in file.partition.items():
            values.setdefault(key, set()).add(value)
    whole = {key for key, found in values.items() if all(map(_is_integer, found - {None}))}

    def typed(key: str, value: Any) -> Any:
        return int(value) if key in whole and value is not None else value

    return [
        replace(file, partition={key: typed(key, value) for key, value in file.partition.items()})
        for file in files
    ]


def _is_integer(value: Any) -> bool:
    """Whether this is the usual way to write an integer: with 01 beside 1, both remain text."""
    text = str(value)
    return len(text) < _INT64_DIGITS and re.fullmatch("0|-?[1-9][0-9]*", text) is not None


class _Temporary:
    """An empty file that is deleted together with this object, or when Python ends."""

    def __init__(self) -> None:
        handle, name = mkstemp(prefix="fairpca-")
        os.close(handle)
        self.path = Path(name)
        finalize(self, os.unlink, name)


def temporary_file(title: str, file_format: str) -> TableFile:
    """An empty temporary file, to be filled."""
    holder = _Temporary()
    return TableFile(holder.path, file_format, title=title, holder=holder)


def _standard_input(file_format: str) -> TableFile:
    file = temporary_file("standard input", file_format)
    with errors_naming(file.path), file.path.open("wb") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
    return file
