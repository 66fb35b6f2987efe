"""Writing files so that a reader never sees half of one."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary file beside ``path`` that takes its place when the block ends without an error.

    It is made at once, so that a folder without write access is noticed before any work. If the
    block fails or is interrupted, the file is removed and ``path`` stays as it was. If ``path`` is
    a link, its target is replaced; an existing file keeps its mode; a device or pipe is written to.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "note.txt"
    >>> with replacing(target) as temporary:
    ...     _ = temporary.write_text("whole")
    >>> target.read_text()
    'whole'
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder; pass the name of a file in it.")
    if _is_stream(Path(path), target):
        with handing_over(lambda content: _append(content, path), target.suffix) as temporary:
            yield temporary
        return
    temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(6)}{target.suffix}")
    with _errors_naming(path, temporary):
        mode = _writable_mode(target)
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        try:
            yield temporary
            if mode is not None:
                temporary.chmod(mode)
            with temporary.open("rb") as content:
                os.fsync(content.fileno())  # the content must be on the disk before the name
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


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


def _is_stream(path: Path, target: Path) -> bool:
    """Whether to write to this and not replace it; /dev/stdout even if it leads to a plain file."""
    opened = path.absolute().parts[1:3]
    return opened in {("dev", "stdout"), ("dev", "stderr"), ("dev", "fd"), ("proc", "self")} or (
        target.exists() and not target.is_file()
    )


def _append(content: Path, path: str | os.PathLike[str]) -> None:
    try:
        with content.open("rb") as source, Path(path).open("ab") as sink:
            shutil.copyfileobj(source, sink)
    except OSError as error:
        error.filename = os.fspath(path)
        raise


def _writable_mode(target: Path) -> int | None:
    """The mode of an existing file; raises an error if it may not be written to."""
    if not target.exists():
        return None
    os.close(os.open(target, os.O_WRONLY))
    return target.stat().st_mode & 0o777


@contextmanager
def _errors_naming(path: str | os.PathLike[str], temporary: Path) -> Iterator[None]:
    """Make errors name the file that the user knows, not the temporary one."""
    try:
        yield
    except OSError as error:
        if str(error.filename) in (str(temporary), str(temporary.parent)):
            error.filename = os.fspath(path)
        raise
