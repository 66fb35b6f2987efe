"""The data of a report, read from Python as the command line reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from sklearn.utils import Bunch

from fairpca._progress import Progress, silent

if TYPE_CHECKING:  # a page is made without pyarrow, which these load
    from fairpca._audit.result import Audit
    from fairpca._moments.prepare import Prepared
    from fairpca._tables.choices import Choices
    from fairpca._tables.roles import FittedColumns


def read_table(
    data: str | Sequence[str] | None,
    groups: str | Sequence[str] = (),
    *,
    columns: str | Sequence[str] = (),
    drop: str | Sequence[str] = (),
    label: str | None = None,
    encode: bool = False,
    drop_missing: bool = False,
    positive: str | None = None,
    keep_ids: bool = False,
    drop_most: bool = False,
    target: str | None = None,
    decimal: str | None = None,
    missing_values: str | Sequence[str] = (),
    no_header: bool = False,
    sheet: str | None = None,
    impute: str | None = None,
    encoding: str = "utf-8",
) -> Bunch:
    """Read features and groups from files; the arguments are options of ``fairpca report``.

    Parameters
    ----------
    data : str, sequence of str or None
        CSV, TSV, Parquet, Arrow or Feather files, or a folder of one kind of these; spreadsheets;
        ``-`` reads CSV from standard input; None is the bundled health data, grouped by race
        (:func:`fairpca.datasets.load_rand_health`).
    groups : str or sequence of str
        Columns that name the groups; several are crossed.
    columns, drop : str or sequence of str
        Use only these columns, or leave these out.
    label : str, optional
        A further column to leave out.
    encode : bool, default=False
        Turn the values of text columns into columns; otherwise text columns are left out.
    drop_missing : bool, default=False
        Leave out rows with missing values; otherwise they are an error.
    positive : str, optional
        Compare this group with all others.
    keep_ids : bool, default=False
        Use columns that look like row numbers or ids; otherwise they are left out, with a warning.
    drop_most : bool, default=False
        Leave out rows with missing values even if they are more than half.
    target : str, optional
        A column of classes, which is no feature.
    decimal : {".", ","}, optional
        The decimal point of text files; by default told from the first rows.
    missing_values : str or sequence of str
        Texts that stand for a missing value in text files, besides the usual ones.
    no_header : bool, default=False
        Text files hold no column names; the columns are called c0, c1, ...
    sheet : str, optional
        The sheet of a spreadsheet; needed if several hold rows.
    impute : {"median"}, optional
        Accept missing numbers. They stay NaN, for ``audit(..., impute="median")``, which fills them
        in for each fold by the rows fitted to.
    encoding : str, default="utf-8"
        The encoding of text files.

    Returns
    -------
    Bunch
        ``data`` (a pyarrow table of float64 columns), ``sensitive_features``, ``feature_names``,
        ``target`` (None without one).

    Examples
    --------
    >>> from fairpca.report import read_table
    >>> people = read_table(None, columns=["age", "education", "log_income"])
    >>> people.feature_names
    ['age', 'education', 'log_income']
    >>> people.data.num_rows
    5827
    """
    from fairpca._tables.choices import Choices
    from fairpca._tables.identifiers import warn_of_identifiers

    groups, columns, drop, missing_values = map(_as_list, (groups, columns, drop, missing_values))
    asked = groups, columns, drop, label, encode, drop_missing, positive, keep_ids, drop_most
    choices = Choices(*asked, target, decimal, missing_values, no_header, sheet, impute)
    prepared = prepare_data(data, choices, encoding, rows_up_to=float("inf"))
    warn_of_identifiers(prepared.table, prepared.roles)
    return Bunch(
        data=prepared.X,
        sensitive_features=prepared.groups,
        feature_names=prepared.roles.feature_names,
        target=prepared.y,
    )


def prepare_data(
    data: str | Sequence[str] | None,
    choices: Choices,
    encoding: str = "utf-8",
    rows_up_to: float = 0,
    progress: Progress = silent,
    fitted: FittedColumns | None = None,
) -> Prepared:
    """Read files, or without any the bundled data, grouped by race.

    See :func:`fairpca._moments.prepare.prepare_table`.
    """
    from fairpca._moments.prepare import prepare_table

    if data is not None:
        return prepare_table(data, choices, encoding, rows_up_to, progress, fitted)
    from fairpca._tables.formats import write_temporary
    from fairpca.datasets import load_rand_health

    people = load_rand_health(prepare=False)
    columns = dict(zip(people.feature_names, people.data.T.copy(), strict=True))
    columns["race"] = people.sensitive_features
    choices = replace(choices, groups=choices.groups or ["race"])
    file = write_temporary("RAND health data (bundled)", columns)
    return prepare_table(file, choices, encoding, rows_up_to, progress, fitted)


def report_code(
    data: Sequence[str] | None, choices: Choices, encoding: str, audit: Audit, streamed: bool
) -> list[str]:
    """Lines of Python that make an audit of the command line again.

    ``streamed``: whether the command did not keep the rows in memory, as these lines do.
    """
    note = "# Reads all rows into memory; folds and samples are drawn differently."
    return [
        *([note] if streamed else []),
        f"from fairpca import {audit.estimator.partition('(')[0]}, audit",
        *reading_lines(data, choices, encoding),
        f"result = audit(X, groups, {audit.estimator}, {_judged_by(audit)}"
        f"{'impute=' + repr(choices.impute) + ', ' if choices.impute else ''}"
        f"standardize={audit.standardized}, random_state={audit.random_state})",
    ]


def reading_lines(data: Sequence[str] | None, choices: Choices, encoding: str) -> list[str]:
    """Lines of Python that read X and groups as the command did."""
    return [
        "from fairpca.report import read_table",
        "",
        f"table = {reading_call(data, choices, encoding)}",
        "X, groups = table.data, table.sensitive_features",
    ]


def reading_call(data: Sequence[str] | None, choices: Choices, encoding: str) -> str:
    """The call of :func:`read_table` that reads what the command read."""
    given: dict[str, Any] = {field.name: getattr(choices, field.name) for field in fields(choices)}
    options = [f"{name}={_plain(value)!r}" for name, value in given.items() if value]
    if encoding != "utf-8":
        options.append(f"encoding={encoding!r}")
    source = data[0] if data and len(data) == 1 else data
    return f"read_table({', '.join([repr(source), *options])})"


def _judged_by(audit: Audit) -> str:
    """The arguments that ask for probes."""
    if audit.outcomes is not None:
        return f"y=table.target, pos_label={audit.outcomes[0].positive!r}, "
    probed = audit.representation is not None and audit.representation.pca.probes
    return "probes=True, " if probed else ""


def _as_list(names: str | Sequence[str]) -> list[str]:
    """The names as a list, also if there is only one."""
    return [names] if isinstance(names, str) else list(names or ())


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
