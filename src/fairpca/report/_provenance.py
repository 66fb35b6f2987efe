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
from fairpca.report._text import name_list, percent

if TYPE_CHECKING:
    from fairpca._moments.prepare import Prepared


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
    model_file : str
        The file of the model that was judged, if there is one.
    n_read, n_dropped : int or None, int
        Rows in the source, and rows left out for missing values.
    streamed : bool
        Whether the rows were too many to be kept in memory.
    not_numbers, identifiers, constant : list of str
        Columns left out, because they are not numbers or only tell rows apart, and columns that do
        not vary.
    filled : dict of str to int
        How many missing numbers of each column were filled in with its median.
    filled_shares : dict of str to float
        The share of such numbers in each group.
    command, code : str
        The command, and Python code, that give the same numbers.
    reading : str
        The part of the code that reads X and groups.
    fit_command : str
        The beginning of a command that fits a model to the same data.
    versions : dict of str to str
    date : str
    """

    source: str = "data passed to fairpca.audit"
    group_name: str = "group"
    model_file: str = ""
    n_read: int | None = None
    n_dropped: int = 0
    streamed: bool = False
    not_numbers: list[str] = field(default_factory=list)
    identifiers: list[str] = field(default_factory=list)
    constant: list[str] = field(default_factory=list)
    filled: dict[str, int] = field(default_factory=dict)
    filled_shares: dict[str, float] = field(default_factory=dict)
    command: str = ""
    code: str = ""
    reading: str = ""
    fit_command: str = ""
    versions: dict[str, str] = field(default_factory=_versions)
    date: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%d"))

    @classmethod
    def of_prepared(
        cls,
        prepared: Prepared,
        command: str,
        code: list[str],
        reading: list[str] | None = None,
        fit_command: str = "",
        model_file: str = "",
    ) -> Provenance:
        """Of data that were read by the command line."""
        return cls(
            source=prepared.source,
            group_name=prepared.group_name,
            model_file=model_file,
            n_read=prepared.n_read,
            n_dropped=prepared.n_dropped,
            streamed=prepared.streamed,
            not_numbers=prepared.not_numbers,
            identifiers=list(prepared.roles.identifiers),
            constant=prepared.constant,
            filled=dict(prepared.filled.most_common()),
            filled_shares=prepared.filled_shares,
            command=command,
            code="\n".join(code),
            reading="\n".join(reading or ()),
            fit_command=fit_command,
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)


def filled_in(origin: Provenance) -> dict[str, dict[str, str]]:
    """Columns with missing numbers that were filled in, and the share of each group's numbers."""
    counts = [f"({n})" for n in origin.filled.values()]
    shares = [percent(share) for share in origin.filled_shares.values()]
    return {
        "filled": name_list([*origin.filled], counts),
        "filled_shares": name_list([*origin.filled_shares], shares),
    }
