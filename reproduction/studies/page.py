"""A study as a page: verdicts first, then every figure. One file that loads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import log10
from typing import Any

from fairpca import __version__
from reproduction.claims import Claim
from reproduction.studies.comparison import Figure, Study

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --line: #dfe3e8;
  --paper: #ffffff; --yes: #00684c; --no: #a33b00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ebef; --soft: #a5afbc; --line: #39424d;
  --paper: #161b21; --yes: #4fc89f; --no: #ff9d5c; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 66rem; margin: 2.5rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin-bottom: .25rem; }
h2 { font-size: 1.15rem; margin-top: 2.25rem; }
p.soft, caption, footer { color: var(--soft); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .875rem; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .35rem 1rem .35rem 0;
  border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th.number { text-align: right; }
.yes { color: var(--yes); font-weight: 600; } .no { color: var(--no); font-weight: 600; }
footer { margin-top: 3rem; font-size: .875rem; }
"""
_FINDINGS = {"holds": "yes", "does not hold": "no", "holds in part": "no"}
_NUMBERS = ("r", "published", "ours", "difference", "held_out")


def study_page(study: Study, figures: Sequence[Figure], claims: Sequence[Claim]) -> str:
    """The page as HTML."""
    notes = "".join(f"<p>{escape(note)}</p>" for note in study.notes)
    rows = [figure.as_row() for figure in figures]
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(study.name)} reproduced</title><style>{_STYLE}</style></head><body>
<h1>{escape(study.title)}</h1>
<p class="soft">{escape(study.reference)} Figures as published, and computed by fairpca.</p>
<h2>Verdicts</h2>{_verdicts(claims)}
<h2>How the figures come about</h2>{notes}
<h2>Figures</h2>
<p class="soft">Figures agree if they are equal to 1e-6, or to all printed digits where they were
rounded. Where the column is empty, ours is another method, shown beside the published one.</p>
{_table_of_figures(rows)}
<footer>fairpca {escape(__version__)}. The same tables: figures.csv, claims.csv.</footer>
</body></html>
"""


def _verdicts(claims: Sequence[Claim]) -> str:
    body = "".join(
        f"<tr><td>{escape(claim.variant)}</td><td>{escape(claim.statement)}</td>"
        f'<td class="{_FINDINGS.get(claim.finding, "")}">{escape(claim.finding)}</td>'
        f"<td>{escape(claim.numbers)}</td></tr>"
        for claim in claims
    )
    heads = "".join(f"<th>{head}</th>" for head in ("data", "claim", "verdict", "numbers"))
    return f'<div class="scroll"><table><tr>{heads}</tr>{body}</table></div>'


def _table_of_figures(rows: Sequence[dict[str, Any]]) -> str:
    names = [name for name in rows[0] if name != "tolerance"]
    if all(row["held_out"] is None for row in rows):
        names.remove("held_out")
    heads = "".join(f"<th{_kind(name)}>{name.replace('_', ' ')}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td{_kind(name)}>{_cell(name, row)}</td>" for name in names) + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><tr>{heads}</tr>{body}</table></div>'


def _kind(name: str) -> str:
    return ' class="number"' if name in _NUMBERS else ""


def _cell(name: str, row: dict[str, Any]) -> str:
    value = row[name]
    if value is None:
        return ""
    if name == "agrees":
        return f'<span class="{value}">{value}</span>'
    if isinstance(value, float):
        return f"{value:+.1e}" if name == "difference" else _number(value, row["tolerance"])
    return escape(str(value).replace("_", " "))


def _number(value: float, tolerance: float | None) -> str:
    """With the decimals to which figures are compared, if they are."""
    return f"{value:.6g}" if tolerance is None else f"{value:.{round(-log10(tolerance))}f}"
