"""The ``fairpca`` command: it parses, calls the library and prints.

Numerical libraries are imported inside the commands, so that ``--help`` does not wait for them.
Exit codes: 0 done, 1 a disparity above ``--max-disparity``, 2 wrong use or unusable data,
130 interrupted, 141 the reader of our output went away.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from fairpca._cli_reproduce import reproduce

if TYPE_CHECKING:
    from fairpca._base import FairProjection
    from fairpca._preparation import Choices
    from fairpca._steps import Step

T = TypeVar("T")

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Fair principal component analysis: audit a PCA for unequal treatment of groups, and "
    "fit one that treats them alike.",
)

DataFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="CSV, TSV, Parquet, Arrow or Feather files, or a folder of one kind of these; - for "
        "CSV from standard input.",
    ),
]
OptionalDataFiles = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[DATA]...",
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
        help="Column that names the groups; twice for intersections.",
        show_default=False,
    ),
]
Rank = Annotated[
    str,
    typer.Option(
        "--components",
        "-r",
        help="Number of components, or the share of its variance that every group must keep.",
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        help="Use only these columns (repeat, or separate by commas).",
        show_default=False,
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        "--drop",
        help="Leave these columns out (repeat, or separate by commas).",
        show_default=False,
    ),
]
Label = Annotated[str | None, typer.Option("--label", help="Column to predict later: left out.")]
Positive = Annotated[
    str | None, typer.Option("--positive", help="Compare this value of --group with all others.")
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
Encoding = Annotated[str, typer.Option("--encoding", help="Encoding of text files.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Json = Annotated[
    str | None,
    typer.Option(
        "--json",
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
    int, typer.Option("--min-group-size", min=1, help="Do not compare groups of fewer rows.")
]
SmallGroups = Annotated[
    str,
    typer.Option(
        "--small-groups",
        help="What becomes of them: error, merge (into one group) or ignore (but overall).",
    ),
]

_DEFAULT_RANK = "0.7"
_UsageError: Any = typer.BadParameter.__base__  # click's, wherever typer keeps its click


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from fairpca import __version__

        typer.echo(f"fairpca {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def report(
    data: OptionalDataFiles = None,
    group: Group = None,
    components: Rank = _DEFAULT_RANK,
    out: Annotated[
        str, typer.Option("--out", "-o", help="The page to write; - prints it instead.")
    ] = "report.html",
    json_file: Json = None,
    columns: Columns = None,
    drop: Drop = None,
    label: Label = None,
    positive: Positive = None,
    encode: Encode = False,
    drop_missing: DropMissing = False,
    standardize: Standardize = True,
    parity: Parity = False,
    normalize: Normalize = False,
    min_group_size: MinGroupSize = 1,
    small_groups: SmallGroups = "error",
    encoding: Encoding = "utf-8",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of folds and resamples.")] = 0,
    quiet: Quiet = False,
) -> None:
    """Compare PCA with fair PCA and write one self-contained page about it."""
    if out == json_file:
        raise ValueError(f"--out and --json both name {out!r}; give each a file of its own.")
    rank = _rank(components)
    choices = _choices(group, columns, drop, label, positive, encode, drop_missing)
    with _output(out) as page, _json_output(json_file) as numbers, _progress(quiet) as follow:
        from fairpca._audit import audit_steps
        from fairpca._preparation import prepare_steps
        from fairpca.report import Provenance, render
        from fairpca.report._reading import reading_code

        prepared = follow(prepare_steps(data or None, choices, encoding, rows_up_to=float("inf")))
        result = follow(
            audit_steps(
                prepared.X,
                prepared.groups,
                _estimator(rank, parity, normalize, min_group_size, small_groups),
                standardize=standardize,
                random_state=seed,
            )
        )
        call = (
            f"result = audit(X, groups, {result.estimator}, "
            f"standardize={standardize}, random_state={seed})"
        )
        command = shlex.join(["fairpca", *sys.argv[1:]])
        code = [*reading_code(data or None, choices, encoding), call]
        provenance = Provenance.of_prepared(prepared, command, code)
        page.write_text(render(result, provenance), encoding="utf-8")
        if numbers is not None:
            json.dump(result.to_dict() | {"data": provenance.to_dict()}, numbers, indent=1)
    if not quiet and "-" not in (out, json_file):
        from fairpca import _terminal as terminal

        console = terminal.make_console()
        terminal.print_notes(console, prepared)
        terminal.print_small(console, result.small_groups, min_group_size, small_groups)
        terminal.print_audit(console, result, prepared.group_name)
        terminal.print_line(console, f"written to {out}", style="dim")


@app.command()
def audit(
    data: OptionalDataFiles = None,
    group: Group = None,
    components: Annotated[
        int | None,
        typer.Option(
            "--components", "-r", help="Look at this number of components only.", show_default="all"
        ),
    ] = None,
    max_disparity: Annotated[
        float | None,
        typer.Option(
            "--max-disparity",
            help="Exit with code 1 when the difference between the group errors exceeds this.",
            show_default=False,
        ),
    ] = None,
    json_file: Json = None,
    columns: Columns = None,
    drop: Drop = None,
    label: Label = None,
    positive: Positive = None,
    encode: Encode = False,
    drop_missing: DropMissing = False,
    standardize: Standardize = True,
    normalize: Normalize = False,
    min_group_size: MinGroupSize = 1,
    small_groups: SmallGroups = "error",
    encoding: Encoding = "utf-8",
    quiet: Quiet = False,
) -> None:
    """Show the group errors of plain PCA for every number of components."""
    if max_disparity is not None and not 0 <= max_disparity < float("inf"):
        raise ValueError(
            f"--max-disparity {max_disparity}: pass the largest difference that is all right, 0 or "
            "more, such as 0.1."
        )
    choices = _choices(group, columns, drop, label, positive, encode, drop_missing)
    with _json_output(json_file) as numbers, _progress(quiet) as follow:
        import numpy as np

        from fairpca._audit import pca_errors_by_rank
        from fairpca._preparation import prepare_steps

        prepared = follow(prepare_steps(data or None, choices, encoding))
        moments = prepared.moments
        if standardize:
            moments, _ = moments.standardize()
        chosen = _estimator(1, False, normalize, min_group_size, small_groups)
        settled: Any = chosen._settle_groups(moments)
        errors = pca_errors_by_rank(settled.moments, normalize)
        ranks = list(range(1, len(errors) + 1))
        if components is not None:
            if components not in ranks:
                raise ValueError(
                    f"-r {components}: pass a number of components from 1 to {len(errors)}."
                )
            ranks = [components]
        rows = [
            {
                "n_components": r,
                "group_errors": errors[r - 1].tolist(),
                "disparity": float(np.ptp(errors[r - 1, settled.compared])),
            }
            for r in ranks
        ]
        too_large = [
            row for row in rows if max_disparity is not None and row["disparity"] > max_disparity
        ]
        labels = settled.moments.groups.tolist()
        if numbers is not None:
            plain = {
                "groups": labels,
                "group_sizes": settled.moments.counts.tolist(),
                "standardized": standardize,
                "normalized": normalize,
                "compared": settled.compared.tolist(),
                "small_groups": settled.small,
                "max_disparity": max_disparity,
                "exceeded": bool(too_large),
                "pca": rows,
            }
            json.dump(plain, numbers, indent=1)
    if not quiet and json_file != "-":
        from fairpca import _terminal as terminal

        console = terminal.make_console()
        terminal.print_notes(console, prepared)
        terminal.print_small(console, settled.small, min_group_size, small_groups)
        terminal.print_ranks(console, labels, rows, [row["n_components"] for row in too_large])
    if too_large:
        worst = max(row["disparity"] for row in too_large)
        _say(f"disparity {worst:.4g} exceeds --max-disparity {max_disparity:g}.")
        raise typer.Exit(1)


@app.command()
def fit(
    data: DataFiles,
    out: Annotated[
        str, typer.Option("--out", "-o", help="The model file to write; - for standard output.")
    ],
    group: Group = None,
    components: Rank = _DEFAULT_RANK,
    columns: Columns = None,
    drop: Drop = None,
    label: Label = None,
    positive: Positive = None,
    encode: Encode = False,
    drop_missing: DropMissing = False,
    standardize: Standardize = True,
    parity: Parity = False,
    normalize: Normalize = False,
    min_group_size: MinGroupSize = 1,
    small_groups: SmallGroups = "error",
    encoding: Encoding = "utf-8",
    quiet: Quiet = False,
) -> None:
    """Fit fair PCA and save it as a safetensors file."""
    rank = _rank(components)
    choices = _choices(group, columns, drop, label, positive, encode, drop_missing)
    with _output(out) as temporary, _progress(quiet) as follow:
        from fairpca._model_file import StandardizedModel, save_model
        from fairpca._preparation import prepare_steps
        from fairpca._resampling import fit_quietly

        prepared = follow(prepare_steps(data or None, choices, encoding))
        moments = prepared.moments
        scale = None
        if standardize:
            moments, scale = moments.standardize()
        model = fit_quietly(
            _estimator(rank, parity, normalize, min_group_size, small_groups), moments
        )
        extra = {
            "columns": prepared.layout.columns,
            "categories": prepared.layout.categories,
            "group": list(choices.groups),
        }
        whole = model if scale is None else StandardizedModel.of(model, scale)
        save_model(whole, temporary, extra)
    if not quiet and out != "-":
        from fairpca import _terminal as terminal

        console = terminal.make_console()
        terminal.print_notes(console, prepared)
        terminal.print_small(console, model.small_groups_, min_group_size, small_groups)
        terminal.print_model(console, model)
        terminal.print_line(console, f"written to {out}", style="dim")


@app.command()
def transform(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="File written by fairpca fit.")],
    data: DataFiles,
    out: Annotated[
        str, typer.Option("--out", "-o", help="CSV or Parquet file for the scores; - prints CSV.")
    ],
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            help="Columns to copy unchanged, such as an id (repeat, or separate by commas).",
            show_default=False,
        ),
    ] = None,
    drop_missing: DropMissing = False,
    encoding: Encoding = "utf-8",
    quiet: Quiet = False,
) -> None:
    """Project the rows of a file onto the components of a model, in order, as a stream."""
    with _progress(quiet) as follow:
        from fairpca._transform_file import transform_steps

        n_rows = follow(transform_steps(model, data, out, keep or [], drop_missing, encoding))
    if not quiet and out != "-":
        from fairpca import _terminal as terminal

        terminal.print_line(terminal.make_console(), f"{n_rows} rows written to {out}", "dim")


@app.command()
def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="File written by fairpca fit.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what is in a model file."""
    from sklearn.pipeline import Pipeline

    from fairpca._model_file import load_model, read_extra

    loaded, extra = load_model(model), read_extra(model)
    standardized = isinstance(loaded, Pipeline)
    projection: FairProjection = loaded[-1] if isinstance(loaded, Pipeline) else loaded
    if as_json:
        names = getattr(projection, "feature_names_in_", None)
        plain = {
            "model": repr(projection),
            "standardized": standardized,
            "n_components": projection.n_components_,
            "feature_names": None if names is None else list(names),
            "groups": projection.groups_.tolist(),
            "group_sizes": projection.group_sizes_.tolist(),
            "pca_group_errors": projection.pca_group_errors_.tolist(),
            "group_errors": projection.group_errors_.tolist(),
            "status": projection.status_,
            "duality_gap": projection.duality_gap_,
            **extra,
        }
        typer.echo(json.dumps(plain, indent=1))
        return
    from fairpca import _terminal as terminal

    console = terminal.make_console()
    terminal.print_model(console, projection)
    terminal.print_line(
        console,
        f"{projection!r}: {projection.n_components_} components of {projection.n_features_in_} "
        f"features{', standardised' if standardized else ''}",
    )


