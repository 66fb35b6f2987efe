"""The numbers behind the charts, as one dict for each mark.

Groups are numbers here. The charts look up their names, which may be long and would be repeated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca._audit.result import Audit
from fairpca._typing import Array
from fairpca.report._size import unit
from fairpca.report._slider import Stops
from fairpca.report._text import display_names, zero_if_rounding
from fairpca.report._view import MOST_COMPONENTS

Marks = list[dict[str, Any]]

MOST_FEATURES = 12
_LONGEST_FEATURE = 22  # of a feature, beside a chart
_WIDTH_OF_A_LETTER, _HEIGHT_OF_A_NAME = 0.018, 0.06  # of the frontier's chart


def path(audit: Audit) -> Marks:
    """Overall error and disparity at every stop of the slider."""
    stops = Stops.of(audit)
    return [
        {
            "i": i,
            "disparity": zero_if_rounding(stops.disparity[i], stops.unit),
            "overall": zero_if_rounding(stops.overall[i], stops.unit),
            "cost": 100 * zero_if_rounding(stops.cost[i], 1.0),
        }
        for i in range(len(stops.disparity))
    ]


def path_by_group(audit: Audit) -> Marks:
    """Group errors at every stop of the slider."""
    errors = Stops.of(audit).group_errors
    return [
        {"i": row["i"], "disparity": row["disparity"], "g": g, "error": float(error)}
        for row in path(audit)
        for g, error in enumerate(errors[row["i"]])
    ]


def path_of_new_rows(audit: Audit) -> Marks:
    """Overall error and disparity on held-out rows along the frontier, if folds were kept."""
    held_out, size = audit.path.held_out, unit(audit)
    if held_out is None or held_out.reconstruction_error[0] <= 1e-9 * size:
        return []
    cost = held_out.reconstruction_error / held_out.reconstruction_error[0] - 1
    return [
        {"i": i, "disparity": float(D), "cost": 100 * float(cost[i])}
        for i, D in enumerate(held_out.disparity)
    ]


def new_rows_by_group(audit: Audit) -> Marks:
    """Group errors on held-out rows along the frontier, against the disparity of these rows."""
    held_out = audit.path.held_out
    if held_out is None:
        return []
    points = zip(held_out.disparity, held_out.group_errors, strict=True)
    return [
        {"i": i, "disparity": float(D), "g": g, "error": float(error)}
        for i, (D, errors) in enumerate(points)
        for g, error in enumerate(errors)
    ]


def named_points(audit: Audit) -> Marks:
    """Where methods with a name end on the frontier; one point for those that end together."""
    path, size = audit.path, Stops.of(audit).unit
    R, places = float(path.reconstruction_error[0]), dict[tuple[float, float], list[str]]()
    visible = max(5e-3 * float(np.ptp(path.disparity)), 1e-9 * size)
    ends = {name: (p.disparity, p.reconstruction_error) for name, p in path.marks.items()}
    ends["this report"] = audit.fair.disparity, audit.fair.overall
    for name, (D, error) in ends.items():
        cost = error / R - 1 if R > 0 else 0.0
        at = zero_if_rounding(D, size), 100 * zero_if_rounding(cost, 1.0)
        near = next((p for p in places if abs(p[0] - at[0]) <= visible), at)
        places.setdefault(near, []).append(name)
    points: Marks = [
        {"name": ", ".join(names), "disparity": at[0], "cost": at[1], "level": 0}
        for at, names in sorted(places.items(), reverse=True)
    ]
    drawn = [*points, *path_of_new_rows(audit)]
    width, height = (float(np.ptp([row[axis] for row in drawn])) for axis in ("disparity", "cost"))
    for i, point in enumerate(points):  # names stand left of their points, one above the other
        room = _WIDTH_OF_A_LETTER * len(point["name"]) * width
        for left in points[:i]:
            beside = left["disparity"] - point["disparity"] < room
            if beside and point["cost"] - left["cost"] < _HEIGHT_OF_A_NAME * height:
                point["level"] = max(point["level"], left["level"] + 1)
    return points


def ranks(audit: Audit) -> Marks:
    """Group errors at each rank."""
    curve = audit.ranks
    return [
        {"r": int(r), "g": g, "method": method, "error": float(error)}
        for method, errors in (("PCA", curve.pca), ("fair PCA", curve.fair))
        for r, row in zip(curve.n_components, errors, strict=True)
        for g, error in enumerate(row)
    ]


def gaps(audit: Audit) -> Marks:
    """How far apart the groups are at each rank, in percent of the overall error of PCA."""
    curve, overall, compared = audit.ranks, audit.ranks.pca_overall, audit.compared
    return [
        {
            "r": int(r),
            "method": method,
            "gap": 100 * float(np.ptp(errors[i, compared])) / float(overall[i]),
        }
        for method, errors in (("PCA", curve.pca), ("fair PCA", curve.fair))
        for i, r in enumerate(curve.n_components)
        if overall[i] > 1e-9 * audit.group_variances.max()
    ]


def scores(audit: Audit, values: Array) -> Marks:
    """Scores of the sampled rows under one projection."""
    return [
        {"g": g, **{f"c{j + 1}": float(value) for j, value in enumerate(row)}}
        for g, row in zip(audit.scores.group.tolist(), values, strict=True)
    ]


def score_ends(audit: Audit) -> list[list[float]]:
    """Least and largest score on each component, under either projection."""
    both = np.concatenate([audit.scores.pca, audit.scores.fair])
    ends: list[list[float]] = np.stack([both.min(axis=0), both.max(axis=0)], axis=1).tolist()
    return ends


def loadings(audit: Audit) -> Marks:
    """The largest weights of each component, largest first."""
    rows = []
    for c in range(min(audit.n_components, MOST_COMPONENTS)):
        before, after = audit.loadings.pca[c], audit.loadings.fair[c]
        order = np.argsort(-np.maximum(np.abs(before), np.abs(after)), kind="stable")
        rows += [{"component": c + 1, **row} for row in _pairs(audit, order, before, after)]
    return rows


def features(audit: Audit) -> Marks:
    """Errors of the harmed group by feature, the largest gaps under PCA first."""
    harmed, other = (
        audit.groups.index(group) for group in (audit.harmed_group, audit.privileged_group)
    )
    before, after = audit.feature_errors.pca[harmed], audit.feature_errors.fair[harmed]
    least = audit.feature_errors.pca[other]
    order = np.argsort(least - before, kind="stable")
    rows = _pairs(audit, order, before, after)
    return [{**row, "other": float(least[order[row["order"]]])} for row in rows]


def _pairs(audit: Audit, order: NDArray[np.intp], before: Array, after: Array) -> Marks:
    """PCA's value and that of fair PCA for the first features of an order."""
    names = display_names(audit.feature_names, _LONGEST_FEATURE)
    return [
        {
            "order": place,
            "feature": names[j],
            "method": method,
            "weight": float(values[j]),
            "low": float(min(before[j], after[j])),
            "high": float(max(before[j], after[j])),
        }
        for place, j in enumerate(order[:MOST_FEATURES].tolist())
        for method, values in (("PCA", before), ("fair PCA", after))
    ]


