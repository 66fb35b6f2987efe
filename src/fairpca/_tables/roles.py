"""Which columns of a table are features, groups or weights, and which are carried along."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from fairpca._input.checks import refuse_unusable_columns
from fairpca._input.crossing import cell_text

_MOST_NAMES = 20  # in a message; one more is no longer than to say so


@dataclass(frozen=True)
class Roles:
    """What each column of a table is used for.

    Attributes
    ----------
    columns : tuple of str
        The columns that become features.
    groups : tuple of str
        Columns of group labels; several are crossed.
    weight : str or None
        The column of sample weights.
    keep : tuple of str
        Columns that are carried along.
    target : str or None
        The one among these that no row may lack.
    categories : mapping of str to sequence of str
        The text columns among ``columns``, and their values: each value becomes a feature
        ``column=value`` of zeros and ones. Empty while the values are not known yet.
    positive : str or None
        The group to compare with all others together, which get the label "not ...".
    identifiers : tuple of str
        Columns without a role, because they only tell rows apart.
    fill : mapping of str to float
        The columns of numbers that may have missing values, and what stands in for these: NaN to
        keep them as they are.
    """

    columns: tuple[str, ...]
    groups: tuple[str, ...] = ()
    weight: str | None = None
    keep: tuple[str, ...] = ()
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)
    positive: str | None = None
    identifiers: tuple[str, ...] = ()
    fill: Mapping[str, float] = field(default_factory=dict)
    target: str | None = None

    @property
    def numbers(self) -> list[str]:
        """The columns that must hold numbers: the features that are not text, and the weights."""
        features = [name for name in self.columns if name not in self.categories]
        return [*features, *([self.weight] if self.weight else [])]

    @property
    def all(self) -> list[str]:
        """Every column to read, each once."""
        others = [name for name in (*self.groups, self.weight, *self.keep) if name is not None]
        return list(dict.fromkeys([*self.columns, *others]))

    @property
    def feature_names(self) -> list[str]:
        """Names of the features, in order."""
        names: list[str] = []
        for column in self.columns:
            values = self.categories.get(column)
            names += [column] if values is None else [f"{column}={value}" for value in values]
        return names

    def label_text(self, label: Any) -> str:
        """A group label as text; the label of a crossed group is a tuple."""
        return cell_text(label, self.groups)

    def check(
        self, source: str, types: Mapping[str, Any], is_number: Callable[[Any], bool]
    ) -> None:
        """Refuse a table that lacks a column, or has text where numbers belong."""
        refuse_unknown_columns(self.all, types, source)
        unusable = {name: types[name] for name in self.numbers if not is_number(types[name])}
        if unusable:
            refuse_unusable_columns(source, unusable)


@dataclass(frozen=True)
class FittedColumns:
    """What a model knows of the columns it was fitted to; see :class:`Roles`.

    If ``columns`` names them, those that name groups are features all the same. ``groups`` are the
    columns that it is judged by because nobody named others, and ``model`` is its file.
    """

    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)
    fill: Mapping[str, float] = field(default_factory=dict)
    columns: Sequence[str] = ()
    groups: Sequence[str] = ()
    model: str = ""

    def check(self, source: str, known: Collection[str]) -> None:
        """Refuse a table without the columns that the model needs."""
        remedies = (self.columns, "."), (self.groups, "; name another with --group.")
        for names, remedy in remedies:
            lacking = [name for name in names if name not in known]
            if lacking:
                needed = f"column{'s' if len(lacking) > 1 else ''} {_first(lacking)}"
                raise ValueError(
                    f"{self.model} needs the {needed}, which {source} does not have{remedy}"
                    f"{_no_header_hint(known)}"
                )


def choose_roles(
    source: str,
    known: Sequence[str],
    usual: Sequence[str],
    columns: Sequence[str] | None = None,
    group: str | Sequence[str] | None = None,
    weight: str | None = None,
    keep: str | Sequence[str] = (),
    drop: Sequence[str] = (),
) -> Roles:
    """Give every column its role, by one set of rules for all tables.

    Parameters
    ----------
    source : str
        What messages call the table.
    known : sequence of str
        All its columns.
    usual : sequence of str
        The features when ``columns`` is None, except for those that have another role.
    columns : sequence of str, optional
        The features.
    group, keep : str or sequence of str
    weight : str, optional
    drop : sequence of str
        Columns without any role.

    Returns
    -------
    Roles
    """
    if isinstance(columns, str):
        raise TypeError(f"columns={columns!r} is one name; pass a list, columns=[{columns!r}].")
    groups, kept = ((x,) if isinstance(x, str) else tuple(x or ()) for x in (group, keep))
    others = [*groups, *([weight] if weight else []), *kept]
    features = [] if columns is None else list(columns)
    refuse_unknown_columns([*others, *drop, *features], known, source)
    _refuse_twice("group (--group)", groups)
    if columns is None:
        taken = {*others, *drop}
        features = [name for name in usual if name not in taken]
        if not features:
            raise ValueError(
                f"{source} has no numeric columns besides {', '.join(map(repr, others))}; its "
                f"columns are {_first(known)}. Encode text as numbers first, on the command line "
                "with --encode."
            )
    _check_features(features, groups)
    return Roles(tuple(features), groups, weight, kept)


def _check_features(columns: Sequence[str], groups: Sequence[str]) -> None:
    if len(columns) == 0:
        raise ValueError(
            "columns=[] leaves no features; name some, or leave columns out to use all columns of "
            "numbers."
        )
    _refuse_twice("columns", columns)
    for name in groups:
        if name in columns:
            raise ValueError(
                f"the group column {name!r} is among the features; leave it out of columns."
            )


def _refuse_twice(argument: str, names: Sequence[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise ValueError(f"{argument} has {name!r} twice; name each column once.")


def refuse_no_group(group: str | Sequence[str] | None) -> None:
    """Refuse to read without a column that names the groups."""
    if not group:
        raise ValueError(
            f"group={group!r} names no column; pass the name of the column that holds the groups, "
            "group='sex', or a list of several, which are crossed."
        )


def refuse_unknown_columns(names: Sequence[str], known: Collection[str], where: str) -> None:
    """Refuse names of columns that a table does not have."""
    all_known = set(known)
    for name in names:
        if name not in all_known:
            raise unknown_column(name, list(known), where)


def unknown_column(name: str, known: Sequence[str], where: str) -> ValueError:
    """The error for a column that does not exist, with the most similar names.

    Examples
    --------
    >>> unknown_column("Sexx", ["age", "sex", "bmi"], "people.csv")
    ValueError("there is no column 'Sexx' in people.csv; did you mean 'sex'?")
    """
    folded = {column.casefold(): column for column in known}
    near = difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.6)
    if f"{name}=" in where:
        hint = f"it is in the path: pass the folder above {name}=... instead."
    elif near:
        hint = f"did you mean {' or '.join(repr(folded[column]) for column in near)}?"
    else:
        hint = f"its columns are {_first(known)}."
    return ValueError(f"there is no column {name!r} in {where}; {hint}{_no_header_hint(known)}")


def _no_header_hint(known: Collection[str]) -> str:
    """What to do if these names of columns are values."""
    if sum(map(looks_like_a_value, known)) <= len(known) / 2:
        return ""
    return (
        " If its first line holds no names, pass --no-header (in Python read_table(..., "
        "no_header=True))."
    )


def looks_like_a_value(name: str) -> bool:
    """Whether the name of a column is a number."""
    try:
        return isfinite(float(name))
    except ValueError:
        return False


def _first(names: Sequence[str]) -> str:
    shown = names if len(names) <= _MOST_NAMES + 1 else names[:_MOST_NAMES]
    more = len(names) - len(shown)
    return f"{', '.join(map(repr, shown))}{f' and {more} more' if more else ''}"
