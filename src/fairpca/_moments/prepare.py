"""From the columns of files to features, groups and moments, with a record of every choice made.

This is how the command line and the report read data. Files are streamed, so memory does not grow
with their rows: once, and once before that to find the values of text columns that are encoded.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fairpca._moments.columns import may_be_missing, with_categories, with_medians
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.table_reading import TableReading
from fairpca._progress import Progress, silent
from fairpca._tables.choices import Choices
from fairpca._tables.roles import FittedColumns, Roles
from fairpca._tables.table import FileTable
from fairpca._typing import Labels

MOST_BYTES_IN_MEMORY = 200_000_000


@dataclass(frozen=True)
class Prepared:
    """The moments of the groups of some files, and what became of the other columns.

    Attributes
    ----------
    table : FileTable
    roles : Roles
        Which columns became features and groups.
    moments : GroupMoments
        Their labels are text.
    not_numbers, constant : list of str
        Columns left out because they are not numbers, and features that do not vary.
    lost_groups : list of str
        Labels that only rows with missing values have.
    before : dict of (str, int) to dict of str to int
        For each block, by its file and the number of its first row there: how many rows of each
        group came before it.
    X, groups : pyarrow.Table, ndarray of str or None
        All rows, if they were asked for and are not too many.
    y : ndarray or None
        The target of each of these rows, if there is one.
    filled : Counter of str
        How many missing numbers of each column were filled in. In ``X`` they are NaN.
    filled_shares : dict of str to float
        The share of such numbers among the features of each group.
    """

    table: FileTable
    roles: Roles
    moments: GroupMoments
    not_numbers: list[str]
    constant: list[str]
    lost_groups: list[str]
    before: dict[tuple[str, int], dict[str, int]]
    X: Any
    groups: Labels | None
    y: Labels | None = None
    filled: Counter[str] = field(default_factory=Counter)
    filled_shares: dict[str, float] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """Name of the file, or what the data are."""
        return self.table.name

    @property
    def group_name(self) -> str:
        """The columns that name the groups."""
        return " & ".join(self.roles.groups)

    @property
    def n_dropped(self) -> int:
        """Rows dropped for missing values."""
        return self.moments.n_dropped

    @property
    def n_read(self) -> int:
        """Rows in the files."""
        return int(self.moments.counts.sum()) + self.n_dropped

    @property
    def streamed(self) -> bool:
        """Whether the rows were not kept in memory."""
        return self.X is None


def prepare_table(
    data: Any,
    choices: Choices,
    encoding: str = "utf-8",
    rows_up_to: float = 0,
    progress: Progress = silent,
    fitted: FittedColumns | None = None,
) -> Prepared:
    """Choose, encode and check the columns of files, and sum up their groups.

    Parameters
    ----------
    data : path or list of paths
    choices : Choices
    encoding : str
        The encoding of text files.
    rows_up_to : float
        Keep the rows too, if they take no more than this many bytes.
    progress : Progress
    fitted : FittedColumns, optional
        The features, the values of text columns, others are refused, and what stands in for
        missing numbers, if a model knows them.

    Returns
    -------
    Prepared
    """
    table = FileTable(data, text=choices.text_format(encoding))
    if fitted is not None:
        fitted.check(table.name, table.types)
    roles = choices.roles(table)
    not_numbers = [] if choices.columns else table.left_out(roles, choices.dropped(table))
    if fitted is not None:
        categories = {name: list(values) for name, values in fitted.categories.items()}
        both = {*roles.columns, *roles.groups}
        columns = tuple(name for name in fitted.columns if name in both) or roles.columns
        roles = replace(roles, columns=columns, categories=categories, fill=fitted.fill)
        table.check(roles)
    else:
        roles = may_be_missing(roles) if choices.impute else roles
        roles = with_categories(table, roles, progress) if roles.categories else roles
        if choices.impute:
            roles = with_medians(table, roles, max(rows_up_to, MOST_BYTES_IN_MEMORY), progress)
    reading = TableReading(table, roles, rows_up_to, fitted is not None)
    reading.run(progress)
    moments = reading.named_moments(choices)
    constant = np.array(roles.feature_names)[~moments.varying].tolist()
    if len(constant) == moments.n_features:
        raise ValueError(f"no column of {table.name} varies, so there is nothing to analyse.")
    X, groups = reading.rows(as_missing=choices.impute is not None)
    if choices.impute and rows_up_to and X is None:
        raise ValueError(
            f"{table.name} is too large to keep in memory, which --impute needs to fill in each "
            "fold by itself; take a sample of the rows, or pass --drop-missing."
        )
    y = None if choices.target is None else reading.target(choices.target)
    return Prepared(
        table,
        roles,
        moments,
        not_numbers=not_numbers,
        constant=constant,
        lost_groups=reading.lost_groups(),
        before=reading.before,
        X=X,
        groups=groups,
        y=y,
        filled=reading.filled,
        filled_shares=reading.filled_shares(),
    )
