"""The context of the templates: rounded figures from an audit and its origin."""

import platform
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

import fairpca
from fairpca._audit.record import AnyAudit, Audit, GroupResult, Interval
from fairpca._audit.verdict import MEANINGLESS, Case, Remedy
from fairpca._progress import printable
from fairpca._typing import Array
from fairpca.path import TradeoffPath
from fairpca.report import sentences
from fairpca.report.charts import charts, hues_of
from fairpca.report.sentences import group_names
from fairpca.report.text import counted, figure, percent, worse


def _versions() -> dict[str, str]:
    others = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"fairpca": fairpca.__version__, "Python": platform.python_version(), **others}


@dataclass(frozen=True)
class Origin:
    """Where the data of a report come from, and how to repeat it."""

    source: str = "data passed from Python"  # name of the file, or what the data are
    sha256: str = ""  # checksum of the data, if they are one file
    n_read: int | None = None  # rows in the source
    streamed: bool = False  # whether the rows were too many to be kept in memory
    notes: list[str] = field(default_factory=list)  # sentences on what was done to the data
    model_file: str = ""  # the model that was judged, if there is one
    population: str = ""  # whom the rows stand for, in the words of whoever asked
    period: str = ""  # when they were collected
    auditor: str = ""  # who asked
    command: str = ""  # the command that gives the same page
    fit_command: str = ""  # the command that fits the fair version
    step_command: str = ""  # fits a smaller step; {step} is its overall error increase
    versions: dict[str, str] = field(default_factory=_versions)
    date: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%d"))


class Cell(NamedTuple):
    """A difference in words, and the ends of its interval if it has one."""

    text: str = ""
    ends: str = ""
    direction: int = 0  # 1 if it is reliably worse, -1 if reliably better

    def __str__(self) -> str:
        if self.ends:
            return f"{self.text} ({self.ends})"
        return self.text


def group_rows(audit: AnyAudit) -> list[dict[str, Any]]:
    """The rows of the table of groups: judged groups first, worst off first."""
    names = group_names(audit)
    hues = hues_of(audit)
    rows = []
    for g, row in enumerate(audit.groups):
        own = {"g": g, "hue": hues.get(row.label), "name": names[row.label]}
        rows.append(own | _cells(audit, row))

    def worst_first(cells: dict[str, Any]) -> tuple[bool, float]:
        _, gap = audit.groups[cells["g"]].baseline.read(audit.verdict.by_share)
        return not cells["judged"], -gap if isfinite(gap) else 0.0

    return sorted(rows, key=worst_first)


def _cells(audit: AnyAudit, row: GroupResult) -> dict[str, Any]:
    """What the table says of a group; of a group of one person, no figures."""
    by_share = audit.verdict.by_share
    before = row.baseline
    after = row.alternative
    gap = _against_others(audit, before.read(by_share))
    note = _note(audit, row)
    noted_gap = f"{gap}{note}"
    if gap.text and note:
        noted_gap = f"{gap} ({note})"
    cells = {
        "n": f"{row.n:,}",
        "judged": row.judged,
        "note": note,
        "gap": gap,
        "noted_gap": noted_gap,
        "other_gap": _against_others(audit, before.read(not by_share)),
        "error": "",
        "share": "",
        "change": _cell(audit, row.change if row.judged else None, row.change.value),
        "better_off": "",
    }
    if row.n > 1:
        cells["error"] = f"{figure(before.error)} → {figure(after.error)}"
        cells["share"] = f"{100 * before.share:.1f} % → {100 * after.share:.1f} %"
    if row.better_off is not None:
        cells["better_off"] = percent(row.better_off)
    return cells


def _cell(audit: AnyAudit, interval: Interval | None, estimate: float) -> Cell:
    """A difference with its interval, if there is one."""
    verdict = audit.verdict
    if verdict.reason in MEANINGLESS:
        return Cell()  # ratios of rounding errors, or of one value
    if interval is None:
        return Cell(*worse(estimate))
    if verdict.case is Case.CANNOT_JUDGE:
        return Cell(*worse(*interval))
    return Cell(*worse(*interval), interval.direction)


