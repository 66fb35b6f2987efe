"""Which files a path stands for, what they hold, and what their folders say about them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # how Hive and its kin write null


@dataclass(frozen=True)
class DataFile:
    """One file, its format, and the columns that stand in its path as ``key=value``."""

    path: Path
    format: str
    partition: dict[str, Any] = field(default_factory=dict)


def find_files(paths: Any, file_format: str | None) -> list[DataFile]:
    """Every file of ``paths``: those given in their order, those of a folder sorted by path.

    Files of a folder that are hidden (``.`` or ``_`` in front, as Spark's ``_SUCCESS``) or of no
    known kind are passed over.
    """
    if file_format is not None and file_format not in set(_SUFFIXES.values()):
        raise ValueError(
            f"file_format={file_format!r} is not known; pass 'csv', 'tsv', 'parquet' or 'arrow'."
        )
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    files = [file for path in given for file in _files_of(Path(path), file_format)]
    if not files:
        raise ValueError("no files were given; pass a path, a list of paths or a folder.")
    return _typed_partitions(files)


def _files_of(path: Path, file_format: str | None) -> list[DataFile]:
    if not path.exists():
        raise FileNotFoundError(f"there is no file or folder {path}; pass an existing path.")
    if not path.is_dir():
        return [DataFile(path, file_format or _format_of(path))]
    inside = [
        file
        for file in sorted(path.rglob("*"))
        if file.is_file()
        and not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
        and (file_format is not None or file.suffix.lower() in _SUFFIXES)
    ]
    found = [
        DataFile(file, file_format or _format_of(file), _partition(file.relative_to(path)))
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


def _format_of(path: Path) -> str:
    try:
        return _SUFFIXES[path.suffix.lower()]
    except KeyError:
        raise ValueError(
            f"the name of {path} does not tell its format ({', '.join(_SUFFIXES)}); "
            "pass file_format='csv', 'tsv', 'parquet' or 'arrow'."
        ) from None


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
        if all(value.removeprefix("-").isdecimal() for value in values):
            for file in files:
                if file.partition.get(key) is not None:
                    file.partition[key] = int(file.partition[key])
    return files
