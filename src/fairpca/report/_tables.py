"""The tables of the page, as rows of texts."""

from __future__ import annotations

from typing import Any

from fairpca._audit.figures import Change, Errors
from fairpca._audit.result import Audit
from fairpca.report._changes import change_text
from fairpca.report._size import unit
from fairpca.report._text import change, display_names, figure, percent, zero_if_rounding

_TONES = {-1: "gain", 0: "", 1: "loss"}


def rows_by_group(audit: Audit) -> list[dict[str, str]]:
    """Both readings of each group and of all rows, and what changes on new rows.

    On held-out rows if there are any, otherwise on the rows fitted to.
    """
    held_out, other = audit.cross_validation, audit.other_reading
    before, after = (audit.pca, audit.fair) if held_out is None else (held_out.pca, held_out.fair)
    readings = [(before, after), (other.pca, other.fair)]
    absolute, relative = reversed(readings) if audit.normalized else readings
    errors = [_all(method) for method in (*absolute, *relative)]
    return [
        {
            "label": label,
            "size": f"{n:,}",
            "pca": figure(R_pca, unit=_absolute_unit(audit)),
            "fair": figure(R_fair, unit=_absolute_unit(audit)),
            "pca_share": percent(zero_if_rounding(share_pca, 1e3)),
            "fair_share": percent(zero_if_rounding(share_fair, 1e3)),
            **_changed(audit, g, _all(before)[g], _all(after)[g]),
        }
        for g, (label, n, R_pca, R_fair, share_pca, share_fair) in enumerate(
            zip(_row_labels(audit), _sizes(audit), *errors, strict=True)
        )
    ]


def fitted(audit: Audit) -> list[dict[str, str]]:
    """Errors on the rows fitted to, of each group and of all rows."""
    size = unit(audit)
    return [
        {
            "label": label,
            "pca": figure(before, unit=size),
            "fair": figure(after, unit=size),
            "change": change(after, before, size),
        }
        for label, before, after in zip(
            _row_labels(audit), _all(audit.pca), _all(audit.fair), strict=True
        )
    ]


def disparities(audit: Audit) -> dict[str, Any] | None:
    """The disparities on held-out rows; None without them."""
    held_out, interval, size = audit.cross_validation, audit.bootstrap, unit(audit)
    if held_out is None or interval is None:
        return None

    def row(name: str, fitted: float, unseen: float, ends: tuple[float, float]) -> dict[str, str]:
        return {
            "name": name,
            "fitted": figure(fitted, unit=size),
            "held_out": figure(unseen, unit=size),
            "interval": " to ".join(figure(end, 3, size) for end in ends),
        }

    return {
        "n_folds": held_out.n_folds,
        "n_resamples": interval.n_resamples,
        "level": f"{interval.level * 100:.0f} %",
        "rows": [
            row("PCA", audit.pca.disparity, held_out.pca.disparity, interval.pca),
            row("Fair PCA", audit.fair.disparity, held_out.fair.disparity, interval.fair),
        ],
    }


def _row_labels(audit: Audit) -> list[str]:
    names = zip(display_names(audit.groups), audit.compared, strict=True)
    return [*(name if there else f"{name} (not compared)" for name, there in names), "Overall"]


def _sizes(audit: Audit) -> list[int]:
    return [*audit.group_sizes, sum(audit.group_sizes)]


def _all(errors: Errors) -> list[float]:
    """Group errors, and the overall one."""
    return [*errors.group_errors.tolist(), errors.overall]


def _absolute_unit(audit: Audit) -> float:
    """The size of absolute errors, rounding aside; where errors are relative they may be small."""
    return 0.0 if audit.normalized else unit(audit)


def _changed(audit: Audit, g: int, before: float, after: float) -> dict[str, str]:
    """What changes for a group, or in its last place for all rows, and whether that is chance."""
    size = unit(audit)
    if audit.changes is None:
        return {"change": change(after, before, size), "tone": ""}
    found: Change = [*audit.changes.groups, audit.changes.overall][g]
    return {"change": change_text(found, before, size), "tone": _TONES[found.direction]}
