"""The context of the templates: rounded figures from an audit and its origin."""

import platform
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

import fairpca
from fairpca._audit.record import Audit, Interval
from fairpca._audit.verdict import Case, Reason, Remedy
from fairpca._progress import printable
from fairpca._typing import Array
from fairpca.path import TradeoffPath
from fairpca.report import sentences
from fairpca.report.charts import charts, methods
from fairpca.report.sentences import AnyAudit, group_names
from fairpca.report.text import figure, percent, worse


def _versions() -> dict[str, str]:
    others = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"fairpca": fairpca.__version__, "Python": platform.python_version(), **others}


@dataclass(frozen=True)
class Origin:
    """Where the data of a report come from, and how to repeat it."""

    source: str = "data passed to fairpca.audit"  # name of the file, or what the data are
    sha256: str = ""  # checksum of the data, if they are one file
    n_read: int | None = None  # rows in the source
    streamed: bool = False  # whether the rows were too many to be kept in memory
    notes: list[str] = field(default_factory=list)  # sentences on what was done to the data
    model_file: str = ""  # the model that was judged, if there is one
    command: str = ""  # the command that gives the same page
    code: str = ""  # Python code that gives the same audit
    fit_command: str = ""  # the command that fits the fair version
    step_command: str = ""  # fits a smaller step; {step} is its overall error increase
    versions: dict[str, str] = field(default_factory=_versions)
    date: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%d"))


class Cell(NamedTuple):
    """A difference in words, the ends of its interval if it has one, and a tone."""

    text: str
    ends: str
    tone: str

    def __str__(self) -> str:
        return f"{self.text} ({self.ends})" if self.ends else self.text


def group_rows(audit: AnyAudit) -> list[dict[str, Any]]:
    """The rows of the table of groups: judged groups first, worst off first."""
    verdict, rows = audit.verdict, []

    def cell(interval: Interval | None, estimate: float) -> Cell:
        if verdict.reason in (Reason.NOTHING_COMPRESSED, Reason.ONE_VALUE_DECIDES):
            return Cell("", "", "plain")  # ratios of rounding errors, or of one value
        text, ends = worse(estimate) if interval is None else worse(*interval)
        tone = "plain"
        if interval is not None and verdict.case is not Case.CANNOT_JUDGE:
            tone = ("plain", "bad", "good")[interval.direction]
        return Cell(text, ends, tone)

    for g, (row, name) in enumerate(zip(audit.groups, group_names(audit).values(), strict=True)):
        before, after, shown = row.baseline, row.alternative, row.n > 1  # not those of one person
        _, worse_by = before.read(verdict.by_share)
        gap = cell(before.gap, before.gap_estimate)
        is_reference = row.label == audit.provenance.reference
        note = "the reference, against all others" if is_reference else ""
        cells = {
            "g": g,
            "name": name,
            "n": f"{row.n:,}",
            "judged": row.judged,
            "note": note if row.judged else "too few to judge",
            "gap": gap._replace(tone="plain") if verdict.by_share else gap,
            "error": f"{figure(before.error)} → {figure(after.error)}" * shown,
            "share": f"{100 * before.share:.1f} % → {100 * after.share:.1f} %" * shown,
            "share_gap": cell(before.share_gap, before.share_gap_estimate),
            "change": cell(row.change, row.change_estimate),
            "better_off": "" if row.better_off is None else percent(row.better_off),
        }
        rows.append((not row.judged, -worse_by if isfinite(worse_by) else 0.0, g, cells))
    return [cells for *_, cells in sorted(rows, key=lambda row: row[:3])]


