"""Arguments and options that several commands share, and what is made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from fairpca._estimators.base import FairProjection
    from fairpca._moments.prepare import Choices

DEFAULT_RANK = "0.7"

DataFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA",
        help="CSV, TSV, Parquet, Arrow or Feather files, or a folder of one kind of these; - for "
        "CSV from standard input.",
    ),
]
OptionalDataFiles = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="DATA",
        help="CSV, TSV, Parquet, Arrow or Feather files, or a folder of one kind of these; - for "
        "CSV from standard input. Left out: the bundled diabetes data, grouped by sex.",
        show_default=False,
    ),
]
Group = Annotated[
    list[str] | None,
    typer.Option(
        "--group",
        "-g",
        metavar="COLUMN",
        help="Column that names the groups; twice for intersections.",
        show_default=False,
    ),
]
Rank = Annotated[
    str,
    typer.Option(
        "--components",
        "-r",
        metavar="N",
        help="Number of components, or the share of its variance that every group must keep.",
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        metavar="COLUMN",
        help="Use only these columns (repeat, or separate by commas).",
        show_default=False,
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        "--drop",
        metavar="COLUMN",
        help="Leave these columns out (repeat, or separate by commas).",
        show_default=False,
    ),
]
Label = Annotated[
    str | None, typer.Option("--label", metavar="COLUMN", help="Column to predict later: left out.")
]
Positive = Annotated[
    str | None,
    typer.Option(
        "--positive", metavar="VALUE", help="Compare this value of --group with all others."
    ),
]
Encode = Annotated[
    bool, typer.Option("--encode", help="Turn the values of text columns into columns.")
]
DropMissing = Annotated[
    bool, typer.Option("--drop-missing", help="Leave out rows with missing values.")
]
Standardize = Annotated[
    bool,
    typer.Option(
        "--standardize/--no-standardize", help="Divide columns by their standard deviation."
    ),
]
Encoding = Annotated[
    str, typer.Option("--encoding", metavar="NAME", help="Encoding of text files.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Json = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="FILE",
        help="Write all numbers to this file; - prints them instead of the table.",
        show_default=False,
    ),
]
Parity = Annotated[
    bool,
    typer.Option(
        "--parity",
        help="Make the groups equal even if all get worse than the harmed one was (u-FPCA).",
    ),
]

Normalize = Annotated[
    bool, typer.Option("--normalize", help="Divide each group's error by its own variance.")
]
MinGroupSize = Annotated[
    int,
    typer.Option(
        "--min-group-size", metavar="N", min=1, help="Do not compare groups of fewer rows."
    ),
]
SmallGroups = Annotated[
    str,
    typer.Option(
        "--small-groups",
        metavar="[error|merge|ignore]",
        help="What becomes of them: an error, one group, or no comparison.",
    ),
]


def estimator(
    rank: int | float, parity: bool, normalize: bool, min_group_size: int, small_groups: Any
) -> FairProjection:
    from fairpca import FairPCA

    return FairPCA(
        rank,
        constraint=None if parity else "no_worse",
        normalize=normalize,
        min_group_size=min_group_size,
        small_groups=small_groups,
    )


def rank(text: str) -> int | float:
    """``3`` as a number of components, ``0.7`` as a share."""
    try:
        rank = int(text)
    except ValueError:
        pass
    else:
        if rank >= 1:
            return rank
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise ValueError(
            f"-r {text!r}: pass a number of components such as 3, or a share such as 0.8."
        )
    return share


def choices(
    group: list[str] | None,
    columns: list[str] | None,
    drop: list[str] | None,
    label: str | None,
    positive: str | None,
    encode: bool,
    drop_missing: bool,
) -> Choices:
    from fairpca._moments.prepare import Choices

    return Choices(group or [], columns or [], drop or [], label, encode, drop_missing, positive)
