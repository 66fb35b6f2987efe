"""What to say about missing values: where they are, and what to do without losing the data."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence

from fairpca._tables.choices import Choices
from fairpca._tables.roles import Roles

_MOSTLY_EMPTY = 0.5  # of the rows
_FEW = 6  # columns that one can do without, though most of their values are known


def refuse_missing(
    where: str,
    missing: Counter[str],
    n_dropped: int,
    n_rows: int,
    choices: Choices,
    roles: Roles,
    fitted: bool = False,
) -> None:
    """Refuse missing values, or dropping more rows because of them than remain.

    Parameters
    ----------
    where : str
        The name of the table.
    missing : Counter of str
        How many values are missing in each column.
    n_dropped, n_rows : int
        Rows with missing values, and all rows.
    choices : Choices
        Whether such rows may be left out.
    roles : Roles
    fitted : bool
        Whether the columns are those of a model, which cannot do without any.
    """
    if not n_dropped:
        return
    found = f"{n_dropped} of {n_rows} rows of {where} have missing values, in {worst(missing)}"
    empty = mostly_empty(missing, n_rows)
    found += f"; mostly empty: {some_of(empty)}" if empty else ""
    ways = ways_out(missing, n_rows, roles, fitted)
    if not choices.drop_missing:
        if n_dropped <= n_rows / 2:
            ways.append("leave these rows out with --drop-missing (in Python drop_missing=True)")
        raise ValueError(f"{found}; {', or '.join(ways)}.")
    if n_dropped == n_rows:
        raise ValueError(f"no row would be left: {found}; {', or '.join(ways)}.")
    if n_dropped > n_rows / 2 and not choices.drop_most:
        most = "pass --drop-most (in Python drop_most=True)"
        raise ValueError(
            f"less than half of the rows would be left: {found}; {', or '.join([*ways, most])}."
        )


def mostly_empty(missing: Counter[str], n_rows: int) -> list[str]:
    """Columns of which more values are missing than known, the worst first."""
    return [name for name, n in missing.most_common() if n > _MOSTLY_EMPTY * n_rows]


def ways_out(missing: Counter[str], n_rows: int, roles: Roles, fitted: bool = False) -> list[str]:
    """How to do without the rows that have missing values: by columns, or by filling them in."""
    columns = [name for name, _ in missing.most_common() if name in roles.columns]
    if not columns:  # only groups or the target
        return ["choose another column, or complete this one"]
    if fitted:
        return ["fit the model with --impute median, which lets it fill in numbers"]
    empty = [name for name in mostly_empty(missing, n_rows) if name in columns]
    numbers = any(name in roles.numbers for name in missing)
    ways = []
    if empty or len(columns) <= _FEW or not numbers:
        ways.append(how_to_drop(empty or columns))
    if numbers:
        ways.append("fill in numbers with --impute median (in Python impute='median')")
    return ways


def worst(missing: Counter[str]) -> str:
    """The columns with most missing values, and how many they have."""
    named = [f"{name!r} ({count})" for name, count in missing.most_common()]
    return _the_first(named, 3)


def how_to_drop(columns: Sequence[str]) -> str:
    """How to leave columns out, in the shell and in Python.

    Examples
    --------
    >>> how_to_drop(["age", "body mass"])
    "leave columns out with --drop 'age,body mass' (in Python drop=['age', 'body mass'])"
    """
    some = list(columns[:30])
    return f"leave columns out with --drop {shlex.quote(','.join(some))} (in Python drop={some!r})"


def some_of(names: Sequence[str]) -> str:
    """The first names."""
    return _the_first([repr(name) for name in names], 6)


def _the_first(texts: Sequence[str], most: int) -> str:
    """So many of the texts; one more is no longer than to say so."""
    shown = texts if len(texts) <= most + 1 else texts[:most]
    return f"{', '.join(shown)}{' and others' if len(shown) < len(texts) else ''}"