def slider_steps(audit: AnyAudit, origin: Origin) -> dict[str, Any] | None:
    """The steps of the slider: plain PCA, the efficient frontier, and the report's own step.

    None if there is nothing to choose. Every step but the report's can be fitted again by its
    increase of the overall error on the rows fitted to. The report's own figures are those of
    held-out people, so it has no place among steps that are judged by the rows fitted to.
    """
    if not isinstance(audit, Audit) or audit.path is None:
        return None
    path = audit.path
    if np.ptp(path.disparity) <= 1e-9 * float(path.group_errors.max()):
        return None
    seen = path if path.held_out is None else path.held_out
    n = int(np.flatnonzero(path.efficient).max(initial=0)) + 1
    unknown = [None] * n  # for groups of one person, or that the fit set aside
    by_group = _above_first(seen.group_errors[:n]).T.tolist()
    changes = dict(zip(path.groups.tolist(), by_group, strict=True))
    changes |= {row.label: unknown for row in audit.groups if row.n == 1}
    budgets = [f"{more:.4g}" for more in _above_first(path.reconstruction_error[:n]).tolist()]
    shared = "".join(f", {name}={value!r}" for name, value in audit.provenance.shared.items())
    steps: dict[str, list[Any]] = {
        "disparity": seen.disparity[:n].tolist(),
        "cost": _above_first(seen.reconstruction_error[:n]).tolist(),
        "changes": list(zip(*(changes.get(g.label, unknown) for g in audit.groups), strict=True)),
        "command": [origin.step_command.replace("{step}", budget) for budget in budgets],
        "python": [
            f"FairPCA({audit.n_components}, max_error_increase={budget}{shared})"
            for budget in budgets
        ],
    }
    place = 0
    if audit.verdict.remedy is not Remedy.IS_PCA and seen is not path:
        errors = np.array([audit.overall.error, audit.overall.alternative_error])
        cost = float(_above_first(errors)[1])
        place = max(1, int(np.searchsorted(steps["cost"], cost)))  # PCA stays first
        own = {
            "disparity": _difference(audit, path),
            "cost": cost,
            "changes": [row.change_estimate for row in audit.groups],
            "command": origin.fit_command,
            "python": audit.provenance.alternative,
        }
        for key, value in own.items():
            steps[key].insert(place, value)
    end = len(steps["cost"]) - 1
    left = abs(steps["disparity"][place]) < abs(steps["disparity"][0]) / 5
    beyond = bool(place == end and path.parity_reached and place > 0 and left)
    return {"start": place, "last": end, "held_out": seen is not path, "beyond": beyond} | steps


def _above_first(errors: Array) -> Array:
    """Relative increase over the first errors; 0 where the first error is 0."""
    first = np.broadcast_to(errors[0], errors.shape)
    ratio = np.divide(errors, first, out=np.ones(errors.shape), where=first > 0)
    return np.asarray((ratio - 1).round(9))


def _difference(audit: Audit, path: TradeoffPath) -> float:
    """How far apart the errors of the fair version are, as the frontier measures it."""
    reading = "share" if audit.verdict.by_share else "error"
    errors = {row.label: getattr(row.alternative, reading) for row in audit.groups}
    if len(path.groups) == 2:
        return float(errors.get(path.harmed_group, 0.0) - errors.get(path.privileged_group, 0.0))
    return float(np.ptp([errors[label] for label in path.groups.tolist() if label in errors]))


def context(
    audit: AnyAudit, origin: Origin, with_rows: bool = False, columns: Audit | None = None
) -> dict[str, Any]:
    """Everything the templates need; ``columns`` is an audit of columns on the same rows."""
    if isinstance(audit, Audit) and audit.kept is not None:
        columns = audit
    slider, provenance = slider_steps(audit, origin), audit.provenance
    drawn, (judged, other) = charts(audit, slider, with_rows), methods(audit)
    can_judge = audit.verdict.case is not Case.CANNOT_JUDGE
    has_gap = can_judge and audit.verdict.case is not Case.NO_GAP
    robust = [row for row in audit.groups if row.judged and row.baseline.robust]
    robust.sort(key=lambda row: -row.baseline.gap_estimate)
    sections = {
        "groups": True,
        "price": slider is not None and has_gap and slider["last"] > 1,
        "columns": columns is not None and (can_judge or columns is audit),
        "ranks": can_judge and "ranks" in drawn and len(drawn["ranks"]["marks"]) > 1,
        "unusual": can_judge and robust,
        "guessed": audit.leakage is not None,
        "outcomes": audit.outcomes,
        "scores": "scores-pca" in drawn,
        "annex": True,
    }
    group_columns = " and ".join(provenance.group_columns) or "group"
    headline, reference = audit.verdict.group, provenance.reference
    return {
        "audit": audit,
        "about": sentences.about(audit),
        "origin": origin,
        "verdict": sentences.say(audit),
        "is_model": not isinstance(audit, Audit),
        "sections": [name for name, wanted in sections.items() if wanted],
        "title": printable(f"{origin.model_file or origin.source}, by {group_columns}"),
        "group_columns": printable(group_columns),
        "judged": judged,
        "alternative": other,
        "judged_title": judged[0].upper() + judged[1:],
        "other_title": other[0].upper() + other[1:],
        "n_components": provenance.n_components,
        "n_features": len(provenance.feature_names),
        "names": group_names(audit),
        "rows": group_rows(audit),
        "robust": robust,
        "against": "all others" if reference is None else group_names(audit)[reference],
        "level": f"{100 * provenance.thresholds.level:g} %",
        "cannot_show": sentences.what_it_cannot_show(audit),
        "guessing": sentences.about_guessing(audit),
        "measured": sentences.measured(audit),
        "harmed": "" if headline is None else sentences.name(audit, headline),
        "compared": "" if headline is None else sentences.against(audit, headline),
        "charts": drawn,
        "slider": slider,
        "columns": columns,
        "column_rows": [] if columns is None else group_rows(columns),
        "column_verdict": None if columns is None else sentences.say(columns),
    }
