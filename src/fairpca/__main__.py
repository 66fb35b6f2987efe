"""Entry point of the ``fairpca`` command and of ``python -m fairpca``."""

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from fairpca._atomic import remove_temporary_folders


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command with these arguments, by default those of the process; exit with its code.

    It always ends with an exit code and, if something went wrong, one line on standard error.
    Other programs may call it: it restores everything that it changes.
    """
    with _orderly_signals() as received:
        try:
            code = _run(sys.argv[1:] if argv is None else argv, received)
        except KeyboardInterrupt:
            print("fairpca: interrupted.", file=sys.stderr)
            code = 128 + signal.SIGINT
        except BaseException:  # a library may turn a signal into an error of its own
            if not received:
                raise
        if received:
            code = 128 + received[0]
            remove_temporary_folders()
        sys.exit(code)


def _run(argv: Sequence[str], received: Sequence[int]) -> int:
    try:
        from fairpca.cli import run_command
    except ImportError as error:
        needs = f"fairpca: the command line needs {error.name or error}; install all it needs with "
        packages = "click duckdb jinja2 pyarrow safetensors vl-convert-python"
        print(f"{needs}pip install {packages}.", file=sys.stderr)
        return 2
    return run_command(argv, received)


@contextmanager
def _orderly_signals() -> Iterator[list[int]]:
    """Make signals that end a process raise an exception, so that no file is left half written.

    Yields the list of those that have come.
    """
    received: list[int] = []

    def note(number: int, frame: object) -> NoReturn:
        received.append(number)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)

    names = ("SIGTERM", "SIGHUP")  # Windows has no SIGHUP
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        numbers.append(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread():
        numbers = []  # only the main thread may handle signals
    handlers = {number: signal.signal(number, note) for number in numbers}
    try:
        yield received
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


if __name__ == "__main__":
    main()
