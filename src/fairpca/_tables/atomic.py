"""Write files so that nobody sees half of one, and never over a file that is being read."""

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

    It is made at once, so that a folder without write access is noticed before any work. After an
    error it is removed and ``path`` stays as it was. If ``path`` is a link, its target is replaced;
    an existing file keeps its mode; a device or pipe is written to. Refuses files in ``reads``.
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

            def append(content: Path) -> None:
                with content.open("rb") as source, Path(path).open("ab") as sink:
                    shutil.copyfileobj(source, sink)

            with handing_over(append, target.suffix) as written:
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
        # Errors name the file that the user knows; the error of a full disk names none.
        full = error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        if full or str(error.filename) in (str(temporary), str(target.parent)):
            error.filename = os.fspath(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def handing_over(send: Callable[[Path], object], suffix: str = "") -> Iterator[Path]:
    """A temporary file, passed to ``send`` if the block ends without an error, then removed."""
    with tempfile.TemporaryDirectory(prefix="fairpca-") as folder:
        temporary = Path(folder, f"content{suffix}")
        yield temporary
        send(temporary)


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
    return (status.st_dev, status.st_ino) if plain else None