def changes(audit: Audit) -> Marks:
    """Changes of groups on new rows, in percent of their errors under PCA."""
    held_out, found, size = audit.cross_validation, audit.changes, unit(audit)
    if held_out is None or found is None:
        return []
    bases = np.maximum(held_out.pca.group_errors, 1e-3 * size)
    return [
        {
            "g": g,
            **{k: 100 * float(getattr(change, k) / base) for k in ("low", "estimate", "high")},
        }
        for g, (change, base) in enumerate(zip(found.groups, bases, strict=True))
    ]


def left_out(audit: Audit) -> Marks:
    """The disparity on new rows without those that have the largest shares in it."""
    if audit.influence is None:
        return []
    return [
        {"method": method, "rows": int(n), "disparity": float(D)}
        for method, found in (("PCA", audit.influence.pca), ("fair PCA", audit.influence.fair))
        for n, D in zip(found.left_out, found.disparity, strict=True)
    ]


def intervals(audit: Audit) -> Marks:
    """Held-out disparities with their intervals; none without cross-validation."""
    held_out, bootstrap = audit.cross_validation, audit.bootstrap
    if held_out is None or bootstrap is None:
        return []
    return [
        {"method": name, "low": low, "high": high, "estimate": estimate}
        for name, (low, high), estimate in (
            ("PCA", bootstrap.pca, held_out.pca.disparity),
            ("fair PCA", bootstrap.fair, held_out.fair.disparity),
        )
    ]
