"""What must be known of columns before rows are summed up: values of texts, medians of numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np

from fairpca._input.missing_numbers import medians_of
from fairpca._progress import Progress
from fairpca._tables.decode import TableBlock
from fairpca._tables.missing import how_to_drop
from fairpca._tables.roles import Roles
from fairpca._tables.table import FileTable
from fairpca._typing import Array

_MOST_CATEGORIES = 100


def with_categories(table: FileTable, roles: Roles, progress: Progress) -> Roles:
    """The roles with the values of their text columns, in rows without missing ones."""

    def values_in(block: TableBlock) -> dict[str, set[str]]:
        coded = {name: block.labels[name] for name in roles.categories}
        return {name: {g.labels[c] for c in np.unique(g.codes)} for name, g in coded.items()}

    seen: dict[str, set[str]] = {name: set() for name in roles.categories}
    report = partial(progress, "reading the values of text columns")
    for found in table.map(roles, values_in, True, report):
        for name, values in found.items():
            seen[name] |= values
            if len(seen[name]) > _MOST_CATEGORIES:
                raise ValueError(
                    f"column {name!r} of {table.name} has more than {_MOST_CATEGORIES} different "
                    f"values, too many to encode; {how_to_drop([name])}."
                )
    roles = replace(roles, categories={name: sorted(values) for name, values in seen.items()})
    twice = [name for name, count in Counter(roles.feature_names).items() if count > 1]
    if twice:
        raise ValueError(
            f"encoding {table.name} makes two columns named {twice[0]!r}; rename one, or leave one "
            "out with --drop (in Python drop=)."
        )
    return roles


def may_be_missing(roles: Roles) -> Roles:
    """The roles under which missing numbers are read as they are."""
    numbers = [name for name in roles.columns if name not in roles.categories]
    return replace(roles, fill=dict.fromkeys(numbers, float("nan")))


def with_medians(table: FileTable, roles: Roles, most_bytes: float, progress: Progress) -> Roles:
    """The roles with the median of each column of numbers in place of what is missing."""
    if not roles.fill:
        return roles

    def numbers(block: TableBlock) -> Array:
        return np.column_stack([block.numbers[name] for name in roles.fill])

    blocks, left = [], most_bytes
    for block in table.map(roles, numbers, True, partial(progress, "reading for the medians")):
        blocks.append(block)
        left -= block.nbytes
        if left < 0:
            raise ValueError(
                f"{table.name} is too large to keep in memory, which medians need; take a sample "
                "of the rows, or leave out those with missing values (--drop-missing, in Python "
                "drop_missing=True)."
            )
    if not sum(map(len, blocks)):  # every row lacks a text, which is refused when rows are read
        return roles
    medians = medians_of(np.concatenate(blocks))
    empty = [name for name, value in zip(roles.fill, medians, strict=True) if np.isnan(value)]
    if empty:
        raise ValueError(
            f"no value of {empty[0]!r} in {table.name} is known; {how_to_drop(empty)}."
        )
    return replace(roles, fill=dict(zip(roles.fill, medians.tolist(), strict=True)))
