"""Where the data of a report come from, and how to repeat the analysis."""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy
import scipy
import sklearn

import fairpca

if TYPE_CHECKING:
    from fairpca._preparation import Choices, Prepared


def _versions() -> dict[str, str]:
    return {
        "fairpca": fairpca.__version__,
        "Python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }


@dataclass(frozen=True)
class Provenance:
    """What a report says about its origin.

    Attributes
    ----------
    source : str
        Name of the file, or what the data are.
    group_name : str
        The column that holds the groups.
    n_read, n_dropped : int or None, int
        Rows in the source, and rows left out for missing values.
    not_numbers, constant : list of str
        Columns left out, and columns that do not vary.
    command, code : str
        The command, and Python code, that give the same numbers.
    versions : dict of str to str
    date : str
    """

    source: str = "data passed to fairpca.audit"
    group_name: str = "group"
    n_read: int | None = None
    n_dropped: int = 0
    not_numbers: list[str] = field(default_factory=list)
    constant: list[str] = field(default_factory=list)
    command: str = ""
    code: str = ""
    versions: dict[str, str] = field(default_factory=_versions)
    date: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%d"))

    @classmethod
    def of_file(
        cls,
        path: str | None,
        source: str,
        prepared: Prepared,
        choices: Choices,
        command: str,
        call: str,
    ) -> Provenance:
        """Of a file read by the command line (None: the bundled data); ``call`` is the audit."""
        return cls(
            source=source,
            group_name=prepared.group_name,
            n_read=prepared.n_read,
            n_dropped=prepared.n_dropped,
            not_numbers=prepared.not_numbers,
            constant=prepared.constant,
            command=command,
            code="\n".join([*_reading(path, prepared, choices), call]),
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)


def _reading(path: str | None, prepared: Prepared, choices: Choices) -> list[str]:
    """Lines of Python that read X and groups as the command line did."""
    if path is None:
        return [
            "from fairpca import FairPCA, audit",
            "from fairpca.datasets import load_diabetes_by_sex",
            "",
            "diabetes = load_diabetes_by_sex(prepare=False)",
            "X, groups = diabetes.data, diabetes.sensitive_features",
        ]
    features = prepared.features
    lines = [
        "from fairpca import FairPCA, audit",
        "from fairpca.sources.tables import TableFile",
        "",
        f"table = TableFile({path!r}).read(as_text={list(choices.groups)!r}).to_pandas()",
        f"columns = {features.columns!r}",
    ]
    if choices.drop_missing:
        lines.append(f"table = table.dropna(subset=[*columns, *{list(choices.groups)!r}])")
    lines.append("X = table[columns]")
    if features.categories:
        text = f"dict.fromkeys({list(features.categories)!r}, str)"
        lines.append(f"X = pandas.get_dummies(X.astype({text}))")
        lines[0] = "import pandas\n" + lines[0]
    first, *rest = choices.groups
    joined = "".join(f' + " & " + table[{name!r}].astype(str)' for name in rest)
    lines += ["X = X.astype(float)", f"groups = table[{first!r}].astype(str){joined}"]
    if choices.positive is not None:
        lines.append(
            f"groups = groups.where(groups == {choices.positive!r}, 'not ' + {choices.positive!r})"
        )
    return lines
