"""Write the stored tables and the options of the commands into the pages, and draw the plots.

Run ``python docs/make_pages.py`` after a benchmark, or after an option has changed; the benchmarks
do so themselves. Pages hold their tables, so that they can be read without a build. Each table
stands between two comments, ``<!-- table: NAME -->`` and ``<!-- end of table -->``.
"""

from __future__ import annotations

import csv
import re
import runpy
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

DOCS = Path(__file__).parent
PAGES = [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))]
TABLE = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- end of table -->)", re.DOTALL)

Rows = Sequence[Mapping[str, str]]


def markdown(rows: Rows) -> str:
    """Rows as a table; sizes and percentages stay on one line."""
    lines = [list(rows[0]), ["---"] * len(rows[0])]
    for row in rows:
        lines.append([cell.replace("|", r"\|").replace(" %", "\xa0%") for cell in row.values()])
    return "\n" + "".join(f"| {' | '.join(cells)} |\n" for cells in lines) + "\n"


def stored(path: Path) -> Callable[[], Rows]:
    """What reads a table that a script has left."""

    def read() -> Rows:
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    return read


def tables() -> dict[str, Callable[[], Rows]]:
    """What makes each table that a page may name."""
    from make_benchmark_plots import held_out, shown, summary
    from make_option_tables import FILES, rows

    paths = [DOCS / "names.csv", *DOCS.glob("_static/*/*.csv")]
    found = {path.stem: stored(path) for path in paths}
    for path in DOCS.glob("benchmarks_*.csv"):
        found[path.stem] = lambda name=path.stem: shown(name.removeprefix("benchmarks_"))
    found |= {"benchmarks_summary": summary, "held_out_summary": held_out}
    for heading, name in FILES.items():
        found[f"options_{name}"] = lambda heading=heading: rows(heading)
    return found


def filled(text: str) -> str:
    """A page with its tables as they are made today."""
    known = tables()
    return TABLE.sub(lambda found: found[1] + markdown(known[found[2]]()) + found[3], text)


def draw_example(name: str) -> None:
    """The figure of an example, for a page that shows it."""
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    runpy.run_path(str(DOCS.parent / "examples" / f"{name}.py"))
    plt.savefig(DOCS / "_static" / f"{name}.png", dpi=100)


def main() -> None:
    """Write all pages and draw all plots."""
    from make_benchmark_plots import draw_all

    draw_all()
    draw_example("first_steps")
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        page.write_text(filled(text), encoding="utf-8")


if __name__ == "__main__":
    main()
