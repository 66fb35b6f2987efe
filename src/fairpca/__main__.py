"""Entry point of the ``fairpca`` command and of ``python -m fairpca``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; without its libraries say how to get them."""
    try:
        from fairpca.cli import run
    except ImportError as error:
        print(
            f"fairpca: the command line needs {error.name or error}; install it with "
            'pip install "fairpca[cli]".',
            file=sys.stderr,
        )
        sys.exit(2)
    sys.exit(run())


if __name__ == "__main__":
    main()
