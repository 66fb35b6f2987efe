"""The ``fairpca`` command: it parses, calls the library and prints.

Numerical libraries are imported inside the commands, so that ``--help`` does not wait for them.
Exit codes: 0 done, 1 a disparity above ``--max-disparity``, 2 wrong use or unusable data,
130 interrupted, 141 if the reader of our output closed the pipe.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from fairpca.cli._audit import audit_command
from fairpca.cli._examples import examples
from fairpca.cli._models import fit_command, inspect_command, transform_command
from fairpca.cli._output import say
from fairpca.cli._report import report_command
from fairpca.cli._reproduce import reproduce_command

app = typer.Typer(
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: rich takes longer to load than all the rest
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Fair principal component analysis: audit a PCA for unequal treatment of groups, and "
    "fit one that treats them alike.",
)


class _Command(TyperCommand):
    """A command whose help shows arguments by name, without their Python types."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        for parameter in self.params:
            if parameter.param_type_name == "argument":
                vars(parameter)["display_type_rich"] = lambda ctx: None


_COMMANDS: dict[str, Callable[..., None]] = {
    "report": report_command,
    "audit": audit_command,
    "fit": fit_command,
    "transform": transform_command,
    "inspect": inspect_command,
    "reproduce": reproduce_command,
}
for _name, _function in _COMMANDS.items():
    app.command(_name, cls=_Command, epilog=examples(_name))(_function)


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


def run_command(argv: Sequence[str]) -> int:
    """Run the command and turn every ending into one line and an exit code."""
    try:
        with _any_character_printable():
            _invoke(list(argv))
            sys.stdout.flush()
    except typer.Exit as end:
        return int(end.exit_code)
    except KeyboardInterrupt:
        say("interrupted.")
        return 130
    except BrokenPipeError:
        _discard_output()
        return 141
    except typer.TyperException as error:
        say(_misuse(error))
        return 2
    except (OSError, ValueError, TypeError, ImportError, MemoryError) as error:
        say(_in_one_line(error))
        return 2
    return 0


def _invoke(argv: list[str]) -> None:
    if "_FAIRPCA_COMPLETE" in os.environ:  # a shell asks what could be typed next
        app(argv, prog_name="fairpca")
    command = typer.main.get_command(app)
    # Commands find the arguments as they were typed in the object of the context.
    with command.make_context("fairpca", argv.copy(), obj=argv) as context:
        command.invoke(context)


@contextmanager
def _any_character_printable() -> Iterator[None]:
    """Print a question mark for a character that the encoding of the terminal lacks."""
    stream = sys.stdout
    if not isinstance(stream, TextIOWrapper):
        yield
        return
    errors = stream.errors
    stream.reconfigure(errors="replace")
    try:
        yield
    finally:
        with suppress(BrokenPipeError):  # it flushes
            stream.reconfigure(errors=errors)


def _discard_output() -> None:
    """Send the rest of our output nowhere, so that Python does not flush it to a closed pipe."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


#: What the library that checks the options says, and what we say instead.
_IN_OTHER_WORDS = {
    ": Value error, ": ": ",
    "Input should be a valid integer, unable to parse string as an integer": "pass a whole number",
    "Input should be a valid number, unable to parse string as a number": "pass a number",
    "Input should be ": "pass a number ",
}


def _misuse(error: typer.TyperException) -> str:
    """What was wrong with the arguments, and which help to read."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "fairpca"
    said = error.format_message()
    for theirs, ours in _IN_OTHER_WORDS.items():
        said = said.replace(theirs, ours)
    said = said.rstrip(".")
    return f"{said}. See {command} --help."


def _in_one_line(error: Exception) -> str:
    """What the line on standard error says."""
    if isinstance(error, OSError):
        text = error.strerror or str(error)
        return f"{error.filename}: {text}" if error.filename else text
    if isinstance(error, UnicodeEncodeError):  # of bytes in a name that Python could not decode
        return f"the name {error.object[:80]!a} is not UTF-8 text; rename the file or column."
    return str(error) or type(error).__name__
