"""The ``fairpca`` command: it parses, calls the library and prints.

Numerical libraries are imported inside the commands, so that ``--help`` does not wait for them.
Exit codes: 0 done, 1 a gap above ``--fail-above``, 2 wrong use or unusable data, 3 cannot be
judged, 130 interrupted, 141 if the reader of our output closed the pipe.
"""

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import fields
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from fairpca.cli import commands
from fairpca.cli.options import CHOICE, COLUMNS, OUTPUT, START, Choice, command
from fairpca.cli.terminal import discard_output, print_line, put, with_streams

app = typer.Typer(
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: rich takes longer to load than all the rest
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Fair principal component analysis: find out whether a PCA short-changes a group of "
    "people, and fit one that does not.",
)

EXAMPLES = {
    "report": [
        "fairpca report",
        "fairpca report people.csv --group sex -r 3 --out people.html",
        "fairpca report new.csv --group sex --model model.safetensors",
    ],
    "audit": [
        "fairpca audit people.csv --group sex -r 3",
        "fairpca audit people.csv --group sex -r 3 --fail-above 0.1",
        "fairpca audit new.csv --group sex --loadings weights.csv --json -",
    ],
    "fit": [
        "fairpca fit people.csv --group sex -r 3 --out model.safetensors",
        "fairpca fit people.csv --group sex -r 3 --max-error-increase 0.03 --out model.safetensors",
        "fairpca fit \"SELECT * FROM 'people.parquet' WHERE age > 20\" -g sex -o model.safetensors",
    ],
    "columns": [
        "fairpca columns -r 3",
        "fairpca columns people.csv --group sex -r 5",
        "fairpca columns survey.parquet --group sex --weight w -r 8 --json",
    ],
    "transform": [
        "fairpca transform model.safetensors new.csv --out scores.csv",
        "fairpca transform model.safetensors new.parquet --keep id --out scores.parquet",
        "cat new.csv | fairpca transform model.safetensors - --out -",
    ],
    "inspect": [
        "fairpca inspect model.safetensors",
        "fairpca inspect model.safetensors --json",
        "fairpca inspect model.safetensors --json | jq .held_out_changes",
    ],
}


class _Command(TyperCommand):
    """A command whose help has its options in groups, and arguments without Python types."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options by their headings."""
        records: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            is_argument = parameter.param_type_name == "argument"
            heading = getattr(parameter, "rich_help_panel", None) or OUTPUT
            if record := parameter.get_help_record(ctx):
                name = record[0].partition(" <")[0] if is_argument else record[0]
                heading = "Arguments" if is_argument else heading
                records.setdefault(heading, []).append((name, record[1]))
        for heading in ("Arguments", START, COLUMNS, CHOICE, OUTPUT):
            if heading in records:
                with formatter.section(heading):
                    formatter.write_dl(records[heading])


for _name, _examples in EXAMPLES.items():
    _epilog = "\n".join(["\b", "Examples:", *(f"  {line}" for line in _examples)])
    _function = command(getattr(commands, f"{_name}_command"))
    app.command(_name, cls=_Command, epilog=_epilog)(_function)


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from fairpca import __version__

        put(f"fairpca {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run_command(argv: Sequence[str]) -> int:
    """Run the command and turn every ending into one line and an exit code."""
    try:
        with with_streams():
            _invoke(list(argv))
            sys.stdout.flush()
    except typer.Exit as end:
        return int(end.exit_code)
    except KeyboardInterrupt:
        print_line("interrupted.")
        return 130
    except BrokenPipeError:
        discard_output()
        return 141
    except typer.TyperException as error:
        print_line(_misuse(error))
        return 2
    except (OSError, ValueError, TypeError, ImportError, MemoryError) as error:
        print_line(_in_words_of_the_shell(error, next(iter(argv), "")))
        return 2
    return 0


def _invoke(argv: list[str]) -> None:
    if "_FAIRPCA_COMPLETE" in os.environ:  # a shell asks what could be typed next
        app(argv, prog_name="fairpca")
    group = typer.main.get_command(app)
    # The object of the context holds the arguments as typed, for the commands.
    with group.make_context("fairpca", argv.copy(), obj=argv) as context:
        group.invoke(context)


#: Messages of the library that checks the options, and our replacements.
_IN_OTHER_WORDS = {
    ": Value error, ": ": ",
    "Input should be a valid integer, unable to parse string as an integer": "pass a whole number",
    "Input should be a valid number, unable to parse string as a number": "pass a number",
    "Input should be ": "pass a number ",
}


def _misuse(error: typer.TyperException) -> str:
    """What was wrong with the arguments, and which help to read."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "fairpca"
    said = error.format_message()
    for theirs, ours in _IN_OTHER_WORDS.items():
        said = said.replace(theirs, ours)
    return f"{said.rstrip('.')}. See {path} --help."


#: Hints for each problem with a table, to be filled in with its facts. A hint that names an option
#: is left out if the command does not have the option, or if it does not help.
_HINTS = {
    "encoding": ["pass its encoding, for example --encoding latin-1"],
    "odd_value": [
        "correct it",
        "pass --missing-value '{value}'",
        "leave it out: --drop '{column}'",
    ],
    "decimal": ["pass --decimal . or --decimal ,"],
    "no_names": ["pass --no-header if the first line holds values"],
    "sheet": ["name it with --sheet"],
    "no_group": ["name the column of the groups with --group"],
    "many_groups": ["make bands or fewer groups with a query", "name another column with --group"],
    "no_features": ["pass --encode to use text columns", "pass other --features"],
    "missing": [
        "leave such rows out with --drop-missing",
        "fill numbers in with --impute median",
        "leave the emptiest columns out with --drop",
        "complete the table",
    ],
    "missing_label": [
        "leave such rows out with --drop-missing",
        "name a group of rows without one with --missing-group 'not recorded'",
    ],
    "categories": ["leave it out with --drop '{column}'", "correct it"],
    "too_large": ["take a sample of the rows with a query"],
    "target": ["name another column with --target", "say which value counts: --target-positive"],
    "weight": ["name another column with --weight"],
    "query": ["check the query"],
}


def _ways(error: Exception, name: str) -> list[str]:
    """The hints for a problem with a table that the command called ``name`` can use."""
    facts: dict[str, Any] = getattr(error, "facts", {})
    own = getattr(typer.main.get_command(app), "commands", {}).get(name)
    known = {word for option in (own.params if own else ()) for word in option.opts}
    known -= {f"--{option.replace('_', '-')}" for option in facts.get("useless", ())}
    return [
        re.sub(r"{(\w+)}", lambda fact: str(facts.get(fact[1], "")), way)
        for way in _HINTS.get(getattr(error, "problem", ""), [])
        if known.issuperset(re.findall(r"--[a-z-]+", way))
    ]


def _in_words_of_the_shell(error: Exception, name: str) -> str:
    """The error message in terms of the command line."""
    if isinstance(error, OSError):
        text = error.strerror or str(error)
        return f"{error.filename}: {text}" if error.filename else text
    if isinstance(error, UnicodeEncodeError):  # a name holds bytes that Python could not decode
        return f"the name {error.object[:80]!a} is not UTF-8 text; rename the file or column."
    if ways := _ways(error, name):
        return f"{getattr(error, 'fact', error)}; {', or '.join(ways)}."
    text = str(error) or type(error).__name__
    named = [own.name.replace("_", "-") for own in fields(Choice) if f"{own.name}=" in text]
    named += ["target"] * text.startswith("y ")
    return f"{text} (here: --{', --'.join(named)})" if named else text
