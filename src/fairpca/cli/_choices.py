"""What the options of a command ask of a table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from fairpca._tables.choices import Choices
    from fairpca._typing import Labels

#: Fields of Choices whose option may be repeated and has the singular as its name.
_OPTION_OF = {"groups": "group", "missing_values": "missing_value"}


def choices_of(options: Mapping[str, Any]) -> Choices:
    """The choices of ``audit``, ``fit`` and ``report``; options that one lacks are the defaults."""
    from fairpca._tables.choices import Choices

    named = {field.name: _OPTION_OF.get(field.name, field.name) for field in fields(Choices)}
    return Choices(**{name: options[given] for name, given in named.items() if given in options})


def refuse_beside_model(context: typer.Context, allowed: Collection[str]) -> None:
    """Refuse options, given with ``--model``, that a model has its own answers to."""
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if source is None or source.name != "COMMANDLINE" or parameter.name in allowed:
            continue
        names = parameter.opts if context.params[str(parameter.name)] else parameter.secondary_opts
        raise ValueError(
            "--model is judged as it is, with its own columns and components; leave out "
            f"{' or '.join(names or parameter.opts)}."
        )


def check_selected(value: str | None, target: str | None, y: Labels | None) -> None:
    """Refuse a ``--target-positive`` that does not say which value of ``--target`` counts."""
    if y is None and value is None:
        return
    if y is None:
        raise ValueError(
            f"--target-positive {value} is a value of the target; name its column with --target."
        )
    from fairpca._input.labels import sort_labels
    from fairpca._moments.strata import label_meant

    classes = sort_labels([*{*y.tolist()}])
    if value is None and len(classes) == 2:
        return
    if value is None or label_meant(classes, value) is None:
        problem = f"--target-positive {value} is no value of {target!r}"
        if value is None:
            problem = f"--target {target!r} holds {len(classes)} classes, and one has to count"
        raise ValueError(
            f"{problem}; pass --target-positive with {' or '.join(map(str, classes))}."
        )


#: Options of reading and writing, which hold beside ``--model`` too.
BESIDE_MODEL = {
    "data", "group", "model", "positive", "json_file", "out", "quiet", "drop_missing", "drop_most",
    "encoding", "decimal", "missing_value", "no_header", "sheet",
}  # fmt: skip
