"""The options of the commands, each declared once.

A command takes one record of options. Records inherit the fields that commands share, and each
field is an option of its name. The heading of an option is its group in the help.
"""
# ruff: noqa: RUF009 - the calls make fields

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import partial
from inspect import getdoc
from typing import Any

import click

START, COLUMNS, CHOICE, OUTPUT = "Start here", "Columns and rows", "Choice", "Output"


def _rank(text: str) -> int | float:
    """``3`` as a number of components, ``0.7`` as a share."""
    with suppress(ValueError):
        number = float(text)
        if 0 < number < 1 or (number >= 1 and number.is_integer()):
            return number if number < 1 else int(number)
    raise click.BadParameter(f"{text!r}; pass a number such as 3, or a share such as 0.8.")


class _Number(click.FloatRange):
    """A number in a range; NaN is in none."""

    name = "number"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Refuse what is not a number in the range."""
        number = super().convert(value, param, ctx)
        return number if number == number else self.fail("pass a number.", param, ctx)


class _Whole(click.IntRange):
    """A whole number in a range."""

    name = "whole number"


def _option(
    heading: str | None, takes: Any, text: str, default: Any = None, short: str = "", **more: Any
) -> Any:
    """A field of a record. It takes a text, whose kind is named, one of a list, or a number."""
    how: dict[str, Any] = {"help": text, **more}
    if isinstance(takes, str):
        how["metavar"] = takes or None
    elif isinstance(takes, list):
        how["type"] = click.Choice(takes)
    else:
        how |= {"type": takes, "metavar": "N"}
    if isinstance(default, bool):
        how["is_flag"] = True
    if default is not None and default != ():
        how |= {"default": default, "show_default": default is not False}
    return field(default=default, metadata={"heading": heading, "short": short, "how": how})


_argument = partial(_option, None, "")
_start, _column = partial(_option, START), partial(_option, COLUMNS)
_choice, _output = partial(_option, CHOICE), partial(_option, OUTPUT)
_COUNT, _SHARE = _Whole(min=0), _Number(min=0)

Names = tuple[str, ...]
Text = str | None
Number = float | None
_FILES = (
    "CSV, TSV, Parquet, Arrow or Feather files, spreadsheets, a folder or pattern of files, or a "
    "query (\"SELECT ... FROM 'people.parquet'\"); - reads CSV from standard input."
)


@dataclass(frozen=True)
class Files:
    """How files are read."""

    query: Text = _column("SQL", "Read a database file by this query.")
    encoding: Text = _column("NAME", "Encoding of text files; by default UTF-8.")
    decimal: Text = _column("CHAR", "Decimal point of text files.")
    missing_value: Names = _column("TEXT", "Text for a missing value (repeat for more).", ())
    drop_missing: bool = _column("", "Leave out rows with missing values.", False)
    no_header: bool = _column("", "Text files hold no names; call columns c0, c1, ...", False)
    sheet: Text = _column("NAME", "The sheet of a spreadsheet.")


@dataclass(frozen=True)
class Columns:
    """Which columns are used, and for what."""

    group: Names = _start("COLUMN", "Column of the groups; several (a,b) are crossed.", (), "-g")
    features: Names = _column("COLUMN", "Use only these columns.", ())
    drop: Names = _column("COLUMN", "Leave these columns out.", ())
    target: Text = _column("COLUMN", "To be predicted later: left out, and judged by classifiers.")
    weight: Text = _column("COLUMN", "Weights of the rows.")
    encode: bool = _column("", "Turn text columns into columns of zeros and ones.", False)
    impute: Text = _column(["median"], "Fill in missing numbers with medians.")
    missing_group: Text = _column("NAME", "Name a group of rows without one.")


@dataclass(frozen=True)
class Table(Columns, Files):
    """The data, and how to read them."""

    data: Names = _argument(f"{_FILES} Without any: the demonstration data.", (), nargs=-1)


@dataclass(frozen=True)
class Measure:
    """How many components there are, and how errors are measured."""

    components: float = _start(
        _rank, "How many, or the share of variance each group keeps.", 0.7, "-r"
    )
    standardize: bool = _choice("", "Divide columns by their deviation.", True)
    normalize: bool = _choice("", "Measure errors as shares of each group's variation.", False)
    min_group_size: int = _choice(_Whole(1), "Smaller groups are not compared.", 1)
    small_groups: Any = _choice(
        ["error", "merge", "ignore"],
        "Refuse smaller groups, merge them into one, or ignore them.",
        "error",
    )
    cv: int = _choice(_COUNT, "Folds of held-out people that tell how far to go; 0: none.", 10)
    seed: int = _choice(_COUNT, "Another number makes other folds.", 0)


@dataclass(frozen=True)
class Choice(Measure):
    """The projection: how far to go from PCA towards equal errors."""

    constraint: Any = _choice(
        ["pareto", "no_worse", "none"],
        "Go on as long as a group gains (pareto, the default), until the harmed group is as badly "
        "off as under PCA (no_worse), or to equal errors (none).",
    )
    max_disparity: Number = _choice(_SHARE, "Let errors differ by no more than this.")
    max_error_increase: Number = _choice(_SHARE, "Let the overall error rise by this share.")
    max_group_increase: Number = _choice(_SHARE, "Let each group's error rise by this share.")
    alpha: Number = _choice(_Number(0, 1), "Use this weighting; 1 is plain PCA.")
    criterion: Any = _choice(
        ["loss", "error", "variance"], "Serve the worst-off group best instead (MinMaxPCA)."
    )


@dataclass(frozen=True)
class Rules:
    """The rules of the verdict."""

    judge_from: int = _choice(_Whole(2), "Groups of fewer rows are listed, not judged.", 30)
    reference: Text = _choice("GROUP", "Compare with this group, not with all others.")
    small_gap: float = _choice(_SHARE, "Call a gap below this small; 0.05 is 5 %.", 0.05)


@dataclass(frozen=True)
class Request(Rules, Choice, Table):
    """What to fit to which data, and how to judge it."""


@dataclass(frozen=True)
class AuditRequest(Request):
    """What the user asks to be judged."""

    model: Text = _start("MODEL", "Judge this file, written by fairpca fit, as it is.")
    loadings: Text = _start(
        "FILE", "Judge the PCA in this CSV file: a row per column, with name, mean, scale, weights."
    )
    probes: bool = _choice("", "Let classifiers guess the group from the scores.", False)
    target_positive: Text = _column("VALUE", "The value of --target that counts as chosen.")
    json: Text = _output("FILE", "Write all figures to this file; - prints them instead.")
    with_rows: bool = _output("", "Show single people too, on the page and in --json.", False)
    quiet: bool = _output("", "Print nothing but errors.", False, "-q")

    @property
    def model_file(self) -> str | None:
        """The file of the model to be judged, if there is one."""
        return self.model or self.loadings

    @property
    def reads(self) -> list[str]:
        """Files that must not be written to."""
        return [*self.data, *filter(None, [self.model_file])]


@dataclass(frozen=True)
class Report(AuditRequest):
    """The options of ``fairpca report``."""

    out: str = _output("FILE", "The page to write; - prints it.", "report.html", "-o")
    model_card: Text = _output("FILE", "Also write a card in Markdown.")


@dataclass(frozen=True)
class Audit(AuditRequest):
    """The options of ``fairpca audit``."""

    fail_above: Number = _start(
        _SHARE, "Exit with 1 if a group is reliably worse off by more; 0.1 is 10 %."
    )
    fail_on: str = _start(
        ["interval", "estimate"],
        "Compare with the lower end of the interval, or with the bare figure.",
        "interval",
    )


@dataclass(frozen=True)
class Fit(Request):
    """The options of ``fairpca fit``."""

    out: str = _output("FILE", "The model file to write; - prints it.", None, "-o", required=True)
    quiet: bool = _output("", "Print nothing but errors.", False, "-q")


@dataclass(frozen=True)
class KeepColumns(Measure, Table):
    """The options of ``fairpca columns``."""

    components: int = _start(_Whole(1), "How many columns to keep.", None, "-r", required=True)
    json: bool = _output("", "Print JSON.", False)


@dataclass(frozen=True)
class Inspect:
    """The options of ``fairpca inspect``."""

    model: str = _argument("A file written by fairpca fit.")
    json: bool = _output("", "Print JSON.", False)


@dataclass(frozen=True)
class Transform(Files):
    """The options of ``fairpca transform``."""

    model: str = _argument("A file written by fairpca fit.")
    data: Names = _argument(_FILES, (), nargs=-1, required=True)
    out: str = _output(
        "FILE", "CSV or Parquet file for the scores; - prints CSV.", None, "-o", required=True
    )
    keep: Names = _output("COLUMN", "Copy columns, such as an id.", ())
    quiet: bool = _output("", "Print nothing but errors.", False, "-q")


class Command(click.Command):
    """A command whose help has its options in groups, by the headings of their names."""

    headings: Mapping[str | None, str]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by their headings."""
        options = [own for own in self.get_params(ctx) if isinstance(own, click.Option)]
        for heading in (START, COLUMNS, CHOICE, OUTPUT):
            own = [o for o in options if self.headings.get(o.name, OUTPUT) == heading]
            records = [record for option in own if (record := option.get_help_record(ctx))]
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def command(record: Any) -> Callable[[Callable[[Any], None]], Command]:
    """Make a command of a function of a record of options; its docstring ends with examples."""

    def make(function: Callable[[Any], None]) -> Command:
        def run(**values: Any) -> None:
            function(record(**values))

        text, title, examples = (getdoc(function) or "").partition("For example:")
        made = Command(function.__name__, callback=run, params=[*_parameters(record)], help=text)
        made.epilog = f"\b\n{title}{examples}"  # \b keeps its lines apart
        made.headings = {own.name: own.metadata["heading"] for own in fields(record)}
        return made

    return make


