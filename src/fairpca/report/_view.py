"""What the page says, as a plain dict: words and rounded numbers made from an audit."""

from __future__ import annotations

from math import isfinite
from typing import Any

from fairpca._audit.result import Audit
from fairpca._problems.status import Status
from fairpca.report import _giveaway, _tables, _words
from fairpca.report._changes import unlike_pca
from fairpca.report._methods import method_texts
from fairpca.report._provenance import Provenance, filled_in
from fairpca.report._refit import fit_by_folds
from fairpca.report._size import lossless, unit
from fairpca.report._slider import Stops
from fairpca.report._text import display_names, figure, gap, name_list, signed_percent

MOST_COMPONENTS = 10


def view(audit: Audit, provenance: Provenance) -> dict[str, Any]:
    """Everything the template needs besides the charts."""
    return {
        **_data_view(audit, provenance),
        **_group_view(audit),
        **_fit_view(audit),
        "rows": _tables.rows_by_group(audit),
        "fitted": _tables.fitted(audit),
        "statistics": _tables.disparities(audit),
        "cards": cards(audit),
        "giveaway": _giveaway.giveaway(audit),
        "made_of_it": _giveaway.made_of_it(audit),
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
        "features": name_list(audit.feature_names),
        "left_out": name_list(origin["not_numbers"]),
        "identifiers": name_list(origin["identifiers"]),
        "constant": name_list(origin["constant"]),
        **filled_in(provenance),
        "standardized": audit.standardized,
        "normalized": audit.normalized,
        "weighted": audit.weighted,
        "seed": audit.random_state,
    }


def _group_view(audit: Audit) -> dict[str, Any]:
    """What happens to the groups."""
    labels, stops = display_names(audit.groups), Stops.of(audit)
    g = audit.groups.index(audit.harmed_group)
    harmed, privileged = labels[g], labels[audit.groups.index(audit.privileged_group)]
    return {
        "labels": labels,
        "harmed": harmed,
        "privileged": privileged,
        "two": len(labels) == 2,
        "all": _words.all_groups(audit),
        "small_groups": _words.small_groups(display_names(audit.small_groups), audit.compared),
        "verdict": _words.verdict(audit),
        "influence": _words.influence(audit),
        "slider": stops.to_dict(),
        "by_folds": fit_by_folds(audit),
        "best": stops.best_for(g, harmed),
        "parity": audit.path.parity_reached,
    }


def _fit_view(audit: Audit) -> dict[str, Any]:
    """How the fair fit ended, on the rows fitted to."""
    return {
        "n_components": audit.n_components,
        "components_shown": list(range(1, min(audit.n_components, MOST_COMPONENTS) + 1)),
        "status": audit.status,
        "alpha": f"{audit.alpha:.4g}",
        "gap": gap(audit.duality_gap, unit(audit)) if isfinite(audit.duality_gap) else "",
        "certified": audit.certified,
        "chosen_by_folds": audit.path.held_out is not None,
        "stays": audit.status == Status.NO_GAIN and unlike_pca(audit),
        "lossless": lossless(audit),
        "estimator": audit.estimator,
        "method": method_texts(audit),
    }


def cards(audit: Audit) -> list[dict[str, str]]:
    """Key figures on new rows: the two groups, their difference, and all rows together."""
    held_out, changes, size = audit.cross_validation, audit.changes, unit(audit)
    if held_out is None or changes is None:
        return []
    made = []
    for label in (audit.harmed_group, audit.privileged_group):
        g = audit.groups.index(label)
        base, found = float(held_out.pca.group_errors[g]), changes.groups[g]
        beyond = {-1: "a gain beyond chance", 0: "chance can explain it", 1: "a loss beyond chance"}
        if not unlike_pca(audit):
            beyond[0] = "fair PCA is PCA"
        made.append(
            {
                "name": f"Error of “{display_names([label])[0]}”",
                "value": signed_percent(found.estimate / base) if base > 1e-3 * size else "0 %",
                "note": beyond[found.direction],
                "tone": {-1: "gain", 0: "", 1: "loss"}[found.direction],
            }
        )
    D = [figure(errors.disparity, 3, size) for errors in (held_out.pca, held_out.fair)]
    R = held_out.pca.overall
    cost = signed_percent(changes.overall.estimate / R) if 1e-3 * size < R else "0 %"
    return [
        *made,
        {"name": "Disparity", "value": " → ".join(D), "note": "PCA → fair PCA", "tone": "twin"},
        {"name": "Overall error", "value": cost, "note": "the price of fairness", "tone": ""},
    ]
