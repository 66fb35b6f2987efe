"""Entry point of the ``fairpca`` command and of ``python -m fairpca``."""

from __future__ import annotations

import signal
import sys
from typing import Any


def main() -> None:
    """Run the command line, and end in one line and an exit code even while it is being loaded."""
    for name in ("SIGTERM", "SIGHUP"):  # end in good order, without files half written
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _end)
    try:
        sys.exit(_run())
    except KeyboardInterrupt:
        print("fairpca: interrupted; nothing was written.", file=sys.stderr)
        sys.exit(130)


def _end(number: int, frame: Any) -> None:
    sys.exit(128 + number)


def _run() -> int:
    try:
        from fairpca.cli import run
    except ImportError as error:
        print(
            f"fairpca: the command line needs {error.name or error}; install it with "
            'pip install "fairpca[cli]".',
            file=sys.stderr,
        )
        return 2
    return run()


if __name__ == "__main__":
    main()