def _against_others(audit: AnyAudit, reading: tuple[Interval | None, float]) -> Cell:
    """Of two groups the better one is what the other is compared with: one base for both."""
    interval, estimate = reading
    shown = _cell(audit, interval, estimate)
    one_of_two = len(audit.groups) == 2 and audit.provenance.reference is None
    if shown.text and one_of_two and estimate < 0:
        return Cell("–")
    return shown


def _note(audit: AnyAudit, row: GroupResult) -> str:
    """Why a group has no interval, or whom it is compared with."""
    least = audit.provenance.thresholds.judge_from
    if not row.judged and row.n < least:
        return f"fewer than {least}: no interval"
    if not row.judged:
        return "not judged"
    if row.label == audit.provenance.reference:
        return "the reference, against all others"
    return ""


def slider_steps(audit: AnyAudit, origin: Origin) -> dict[str, Any] | None:
    """The steps of the slider: plain PCA, the efficient frontier, and the report's own step.

    None if there is nothing to choose. Steps stand where they close this share of the difference
    of errors under PCA, on the training rows. Every step but the report's can be fitted again by
    its increase of the overall error on those rows. The report's own figures are those of held-out
    people, so it has no place among steps that are judged by the training rows.
    """
    if not isinstance(audit, Audit) or audit.path is None:
        return None
    path = audit.path
    if np.ptp(path.disparity) <= 1e-9 * float(path.group_errors.max()):
        return None
    seen = path.held_out or path
    steps = _efficient_steps(audit, path, origin)
    place = 0
    if audit.verdict.remedy is not Remedy.IS_PCA and seen is not path:
        own = _own_step(audit, path, origin)
        closed = [step["closed"] for step in steps]
        place = max(1, int(np.searchsorted(closed, own["closed"])))  # PCA stays first
        steps.insert(place, own)
    apart = [abs(step["disparity"]) for step in steps]
    for step, left in zip(steps, apart, strict=True):
        step["left"] = figure(left, apart[0])
    hues = hues_of(audit)
    names = group_names(audit)
    groups = [
        (g, names[row.label], hues[row.label]) for g, row in enumerate(audit.groups) if row.judged
    ]
    return {
        "steps": steps,
        "groups": groups,
        "start": place,
        "held_out": seen is not path,
        "widens": max(apart) > apart[0],
    }


def _efficient_steps(audit: Audit, path: TradeoffPath, origin: Origin) -> list[dict[str, Any]]:
    """PCA and the efficient points of the frontier."""
    seen = path.held_out or path
    n = int(np.flatnonzero(path.efficient).max(initial=0)) + 1
    by_group = dict(zip(path.groups.tolist(), _above_first(seen.group_errors[:n]).T, strict=True))
    unknown = np.full(n, None)  # for groups of one person, or that the fit set aside
    changes = []
    for row in audit.groups:
        changes.append(by_group.get(row.label, unknown) if row.n > 1 else unknown)
    costs = _above_first(seen.reconstruction_error[:n]).tolist()
    closed = (1 - path.disparity[:n] / path.disparity[0]).tolist()
    shared = "".join(f", {name}={value!r}" for name, value in audit.provenance.shared.items())
    steps = []
    for i, more in enumerate(_above_first(path.reconstruction_error[:n]).tolist()):
        step = {
            "closed": closed[i],
            "disparity": float(seen.disparity[i]),
            "cost": costs[i],
            "changes": [own[i] for own in changes],
            "command": origin.step_command.replace("{step}", f"{more:.4g}"),
            "python": f"FairPCA({path.n_components}, max_error_increase={more:.4g}{shared})",
        }
        steps.append(step)
    return steps


