"""Interleaved timing: competitors take turns, and the best of several rounds counts.

Other work on the machine slows down a whole round, not a single competitor. So ratios of best times
are reproducible where single timings are not. The peak memory of each competitor is measured in a
process of its own.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
Row = dict[str, str]

DOCS = Path(__file__).parent.parent / "docs"
_REST = 0.2  # seconds; BLAS threads that wait for work keep a core busy for up to a tenth


@dataclass(frozen=True)
class Timing:
    """Best seconds of each competitor."""

    seconds: dict[str, float]

    def ratio(self, name: str, to: str) -> float:
        """Time of one competitor in units of another's."""
        return self.seconds[name] / self.seconds[to]


def race(competitors: dict[str, Callable[[], Any]], rounds: int = 5, pause: bool = True) -> Timing:
    """Run every competitor once a round, in turn, and keep the best time of each."""
    best = dict.fromkeys(competitors, float("inf"))
    for _ in range(rounds):
        for name, run in competitors.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
            if pause:
                time.sleep(_REST)
    return Timing(best)


def extra_memory(prepare: Callable[[], Any], run: Callable[[Any], Any]) -> float:
    """Peak MB that ``run(prepare())`` needs beyond what ``prepare`` left, in a fresh process."""
    before, peak = _in_a_fresh_process(prepare, run)
    return peak - before


def peak_memory(prepare: Callable[[], Any], run: Callable[[Any], Any]) -> float:
    """Peak MB of a fresh process during ``run(prepare())``, Python and libraries included."""
    return _in_a_fresh_process(prepare, run)[1]


def _in_a_fresh_process(
    prepare: Callable[[], Any], run: Callable[[Any], Any]
) -> tuple[float, float]:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=_measure, args=(prepare, run, queue))
    process.start()
    before, peak = queue.get()
    process.join()
    return before / 1024, peak / 1024


def _measure(prepare: Callable[[], Any], run: Callable[[Any], Any], queue: Any) -> None:
    made = prepare()
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak that prepare reached
    before = _memory("VmRSS")
    run(made)
    queue.put((before, _memory("VmHWM")))


def _memory(field: str) -> int:
    """Kilobytes of this process as the Linux kernel counts them."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1])


@dataclass(frozen=True)
class Options:
    """How to run the cases: at full or tiny size, and where to put files."""

    quick: bool
    folder: Path

    def pick(self, full: T, tiny: T) -> T:
        """The full size, or the tiny one that only shows that the code runs."""
        return tiny if self.quick else full


def row(
    case: str,
    timing: Timing,
    ours: str,
    other: str = "",
    target: str = "",
    memory: float | None = None,
    its_memory: float | None = None,
) -> Row:
    """One line of a table: our time and memory, theirs, the ratio of the times, and the target."""
    return {
        "case": case,
        "seconds": f"{timing.seconds[ours]:.4g}",
        "compared with": other,
        "its seconds": f"{timing.seconds[other]:.4g}" if other else "",
        "ratio": f"{timing.ratio(ours, other):.2f}" if other else "",
        "MB": "" if memory is None else f"{memory:.0f}",
        "its MB": "" if its_memory is None else f"{its_memory:.0f}",
        "target": target,
    }


def run_cases(
    description: str | None,
    cases: Mapping[str, Callable[[Options], Iterable[Row]]],
    table: Path,
    arguments: Sequence[str] | None = None,
) -> None:
    """Run all cases, or those named by ``--only``; print their rows and store them.

    Rows of cases that are not run stay in the table. ``--quick`` stores nothing.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--only", nargs="+", choices=list(cases), default=list(cases))
    parser.add_argument("--quick", action="store_true", help="tiny sizes, nothing is stored")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    chosen = parser.parse_args(arguments)
    options = Options(chosen.quick, chosen.folder)
    for part in chosen.only:
        start, rows = time.perf_counter(), []
        for line in cases[part](options):
            rows.append({"part": part, **line})
            print("; ".join(str(value) for value in rows[-1].values() if value != ""), flush=True)
        print(f"# {part}: {time.perf_counter() - start:.0f} s", flush=True)
        if rows and not options.quick:
            store(rows, table, list(cases))
    if not options.quick:
        write_pages()


def write_pages() -> None:
    """Put the stored tables into the pages."""
    subprocess.run([sys.executable, DOCS / "make_pages.py"], check=True)


def store(rows: list[Row], table: Path, parts: Sequence[str]) -> None:
    """Replace the rows of one part in a table, and keep the order of the parts."""
    kept: list[Row] = []
    if table.exists():
        with table.open(newline="") as file:
            kept = [row for row in csv.DictReader(file) if row.get("part") in parts]
        kept = [
            row for row in kept if row["part"] != rows[0]["part"] and row.keys() == rows[0].keys()
        ]
    ordered = sorted(kept + rows, key=lambda row: parts.index(row["part"]))
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(ordered)
