"""The options of the commands, each declared once, in records that commands take as a whole.

A function with a parameter such as ``gate: Gate`` becomes a command with all options of that
record, named after its fields. The heading of an option is its group in the help.
"""
# ruff: noqa: RUF009 - the calls make fields

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from typing import Annotated, Any, Literal, cast, get_type_hints

import typer

START, COLUMNS, CHOICE, OUTPUT = "Start here", "Columns and rows", "Choice", "Output"


def _rank(given: object) -> int | float:
    """``3`` as a number of components, ``0.7`` as a share."""
    text = str(given)
    try:
        number = int(text) if text.isdecimal() else float(text)
    except ValueError:
        number = 0
    if 0 < number < 1 or (isinstance(number, int) and number >= 1):
        return number
    raise typer.BadParameter(
        f"{text!r}; pass a number of components such as 3, or a share such as 0.8."
    )


def _option(
    heading: str, metavar: str, text: str, default: Any = None, short: str = "", **more: Any
) -> Any:
    """A field of a record; flags and options with a list of values need no metavar."""
    how = {"help": text, "rich_help_panel": heading, "metavar": metavar or None, **more}
    return field(default=default, metadata={"short": short.split(), "how": how})


_start, _column = partial(_option, START), partial(_option, COLUMNS)
_choice, _output = partial(_option, CHOICE), partial(_option, OUTPUT)

