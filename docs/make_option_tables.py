"""The options of the commands as tables, as ``--help`` has them; every build runs this."""

from __future__ import annotations

import csv
from pathlib import Path

import click

from fairpca.cli import app
from fairpca.cli.options import HEADINGS

FOLDER = Path(__file__).parent / "_static" / "options"
FILES = dict(zip(HEADINGS, ("start", "columns", "choice", "output"), strict=True))


def rows(heading: str) -> list[tuple[str, str, str]]:
    """Option, meaning and commands, for all options under a heading of the help."""
    found = {}
    for name, command in app.commands.items():
        context = click.Context(command, info_name=name)
        for option in command.params:
            if getattr(option, "heading", None) == heading:
                names, meaning = option.get_help_record(context)
                found.setdefault((f"``{names}``", meaning.replace("  [", " [")), []).append(name)
    return [(*key, ", ".join(commands)) for key, commands in found.items()]


def write_all() -> None:
    """Write one file for each heading."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for heading, name in FILES.items():
        with (FOLDER / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("option", "meaning", "commands"), *rows(heading)])
