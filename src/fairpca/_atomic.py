"""Write files so that nobody sees half of one, and never over a file that is being read."""

import errno
import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

#: A file or folder; ``-`` is standard input or output.
FileName = str | os.PathLike[str]

#: How the names of the temporary folders of this process begin.
TEMPORARY = f"fairpca-{secrets.token_hex(4)}-"


def remove_temporary_folders() -> None:
    """Remove what an interrupt may have left, which can come before an end is registered."""
    for folder in Path(tempfile.gettempdir()).glob(f"{TEMPORARY}*"):
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def replacing(path: FileName, reads: Iterable[FileName] = ()) -> Iterator[Path]:
    """A temporary file beside ``path`` that takes its place when the block ends without an error.

    It is made at once, so that a folder without write access is noticed before any work. After an
    error it is removed and ``path`` stays as it was. If ``path`` is a link, its target is replaced;
    an existing file keeps its mode. Refuses files in ``reads``, and what is not a plain file.
    """
    refuse_inputs(path, reads)
    target = Path(os.path.realpath(path))
    # Standard output may lead to a plain file, which must not be replaced either.
    opened = os.path.abspath(path).startswith(("/dev/std", "/dev/fd/", "/proc/"))
    if opened or target.is_symlink() or (target.exists() and not target.is_file()):
        raise OSError(f"{path} is a folder, a device or a broken link; pass the name of a file.")
    temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(6)}{target.suffix}")
    mode = None
    if target.exists():
        mode = target.stat().st_mode & 0o777
    if mode is not None:
        os.close(os.open(target, os.O_WRONLY))  # notices a file that may not be written to
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield temporary
        if mode is not None:
            temporary.chmod(mode)
        with temporary.open("rb") as content:
            os.fsync(content.fileno())  # the content must be on the disk before the name
        temporary.replace(target)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        if error.filename == str(temporary) or (full and error.filename is None):
            error.filename = os.fspath(path)  # the file that the user knows
        if not error.filename and str(temporary) in str(error):  # an error of Arrow
            raise OSError(str(error).replace(str(temporary), os.fspath(path))) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


def refuse_inputs(output: FileName, reads: Iterable[FileName]) -> None:
    """Refuse to write to a file that is read, under whatever name, or into a folder that is read.

    ``-`` is standard output, and standard input in ``reads``.
    """
    target = _number(output, sys.stdout)
    above = [_number(folder) for folder in Path(os.path.realpath(output)).parents]
    for source in reads:
        read = _number(source, sys.stdin)
        if read is not None and read in above:
            raise ValueError(
                f"{output} lies in the folder {source}, which is read; write to a file elsewhere."
            )
        if target is not None and target in (read, *map(_number, Path(source).rglob("*"))):
            raise ValueError(f"{output} is a file that is read ({source}); write to another file.")


def _number(path: FileName, stream: IO[str] | None = None) -> tuple[int, int] | None:
    """The identity of a file or folder; ``-`` is the stream; None for devices and pipes."""
    try:
        status = os.stat(stream.fileno() if path == "-" and stream is not None else path)
    except (OSError, ValueError):
        return None
    plain = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    if plain:
        return (status.st_dev, status.st_ino)
    return None
