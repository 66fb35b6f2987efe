"""The ``fairpca`` command: it parses, calls the library and prints.

Numerical libraries are imported inside the commands, so that ``--help`` does not wait for them.
Exit codes: 0 done, 1 a gap above ``--fail-above``, 2 wrong use or unusable data, 3 cannot be
judged, 4 not proven, 129, 130 and 143 after a signal, 141 if the reader of our output closed the
pipe.
"""

import os
import re
import sys
import warnings
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import BytesIO, TextIOWrapper
from typing import Any

import click

from fairpca import __version__
from fairpca.cli import commands
from fairpca.cli.options import CHOICE, SETTINGS
from fairpca.cli.terminal import print_line


@click.group(
    "fairpca",
    commands=[own for own in vars(commands).values() if isinstance(own, click.Command)],
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="fairpca %(version)s")
@click.pass_context
def app(context: click.Context) -> None:
    """Find out whether PCA describes a group of people worse, and fit one that does not.

    Start with "fairpca report".
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def run_command(argv: Sequence[str], received: Sequence[int] = ()) -> int:
    """Run the command and turn every ending into one line and an exit code.

    ``received`` gets the signals that come meanwhile; what they cause is no error of ours.
    """
    output = sys.stdout or TextIOWrapper(BytesIO())  # it is None if it was closed (>&-)
    try:
        with redirect_stdout(output), warnings.catch_warnings():
            # Of rows that repeat others we have spoken before, in our own words.
            warnings.filterwarnings("ignore", message=".* in all columns and the group: if they")
            warnings.showwarning = lambda message, *where: print_line(f"warning: {message}")
            if "_FAIRPCA_COMPLETE" in os.environ:  # a shell asks what could be typed next
                app(prog_name="fairpca")
            # The object of the context holds the arguments as typed, for the commands.
            with app.make_context("fairpca", [*argv], obj=argv) as context:
                app.invoke(context)
            sys.stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except BrokenPipeError:  # send the rest nowhere: Python would flush it to the closed pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())
        return 141
    except click.ClickException as error:
        path = getattr(getattr(error, "ctx", None), "command_path", "fairpca")
        said = error.format_message()
        if not said.endswith((".", "?")):
            said += "."
        print_line(f"{said} See {path} --help.")
        return 2
    except (OSError, ValueError, TypeError, ImportError, MemoryError) as error:
        if received:
            raise
        print_line(_in_words_of_the_shell(error, next(iter(argv), "")))
        return 2
    return 0


#: Hints for each problem with a table, to be filled in with its facts. A hint that names an option
#: is left out if the command does not have the option, or if it does not help.
_HINTS = {
    "encoding": ["pass its encoding, for example --encoding latin-1"],
    "odd_value": ["correct it", "pass --missing-value '{value}'", "pass --drop '{column}'"],
    "decimal": ["pass --decimal . or --decimal ,"],
    "no_names": ["pass --no-header if the first line holds values"],
    "no_group": ["name the column of the groups with --group"],
    "many_groups": [
        "make bands in a query, SELECT *, floor(age / 10) * 10 AS band FROM 'people.csv'",
        "name another column with --group",
    ],
    "no_features": ["pass --encode to use text columns", "pass other --features"],
    "duplicates": [
        "name the column that says whose they are with --unit",
        "pass --keep-duplicates",
    ],
    "categories": ["leave it out with --drop '{column}'", "correct it"],
    "too_large": ["take a sample of the rows with a query"],
}


#: Options for arguments that have another name in Python.
_RENAMED = {
    "pos_label": "--target-positive",
    "n_columns": "--components",
    "folds": "--cv",
    "header": "--no-header",
}
_RENAMED |= {name: f"--{name}" for name in ("missing", "query", "sheet")}


def _in_words_of_the_shell(error: Any, name: str) -> str:
    """The message of an error in the command ``name``, in terms of the command line."""
    if isinstance(error, OSError):
        text = error.strerror or str(error)
        if error.filename:
            return f"{error.filename}: {text}"
        return text
    if isinstance(error, UnicodeEncodeError):  # a name holds bytes that Python could not decode
        return f"the name {error.object[:80]!a} is not UTF-8 text; rename the file or column."
    facts = getattr(error, "facts", {})
    options = {word for option in app.commands[name].params for word in option.opts}
    ways = [
        re.sub(r"{(\w+)}", lambda fact: str(facts.get(fact[1], "")), way)
        for way in _HINTS.get(getattr(error, "problem", ""), [])
        if options.issuperset(re.findall(r"--[a-z-]+", way))
    ]
    if ways:
        return f"{error.fact}; {', or '.join(ways)}."
    text = str(error) or type(error).__name__
    names = {own.name: own.opts[0] for own in (*SETTINGS, *CHOICE)} | _RENAMED
    named = [word for name, word in names.items() if f"{name}=" in text]
    named += ["--target"] * (text.startswith("y ") and not named)
    if named:
        text += f" (here: {', '.join(named)})"
    return text
