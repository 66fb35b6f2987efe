"""Which columns of a table are features, groups, weights, or carried along."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairpca._input.checks import (
    refuse_unusable_columns,
)


@dataclass(frozen=True)
class Layout:
    """Which columns of a table are what.

    Attributes
    ----------
    columns : tuple of str
        The columns that become features.
    groups : tuple of str
        Columns of labels, crossed when there are several.
    weight : str or None
    keep : tuple of str
        Columns carried along.
    categories : mapping of str to sequence of str
        Which of ``columns`` are text, and their values: each becomes a feature ``column=value`` of
        zeros and ones. No values while they are still to be found out.
    text_groups : bool
        Whether labels are the text of a value, whatever its type.
    positive : str or None
        The label to be compared with all others, which get the label "not ...".
    """

    columns: tuple[str, ...]
    groups: tuple[str, ...] = ()
    weight: str | None = None
    keep: tuple[str, ...] = ()
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)
    text_groups: bool = False
    positive: str | None = None

    @property
    def numbers(self) -> list[str]:
        """The columns that must hold numbers: features that are not text, then the weights."""
        features = [name for name in self.columns if name not in self.categories]
        return [*features, *([self.weight] if self.weight else [])]

    @property
    def texts(self) -> list[str]:
        """The columns of which the text counts, whatever their type."""
        return [*self.categories, *(self.groups if self.text_groups else ())]

    @property
    def all(self) -> list[str]:
        """Every column that must be read, each once."""
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

    @classmethod
    def choose(
        cls,
        source: str,
        types: Mapping[str, Any],
        is_number: Callable[[Any], bool],
        columns: Sequence[str] | None,
        group: str | Sequence[str] | None,
        weight: str | None,
        keep: str | Sequence[str],
    ) -> Layout:
        """The layout asked for; without ``columns``, all columns of numbers not used otherwise."""
        if isinstance(columns, str):
            raise TypeError(f"columns={columns!r} is one name; pass a list, columns=[{columns!r}].")
        groups = (group,) if isinstance(group, str) else tuple(group or ())
        keep = (keep,) if isinstance(keep, str) else tuple(keep)
        if columns is not None and len(columns) == 0:
            raise ValueError(
                "columns=[] leaves no features; name some, or leave columns out to use all columns "
                "of numbers."
            )
        if columns is None:
            used = {name for name in (*groups, weight, *keep) if name is not None}
            columns = [name for name, kind in types.items() if is_number(kind) and name not in used]
            if not columns:
                raise ValueError(
                    f"{source} has no column of numbers beside {sorted(used)}; its columns are "
                    f"{list(types)[:10]}."
                )
        for name in columns:
            if list(columns).count(name) > 1:
                raise ValueError(f"columns has {name!r} twice; name each column once.")
        for name in groups:
            if name in columns:
                raise ValueError(
                    f"the group column {name!r} is among the features; leave it out of columns."
                )
        return cls(tuple(columns), groups, weight, keep)

    def check(
        self, source: str, types: Mapping[str, Any], is_number: Callable[[Any], bool]
    ) -> None:
        """Refuse a table that lacks a column, or has text where numbers belong."""
        for name in self.all:
            if name not in types:
                raise unknown_column(name, list(types), source)
        unusable = {name: types[name] for name in self.numbers if not is_number(types[name])}
        if unusable:
            refuse_unusable_columns(source, unusable)


def refuse_no_group(group: str | Sequence[str] | None) -> None:
    """Moments are those of groups: at least one column must name them."""
    if not (group and isinstance(group, Iterable)):
        raise ValueError(
            f"group={group!r} names no column; pass the name of the column that holds the groups, "
            "group='sex', or a list of several, which are crossed."
        )


def unknown_column(name: str, known: Sequence[str], where: str) -> ValueError:
    """The error for a column that is not there, with the names most like it.

    Examples
    --------
    >>> unknown_column("Sexx", ["age", "sex", "bmi"], "people.csv")
    ValueError("there is no column 'Sexx' in people.csv; did you mean 'sex'?")
    """
    folded = {column.casefold(): column for column in known}
    near = difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.5)
    if f"{name}=" in where:
        hint = f"it stands in the path: pass the folder above {name}=... instead."
    elif near:
        hint = f"did you mean {' or '.join(repr(folded[column]) for column in near)}?"
    else:
        more = ", ..." if len(known) > 8 else ""
        hint = f"its columns are {', '.join(repr(column) for column in known[:8])}{more}."
    return ValueError(f"there is no column {name!r} in {where}; {hint}")