app.command()(reproduce)


def _estimator(
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


def _rank(text: str) -> int | float:
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


def _choices(
    group: list[str] | None,
    columns: list[str] | None,
    drop: list[str] | None,
    label: str | None,
    positive: str | None,
    encode: bool,
    drop_missing: bool,
) -> Choices:
    from fairpca._preparation import Choices

    return Choices(group or [], columns or [], drop or [], label, encode, drop_missing, positive)


def _output(path: str) -> AbstractContextManager[Path]:
    """A file to write that becomes ``path``, or goes to standard output for ``-``, when whole."""
    from fairpca._files import handing_over, replacing

    return handing_over(_to_standard_output) if path == "-" else replacing(path)


def _to_standard_output(content: Path) -> None:
    with content.open("rb") as source:
        shutil.copyfileobj(source, sys.stdout.buffer)
    sys.stdout.buffer.flush()


@contextmanager
def _json_output(path: str | None) -> Iterator[Any]:
    """A text file for the numbers, which goes to standard output for ``-``, or None."""
    if path is None:
        yield None
        return
    with _output(path) as temporary, temporary.open("w", encoding="utf-8") as stream:
        yield stream
        stream.write("\n")


@contextmanager
def _progress(quiet: bool) -> Iterator[Any]:
    """A function that runs steps to their end; a bar shows what they say after a second."""
    from threading import Timer

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    bar = Progress(
        BarColumn(bar_width=20),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    task = bar.add_task("reading", total=None)
    after_a_second = Timer(1.0, bar.start)

    def follow(steps: Generator[Step, None, T]) -> T:
        while True:
            if _interrupts:
                raise KeyboardInterrupt
            try:
                step = next(steps)
                bar.update(task, description=str(step), completed=step.done, total=step.total)
            except StopIteration as end:
                result: T = end.value
                return result

    if console.is_terminal and not quiet:
        after_a_second.start()
    try:
        yield follow
    finally:
        after_a_second.cancel()
        if bar.live.is_started:
            bar.stop()


def _say(line: str) -> None:
    print(f"fairpca: {' '.join(line.split())}", file=sys.stderr)


_interrupts: list[int] = []


def _interrupt(number: int, frame: object) -> None:
    """Note Ctrl-C too: Python drops an exception raised while C code calls it back."""
    _interrupts.append(number)
    raise KeyboardInterrupt


def run() -> int:
    """Run the command and turn every ending into one line and an exit code."""
    command = typer.main.get_command(app)
    try:
        signal.signal(signal.SIGINT, _interrupt)
        with command.make_context("fairpca", sys.argv[1:]) as context:
            command.invoke(context)
        sys.stdout.flush()
    except typer.Exit as end:
        return int(end.exit_code)
    except KeyboardInterrupt:
        _say("interrupted; nothing was written.")
        return 130
    except BrokenPipeError:
        # Nobody reads what we print; also keep Python from trying again on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        _say(f"{name}{error.strerror or error}")
        return 2
    except (ValueError, TypeError, ImportError, MemoryError) as error:
        _say(str(error) or type(error).__name__)
        return 2
    except _UsageError as error:
        _say(f"{error.format_message().rstrip('.')}. See fairpca --help.")
        return 2
    return 0