Names = list[str] | None
Text = str | None
Number = float | None
_FILES = (
    "CSV, TSV, Parquet, Arrow or Feather files, spreadsheets, a folder or pattern of files, or a "
    "query (\"SELECT ... FROM 'people.parquet'\"); - reads CSV from standard input."
)
_DEMONSTRATION = f"{_FILES} Without any: the demonstration data."
_argument, _out = typer.Argument, partial(cast(Any, typer.Option), "--out", "-o", metavar="FILE")
Data = Annotated[list[str], _argument(metavar="DATA", help=_FILES)]
OptionalData = Annotated[Names, _argument(metavar="DATA", help=_DEMONSTRATION, show_default=False)]
ModelFile = Annotated[str, _argument(metavar="MODEL", help="A file written by fairpca fit.")]
ModelOut = Annotated[str, _out(help="The model file to write; - prints it.")]
ScoresOut = Annotated[str, _out(help="CSV or Parquet file for the scores; - prints CSV.")]
_HOW_MANY = {"help": "How many columns to keep.", "min": 1, "rich_help_panel": START}
ToKeep = Annotated[int, cast(Any, typer.Option)("--components", "-r", metavar="N", **_HOW_MANY)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Keep = Annotated[Names, typer.Option(metavar="COLUMN", help="Copy columns, such as an id.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]


@dataclass(frozen=True)
class Columns:
    """Which columns are used, and for what."""

    group: Names = _start("COLUMN", "Column of the groups; several (a,b) are crossed.", short="-g")
    features: Names = _column("COLUMN", "Use only these columns.")
    drop: Names = _column("COLUMN", "Leave these columns out.")
    target: Text = _column("COLUMN", "To be predicted later: left out, and judged by classifiers.")
    weight: Text = _column("COLUMN", "Weights of the rows.")
    encode: bool = _column("", "Turn text columns into columns of zeros and ones.", False)
    impute: Literal["median"] | None = _column("", "Fill in missing numbers with medians.")
    missing_group: Text = _column("NAME", "Name a group of rows without one.")


@dataclass(frozen=True)
class Files:
    """How files are read."""

    query: Text = _column("SQL", "Read a database file by this query.")
    encoding: Text = _column("NAME", "Encoding of text files; by default UTF-8.")
    decimal: Text = _column("CHAR", "Decimal point of text files.")
    missing_value: Names = _column("TEXT", "Text for a missing value (repeat for more).")
    drop_missing: bool = _column("", "Leave out rows with missing values.", False)
    no_header: bool = _column("", "Text files hold no names; call columns c0, c1, ...", False)
    sheet: Text = _column("NAME", "The sheet of a spreadsheet.")


@dataclass(frozen=True)
class Measure:
    """How errors are measured, between which groups, in which folds."""

    standardize: bool = _choice("", "Divide columns by their deviation.", True)
    normalize: bool = _choice("", "Measure errors as shares of each group’s variation.", False)
    min_group_size: int = _choice("N", "Smaller groups are not compared.", 1, min=1)
    small_groups: Literal["error", "merge", "ignore"] = _choice(
        "", "Refuse smaller groups, merge them into one, or ignore them.", "error"
    )
    cv: int = _choice("N", "Folds of held-out people that tell how far to go; 0: none.", 10, min=0)
    seed: int = _choice("N", "Another number makes other folds.", 0, min=0)


@dataclass(frozen=True)
class Choice(Measure):
    """The projection: how many components, and how far to go from PCA towards equal errors."""

    components: float = _start(
        "N", "How many, or the share of variance each group keeps.", 0.7, "-r", parser=_rank
    )
    constraint: Literal["pareto", "no_worse", "none"] | None = _choice(
        "",
        "Go on as long as a group gains (pareto, the default), until the harmed group is as badly "
        "off as under PCA (no_worse), or to equal errors (none).",
    )
    max_disparity: Number = _choice("N", "Let errors differ by no more than this.", min=0)
    max_error_increase: Number = _choice("N", "Let the overall error rise by this share.", min=0)
    max_group_increase: Number = _choice("N", "Let each group’s error rise by this share.", min=0)
    alpha: Number = _choice("N", "Use this weighting; 1 is plain PCA.", min=0, max=1)
    criterion: Literal["loss", "error", "variance"] | None = _choice(
        "", "Serve the worst-off group best instead (MinMaxPCA)."
    )


@dataclass(frozen=True)
class Rules:
    """The rules of the verdict."""

    judge_from: int = _choice("N", "Groups of fewer rows are listed, not judged.", 30, min=2)
    reference: Text = _choice("GROUP", "Compare with this group, not with all others.")
    small_gap: float = _choice("N", "Call a gap below this small; 0.05 is 5 %.", 0.05, min=0)


@dataclass(frozen=True)
class Judging(Rules):
    """What is judged, and by which rules."""

    model: Text = _start("MODEL", "Judge this file, written by fairpca fit, as it is.")
    loadings: Text = _start(
        "FILE", "Judge the PCA in this CSV file: a row per column, with name, mean, scale, weights."
    )
    probes: bool = _choice("", "Let classifiers guess the group from the scores.", False)
    target_positive: Text = _column("VALUE", "The value of --target that counts as chosen.")


@dataclass(frozen=True)
class Output:
    """What an audit writes."""

    json: Text = _output("FILE", "Write all figures to this file; - prints them instead.")
    with_rows: bool = _output("", "Show single people too, on the page and in --json.", False)
    quiet: bool = _output("", "Print nothing but errors.", False, "-q")


@dataclass(frozen=True)
class PageOutput(Output):
    """What a report writes."""

    out: str = _output("FILE", "The page to write; - prints it.", "report.html", "-o")
    model_card: Text = _output("FILE", "Also write a card in Markdown.")


@dataclass(frozen=True)
class Gate:
    """When an audit fails."""

    fail_above: Number = _start(
        "N", "Exit with 1 if a group is reliably worse off by more; 0.1 is 10 %.", min=0
    )
    fail_on: Literal["interval", "estimate"] = _start(
        "", "Compare with the lower end of the interval, or with the bare figure.", "interval"
    )


@dataclass(frozen=True)
class Request:
    """The data, and how to read and fit them."""

    data: OptionalData = None
    files: Files = Files()
    columns: Columns = Columns()
    choice: Choice = Choice()

    @property
    def reads(self) -> list[str]:
        """Files that must not be written to."""
        return [*(self.data or ()), *([self.model_file] if self.model_file else ())]

    @property
    def model_file(self) -> str | None:
        """The file of the model to be judged, if there is one."""
        return None


@dataclass(frozen=True)
class AuditRequest(Request):
    """What the user asks to be judged."""

    judging: Judging = Judging()

    @property
    def model_file(self) -> str | None:
        """The file of the model to be judged: a saved model or a table of loadings."""
        return self.judging.model or self.judging.loadings


def command(function: Callable[..., None]) -> Callable[..., None]:
    """The function as a command: the fields of its records become options."""
    hints = get_type_hints(function, include_extras=True)
    signature = inspect.signature(function)
    parameters = [
        option
        for own in signature.parameters.values()
        for option in _options(own.name, hints[own.name], own.default)
    ]

    def run(**values: Any) -> None:
        function(**{name: _value(name, hints[name], values) for name in signature.parameters})

    run.__name__, run.__doc__ = function.__name__, function.__doc__
    run.__annotations__ = {own.name: own.annotation for own in parameters}
    vars(run)["__signature__"] = signature.replace(parameters=parameters)
    return run


def _options(name: str, kind: Any, default: Any, how: Any = None) -> Iterator[inspect.Parameter]:
    """A parameter as typer understands it; a record yields one for each field."""
    if is_dataclass(kind):
        hints = get_type_hints(kind, include_extras=True)
        for own in fields(kind):
            yield from _options(own.name, hints[own.name], own.default, own.metadata)
        return
    if how:
        on = f"--{name.replace('_', '-')}"
        names = [f"{on}/--no-{on[2:]}" if default is True else on, *how["short"]]
        kind = Annotated[kind, cast(Any, typer.Option)(*names, **how["how"])]
    yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _value(name: str, kind: Any, values: Mapping[str, Any]) -> Any:
    """The value of a parameter; a record is made from the values of its fields."""
    if not is_dataclass(kind):
        return values[name]
    hints = get_type_hints(kind, include_extras=True)
    return cast(Any, kind)(**{own: _value(own, hints[own], values) for own in hints})


def words(*records: Any) -> list[str]:
    """The options that differ from their defaults, as they are typed."""
    typed: list[str] = []
    for record in records:
        for own in fields(record):
            value, on = getattr(record, own.name), f"--{own.name.replace('_', '-')}"
            if value == own.default or value == []:
                continue
            if isinstance(value, bool):
                typed.append(on if value else f"--no-{on[2:]}")
            else:
                values = value if isinstance(value, list) else [value]
                typed += [word for v in values for word in (on, str(v))]
    return typed
