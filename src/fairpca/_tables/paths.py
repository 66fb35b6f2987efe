"""Which files a path stands for, what they hold, and what their folders say about them."""

from __future__ import annotations

import difflib
import os
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import mkstemp
from typing import Any
from urllib.parse import unquote
from weakref import finalize

_SUFFIXES = {
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
_INT64_DIGITS = 19  # fewer than these always fit
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # how Hive and its kin write null


@dataclass(frozen=True)
class DataFile:
    """One file and how to read it.

    Attributes
    ----------
    path : Path
    format : {"csv", "tsv", "parquet", "arrow"}
    partition : dict
        Columns that stand in its path as ``key=value``.
    encoding : str
        Of text.
    title : str
        What messages call it, where that is not its path.
    holder : object
        Keeps a temporary file from being deleted.
    """

    path: Path
    format: str
    partition: dict[str, Any] = field(default_factory=dict)
    encoding: str = "utf-8"
    title: str = ""
    holder: Any = None

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.title or str(self.path)

    @property
    def is_text(self) -> bool:
        """Whether it holds text, which has no types of its own."""
        return self.format in ("csv", "tsv")

    @property
    def compression(self) -> str | None:
        """How the text is compressed, told from the last ending."""
        return _COMPRESSIONS.get(self.path.suffix.lower()) if self.is_text else None


def find_files(paths: Any, file_format: str | None, encoding: str = "utf-8") -> list[DataFile]:
    """Every file of ``paths``: those given in their order, those of a folder sorted by path.

    ``-`` is CSV from standard input, put into a temporary file. Files of a folder that are hidden
    (``.`` or ``_`` in front, as Spark's ``_SUCCESS``) or of no known kind are passed over.
    """
    if file_format is not None and file_format not in set(_SUFFIXES.values()):
        raise ValueError(
            f"file_format={file_format!r} is not known; pass 'csv', 'tsv', 'parquet' or 'arrow'."
        )
    try:
        "a".encode(encoding)
    except (LookupError, TypeError):
        raise ValueError(
            f"the encoding {encoding!r} is not known; try 'utf-8' or 'latin-1'."
        ) from None
    if not isinstance(paths, (str, os.PathLike, DataFile, Iterable)):
        raise TypeError(f"paths={paths!r} is no path; pass a path, a list of paths or a folder.")
    given = [paths] if isinstance(paths, (str, os.PathLike, DataFile)) else list(paths)
    files = [file for path in given for file in _files_of(path, file_format)]
    if not files:
        raise ValueError("no files were given; pass a path, a list of paths or a folder.")
    return [replace(file, encoding=encoding) for file in _typed_partitions(files)]


class _Temporary:
    """An empty file that is deleted when nobody holds this any more, or Python ends."""

    def __init__(self) -> None:
        handle, name = mkstemp(prefix="fairpca-")
        os.close(handle)
        self.path = Path(name)
        finalize(self, os.unlink, name)


def spooled(title: str, file_format: str) -> DataFile:
    """A temporary file, to be filled."""
    holder = _Temporary()
    return DataFile(holder.path, file_format, title=title, holder=holder)


def _standard_input(file_format: str) -> DataFile:
    file = spooled("standard input", file_format)
    with file.path.open("wb") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
    return file


def _files_of(given: Any, file_format: str | None) -> list[DataFile]:
    if isinstance(given, DataFile):
        return [given]
    if given == "-":
        return [_standard_input(file_format or "csv")]
    path = Path(given)
    if not path.exists():
        raise FileNotFoundError(f"there is no file or folder {str(path)!r}; {_neighbour(path)}")
    if not path.is_dir():
        return [DataFile(path, file_format or _known_format(path))]
    inside = [
        file
        for file in sorted(path.rglob("*"))
        if file.is_file()
        and not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
        and (file_format is not None or _format_of(file))
    ]
    found = [
        DataFile(file, file_format or _known_format(file), _partition(file.relative_to(path)))
        for file in inside
    ]
    formats = sorted({file.format for file in found})
    if not found:
        raise ValueError(
            f"the folder {path} holds no data files ({', '.join(_SUFFIXES)}); pass another folder, "
            "or file_format= if its files are named differently."
        )
    if len(formats) > 1:
        raise ValueError(
            f"the folder {path} holds files of several formats ({', '.join(formats)}), perhaps the "
            "same data twice; pass a list of the files that are meant."
        )
    return found


def _format_of(path: Path) -> str | None:
    """The format by the ending, that of a compression left aside."""
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] in _COMPRESSIONS:
        endings.pop()
    return _SUFFIXES.get(endings[-1]) if endings else None


def _known_format(path: Path) -> str:
    known = _format_of(path)
    if known is None:
        raise ValueError(
            f"cannot tell the format of {path} from its ending ({', '.join(_SUFFIXES)}); rename "
            "it, or in Python pass file_format='csv', 'tsv', 'parquet' or 'arrow'."
        )
    return known


def _neighbour(path: Path) -> str:
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        names = []
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.7)
    return f"did you mean {str(path.with_name(near[0]))!r}?" if near else "pass another path."


def _partition(relative: Path) -> dict[str, Any]:
    pairs: Iterable[tuple[str, str, str]] = (part.partition("=") for part in relative.parts[:-1])
    return {
        unquote(key): None if value == _NO_VALUE else unquote(value)
        for key, equals, value in pairs
        if equals
    }


def _typed_partitions(files: list[DataFile]) -> list[DataFile]:
    """Integers where every value of a key is one."""
    for key in {key for file in files for key in file.partition}:
        values = [file.partition[key] for file in files if file.partition.get(key) is not None]
        if all(v.removeprefix("-").isdecimal() and len(v) < _INT64_DIGITS for v in values):
            for file in files:
                if file.partition.get(key) is not None:
                    file.partition[key] = int(file.partition[key])
    return files
