"""Writing files so that a reader never sees half of one, and never over what is being read."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

#: A file or folder; ``-`` is standard input or output.
FileName = str | os.PathLike[str]

_STREAMS = {("dev", "stdout"), ("dev", "stderr"), ("dev", "fd"), ("proc", "self")}


@contextmanager
def replacing(path: FileName, reads: Iterable[FileName] = ()) -> Iterator[Path]:
    """A temporary file beside ``path`` that takes its place when the block ends without an error.

    It is made at once, so that a folder without write access is noticed before any work. If the
    block fails or is interrupted, the file is removed and ``path`` stays as it was. If ``path`` is
    a link, its target is replaced; an existing file keeps its mode; a device or pipe is written to.
    A file of ``reads``, or one in a folder of ``reads``, is refused; see :func:`refuse_inputs`.
    """
    refuse_inputs(path, reads)
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, "the link leads back to itself", os.fspath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder; pass the name of a file in it.")
    temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(6)}{target.suffix}")
    try:
        # Devices and pipes are written to; so is /dev/stdout, even if it leads to a plain file.
        opened = Path(path).absolute().parts[1:3]
        if opened in _STREAMS or (target.exists() and not target.is_file()):
            with handing_over(lambda content: _append(content, path), target.suffix) as written:
                yield written
            return
        mode = target.stat().st_mode & 0o777 if target.exists() else None
        if mode is not None:
            os.close(os.open(target, os.O_WRONLY))  # notices a file that may not be written to
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield temporary
        if mode is not None:
            temporary.chmod(mode)
        with temporary.open("rb") as content:
            os.fsync(content.fileno())  # the content must be on the disk before the name
        temporary.replace(target)
    except OSError as error:
        # Errors name the file that the user knows; a full disk is noticed where no name is known.
        full = error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        if full or str(error.filename) in (str(temporary), str(target.parent)):
            error.filename = os.fspath(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def handing_over(send: Callable[[Path], object], suffix: str = "") -> Iterator[Path]:
    """A temporary file, passed to ``send`` if the block ends without an error, then removed.

    Examples
    --------
    >>> with handing_over(lambda content: print(content.read_text())) as temporary:
    ...     _ = temporary.write_text("whole")
    whole
    """
    with tempfile.TemporaryDirectory(prefix="fairpca-") as folder:
        temporary = Path(folder, f"content{suffix}")
        yield temporary
        send(temporary)


def refuse_inputs(output: FileName, reads: Iterable[FileName]) -> None:
    """Refuse to write to a file that is read, under whatever name, or into a folder that is.

    ``-`` is standard output, and standard input in ``reads``.
    """
    target = _status(output, sys.stdout)
    above = [_status(folder) for folder in Path(os.path.realpath(output)).parents]
    for source in reads:
        read = _status(source, sys.stdin)
        if read is None:
            continue
        is_folder = stat.S_ISDIR(read.st_mode)
        if is_folder and any(folder and os.path.samestat(read, folder) for folder in above):
            raise ValueError(
                f"{output} lies in the folder {source}, which is read; write to a file elsewhere."
            )
        files = [_status(file) for file in Path(source).rglob("*")] if is_folder else [read]
        plain = [file for file in files if file and stat.S_ISREG(file.st_mode)]
        if target is not None and any(os.path.samestat(target, file) for file in plain):
            raise ValueError(
                f"{output} is a file that is read ({source}), and it would be lost; write to "
                "another file."
            )


def _status(path: FileName, stream: IO[str] | None = None) -> os.stat_result | None:
    """The status of a file, or of a stream for ``-``; None if there is none."""
    try:
        return os.stat(stream.fileno() if path == "-" and stream is not None else path)
    except (OSError, ValueError):
        return None


def _append(content: Path, path: FileName) -> None:
    with content.open("rb") as source, Path(path).open("ab") as sink:
        shutil.copyfileobj(source, sink)
