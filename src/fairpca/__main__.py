"""Entry point of the ``fairpca`` command and of ``python -m fairpca``."""

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command with these arguments, by default those of the process; exit with its code.

    It always ends with an exit code and, if something went wrong, one line on standard error.
    Other programs may call it: it restores everything that it changes.
    """
    with _orderly_signals():
        try:
            sys.exit(_run(sys.argv[1:] if argv is None else argv))
        except KeyboardInterrupt:
            print("fairpca: interrupted.", file=sys.stderr)
            sys.exit(130)


def _run(argv: Sequence[str]) -> int:
    try:
        from fairpca.cli import run_command
    except ImportError as error:
        needs = f"fairpca: the command line needs {error.name or error}; install all it needs with "
        packages = "click duckdb jinja2 pyarrow safetensors vl-convert-python"
        print(f"{needs}pip install {packages}.", file=sys.stderr)
        return 2
    return run_command(argv)


@contextmanager
def _orderly_signals() -> Iterator[None]:
    """Make signals that end a process raise SystemExit, so that no file is left half written."""
    names = ("SIGTERM", "SIGHUP")  # Windows has no SIGHUP
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []  # only the main thread may handle signals
    handlers = {number: signal.signal(number, _exit) for number in numbers}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _exit(number: int, frame: object) -> NoReturn:
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
