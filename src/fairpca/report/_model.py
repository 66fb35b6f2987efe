"""What the page of a fitted model, a notebook and the terminal say about it."""

from __future__ import annotations

from html import escape
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from fairpca._audit.model import NO_PROOF, ModelAudit
from fairpca.report._giveaway import beyond_chance, gap_marks, giveaway, made_of_it, probe_marks
from fairpca.report._provenance import Provenance, filled_in
from fairpca.report._text import display_names, figure, percent

_COLORS = {"bad": "var(--bad, #b3261e)", "open": "inherit"}


class ModelVerdict(NamedTuple):
    """The difference between the worst and the best served group, in words."""

    headline: str
    evidence: str
    tone: str


def model_verdict(audit: ModelAudit) -> ModelVerdict:
    """Whether the model treats the groups alike, beyond chance."""
    errors, unit = audit.errors.group_errors, float(audit.group_distances.max())
    if audit.loses_nothing:
        return ModelVerdict(audit.about_nothing_lost, NO_PROOF + beyond_chance(audit), "open")
    worst, best = display_names([audit.harmed_group, audit.privileged_group])
    low, high = float(errors.min()), float(errors.max())
    from_low, to_high = (figure(end, 3, unit) for end in audit.disparity_interval)
    of = f" of {len(audit.groups)} groups" if len(audit.groups) > 2 else ""
    evidence = (
        f"The errors are {figure(high, 3, unit)} and {figure(low, 3, unit)}, the largest and the "
        f"smallest{of}; they differ by {figure(audit.errors.disparity, 3, unit)} "
        f"({100 * audit.level:g} % interval {from_low} to {to_high}). {audit.about_rows}"
    )
    where = " on the rows that the model was fitted to" if audit.on_rows_fitted_to else ""
    if audit.disparity_interval[0] <= 0:
        headline = f"Chance can explain how the groups’ errors differ{where}."
        return ModelVerdict(headline, evidence + beyond_chance(audit), "open")
    how = f"{percent(high / low - 1)} worse than" if low > 0.01 * unit else "worse than"
    headline = f"The model reconstructs “{worst}” {how} “{best}”{where}."
    return ModelVerdict(headline, evidence + beyond_chance(audit), "bad")


def model_rows(audit: ModelAudit) -> list[dict[str, str]]:
    """A row of the table for each group, and one for all."""
    unit, z = float(audit.group_distances.max()), norm.ppf((1 + audit.level) / 2)
    found = zip(
        display_names(audit.groups),
        audit.errors.group_errors.tolist(),
        audit.standard_errors.tolist(),
        audit.group_distances.tolist(),
        audit.group_sizes,
        strict=True,
    )
    rows = [
        {
            "label": label,
            "error": figure(error, unit=unit),
            "interval": " to ".join(figure(error + s * z * spread, unit=unit) for s in (-1, 1)),
            "share": percent(error / distance) if distance > 0 else "0 %",
            "size": f"{n:,}",
        }
        for label, error, spread, distance, n in found
    ]
    overall, n = audit.errors.overall, sum(audit.group_sizes)
    total = {"label": "All rows", "error": figure(overall, unit=unit), "interval": ""}
    return [*rows, total | {"share": "", "size": f"{n:,}"}]


def model_view(audit: ModelAudit, provenance: Provenance) -> dict[str, Any]:
    """Everything the template needs."""
    said, origin = model_verdict(audit), provenance.to_dict()
    group_name = display_names([provenance.group_name])[0]
    of = f"{display_names([provenance.model_file], 80)[0]} on " if provenance.model_file else ""
    return {
        **said._asdict(),
        "title": f"{of}{display_names([provenance.source], 80)[0]}, by {group_name}",
        "origin": origin,
        "group_name": group_name,
        "k": len(audit.groups),
        "model": audit.model,
        "n_components": audit.n_components,
        "n_features": audit.n_features,
        "level": f"{100 * audit.level:g} %",
        "rows": model_rows(audit),
        "giveaway": giveaway(audit),
        "made_of_it": made_of_it(audit),
        **filled_in(provenance),
    }


def model_as_html(audit: ModelAudit) -> str:
    """The verdict, the table and the chart, for a notebook."""
    said, columns = model_verdict(audit), ("error", "interval", "share", "size")
    heads = ("Group", "Error", f"{100 * audit.level:g} % interval", "Variance lost", "Rows")
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    body = "".join(
        f'<tr><th scope="row">{escape(row["label"])}</th>'
        f"{''.join(f'<td>{escape(row[column])}</td>' for column in columns)}</tr>"
        for row in model_rows(audit)
    )
    scores = "".join(f"<li>{escape(line)}</li>" for line in audit.about_scores)
    return (
        f'<div><p style="color:{_COLORS[said.tone]};font-weight:600">{escape(said.headline)}</p>'
        f"<p>{escape(said.evidence)}</p><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>{model_chart(audit)}<ul>{scores}</ul></div>"
    )


def model_chart(audit: ModelAudit) -> str:
    """The error of each group with its interval, as SVG."""
    z = float(norm.ppf((1 + audit.level) / 2))
    errors, margins = audit.errors.group_errors, z * audit.standard_errors
    ends = np.column_stack([errors - margins, errors, errors + margins]).tolist()
    return _intervals("Error of each group", display_names(audit.groups, 24), ends)


def probe_chart(audit: ModelAudit) -> str:
    """The AUC of each probe, beside that of chance."""
    marks = probe_marks(audit)
    return _intervals("AUC of each probe", [mark["what"] for mark in marks], _ends(marks), 0.5)


def gap_chart(audit: ModelAudit) -> str:
    """The gaps between the groups' rates, with the model and with PCA, beside that of parity."""
    marks = gap_marks(audit)
    names = [f"{mark['what']}, {mark['method']}" for mark in marks]
    return _intervals("Gap between the groups’ rates", names, _ends(marks), 0.0)


def _ends(marks: list[dict[str, Any]]) -> list[list[float]]:
    return [[mark["low"], mark["estimate"], mark["high"]] for mark in marks]


def _intervals(
    what: str, names: list[str], ends: list[list[float]], at: float | None = None
) -> str:
    """Names, and estimates with their intervals, as SVG; with a line at a value to compare with."""
    shown = [value for own in ends for value in own] + ([] if at is None else [at])
    low, high = min(shown), max(shown)
    span = (high - low) or 1.0

    def place(value: float) -> float:
        return 210 + 310 * (value - low) / span

    height = 22 * len(names) + 28
    marks = []
    if at is not None:
        line = f"M{place(at):.1f} 0V{height - 20}"
        marks.append(f'<path d="{line}" stroke="currentColor" stroke-dasharray="3 3"/>')
    for i, (name, own) in enumerate(zip(names, ends, strict=True)):
        left, middle, right = map(place, own)
        y = 16 + 22 * i
        marks.append(
            f'<text x="190" y="{y + 4}" text-anchor="end">{escape(name)}</text>'
            f'<path d="M{left:.1f} {y}H{right:.1f}" stroke="currentColor" stroke-width="2"/>'
            f'<circle cx="{middle:.1f}" cy="{y}" r="4"/>'
        )
    scale = (
        f'<text x="210" y="{height - 6}">{figure(low, 3, high)}</text>'
        f'<text x="520" y="{height - 6}" text-anchor="end">{figure(high, 3, high)}</text>'
    )
    return (
        f'<svg viewBox="0 0 540 {height}" width="540" role="img" font-size="12" '
        'fill="currentColor" style="max-width:100%" '
        f'aria-label="{what} with its interval; the table has the numbers.">'
        f"{''.join(marks)}{scale}</svg>"
    )
