"""Tables in files, databases and queries."""

from collections.abc import Sequence
from typing import Any

from sklearn.utils import Bunch


def read_table(
    data: Any,
    sensitive_features: str | Sequence[str],
    *,
    features: str | Sequence[str] | None = None,
    drop: str | Sequence[str] = (),
    target: str | None = None,
    sample_weight: str | None = None,
    encode: bool = False,
    drop_missing: bool = False,
    impute: str | None = None,
    keep_missing: bool = False,
    missing_group: str | None = None,
    query: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    header: bool = True,
    sheet: str | None = None,
    missing_values: str | Sequence[str] = (),
) -> Bunch:
    r"""Read features and groups from a file, a folder, a database or a query.

    Parameters
    ----------
    data : path, list of paths or query
        CSV, TSV, Parquet, Arrow or Excel files; a folder or pattern of such files except Excel; a
        DuckDB database; or a text that begins with SELECT, WITH or FROM.
    sensitive_features : str or sequence of str
        Columns that name the groups; several are crossed.
    features, drop : str or sequence of str
        Use only these columns, or leave these out. By default all columns of numbers are features.
    target, sample_weight : str, optional
        A column of outcomes, and one of weights; neither is a feature.
    encode : bool, default=False
        Turn text columns into columns of zeros and ones; otherwise they are left out.
    drop_missing, keep_missing : bool, default=False
        Drop rows with missing values, or keep missing numbers as NaN; otherwise an error.
    impute : {"median"}, optional
        Fill in missing numbers with the median, or in large tables that of a sample of rows.
    missing_group : str, optional
        The group of rows without one, for example "not recorded".
    query, sheet : str, optional
        A query to the database ``data``; a sheet of a workbook, if several hold rows.
    encoding, decimal : str, optional
        Format of text files; by default UTF-8, and "." or "," according to the first rows.
    header : bool, default=True
        Whether text files begin with a line of names; otherwise columns are c0, c1, ...
    missing_values : str or sequence of str
        Values that stand for a missing number, besides empty ones, NA and the like.

    Returns
    -------
    Bunch
        ``data`` (a pyarrow table of float64 columns, which scikit-learn takes), ``feature_names``,
        ``sensitive_features``, ``target`` and ``sample_weight`` (None without one), and
        ``record``: what was left out, and why.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from fairpca import read_table
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "people.csv")
    ...     _ = file.write_text("height,weight,name,sex\n1.7,65,Ada,f\n1.8,80,Bo,m\n")
    ...     people = read_table(file, "sex")
    >>> people.feature_names, people.sensitive_features.tolist(), people.record.left_out
    (['height', 'weight'], ['f', 'm'], {'name': 'text'})
    """
    from fairpca.cli.columns.prepare import prepare
    from fairpca.cli.reader.read import open_table

    written = {"encoding": encoding, "decimal": decimal, "header": header, "sheet": sheet}
    table = open_table(data, query=query, missing_values=missing_values, **written)
    columns: dict[str, Any] = {"features": features, "drop": drop, "target": target}
    columns |= {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
    missing: dict[str, Any] = {"drop_missing": drop_missing, "keep_missing": keep_missing}
    missing |= {"missing_group": missing_group, "impute": impute, "rows_up_to": float("inf")}
    prepared = prepare(table, encode=encode, warns=True, **columns, **missing)
    names = ("data", "sensitive_features", "target", "sample_weight", "record")
    rows = {name: getattr(prepared, name) for name in names}
    return Bunch(**rows, feature_names=prepared.roles.feature_names)
