"""Output: files that appear only when complete, and text on the terminal."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from os.path import realpath, splitext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from fairpca._atomic import TEMPORARY, refuse_inputs, replacing
from fairpca._progress import Progress, printable

if TYPE_CHECKING:
    from fairpca._audit.record import Audit, ModelAudit
    from fairpca.cli.columns.roles import Roles
    from fairpca.report import Origin

_COLOURS = {"bad": "red", "warn": "yellow", "plain": None}


def put(text: str, stream: TextIO | None = None, **style: Any) -> None:
    """Print lines without the control characters that names and labels may hold."""
    stream = stream or sys.stdout
    lines = "\n".join(printable(line) for line in text.split("\n"))
    encoding = stream.encoding or "utf-8"  # characters that it lacks are printed as "?"
    click.secho(lines.encode(encoding, "replace").decode(encoding), file=stream, **style)


def print_line(line: str) -> None:
    """Print one line on standard error."""
    if sys.stderr is not None:
        put(f"fairpca: {' '.join(line.split())}", sys.stderr)


#: How the name of an output ends, if it has an ending.
_ENDINGS = {"out": ".html", "model_card": ".md", "model": ".safetensors"}


@contextmanager
def outputs(asked: Any, **names: str | None) -> Iterator[dict[str, Path]]:
    """Temporary files that, once complete, get the given names or are printed for ``-``.

    Refuses two names for one file, files that the command reads, and endings of another format.
    """
    from fairpca.cli.reader.read import input_paths

    seen = dict[str, str]()
    paths = dict[str, Path]()
    given = vars(asked)
    models = (given.get(name) for name in ("model", "loadings", "rebuilt", "compare"))
    data = (path for data in given.get("data", ()) for path in input_paths(data))
    reads = [*data, *filter(None, models)]
    with ExitStack() as stack:
        for option, name in names.items():
            if name is None:
                continue
            if (other := seen.setdefault(realpath(name), option)) != option:
                both = f"--{other} and --{option}".replace("_", "-")
                raise ValueError(f"{both} both name {name!r}; give each its own file.")
            refuse_inputs(name, reads)
            stem, own = splitext(name)
            ending = _ENDINGS.get(option, "")
            if ending and own.lower() not in ("", ending):
                raise ValueError(f"{name}: this writes {ending}; pass {stem}{ending} as its name.")
            paths[option] = stack.enter_context(replacing(name) if name != "-" else _printing())
        yield paths


@contextmanager
def _printing() -> Iterator[Path]:
    """A temporary file that is printed if the block ends without an error."""
    with tempfile.TemporaryDirectory(prefix=TEMPORARY) as folder:
        content = Path(folder, "content")
        yield content
        sys.stdout.buffer.write(content.read_bytes())


def write_text(path: Path, text: str) -> None:
    """Write a text; bytes of file names that are not UTF-8 are escaped."""
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


@contextmanager
def progress(quiet: bool) -> Iterator[Progress]:
    """Show on a terminal what is being done."""
    shown = not quiet and sys.stderr is not None and sys.stderr.isatty()

    def show(doing: str, fraction: float | None = None) -> None:
        percent = ""
        if fraction is not None:
            percent = f" {fraction:.0%}"
        if shown:  # over what was shown before
            print(f"\r\x1b[K{printable(doing)}{percent}", end="", file=sys.stderr, flush=True)

    show("reading")
    try:
        yield show
    finally:
        show("")


def print_audit(audit: Audit | ModelAudit, origin: Origin) -> None:
    """Print the verdict, what must not be overlooked, and the table of the groups."""
    from fairpca.report.context import context

    facts = context(audit, origin)
    if facts["columns"] is audit:
        put(fill("columns.txt", **facts))
    put(facts["verdict"].headline, fg=_COLOURS[facts["verdict"].tone], bold=True)
    put(fill("audit.txt", **facts))


def fill(template: str, **facts: Any) -> str:
    """Fill in a template of this folder, with the filters of the page."""
    from fairpca.report.rendering import environment

    text = environment("fairpca.cli").get_template(template).render(**facts)
    return str(text).rstrip("\n")


def about_model(model: Any, roles: Roles) -> str:
    """The errors of a model by group, of held-out people if known, and what it is."""
    from fairpca._audit.record import group_name

    names = [group_name(label, roles.groups) for label in model.groups_]
    return fill("model.txt", model=model, names=names, roles=roles)
