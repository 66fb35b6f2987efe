"""What the page says, as a plain dict: words and rounded numbers made from an audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairpca._audit_result import Audit
from fairpca._problems import Status
from fairpca.report._provenance import Provenance


def display_names(names: Sequence[Any], limit: int = 32) -> list[str]:
    """Names short enough for a chart, free of control characters, and still all different.

    Examples
    --------
    >>> display_names(["age", "a" * 40, "a" * 50], limit=8)
    ['age', 'aaaaaaa…', 'aaaaa… 2']
    """
    shown: list[str] = []
    for name in names:
        text = "".join(c if c.isprintable() else "�" for c in str(name)) or "(no name)"
        short = text if len(text) <= limit else text[: limit - 1] + "…"
        copy = 2
        while short in shown:
            mark = f"… {copy}"
            short, copy = text[: limit - len(mark)] + mark, copy + 1
        shown.append(short)
    return shown


def percent(share: float) -> str:
    """A share in words of a percentage, never rounded to nothing.

    Examples
    --------
    >>> percent(0.0473), percent(0.00004), percent(3.2), percent(0.0)
    ('4.7 %', 'less than 0.1 %', '320 %', '0 %')
    """
    if share == 0:
        return "0 %"
    if abs(share) < 0.001:
        return "less than 0.1 %"
    return f"{share * 100:.1f} %" if abs(share) < 0.995 else f"{share * 100:.0f} %"


def figure(value: float, digits: int = 4) -> str:
    """A number to four figures; what is zero to rounding is said to be 0.

    Examples
    --------
    >>> figure(2.54561), figure(-0.25), figure(-3e-16), figure(12345.6)
    ('2.546', '−0.25', '0', '12,346')
    """
    if abs(value) < 1e-12:
        return "0"
    text = f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.{digits}g}"
    return text.replace("-", "−")


def view(audit: Audit, provenance: Provenance) -> dict[str, Any]:
    """Everything the template needs besides the charts."""
    labels = display_names(audit.groups)
    harmed = labels[audit.groups.index(audit.harmed_group)]
    privileged = labels[audit.groups.index(audit.privileged_group)]
    origin = provenance.to_dict()
    return {
        "title": f"{display_names([provenance.source], 80)[0]}, by "
        f"{display_names([provenance.group_name])[0]}",
        "verdict": _verdict(audit, harmed, privileged),
        "evidence": _evidence(audit),
        "harmed": harmed,
        "privileged": privileged,
        "labels": labels,
        "n_components": audit.n_components,
        "n_features": len(audit.feature_names),
        "standardized": audit.standardized,
        "normalized": audit.normalized,
        "weighted": audit.weighted,
        "small_groups": _small_groups(audit),
        "rows": _rows(audit, labels),
        "overall": {
            "size": sum(audit.group_sizes),
            "pca": figure(audit.pca.overall),
            "fair": figure(audit.fair.overall),
            "change": _change(audit.cost),
        },
        "disparity": {"pca": figure(audit.pca.disparity), "fair": figure(audit.fair.disparity)},
        "cost": percent(audit.cost),
        "status": audit.status,
        "gap": f"{abs(audit.duality_gap):.1g}",
        # The golden section only searches, and other estimators certify other things.
        "certified": audit.estimator.startswith("FairPCA(") and "golden" not in audit.estimator,
        "proof": "optimal" if abs(audit.duality_gap) <= 1e-6 * audit.pca.overall else "gap",
        "two": len(labels) == 2,
        "all": _all(audit),
        "alpha": f"{audit.alpha:.4g}",
        "estimator": audit.estimator,
        "slider": _slider(audit, labels),
        "statistics": _statistics(audit),
        "origin": origin,
        "left_out": display_names(origin["not_numbers"]),
        "constant": display_names(origin["constant"]),
        "seed": audit.random_state,
        "components_shown": list(range(1, min(audit.n_components, MOST_COMPONENTS) + 1)),
    }


MOST_COMPONENTS = 10


def _all(audit: Audit) -> str:
    return "both" if sum(audit.compared) == 2 else "all"


def _small_groups(audit: Audit) -> str:
    """What became of groups too small to be compared, in a sentence; empty without any."""
    if not audit.small_groups:
        return ""
    names = ", ".join(f"“{name}”" for name in display_names(audit.small_groups))
    if all(audit.compared):
        return f"Merged into “rest” for having too few rows: {names}."
    return f"Too small to be compared, counted in the overall error only: {names}."


def _change(share: float) -> str:
    return f"{share * 100:+.2f} %".replace("-", "−")


def _rows(audit: Audit, labels: list[str]) -> list[dict[str, Any]]:
    rows = []
    for g, label in enumerate(labels):
        before, after = float(audit.pca.group_errors[g]), float(audit.fair.group_errors[g])
        variance = float(audit.group_variances[g])
        rows.append(
            {
                "label": label if audit.compared[g] else f"{label} (not compared)",
                "size": audit.group_sizes[g],
                "pca": figure(before),
                "fair": figure(after),
                "change": _change(after / before - 1) if before > 0 else "",
                "kept": percent(1 - after / variance) if variance > 0 else "",
            }
        )
    return rows


def _worse(audit: Audit, disparity: float, errors: Any) -> str:
    """How much worse the harmed group is, relative to the privileged one: the worst to the best."""
    least = float(errors[audit.groups.index(audit.privileged_group)])
    least = least if sum(audit.compared) == 2 else float(errors[audit.compared].min())
    return percent(disparity / least) if least > 0 else figure(disparity)


def _verdict(audit: Audit, harmed: str, privileged: str) -> dict[str, str]:
    """The answer in two sentences: what PCA does, what fair PCA makes of it."""
    r = audit.n_components
    under = f"Under PCA with {r} component{'s' if r > 1 else ''}"
    cost = f"at a cost of {percent(audit.cost)} in overall error"
    if audit.status == Status.ALREADY_FAIR and audit.pca.disparity <= 1e-9 * audit.pca.overall:
        return {
            "before": f"{under} {_all(audit)} groups are reconstructed equally well.",
            "after": "There is nothing for fair PCA to repair.",
        }
    before = (
        f"{under} the rows of “{harmed}” are reconstructed "
        f"{_worse(audit, audit.pca.disparity, audit.pca.group_errors)} worse than those of "
        f"“{privileged}”."
    )
    left = _worse(audit, audit.fair.disparity, audit.fair.group_errors)
    if audit.status == Status.PARITY:
        after = f"For these rows, fair PCA removes the difference {cost}."
    elif audit.status == Status.CAPPED:
        after = (
            f"Fair PCA narrows this to {left} {cost}: as far as is possible without making any "
            f"group worse off than “{harmed}” was."
        )
    elif audit.status == Status.INFEASIBLE:
        after = (
            f"No projection onto {r} component{'s' if r > 1 else ''} treats the groups alike; the "
            f"fairest one leaves {left}, {cost}."
        )
    else:
        after = f"Fair PCA leaves {left} {cost} ({audit.status})."
    return {"before": before, "after": after}


def _evidence(audit: Audit) -> str:
    """What can be said about rows that were not fitted to."""
    if audit.cross_validation is None or audit.bootstrap is None:
        return (
            "A group has too few rows to leave some out, so nothing can be said about rows other "
            "than these."
        )
    held_out, interval = audit.cross_validation, audit.bootstrap
    measured = " and ".join(
        f"{figure(errors.disparity, 3)} under {name} ({figure(low, 3)} to {figure(high, 3)})"
        for name, errors, (low, high) in (
            ("PCA", held_out.pca, interval.pca),
            ("fair PCA", held_out.fair, interval.fair),
        )
    )
    before, after = (low > 0 or high < 0 for low, high in (interval.pca, interval.fair))
    conclusion = {
        (True, False): "The first is beyond chance, the second is not.",
        (True, True): "Both are beyond chance.",
        (False, False): "Neither is beyond chance with this many rows.",
        (False, True): "The second is beyond chance, the first is not.",
    }[before, after]
    return (
        f"On rows not used for fitting, the disparity is {measured}; in brackets "
        f"{interval.level * 100:.0f} % intervals. {conclusion}"
    )


def _statistics(audit: Audit) -> dict[str, Any] | None:
    held_out, interval = audit.cross_validation, audit.bootstrap
    if held_out is None or interval is None:
        return None

    def row(name: str, fitted: float, unseen: float, ends: tuple[float, float]) -> dict[str, str]:
        return {
            "name": name,
            "fitted": figure(fitted),
            "held_out": figure(unseen),
            "interval": f"{figure(ends[0], 3)} to {figure(ends[1], 3)}",
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


def _slider(audit: Audit, labels: list[str]) -> dict[str, Any]:
    """Points of the path, and the one nearest to the fair projection."""
    path = audit.path
    distances = abs(path.disparity - audit.fair.disparity)
    R = float(path.reconstruction_error[0])
    return {
        "labels": labels,
        "start": int(distances.argmin()),
        "last": len(path.alpha) - 1,
        "alpha": path.alpha.tolist() if len(path.groups) == 2 else None,
        "disparity": path.disparity.tolist(),
        "overall": path.reconstruction_error.tolist(),
        "cost": [float(value) / R - 1 if R > 0 else 0.0 for value in path.reconstruction_error],
        "group_errors": path.group_errors.tolist(),
    }