def _parameters(record: Any) -> Iterator[click.Parameter]:
    """The arguments and options that the fields of a record declare."""
    for own in fields(record):
        heading, short, how = (own.metadata[key] for key in ("heading", "short", "how"))
        if heading is None:
            yield click.Argument([own.name], **how)
            continue
        name = typed(own.name)
        name = f"{name}/--no-{name[2:]}" if own.default is True else name
        names = [own.name, name, *filter(None, [short])]
        yield click.Option(names, multiple=own.default == (), **how)


def typed(name: str) -> str:
    """The option of a field, as it is typed."""
    return f"--{name.replace('_', '-')}"


def values(asked: Any, *kinds: Any) -> dict[str, Any]:
    """The values of the options that these records declare."""
    return {own.name: getattr(asked, own.name) for kind in kinds for own in fields(kind)}


def words(asked: Any, *kinds: Any) -> list[str]:
    """The options that these records declare and that were set, as they are typed."""
    said: list[str] = []
    for own in (own for kind in kinds for own in fields(kind)):
        value, word = getattr(asked, own.name), typed(own.name)
        if value == own.default:
            continue
        if isinstance(value, bool):
            said.append(word if value else f"--no-{word[2:]}")
        else:
            each = value if isinstance(value, tuple) else [value]
            said += [part for one in each for part in (word, str(one))]
    return said
