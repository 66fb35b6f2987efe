"""What a user of the command line asks of a table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from fairpca._tables.arrow import is_text_like
from fairpca._tables.identifiers import without_identifiers
from fairpca._tables.paths import TextFormat
from fairpca._tables.roles import Roles, refuse_unknown_columns
from fairpca._tables.table import FileTable


@dataclass(frozen=True)
class Choices:
    """What the user asked for; see the options of ``fairpca report``."""

    groups: Sequence[str] | None
    columns: Sequence[str] | None = None
    drop: Sequence[str] | None = None
    label: str | None = None
    encode: bool = False
    drop_missing: bool = False
    positive: str | None = None
    keep_ids: bool = False
    drop_most: bool = False
    target: str | None = None
    decimal: str | None = None
    missing_values: Sequence[str] | None = None
    no_header: bool = False
    sheet: str | None = None
    impute: str | None = None

    def __post_init__(self) -> None:
        if self.impute not in (None, "median"):
            raise ValueError(f"impute={self.impute!r} is not known; pass 'median'.")

    def text_format(self, encoding: str) -> TextFormat:
        """How text files are to be read."""
        missing = tuple(self.missing_values or ())
        return TextFormat(encoding, self.decimal, missing, not self.no_header, sheet=self.sheet)

    def roles(self, table: FileTable) -> Roles:
        """The roles of the columns of a table."""
        if not self.groups:
            raise _missing_group(table)
        groups, drop = split_names(self.groups, table.types), self.dropped(table)
        columns = split_names(self.columns or (), table.types)
        refuse_unknown_columns(columns, table.types, table.name)
        others = {*drop, *groups, self.target}
        wanted = [name for name in dict.fromkeys(columns) if name not in others]
        roles = table.choose(
            wanted if columns else None,
            groups,
            keep=self.target or (),
            drop=drop,
            encode=self.encode,
        )
        if not columns:
            roles = without_identifiers(table, roles, self.keep_ids)
        return replace(roles, positive=self.positive, target=self.target)

    def dropped(self, table: FileTable) -> list[str]:
        """The columns of a table that get no role."""
        return [*split_names(self.drop or (), table.types), *([self.label] if self.label else [])]


def split_names(values: Sequence[str], known: Collection[str]) -> list[str]:
    """Split names at their commas, unless the whole is the name of a column.

    Examples
    --------
    >>> split_names(["age, bmi", "income, yearly"], ["age", "bmi", "income, yearly"])
    ['age', 'bmi', 'income, yearly']
    """
    parts = [part for value in values for part in ([value] if value in known else value.split(","))]
    names = [part if part in known else part.strip() for part in parts]
    return [name for name in names if name]


def _missing_group(table: FileTable) -> ValueError:
    """The error for a forgotten ``--group``, with the columns that could be meant."""
    batch = table.head(table.all_columns)
    columns = {} if batch is None else dict(zip(batch.schema.names, batch.columns, strict=True))
    few = [
        repr(name)
        for name, column in columns.items()
        if is_text_like(column.type) and 2 <= len(column.drop_null().unique()) <= 5
    ]
    hint = f"; columns of few values: {', '.join(few[:6])}" if few else ""
    return ValueError(
        f"--group is missing: name the column of {table.name} that holds the groups{hint}."
    )
