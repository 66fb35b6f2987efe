"""Writing files so that a reader never sees half of one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary file beside ``path`` that takes its place when the block ends well.

    It is made at once, so a folder that cannot be written to is noticed before any work. When the
    block fails, or is interrupted, the file is removed and ``path`` is as it was.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "note.txt"
    >>> with replacing(target) as temporary:
    ...     _ = temporary.write_text("whole")
    >>> target.read_text()
    'whole'
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; pass the name of a file in it.")
    handle, name = tempfile.mkstemp(
        prefix=f".{target.name[:40]}.", suffix=target.suffix, dir=target.parent
    )
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes files for the owner only; give this one the rights of any new file.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
