"""The options of the commands, each declared once, in records that a command takes as a whole.

A function with parameters such as ``columns: Columns`` becomes a command with all options of that
record; :func:`command` does that. The heading of an option is its group in the help.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Annotated, Any, Literal, get_type_hints

import typer

START, COLUMNS, CHOICE, OUTPUT = "Start here", "Columns and rows", "Choice", "Output"


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


def _fold_number(value: int) -> int:
    if value != 0 and value < 2:
        raise typer.BadParameter(f"{value}; pass a number of folds such as 10, or 0 for none.")
    return value


def _option(heading: str, names: str, metavar: str, text: str, **more: Any) -> Any:
    kind: dict[str, Any] = {"metavar": metavar} if metavar else {}
    made: Any = typer.Option
    return made(*names.split(), help=text, rich_help_panel=heading, **kind, **more)


_start, _column = partial(_option, START), partial(_option, COLUMNS)
_choice, _output = partial(_option, CHOICE), partial(_option, OUTPUT)
_limit = partial(_choice, metavar="N", min=0)

Context = typer.Context
Names = list[str] | None
Text = str | None
Number = float | None
_FILES = (
    "CSV, TSV, Parquet, Arrow or Feather files, spreadsheets, a folder or pattern of files, or a "
    "query (\"SELECT ... FROM 'people.parquet'\"); - reads CSV from standard input."
)
_DEMONSTRATION = f"{_FILES} Without any: the demonstration data."
Data = Annotated[list[str], typer.Argument(metavar="DATA", help=_FILES)]
OptionalData = Annotated[
    Names, typer.Argument(metavar="DATA", help=_DEMONSTRATION, show_default=False)
]
ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help="A file written by fairpca fit.")]
DropMissing = Annotated[bool, _column("--drop-missing", "", "Leave out rows with missing values.")]
Keep = Annotated[Names, _column("--keep", "COLUMN", "Columns to copy unchanged, such as an id.")]
FailAbove = Annotated[
    Number,
    _start(
        "--fail-above",
        "N",
        "Exit with code 1 if a group is reliably described so much worse than all others; 0.1 is "
        "ten percent.",
        min=0,
    ),
]
FailOn = Annotated[
    Literal["interval", "estimate"],
    _start("--fail-on", "", "Compare with the lower end of the interval, or with the bare figure."),
]
PageOut = Annotated[str, _output("--out -o", "FILE", "The page to write; - prints it.")]
ModelOut = Annotated[str, _output("--out -o", "FILE", "The model file to write; - prints it.")]
ScoresOut = Annotated[
    str, _output("--out -o", "FILE", "CSV or Parquet file for the scores; - prints CSV.")
]
Json = Annotated[
    Text, _output("--json", "FILE", "Write all figures to this file; - prints them instead.")
]
AsJson = Annotated[bool, _output("--json", "", "Print JSON.")]
Card = Annotated[Text, _output("--model-card", "FILE", "Also write a model card in Markdown.")]
WithRows = Annotated[
    bool, _output("--with-rows", "", "Show single people too, on the page and in --json.")
]
Quiet = Annotated[bool, _output("--quiet -q", "", "Print nothing but errors.")]


@dataclass(frozen=True)
class Columns:
    """Which columns and rows are used, and for what."""

    group: Annotated[
        Names,
        _start("--group -g", "COLUMN", "Names the groups; several columns are crossed (a,b)."),
    ] = None
    features: Annotated[Names, _column("--features", "COLUMN", "Use only these columns.")] = None
    drop: Annotated[Names, _column("--drop", "COLUMN", "Leave these columns out.")] = None
    target: Annotated[
        Text,
        _column("--target", "COLUMN", "Is predicted later: left out; judged by a classifier."),
    ] = None
    weight: Annotated[Text, _column("--weight", "COLUMN", "Weights of the rows.")] = None
    encode: Annotated[
        bool, _column("--encode", "", "Turn text columns into columns of zeros and ones.")
    ] = False
    drop_missing: DropMissing = False
    impute: Annotated[
        Literal["median"] | None,
        _column("--impute", "", "Fill in missing numbers with the median of their column."),
    ] = None


@dataclass(frozen=True)
class Files:
    """How files are read."""

    query: Annotated[Text, _column("--query", "SQL", "Read a database file by this query.")] = None
    encoding: Annotated[
        Text, _column("--encoding", "NAME", "Encoding of text files; by default UTF-8.")
    ] = None
    decimal: Annotated[Text, _column("--decimal", "CHAR", "Decimal point of text files.")] = None
    missing_value: Annotated[
        Names, _column("--missing-value", "TEXT", "Stands for a missing value (repeat for more).")
    ] = None
    no_header: Annotated[
        bool, _column("--no-header", "", "Text files hold no names; call columns c0, c1, ...")
    ] = False
    sheet: Annotated[Text, _column("--sheet", "NAME", "The sheet of a spreadsheet.")] = None


@dataclass(frozen=True)
class Choice:
    """The projection: how many components, and how far to go from PCA towards equal errors."""

    components: Annotated[
        float,
        _start(
            "--components -r",
            "N",
            "Number of components, or the share of its variance that every group must keep.",
            parser=_rank,
        ),
    ] = 0.7
    standardize: Annotated[
        bool,
        _choice("--standardize/--no-standardize", "", "Divide columns by their deviation."),
    ] = True
    constraint: Annotated[
        Literal["pareto", "no_worse", "none"] | None,
        _choice(
            "--constraint",
            "",
            "Go on until everybody would only get worse (pareto, the default), until the harmed "
            "group is as badly off as under PCA (no_worse), or to equal errors (none).",
        ),
    ] = None
    max_disparity: Annotated[
        Number, _limit("--max-disparity", text="Stop where errors differ by no more than this.")
    ] = None
    max_error_increase: Annotated[
        Number,
        _limit(
            "--max-error-increase", text="Stop where the overall error is this much above PCA’s."
        ),
    ] = None
    alpha: Annotated[
        Number,
        _choice("--alpha", "N", "Stop at this weighting; 1 is plain PCA.", min=0, max=1),
    ] = None
    criterion: Annotated[
        Literal["loss", "error", "variance"] | None,
        _choice("--criterion", "", "Serve the worst-off group best instead (MinMaxPCA)."),
    ] = None
    cv: Annotated[
        int,
        _choice(
            "--cv",
            "N",
            "Choose how far to go by testing on left-out people in so many folds; 0: do not.",
            callback=_fold_number,
        ),
    ] = 10
    normalize: Annotated[
        bool, _choice("--normalize", "", "Measure errors as shares of each group’s variation.")
    ] = False
    min_group_size: Annotated[
        int, _choice("--min-group-size", "N", "Smaller groups are not compared.", min=1)
    ] = 1
    small_groups: Annotated[
        Literal["error", "merge", "ignore"],
        _choice("--small-groups", "", "Refuse such groups, merge them into one, or ignore them."),
    ] = "error"
    seed: Annotated[int, _choice("--seed", "N", "Another number makes other folds.", min=0)] = 0


@dataclass(frozen=True)
class Judging:
    """What is judged, and by which rules."""

    model: Annotated[
        Text, _start("--model", "MODEL", "Judge this file, written by fairpca fit, as it is.")
    ] = None
    loadings: Annotated[
        Text,
        _start(
            "--loadings",
            "FILE",
            "Judge the PCA of this CSV file as it is: a row for each column of the data, with "
            "name, mean, scale and weights.",
        ),
    ] = None
    judge_from: Annotated[
        int, _choice("--judge-from", "N", "Groups of fewer rows are listed, not judged.", min=2)
    ] = 30
    reference: Annotated[
        Text, _choice("--reference", "GROUP", "Compare with this group, not with all others.")
    ] = None
    small_gap: Annotated[
        float, _limit("--small-gap", text="Call a gap below this small; 0.05 is 5 %.")
    ] = 0.05
    probes: Annotated[
        bool, _choice("--probes", "", "Let classifiers guess the group from the scores.")
    ] = False
    target_positive: Annotated[
        Text, _column("--target-positive", "VALUE", "The value of --target that counts as chosen.")
    ] = None


def command(function: Callable[..., None]) -> Callable[..., None]:
    """The function as a command: its records of options become options of their own."""
    records: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for name, given in inspect.signature(function, eval_str=True).parameters.items():
        only = inspect.Parameter.KEYWORD_ONLY
        if not is_dataclass(given.annotation):
            parameters.append(given.replace(kind=only))
            continue
        records[name] = given.annotation
        hints = get_type_hints(given.annotation, include_extras=True)
        parameters += [
            inspect.Parameter(own.name, only, default=own.default, annotation=hints[own.name])
            for own in fields(given.annotation)
        ]

    def run(**given: Any) -> None:
        made = {
            name: record(**{own.name: given.pop(own.name) for own in fields(record)})
            for name, record in records.items()
        }
        function(**made, **given)

    run.__name__, run.__doc__ = function.__name__, function.__doc__
    run.__annotations__ = {own.name: own.annotation for own in parameters}
    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run


def words(*records: Any) -> list[str]:
    """The options of some records that differ from their defaults, as they are typed."""
    typed: list[str] = []
    for record in records:
        hints = get_type_hints(type(record), include_extras=True)
        for own in fields(record):
            value = getattr(record, own.name)
            if value in (None, [], ()) or value == own.default:
                continue
            # Typer takes the first name of an option for its default, and sorts that out later.
            on, _, off = hints[own.name].__metadata__[0].default.partition("/")
            values = value if isinstance(value, list) else [value]
            flag = [on if value else off]
            typed += flag if isinstance(value, bool) else [w for v in values for w in (on, str(v))]
    return typed
