"""What to say about missing values: where they are, and what to do without losing the data."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence

from fairpca._tables.choices import Choices

_MOSTLY_EMPTY = 0.5  # of the rows


def refuse_missing(
    where: str, missing: Counter[str], n_dropped: int, n_rows: int, choices: Choices
) -> None:
    """Refuse missing values, or to leave out more rows because of them than remain.

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
    """
    if not n_dropped:
        return
    found = f"{n_dropped} of {n_rows} rows of {where} have missing values, in {worst(missing)}"
    empty = [name for name, n in missing.items() if n > _MOSTLY_EMPTY * n_rows]
    found += f"; mostly empty: {some_of(empty)}" if empty else ""
    advice = how_to_drop(empty or list(missing))
    if not choices.drop_missing:
        raise ValueError(
            f"{found}; {advice}, or these rows with --drop-missing (in Python drop_missing=True)."
        )
    if n_dropped == n_rows:
        raise ValueError(f"no row would be left: {found}; {advice}.")
    if n_dropped > n_rows / 2 and not choices.drop_most:
        raise ValueError(
            f"less than half of the rows would be left: {found}; {advice}, or pass --drop-most (in "
            "Python drop_most=True)."
        )


def worst(missing: Counter[str]) -> str:
    """The columns with most missing values, and how many they have."""
    named = [f"{name!r} ({count})" for name, count in missing.most_common(3)]
    return f"{', '.join(named)}{' and others' if len(missing) > 3 else ''}"


def how_to_drop(columns: Sequence[str]) -> str:
    """How to leave columns out, in the shell and in Python.

    Examples
    --------
    >>> how_to_drop(["age", "body mass"])
    "leave columns out with --drop 'age,body mass' (in Python drop=['age', 'body mass'])"
    """
    few = list(columns[:6])
    return f"leave columns out with --drop {shlex.quote(','.join(few))} (in Python drop={few!r})"


def some_of(names: Sequence[str]) -> str:
    """The first names."""
    return f"{', '.join(map(repr, names[:6]))}{' and others' if len(names) > 6 else ''}"
