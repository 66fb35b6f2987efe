"""What changed between two audits, from the figures that ``--json`` wrote of the first."""

from __future__ import annotations

import json
from math import copysign, hypot, log1p
from pathlib import Path
from typing import Any

Figures = dict[str, Any]

#: What both audits should have in common, by its name in the provenance.
_SETTINGS = {
    "n_components": "components",
    "standardized": "standardised",
    "weighted": "weighted",
    "n_folds": "folds",
    "reference": "reference group",
    "group_columns": "columns of groups",
    "alternative": "beside it",
}


def read_figures(path: str, version: int) -> Figures:
    """The figures of an earlier audit."""
    try:
        found = json.loads(Path(path).read_text("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not JSON ({error}); pass a file of --json.") from error
    if not isinstance(found, dict) or "groups" not in found or "provenance" not in found:
        raise ValueError(f"{path} holds no audit; pass a file of fairpca audit --json.")
    if found.get("schema_version") != version:
        raise ValueError(
            f"{path} has the schema version {found.get('schema_version')}, and this is {version}; "
            "run the first audit again with this version of fairpca."
        )
    return found


def changes(before: Figures, now: Figures) -> Figures:
    """Settings that differ, and the gap of each group before and now."""
    old = before["provenance"]
    new = now["provenance"]
    settings = {
        words: {"before": old.get(name), "now": new.get(name)}
        for name, words in _SETTINGS.items()
        if old.get(name) != new.get(name)
    }
    columns = set(old["feature_names"]) ^ set(new["feature_names"])
    reading = "gap"
    if now["verdict"]["by_share"]:
        reading = "share_gap"
    first = {group["label"]: group["baseline"][reading] for group in before["groups"]}
    last = {group["label"]: group["baseline"][reading] for group in now["groups"]}
    labels = [*last, *(label for label in first if label not in last)]
    return {
        "settings": settings,
        "columns": sorted(columns),
        "n_rows": {"before": old["n_rows"], "now": new["n_rows"]},
        "case": {"before": before["verdict"]["case"], "now": now["verdict"]["case"]},
        "groups": [_change(label, first.get(label), last.get(label)) for label in labels],
    }


def _change(label: Any, before: Figures | None, now: Figures | None) -> Figures:
    direction = _direction(before, now)
    return {"label": label, "before": before, "now": now, "direction": direction}


def _direction(before: Figures | None, now: Figures | None) -> int:
    """1 if a gap has grown beyond chance, -1 if it has shrunk, as for rows of other people."""
    if before is None or now is None:
        return 0
    grown = log1p(now["value"]) - log1p(before["value"])
    near, far = ("low", "high") if grown > 0 else ("high", "low")
    half = hypot(_apart(now, near), _apart(before, far))
    if abs(grown) > half:
        return int(copysign(1, grown))
    return 0


def _apart(gap: Figures, end: str) -> float:
    """The distance of a gap from an end of its interval, in logarithms."""
    return log1p(gap["value"]) - log1p(max(gap[end], -1 + 1e-12))
