"""Arguments and options of the commands, each declared once, and what is made of them."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from fairpca._estimators.base import FairProjection
    from fairpca._moments.prepare import Choices

DEFAULT_RANK = 0.7


def _rank(given: object) -> int | float:
    """``3`` as a number of components, ``0.7`` as a share."""
    text = str(given)
    for kind in (int, float):
        try:
            rank = kind(text)
        except ValueError:
            continue
        if (kind is int and rank >= 1) or 0 < rank < 1:
            return rank
    raise typer.BadParameter(
        f"{text!r}; pass a number of components such as 3, or a share such as 0.8."
    )


def _not_negative(value: float | None) -> float | None:
    if value is not None and not 0 <= value < inf:
        raise typer.BadParameter(f"{value}; pass the largest difference allowed, such as 0.1.")
    return value


_DATA = (
    "CSV, TSV, Parquet, Arrow or Feather files, or a folder of one kind of these; - for CSV from "
    "standard input."
)
Data = Annotated[list[str], typer.Argument(metavar="DATA", help=_DATA)]
OptionalData = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="DATA",
        help=f"{_DATA} Without any: the bundled diabetes data, grouped by sex.",
        show_default=False,
    ),
]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="A file written by fairpca fit.")]
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
    float,
    typer.Option(
        "--components",
        "-r",
        metavar="N",
        parser=_rank,
        help="Number of components, or the share of its variance that every group must keep.",
    ),
]
OneRank = Annotated[
    int | None,
    typer.Option(
        "--components",
        "-r",
        metavar="N",
        help="Look at this number of components only.",
        show_default="all",
    ),
]
MaxDisparity = Annotated[
    float | None,
    typer.Option(
        "--max-disparity",
        metavar="NUMBER",
        callback=_not_negative,
        help="Exit with code 1 if the difference between the group errors exceeds this.",
        show_default=False,
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
    str | None,
    typer.Option("--label", metavar="COLUMN", help="Leave out this column, to be predicted later."),
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
        help="Make the groups equal, even if every group is worse off than under PCA (u-FPCA).",
    ),
]
Normalize = Annotated[
    bool, typer.Option("--normalize", help="Divide each group's error by its own variance.")
]
MinGroupSize = Annotated[
    int,
    typer.Option(
        "--min-group-size",
        metavar="N",
        min=1,
        help="Groups of fewer rows are too small to compare.",
    ),
]
SmallGroupsPolicy = Annotated[
    Literal["error", "merge", "ignore"],
    typer.Option(
        "--small-groups",
        help="Do this with smaller groups: refuse them, merge them into one, or ignore them.",
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", metavar="N", min=0, help="Seed of folds and resamples.")
]
PageOut = Annotated[
    str, typer.Option("--out", "-o", metavar="FILE", help="The page to write; - prints it instead.")
]
ModelOut = Annotated[
    str,
    typer.Option(
        "--out", "-o", metavar="FILE", help="The model file to write; - for standard output."
    ),
]
ScoresOut = Annotated[
    str,
    typer.Option(
        "--out", "-o", metavar="FILE", help="CSV or Parquet file for the scores; - prints CSV."
    ),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        "--keep",
        metavar="COLUMN",
        help="Columns to copy unchanged, such as an id (repeat, or separate by commas).",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def estimator(
    rank: int | float = 1,
    *,
    parity: bool = False,
    normalize: bool,
    min_group_size: int,
    small_groups: Literal["error", "merge", "ignore"],
) -> FairProjection:
    """The estimator that these options describe."""
    from fairpca import FairPCA

    return FairPCA(
        rank,
        constraint=None if parity else "no_worse",
        normalize=normalize,
        min_group_size=min_group_size,
        small_groups=small_groups,
    )


def choices(
    *,
    group: list[str] | None,
    columns: list[str] | None,
    drop: list[str] | None,
    label: str | None,
    positive: str | None,
    encode: bool,
    drop_missing: bool,
) -> Choices:
    """What these options ask of a table."""
    from fairpca._moments.prepare import Choices

    return Choices(
        groups=group or [],
        columns=columns or [],
        drop=drop or [],
        label=label,
        encode=encode,
        drop_missing=drop_missing,
        positive=positive,
    )
