"""The options of the commands as tables, as ``--help`` has them, for ``docs/make_pages.py``."""

from __future__ import annotations

import click

from fairpca.cli import app
from fairpca.cli.options import HEADINGS

FILES = dict(zip(HEADINGS, ("start", "columns", "choice", "output"), strict=True))


def rows(heading: str) -> list[dict[str, str]]:
    """Option, meaning and commands, for all options under a heading of the help."""
    found = {}
    for name, command in app.commands.items():
        context = click.Context(command, info_name=name)
        for option in command.params:
            if getattr(option, "heading", None) == heading:
                names, meaning = option.get_help_record(context)
                key = (f"`{names}`", meaning.replace("  [", " ["))
                found.setdefault(key, []).append(name)
    return [
        {"option": option, "meaning": meaning, "commands": ", ".join(commands)}
        for (option, meaning), commands in found.items()
    ]
