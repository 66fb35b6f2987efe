"""Repeat the paper's experiments, figures and claims, or another study's tables.

Without options everything of Pelegrina and Duarte (2024) is run: three datasets, unbalanced and
balanced, five methods and the printed golden-section searches; with LFW, beyond the paper, faces by
sex and race. What an earlier run finished in the output folder is reused.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import fill, indent

from reproduction.claims import Claim
from reproduction.experiments import DATASETS, METHODS, VARIANTS
from reproduction.pipeline import reproduce
from reproduction.studies import STUDIES, reproduce_study

_PAPER = "pelegrina2022"


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code, 2 for wrong use or missing data."""
    try:
        _run(_parse(words))
    except (ValueError, OSError, ImportError) as error:
        print(f"reproduction: {error}", file=sys.stderr)
        return 2
    return 0


def _parse(words: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(
        "python -m reproduction", description=__doc__, formatter_class=RawDescriptionHelpFormatter
    )
    for name, known in (("dataset", DATASETS), ("method", METHODS), ("variant", VARIANTS)):
        parser.add_argument(
            f"--{name}",
            action="append",
            metavar="NAME",
            help=f"{', '.join(known)}; repeat for several",
        )
    parser.add_argument(
        "--study",
        default=_PAPER,
        metavar="NAME",
        help="another study's published tables; --study list shows their names",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("fairpca_reproduction"),
        metavar="FOLDER",
        help="folder for tables and figures (default: fairpca_reproduction)",
    )
    return parser.parse_args(words)


def _run(options: Namespace) -> None:
    chosen = {f"{name}s": getattr(options, name) for name in ("dataset", "method", "variant")}
    if options.study == "list":
        print(f"{_PAPER:<20} the paper of this library's method (default)")
        for study in STUDIES.values():
            print(f"{study.name:<20} {study.title}")
    elif options.study == _PAPER:
        report = reproduce(options.out, **chosen, progress=_show)
        if any(chosen.values()):
            print("These experiments are a part of the paper's; docs/reproducing.md has them all.")
        _print_findings(report.claims, report.files, options.out)
    elif any(chosen.values()):
        raise ValueError(
            f"--dataset, --method and --variant belong to --study {_PAPER}; the study "
            f"{options.study} is always run as a whole. Leave them out."
        )
    else:
        found = reproduce_study(options.study, options.out, progress=_show)
        _print_findings(found.claims, found.files, options.out / options.study)


def _show(doing: str, fraction: float | None = None) -> None:
    """Show the progress, on a terminal only."""
    if sys.stderr.isatty():
        share = "" if fraction is None else f"{fraction:5.0%}  "
        print(f"\r\033[K{share}{doing}", end="", file=sys.stderr, flush=True)


def _print_findings(claims: Iterable[Claim], files: Sequence[Path], out: Path) -> None:
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    for claim in claims:
        if claim.finding != "not run":
            print(f"{claim.finding}: {claim.statement} ({claim.variant})")
            print(indent(fill(claim.numbers, 92), "    "))
    print(f"{len(files)} files written to {out}")


if __name__ == "__main__":
    sys.exit(main())
