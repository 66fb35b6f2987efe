"""Interleaved timing: competitors take turns, the best of several rounds counts.

A neighbour on the machine slows a whole round down, not one competitor, so ratios of best times
repeat where single timings do not. Peak memory is read in a process of its own per competitor.
"""

from __future__ import annotations

import csv
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Timing:
    """Best seconds of each competitor, the first one being the reference."""

    seconds: dict[str, float]

    def ratio(self, name: str, to: str) -> float:
        """Time of one competitor in units of another's."""
        return self.seconds[name] / self.seconds[to]


def race(competitors: dict[str, Callable[[], Any]], rounds: int = 5) -> Timing:
    """Run every competitor once a round, in turn, and keep the best time of each."""
    best = dict.fromkeys(competitors, float("inf"))
    for _ in range(rounds):
        for name, run in competitors.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
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


def write_table(rows: list[dict[str, str]], path: Path) -> None:
    """Store a table as CSV, for the documentation to include."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
