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
    n_read, n_dropped : int or None, int
        Rows in the source, and rows left out for missing values.
    streamed : bool
        Whether the rows were too many to be kept in memory.
    not_numbers, identifiers, constant : list of str
        Columns left out, because they are not numbers or only tell rows apart, and columns that do
        not vary.
    command, code : str
        The command, and Python code, that give the same numbers.
    versions : dict of str to str
    date : str
    """

    source: str = "data passed to fairpca.audit"
    group_name: str = "group"
    n_read: int | None = None
    n_dropped: int = 0
    streamed: bool = False
    not_numbers: list[str] = field(default_factory=list)
    identifiers: list[str] = field(default_factory=list)
    constant: list[str] = field(default_factory=list)
    command: str = ""
    code: str = ""
    versions: dict[str, str] = field(default_factory=_versions)
    date: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%d"))

    @classmethod
    def of_prepared(cls, prepared: Prepared, command: str, code: list[str]) -> Provenance:
        """Of data that were read by the command line."""
        return cls(
            source=prepared.source,
            group_name=prepared.group_name,
            n_read=prepared.n_read,
            n_dropped=prepared.n_dropped,
            streamed=prepared.streamed,
            not_numbers=prepared.not_numbers,
            identifiers=list(prepared.roles.identifiers),
            constant=prepared.constant,
            command=command,
            code="\n".join(code),
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)
