"""Arguments and options of the commands, each declared once."""

from __future__ import annotations

from functools import partial
from math import inf
from typing import Annotated, Literal

import typer


def _rank(given: object) -> int | float:
    """``3`` as a number of components, ``0.7`` as a share."""
    text = str(given)
    if text.isdecimal() and int(text) >= 1:
        return int(text)
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if 0 < share < 1:
        return share
    raise typer.BadParameter(
        f"{text!r}; pass a number of components such as 3, or a share such as 0.8."
    )


def _whole_rank(given: object) -> int:
    """``3`` as a number of components."""
    try:
        return int(str(given))
    except ValueError:
        raise typer.BadParameter(
            f"{str(given)!r}; pass a whole number such as 3 (shares are for report and fit)."
        ) from None


def _not_negative(value: float | None) -> float | None:
    if value is not None and not 0 <= value < inf:
        raise typer.BadParameter(f"{value}; pass a number from 0 on, such as 0.1.")
    return value


def _weight(value: float | None) -> float | None:
    if value is not None and not 0 <= value <= 1:
        raise typer.BadParameter(f"{value}; pass a weight from 0 to 1.")
    return value


def _fold_number(value: int | None) -> int | None:
    if value is not None and value != 0 and value < 2:
        raise typer.BadParameter(f"{value}; pass a number of folds such as 10, or 0 for none.")
    return value


_Names = list[str] | None
_column = partial(typer.Option, metavar="COLUMN", show_default=False)
_file = partial(typer.Option, metavar="FILE", show_default=False)
_number = partial(typer.Option, metavar="N")
_FILES = (
    "CSV, TSV, Parquet, Arrow or Feather files, or a folder of files of one of these formats; "
    "spreadsheets; - reads CSV from standard input."
)
_BUNDLED = "Without any: the bundled RAND health data, grouped by race."
_SEVERAL = "(repeat, or separate by commas)"

# What to read
Data = Annotated[list[str], typer.Argument(metavar="DATA", help=_FILES)]
OptionalData = Annotated[
    _Names, typer.Argument(metavar="DATA", help=f"{_FILES} {_BUNDLED}", show_default=False)
]
Group = Annotated[
    _Names,
    _column("--group", "-g", help=f"Column that names the groups; several are crossed {_SEVERAL}."),
]
Columns = Annotated[_Names, _column("--columns", help=f"Use only these columns {_SEVERAL}.")]
Drop = Annotated[
    _Names, _column("--drop", "--drop-column", help=f"Leave these columns out {_SEVERAL}.")
]
_PREDICTED = "Leave out this column: it holds what you will predict later."
Label = Annotated[str | None, _column("--label", help=_PREDICTED)]
LabelOrTarget = Annotated[str | None, _column("--label", "--target", help=_PREDICTED)]
Target = Annotated[
    str | None,
    _column("--target", help="Column of classes: say what a classifier makes of the scores."),
]
TargetPositive = Annotated[
    str | None,
    typer.Option(
        metavar="VALUE",
        help="The value of --target that counts as being selected; by default the larger.",
    ),
]
Probes = Annotated[
    bool, typer.Option("--probes", help="Let classifiers guess the group from the scores.")
]
Positive = Annotated[
    str | None,
    typer.Option(
        "--positive", metavar="VALUE", help="Compare this value of --group with all others."
    ),
]
Encode = Annotated[
    bool, typer.Option("--encode", help="Encode text columns as 0/1 columns, one for each value.")
]
DropMissing = Annotated[
    bool, typer.Option("--drop-missing", help="Leave out rows with missing values.")
]
DropMost = Annotated[
    bool,
    typer.Option(
        "--drop-most", help="With --drop-missing: even if more than half of the rows are left out."
    ),
]
Impute = Annotated[
    Literal["median"] | None,
    typer.Option(
        "--impute",
        help="Fill in missing numbers with the median of their column; for held-out errors, of the "
        "rows fitted to.",
    ),
]
KeepIds = Annotated[
    bool,
    typer.Option(
        "--keep-ids", help="Use columns that look like row numbers or ids; else they are left out."
    ),
]
Encoding = Annotated[
    str, typer.Option("--encoding", metavar="NAME", help="Encoding of text files.")
]
Decimal = Annotated[
    str | None,
    typer.Option(
        "--decimal",
        metavar="CHAR",
        show_default="told from the data",
        help="Decimal point of text files, . or ,.",
    ),
]
MissingValues = Annotated[
    _Names,
    typer.Option(
        "--missing-value",
        metavar="TEXT",
        show_default=False,
        help="A text that stands for a missing value in text files; repeat for several.",
    ),
]
NoHeader = Annotated[
    bool,
    typer.Option("--no-header", help="Text files hold no column names; call them c0, c1, ..."),
]
Sheet = Annotated[
    str | None,
    typer.Option(
        "--sheet",
        metavar="NAME",
        show_default=False,
        help="The sheet of a spreadsheet; needed if several hold rows.",
    ),
]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="A file written by fairpca fit.")]
OwnModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        show_default=False,
        help="Judge this file, written by fairpca fit, as it is instead of PCA; its columns, "
        "scaling and group are used.",
    ),
]
Keep = Annotated[
    _Names, _column("--keep", help=f"Columns to copy unchanged, such as an id {_SEVERAL}.")
]