def _own_step(audit: Audit, path: TradeoffPath, origin: Origin) -> dict[str, Any]:
    """The fair version, by the figures of held-out people."""
    reading = "error"
    if audit.verdict.by_share:
        reading = "share"
    held_out = {row.label: getattr(row.alternative, reading) for row in audit.groups}
    return {
        "closed": 1 - abs(_apart(_fitted_errors(audit, path), path)) / float(path.disparity[0]),
        "disparity": _apart(held_out, path),
        "cost": audit.overall.change.value,
        "changes": [row.change.value for row in audit.groups],
        "command": origin.fit_command,
        "python": audit.provenance.alternative,
    }


def _above_first(errors: Array) -> Array:
    """Relative increase over the first errors; 0 where the first error is 0."""
    ratio = np.divide(errors, errors[0], out=np.ones(errors.shape), where=errors[0] > 0)
    return np.asarray((ratio - 1).round(9))


def _fitted_errors(audit: Audit, path: TradeoffPath) -> dict[Any, float]:
    """The errors of groups under the fair version, on the rows fitted to, as the path has them."""
    under_pca = dict(zip(path.groups.tolist(), path.group_errors[0].tolist(), strict=True))
    both = np.stack([audit.fit.pca_errors, audit.fit.fair_errors]).T.tolist()
    errors = {}
    for row, (before, after) in zip(audit.groups, both, strict=True):
        if row.label in under_pca and before > 0:
            errors[row.label] = under_pca[row.label] * after / before
    return errors


def _apart(errors: dict[Any, float], path: TradeoffPath) -> float:
    if len(path.groups) == 2:
        return errors.get(path.harmed_group, 0.0) - errors.get(path.privileged_group, 0.0)
    return float(np.ptp([errors[label] for label in path.groups.tolist() if label in errors]))


def _sections(
    audit: AnyAudit,
    against: str,
    drawn: dict[str, Any],
    slider: dict[str, Any] | None,
    columns: Audit | None,
) -> dict[str, str]:
    """The sections of the page in their order, with their titles."""
    can_judge = audit.verdict.case is not Case.CANNOT_JUDGE
    titles = {"groups": f"Every group against {against}"}
    if slider and len(slider["steps"]) > 2 and audit.verdict.worse:
        titles["price"] = "How much fairness, at what price"
    if columns and (can_judge or columns is audit):
        titles["columns"] = f"Which {counted(audit.n_components, 'column')} to keep"
    if can_judge and "ranks" in drawn and len(drawn["ranks"]["marks"]) > 1:
        titles["ranks"] = "Other numbers of components"
    if can_judge and any(row.baseline.robust for row in audit.groups):
        titles["unusual"] = "Is it a few unusual people?"
    if audit.leakage:
        titles["guessed"] = "Can the group be guessed from the output?"
    if audit.selected:
        titles["outcomes"] = "Who is selected"
    if "scores-pca" in drawn:
        titles["scores"] = "Single people"
    return titles | {"annex": "Annex"}


def context(
    audit: AnyAudit, origin: Origin, with_rows: bool = False, columns: Audit | None = None
) -> dict[str, Any]:
    """Everything the templates need; ``columns`` is an audit of columns on the same rows."""
    if isinstance(audit, Audit) and audit.kept is not None:
        columns = audit
    slider = slider_steps(audit, origin)
    drawn = charts(audit, with_rows)
    names = group_names(audit)
    against = "all others"
    if audit.provenance.reference is not None:
        against = names[audit.provenance.reference]
    group_columns = " and ".join(audit.provenance.group_columns) or "group"
    title = printable(f"{origin.model_file or origin.source}, by {group_columns}")
    about_columns = {
        "columns": columns,
        "column_rows": columns and group_rows(columns),
        "column_verdict": columns and sentences.say(columns),
    }
    return about_columns | {
        "audit": audit,
        "origin": origin,
        "words": sentences,
        "verdict": sentences.say(audit),
        "sections": _sections(audit, against, drawn, slider, columns),
        "title": title,
        "group_columns": printable(group_columns),
        "methods": sentences.methods(audit),
        "names": names,
        "rows": group_rows(audit),
        "against": against,
        "versus": f"{'share lost ' * audit.verdict.by_share}against {against}",
        "charts": drawn,
        "slider": slider,
    }
