"""The options of the commands, each declared once, in lists that commands share.

The heading of an option is its group in the help.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from inspect import getdoc
from math import inf
from types import SimpleNamespace
from typing import Any

import click

Asked = SimpleNamespace  # the values of the options of a command, by their names

HEADINGS = ("Start here", "Columns and rows", "Choice", "Output")


def _rank(text: str) -> int | float:
    """``3`` as a number of components, ``0.7`` as a share."""
    with suppress(ValueError):
        number = float(text)
        if 0 < number < 1:
            return number
        if number >= 1 and number.is_integer():
            return int(number)
    raise click.BadParameter(f"{text!r}; pass a number such as 3, or a share such as 0.8.")


def _number(least: float, most: float = inf, kind: type[float] = float) -> Callable[[str], float]:
    """A function that reads numbers in a range."""

    def read(text: str) -> float:
        with suppress(ValueError):
            if least <= (number := kind(text)) <= most:
                return number
        limit = f"from {least} to {most}"
        if most == inf:
            limit = f"of at least {least}"
        raise click.BadParameter(f"{text!r}; pass a {'whole ' * (kind is int)}number {limit}.")

    return read


_whole = partial(_number, kind=int)


def _option(
    heading: str, names: str, takes: Any, text: str, default: Any = None, **more: Any
) -> click.Option:
    """An option that takes a text, one of a list, a number, or nothing (""), for a flag."""
    how: dict[str, Any] = {"help": text, **more}
    if takes == "":
        how["is_flag"] = True
        default = bool(default)
    elif isinstance(takes, str):
        how["metavar"] = takes
    elif isinstance(takes, list):
        how["type"] = click.Choice(takes)
    else:
        how |= {"type": takes, "metavar": "N"}
    if not how.get("required"):
        how["default"] = default
    how["show_default"] = default not in (None, ()) and default is not False
    option = click.Option(names.split(), multiple=default == (), **how)
    vars(option)["heading"] = heading
    return option


def _argument(name: str, text: str, **how: Any) -> click.Argument:
    """An argument that the help explains, in every version of click."""
    argument = click.Argument([name], **how)
    vars(argument)["explained"] = text
    return argument


_start, _column, _choice, _output = (partial(_option, heading) for heading in HEADINGS)

_TABLE = (
    "CSV, TSV, Parquet, Arrow or Feather files, spreadsheets, a folder or pattern of files, or a "
    "query (\"SELECT ... FROM 'people.parquet'\"); - reads CSV from standard input."
)
DATA = _argument("data", _TABLE, nargs=-1, required=True)
OPTIONAL_DATA = _argument("data", f"{_TABLE} Without any: the demonstration data.", nargs=-1)
MODEL = _argument("model", "A file written by fairpca fit.")

#: How files are read.
FILES = [
    _column("--query", "SQL", "Read a database file by this query."),
    _column("--encoding", "NAME", "Encoding of text files; by default UTF-8."),
    _column("--decimal", "CHAR", "Decimal point of text files."),
    _column("--missing-value", "TEXT", "Text for a missing value (repeat for more).", ()),
    _column("--no-header", "", "Text files hold no names; call columns c0, c1, ..."),
    _column("--sheet", "NAME", "The sheet of a spreadsheet."),
]
#: Which columns are used, and for what.
COLUMNS = [
    _start("--group -g", "COLUMN", "Column of the groups; several (a,b) are crossed.", ()),
    _column("--features", "COLUMN", "Use only these columns.", ()),
    _column("--drop", "COLUMN", "Leave these columns out.", ()),
    _column("--target", "COLUMN", "Classifiers predict it from the scores; it is no feature."),
    _column("--weight", "COLUMN", "Weights of the rows."),
    _column("--unit", "COLUMN", "Whose row each is; by default an id that repeats, or none."),
    _column("--keep-duplicates", "", "Rows that repeat others are other people."),
    _column("--encode", "", "Turn text columns into columns of zeros and ones."),
    _column(
        "--missing",
        ["available", "error", "drop", "median"],
        "Use the numbers there are, refuse missing ones, leave out their rows, or fill them in.",
        "available",
    ),
    _column("--missing-group", "NAME", "Put rows without a group into one of this name."),
]
MARGINS = _column("--margins", "", "Do not cross several --group columns; compare within each.")
#: How errors are measured, and between which groups; parameters of all estimators here.
MEASURE = [
    _choice("--standardize/--no-standardize", "", "Standardise the columns first.", True),
    _choice("--relative-errors", "", "Measure errors as shares of each group's own variation."),
    _choice("--min-group-size", _whole(1), "Smaller groups are not compared.", 1),
    _choice(
        "--small-groups",
        ["error", "merge", "ignore"],
        "Refuse, merge or ignore smaller groups.",
        "error",
    ),
]
FOLDS = [
    _choice("--cv", _whole(0), "Judge how far to go by this many folds; 0: do not.", 10),
    _choice("--seed", _whole(0), "Another number makes other folds.", 0),
]
JUDGING_FOLDS = [_choice("--cv", _whole(2), "Folds of held-out people.", 10), FOLDS[1]]
COMPONENTS = _start("--components -r", _rank, "How many, or the share every group keeps.", 0.7)
KEPT_COLUMNS = _start("--components -r", _whole(1), "How many columns to keep.", required=True)
#: How far to go from PCA towards equal errors.
CHOICE = [
    _choice(
        "--constraint",
        ["efficient", "no_worse", "parity"],
        "Give the worst-described group the smallest error there is (efficient, the default), make "
        "errors equal with nobody above PCA's worst (no_worse), or equal at any price (parity).",
    ),
    _choice("--max-disparity", _number(0), "Let errors differ by no more than this."),
    _choice("--max-error-increase", _number(0), "Let the overall error rise by up to this share."),
    _choice("--max-group-increase", _number(0), "Let each group's error rise by up to this share."),
    _choice("--alpha", _number(0, 1), "Use this weighting; 1 is plain PCA."),
    _choice("--criterion", ["loss", "error", "variance"], "Serve the worst-off best (MinMaxPCA)."),
]
#: The rules of the verdict.
RULES = [
    _column("--subgroups", "COLUMN", "Find the worst subgroup of these columns, no features.", ()),
    _choice("--judge-from", _whole(2), "Groups of fewer rows are listed, not judged.", 30),
    _choice("--reference", "GROUP", "Compare with this group, not with all others."),
    _choice("--small-gap", _number(0, 1), "Call a gap below this small; 0.05 is 5 %.", 0.05),
]
#: A model to be judged, and what else to look at.
JUDGED = [
    _start("--model", "MODEL", "Judge this file, written by fairpca fit, as it is."),
    _start("--loadings", "FILE", "Judge the PCA in this table of weights, as R or SPSS write it."),
    _start("--rebuilt", "FILE", "Judge the model that rebuilt the rows so: a table like the data."),
    _choice("--probes", "", "Let classifiers guess the group from the scores."),
    _column("--target-positive", "VALUE", "The value of --target that counts as chosen."),
]
GATE = [
    _start("--fail-above", _number(0, 1), "Pass if no group is worse by more; 0.1 is 10 %."),
    _start(
        "--fail-on",
        ["unproven", "gap", "estimate"],
        "Fail unless that is proven, if a gap is shown, or by the bare figure.",
        "unproven",
    ),
]
RECORD = [
    _output("--population", "TEXT", "Whom the rows stand for; the record on the page says it."),
    _output("--period", "TEXT", "When they were collected; likewise."),
    _output("--auditor", "TEXT", "Who asks; likewise."),
]
COMPARE = _output("--compare", "FILE", "Say what changed since this file, written by --json.")
QUIET = _output("--quiet -q", "", "Print nothing but errors.")
JSON = _output("--json", "FILE", "Write all figures to this file; - prints them instead.")
FIGURES = [
    JSON,
    _output("--with-rows", "", "Show single people too, on the page and in --json."),
    *RECORD,
    QUIET,
]
PAGE = [
    _output("--out -o", "FILE", "The page to write; - prints it.", "report.html"),
    _output("--model-card", "FILE", "Also write a card in Markdown."),
]
MODEL_OUT = _output("--out -o", "FILE", "The model file to write; - prints it.", required=True)
ROWS = _column(
    "--missing",
    ["available", "error", "drop"],
    "Expect missing numbers from the others, if the model can; refuse or leave out their rows.",
    "available",
)
SCORES_OUT = _output("--out -o", "FILE", "CSV or Parquet of scores; - prints CSV.", required=True)
KEEP = _output("--keep", "COLUMN", "Copy columns, such as an id.", ())

TABLE = [OPTIONAL_DATA, *FILES, *COLUMNS]
SETTINGS = [COMPONENTS, *MEASURE, *FOLDS]
FIT = [*TABLE, MARGINS, *SETTINGS, *CHOICE, *RULES]


def command(*parameters: click.Parameter) -> Callable[[Callable[[Asked], None]], click.Command]:
    """Make a command of a function of its options, whose docstring ends with examples."""

    def make(function: Callable[[Asked], None]) -> click.Command:
        def run(**values: Any) -> None:
            function(Asked(**values))

        text, title, examples = (getdoc(function) or "").partition("For example:")
        epilog = f"\b\n{title}{examples}"  # \b keeps its lines apart
        name = function.__name__.removesuffix("_command")
        return _Command(name, callback=run, params=[*parameters], help=text, epilog=epilog)

    return make


class _Command(click.Command):
    """A command whose help explains its arguments, and has its options in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments, and the options by their headings."""
        arguments = [own for own in self.params if isinstance(own, click.Argument)]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(
                    [(str(own.name).upper(), vars(own)["explained"]) for own in arguments]
                )
        options = [own for own in self.get_params(ctx) if isinstance(own, click.Option)]
        for heading in HEADINGS:
            own = [option for option in options if getattr(option, "heading", "Output") == heading]
            if own:
                with formatter.section(heading):
                    formatter.write_dl([option.get_help_record(ctx) or ("", "") for option in own])


def values(asked: Asked, options: Sequence[click.Parameter]) -> dict[str, Any]:
    """The values of these options, by their names."""
    return {option.name: getattr(asked, option.name) for option in options}


def changed(asked: Asked, **new: Any) -> Asked:
    """The options with new values."""
    return Asked(**(vars(asked) | new))


def words(asked: Asked, *options: click.Option) -> list[str]:
    """The options that are not at their defaults, as they are typed."""
    said: list[str] = []
    for option in options:
        value = getattr(asked, option.name)
        if value == option.default:
            continue
        if isinstance(value, bool):
            said.append(option.opts[0] if value else option.secondary_opts[0])
            continue
        if not isinstance(value, tuple):
            value = [value]
        for one in value:
            said += [option.opts[0], str(one)]
    return said
