"""What the processes of a cluster must be able to import."""

from __future__ import annotations

import os
import signal


def die_once(block, first, marker):
    """Return the block; but the first process that gets the one beginning with ``first`` dies."""
    if block[0, 0] == first:
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            pass
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    return block
