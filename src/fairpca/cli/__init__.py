"""The ``fairpca`` command: it parses, calls the library and prints.

Numerical libraries are imported inside the commands, so that ``--help`` does not wait for them.
Exit codes: 0 done, 1 a disparity above ``--max-disparity``, 2 wrong use or unusable data,
130 interrupted, 141 the reader of our output went away.
"""

from __future__ import annotations

import os
import signal
import sys
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from fairpca.cli._audit import audit
from fairpca.cli._models import fit, inspect, transform
from fairpca.cli._output import interrupt, say
from fairpca.cli._report import report
from fairpca.cli._reproduce import reproduce

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Fair principal component analysis: audit a PCA for unequal treatment of groups, and "
    "fit one that treats them alike.",
)

for command in (report, audit, fit, transform, inspect, reproduce):
    app.command()(command)

_UsageError: Any = typer.BadParameter.__base__  # click's, wherever typer keeps its click


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from fairpca import __version__

        typer.echo(f"fairpca {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run() -> int:
    """Run the command and turn every ending into one line and an exit code."""
    command = typer.main.get_command(app)
    try:
        signal.signal(signal.SIGINT, interrupt)
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # rather no umlaut than no answer
        with command.make_context("fairpca", sys.argv[1:]) as context:
            command.invoke(context)
        sys.stdout.flush()
    except typer.Exit as end:
        return int(end.exit_code)
    except KeyboardInterrupt:
        say("interrupted; nothing was written.")
        return 130
    except BrokenPipeError:
        # Nobody reads what we print; also keep Python from trying again on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        say(f"{name}{error.strerror or error}")
        return 2
    except UnicodeEncodeError as error:  # Python's stand-ins for bytes that are not text
        say(f"the name {error.object[:80]!a} is not UTF-8 text; rename what is called so.")
        return 2
    except (ValueError, TypeError, ImportError, MemoryError) as error:
        say(str(error) or type(error).__name__)
        return 2
    except _UsageError as error:
        say(f"{error.format_message().rstrip('.')}. See fairpca --help.")
        return 2
    return 0
