"""The data of a report, read from Python as the command line reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from sklearn.utils import Bunch

from fairpca._moments.prepare import Choices, prepare


def read_table(
    data: str | Sequence[str] | None,
    groups: Sequence[str] = (),
    *,
    columns: Sequence[str] = (),
    drop: Sequence[str] = (),
    label: str | None = None,
    encode: bool = False,
    drop_missing: bool = False,
    positive: str | None = None,
    encoding: str = "utf-8",
) -> Bunch:
    """Read features and groups from files; the arguments are options of ``fairpca report``.

    Parameters
    ----------
    data : str, sequence of str or None
        CSV, TSV, Parquet, Arrow or Feather files, or a folder of one kind of these, ``-`` for CSV
        from standard input; None is the bundled diabetes data, grouped by sex.
    groups : sequence of str
        Columns that name the groups; several are crossed.
    columns, drop : sequence of str
        Use only these columns, or leave these out.
    label : str, optional
        A further column to leave out.
    encode : bool, default=False
        Turn the values of text columns into columns, which are left out otherwise.
    drop_missing : bool, default=False
        Leave out rows with missing values, which are an error otherwise.
    positive : str, optional
        Compare this group with all others.
    encoding : str, default="utf-8"
        Of text files.

    Returns
    -------
    Bunch
        ``data`` (a pyarrow table of float64 columns), ``sensitive_features``, ``feature_names``.

    Examples
    --------
    >>> from fairpca.report import read_table
    >>> diabetes = read_table(None, drop=["age"])
    >>> diabetes.feature_names
    ['bmi', 'bp', 's1', 's2', 's3', 's4', 's5', 's6']
    """
    choices = Choices(groups, columns, drop, label, encode, drop_missing, positive)
    prepared = prepare(data, choices, encoding, rows_up_to=float("inf"))
    return Bunch(
        data=prepared.X,
        sensitive_features=prepared.groups,
        feature_names=prepared.layout.feature_names,
    )


def reading_code(data: Sequence[str] | None, choices: Choices, encoding: str) -> list[str]:
    """Lines of Python that read X and groups as the command line did, with what is not usual.

    Examples
    --------
    >>> for line in reading_code(["people.csv"], Choices(["sex"], drop=["id"]), "latin-1"):
    ...     print(line)
    from fairpca import FairPCA, audit
    from fairpca.report import read_table
    <BLANKLINE>
    table = read_table('people.csv', groups=['sex'], drop=['id'], encoding='latin-1')
    X, groups = table.data, table.sensitive_features
    """
    source = data[0] if data and len(data) == 1 else data
    given: dict[str, Any] = {f.name: getattr(choices, f.name) for f in fields(choices)}
    given = {name: list(v) if isinstance(v, (list, tuple)) else v for name, v in given.items()}
    options = [f"{name}={value!r}" for name, value in given.items() if value]
    if encoding != "utf-8":
        options.append(f"encoding={encoding!r}")
    return [
        "from fairpca import FairPCA, audit",
        "from fairpca.report import read_table",
        "",
        f"table = read_table({', '.join([repr(source), *options])})",
        "X, groups = table.data, table.sensitive_features",
    ]