# What to compute
DEFAULT_RANK = 0.7
Rank = Annotated[
    float,
    _number(
        "--components",
        "-r",
        parser=_rank,
        help="Number of components, or the share of its variance that every group must keep.",
    ),
]
OneRank = Annotated[
    int | None,
    _number(
        "--components",
        "-r",
        parser=_whole_rank,
        show_default="all",
        help="Look at this number of components.",
    ),
]
DisparityLimit = Annotated[
    float | None,
    _number(
        "--max-disparity",
        callback=_not_negative,
        help="Exit with code 1 if the difference between the group errors exceeds this.",
    ),
]
RelativeLimit = Annotated[
    float | None,
    _number(
        "--max-relative-disparity",
        callback=_not_negative,
        help="Exit with code 1 if this difference exceeds this share of the mean error.",
    ),
]
OnHeldOut = Annotated[
    bool,
    typer.Option("--held-out", help="With -r: look at rows that PCA was not fitted to (10 folds)."),
]
Standardize = Annotated[
    bool,
    typer.Option(
        "--standardize/--no-standardize", help="Divide columns by their standard deviation."
    ),
]
ConstraintName = Annotated[
    Literal["pareto", "no_worse", "none"] | None,
    typer.Option(
        "--constraint",
        show_default="pareto",
        help="Go from PCA towards equal errors until everybody would only get worse (pareto), "
        "until the harmed group is as badly off as under PCA (no_worse), or all the way (none).",
    ),
]
Parity = Annotated[
    bool,
    typer.Option(
        "--parity",
        help="Short for --constraint none: make the groups equal, even if every group is worse "
        "off than under PCA (u-FPCA).",
    ),
]
MaxDisparity = Annotated[
    float | None,
    _number(
        "--max-disparity",
        callback=_not_negative,
        help="Stop where the group errors differ by no more than this.",
    ),
]
MaxErrorIncrease = Annotated[
    float | None,
    _number(
        "--max-error-increase",
        callback=_not_negative,
        help="Stop where the overall error is so much larger than that of PCA; 0.01 is one "
        "percent.",
    ),
]
Alpha = Annotated[
    float | None,
    _number(
        "--alpha",
        callback=_weight,
        help="Stop at this weight of the overall error against the disparity; 1 is plain PCA.",
    ),
]
CriterionName = Annotated[
    Literal["loss", "error", "variance"] | None,
    typer.Option(
        "--criterion",
        help="Serve the worst-off group best instead (MinMaxPCA), by this criterion.",
    ),
]
Cv = Annotated[
    int | None,
    _number(
        "--cv",
        callback=_fold_number,
        show_default="10 in report, 0 in fit",
        help="Choose where to stop by cross-validation with so many folds; 0: by the rows fitted "
        "to.",
    ),
]
Normalize = Annotated[
    bool, typer.Option("--normalize", help="Divide each group's error by its own variance.")
]
MinGroupSize = Annotated[
    int, _number("--min-group-size", min=1, help="Groups of fewer rows are too small to compare.")
]
SmallGroupsPolicy = Annotated[
    Literal["error", "merge", "ignore"],
    typer.Option(
        "--small-groups", help="Refuse small groups, merge them into one, or ignore them."
    ),
]
Seed = Annotated[int, _number("--seed", min=0, help="Seed of folds and resamples.")]

# What to write
PageOut = Annotated[
    str, typer.Option("--out", "-o", metavar="FILE", help="The page to write; - prints it instead.")
]
ModelOut = Annotated[
    str, _file("--out", "-o", help="The model file to write; - for standard output.")
]
ScoresOut = Annotated[
    str, _file("--out", "-o", help="CSV or Parquet file for the scores; - prints CSV.")
]
Json = Annotated[
    str | None,
    _file("--json", help="Write all numbers to this file; - prints them instead of the table."),
]
ModelCard = Annotated[
    str | None,
    _file("--model-card", help="Also write a model card: .md for Markdown, .json for CycloneDX."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
