"""The options of the commands as tables, as ``--help`` has them; every build runs this."""

from __future__ import annotations

import csv
from pathlib import Path

import typer

from fairpca.cli import app
from fairpca.cli.options import CHOICE, COLUMNS, OUTPUT, START

FOLDER = Path(__file__).parent / "_static" / "options"
FILES = {START: "start", COLUMNS: "columns", CHOICE: "choice", OUTPUT: "output"}


def rows(heading: str) -> list[tuple[str, str, str]]:
    """Option, meaning and commands, for all options under a heading of the help."""
    group, found = typer.main.get_command(app), {}
    for name, command in group.commands.items():
        context = typer.Context(command, info_name=name)
        for option in command.params:
            record = option.get_help_record(context)
            if record is None or option.param_type_name != "option":
                continue
            if (getattr(option, "rich_help_panel", None) or OUTPUT) == heading:
                names, meaning = record
                found.setdefault((f"``{names}``", meaning.replace("  [", " [")), []).append(name)
    return [(*key, ", ".join(commands)) for key, commands in found.items()]


def write_all() -> None:
    """Write one file for each heading."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for heading, name in FILES.items():
        with (FOLDER / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("option", "meaning", "commands"), *rows(heading)])
