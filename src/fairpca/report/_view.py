"""What the page says, as a plain dict: words and rounded numbers made from an audit."""

from __future__ import annotations

from functools import partial
from typing import Any

from fairpca._audit.result import Audit
from fairpca.report._provenance import Provenance
from fairpca.report._slider import Stops, lossless, unit
from fairpca.report._text import change, display_names, figure, gap, percent
from fairpca.report._words import all_groups, evidence, small_groups, verdict

MOST_COMPONENTS = 10


def view(audit: Audit, provenance: Provenance) -> dict[str, Any]:
    """Everything the template needs besides the charts."""
    return {
        **_data_view(audit, provenance),
        **_group_view(audit),
        **_fit_view(audit),
        "statistics": _statistics(audit),
    }


def _data_view(audit: Audit, provenance: Provenance) -> dict[str, Any]:
    """Where the numbers come from."""
    group_name = display_names([provenance.group_name])[0]
    origin = provenance.to_dict()
    return {
        "title": f"{display_names([provenance.source], 80)[0]}, by {group_name}",
        "group_name": group_name,
        "origin": origin,
        "n_features": len(audit.feature_names),
        "features": _name_list(audit.feature_names),
        "left_out": _name_list(origin["not_numbers"]),
        "constant": _name_list(origin["constant"]),
        "standardized": audit.standardized,
        "normalized": audit.normalized,
        "weighted": audit.weighted,
        "seed": audit.random_state,
    }


def _group_view(audit: Audit) -> dict[str, Any]:
    """What happens to the groups."""
    labels, size, stops = display_names(audit.groups), unit(audit), Stops.of(audit)
    g = audit.groups.index(audit.harmed_group)
    harmed, privileged = labels[g], labels[audit.groups.index(audit.privileged_group)]
    return {
        "labels": labels,
        "harmed": harmed,
        "privileged": privileged,
        "two": len(labels) == 2,
        "all": all_groups(audit),
        "small_groups": small_groups(display_names(audit.small_groups), audit.compared),
        "verdict": verdict(audit, harmed, privileged),
        "evidence": evidence(audit, size),
        "rows": _group_rows(audit, labels),
        "slider": stops.to_dict(),
        "best": stops.best_for(g, harmed),
        "parity": audit.path.parity_reached,
    }


def _fit_view(audit: Audit) -> dict[str, Any]:
    """How the fair fit ended, and what it costs."""
    size = unit(audit)
    shown = partial(figure, unit=size)
    return {
        "n_components": audit.n_components,
        "components_shown": list(range(1, min(audit.n_components, MOST_COMPONENTS) + 1)),
        "overall": {
            "size": sum(audit.group_sizes),
            "pca": shown(audit.pca.overall),
            "fair": shown(audit.fair.overall),
            "change": change(audit.fair.overall, audit.pca.overall, size),
        },
        "disparity": {"pca": shown(audit.pca.disparity), "fair": shown(audit.fair.disparity)},
        "cost": percent(audit.cost),
        "status": audit.status,
        "alpha": f"{audit.alpha:.4g}",
        "gap": gap(audit.duality_gap, size),
        "certified": audit.certified,
        "proof": "optimal" if abs(audit.duality_gap) <= 1e-6 * audit.pca.overall else "gap",
        "lossless": lossless(audit),
        "estimator": audit.estimator,
    }


def _name_list(names: list[str], most: int = 20) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(display_names(names[:most])) + rest


def _group_rows(audit: Audit, labels: list[str]) -> list[dict[str, Any]]:
    rows, size = [], unit(audit)
    for g, label in enumerate(labels):
        before, after = float(audit.pca.group_errors[g]), float(audit.fair.group_errors[g])
        variance = float(audit.group_variances[g])
        rows.append(
            {
                "label": label if audit.compared[g] else f"{label} (not compared)",
                "size": audit.group_sizes[g],
                "pca": figure(before, unit=size),
                "fair": figure(after, unit=size),
                "change": change(after, before, size),
                "kept": percent(1 - after / variance) if variance > 0 else "",
            }
        )
    return rows


def _statistics(audit: Audit) -> dict[str, Any] | None:
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
            row("fair PCA", audit.fair.disparity, held_out.fair.disparity, interval.fair),
        ],
    }
