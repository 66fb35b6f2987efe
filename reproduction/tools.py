"""Small things that every part of the reproduction uses."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairpca.exceptions import (
    DualityGapWarning,
    FewRowsWarning,
    LevellingDownWarning,
    ParityInfeasibleWarning,
)

Array: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Codes: TypeAlias = NDArray[np.intp]
PathLike: TypeAlias = str | os.PathLike[str]


class Progress(Protocol):
    """A function that is told how far the work is."""

    def __call__(self, doing: str, fraction: float | None = None) -> object:
        """Take what is being done and the fraction that is done; None if it is unknown."""


def silent(doing: str, fraction: float | None = None) -> None:
    """Ignore the progress."""


@contextmanager
def quietly() -> Iterator[None]:
    """Fit without the library's warnings; the tables report errors, status and gap instead."""
    with warnings.catch_warnings():
        for category in (
            DualityGapWarning,
            FewRowsWarning,
            LevellingDownWarning,
            ParityInfeasibleWarning,
        ):
            warnings.simplefilter("ignore", category)
        yield


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file that takes the place of ``path`` if the block ends without an error."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".") as folder:
        temporary = Path(folder) / path.name
        yield temporary
        temporary.replace(path)


def write_text(path: Path, text: str) -> None:
    """Write a whole file or nothing."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def writable_folder(folder: Path) -> Path:
    """Make the folder, and make sure that files can be written there.

    Raises
    ------
    OSError
        Naming the folder, and what to pass instead.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(
            f"the output folder {str(folder)!r} cannot be written ({error.strerror}); nothing was "
            "computed. Pass a folder that can, for example --out ~/paper (out='paper' in Python)."
        ) from error
    return folder
