"""Made audits: records with chosen figures, one for each case of the verdict.

The records, the decision and the words have no public door; tests take them from here.
"""

# ruff: noqa: F401

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from fairpca import tradeoff_path
from fairpca._audit.record import (
    Audit,
    Budget,
    DecidingColumn,
    Fit,
    Gain,
    GapReading,
    GroupFigures,
    GroupResult,
    Interval,
    KeptColumns,
    Leakage,
    LeftOut,
    ModelAudit,
    Overall,
    Provenance,
    RankCurve,
    Robust,
    SampledRows,
    Scale,
)
from fairpca._audit.verdict import Thresholds, decide
from fairpca.metrics import Probe
from fairpca.report.context import group_rows
from fairpca.report.sentences import how_judged, left_out, say

COLUMNS = ["weight", "height", "pulse", "pressure"]


def made_group(label, n, gap, change, share_gap=None, judge_from=30, **more):
    """A group whose gap and change are (value, low, high); intervals only if it is judged."""
    judged, share_gap = n >= judge_from, share_gap or gap
    robust = Robust(1.5, 0.9 * gap[0], {0.01: gap[0], 0.05: 0.8 * gap[0]}, 0.58)
    before = GroupFigures(
        2.0 * (1 + gap[0]),
        0.2 * (1 + share_gap[0]),
        Interval(*gap) if judged else None,
        Interval(*share_gap) if judged else None,
        gap[0],
        share_gap[0],
        robust if judged else None,
    )
    after = replace(
        before,
        error=before.error * (1 + change[0]),
        share=before.share * (1 + change[0]),
        gap=Interval(0.01, -0.05, 0.06) if judged else None,
        share_gap=Interval(0.01, -0.05, 0.06) if judged else None,
    )
    result = GroupResult(
        label=label,
        name=str(label),
        n=n,
        n_units=n,
        judged=judged,
        compared=True,
        baseline=before,
        alternative=after,
        change=Interval(*change) if judged else Interval(change[0], np.nan, np.nan),
        better_off=0.6,
        detectable_gap=0.12 if judged else None,
        bounds=before.gap,
    )
    return replace(result, **more)


GAP, CHANGE = (0.33, 0.21, 0.44), (-0.19, -0.23, -0.14)
OLD = made_group("75 and older", 480, GAP, CHANGE)
YOUNG = made_group("younger", 4011, (-0.25, -0.31, -0.17), (0.09, 0.07, 0.10))


def made_gain(groups, largest=(-0.1, -0.15, -0.05)):
    """What the change of the group with the largest error says, at two standard errors."""
    worst = max((group for group in groups if group.n >= 10), key=lambda g: g.baseline.error)
    t = 0.0
    if worst.change is not None and worst.change.value:
        t = -2 * worst.change.value / (worst.change.high - worst.change.value)
    return Gain(worst.label, t, Interval(*largest))


def made_audit(groups=(OLD, YOUNG), columns=(), small_gap=0.05, readings=(), **how):
    """An audit of these groups; ``how`` goes to the decision."""
    rng, k = np.random.default_rng(0), len(groups)
    thresholds = Thresholds(small_gap=small_gap)
    labels = [group.label for group in groups]
    X = rng.normal(size=(60 * k, 4)) * [3, 2, 1, 1]
    g = np.repeat(np.arange(k), 60)
    X[g == 0, 2:] *= 3
    path = tradeoff_path(X, np.array(labels, object)[g].astype(str), n_components=2, n_points=9)
    errors = np.array([group.baseline.error for group in groups])
    fair = np.array([group.alternative.error for group in groups])
    V = np.eye(4)[:2]
    parts = np.array([0.1, 0.2, 0.3, 0.4])
    fit = Fit(
        status="strength chosen by testing on left-out people",
        alpha=0.8,
        duality_gap=1e-17,
        certified=True,
        budgets=[],
        pca_loadings=V,
        fair_loadings=V,
        pca_errors=errors,
        fair_errors=fair,
        pca_column_errors=np.outer(errors, parts),
        fair_column_errors=np.outer(fair, parts),
    )
    gain = how.pop("gain", made_gain(groups))
    verdict = decide(groups, columns, thresholds, readings=readings, gain=gain, **how)
    gaps = [Interval(0.1 * i, 0.1 * i - 0.05, 0.1 * i + 0.05) for i in (3, 2, 1)]
    ranks = RankCurve(np.array([1, 2, 3]), np.ones((3, k)), [labels[0]] * 3, gaps)
    n = sum(group.n for group in groups)
    return Audit(
        verdict=verdict,
        groups=list(groups),
        overall=Overall(2.1, 2.2, Interval(0.05, 0.03, 0.06)),
        readings=list(readings),
        columns=list(columns),
        scale=Scale("kg", 0.4, 0),
        left_out=[],
        provenance=Provenance(
            "PCA(n_components=2)",
            True,
            "FairPCACV(2, standardize=True)",
            n,
            2,
            COLUMNS,
            ["age_group"],
            True,
            False,
            10,
            how.get("reference"),
            thresholds,
            0,
        ),
        leakage=Leakage(
            {"centroid_share": 0.1, "discriminant_auc": 0.7},
            {"centroid_share": 0.12, "discriminant_auc": 0.72},
            [Probe("logistic", 0.7, 0.65, 0.75)],
            [Probe("logistic", 0.72, 0.66, 0.78)],
            400,
        ),
        selected=None,
        outcomes=None,
        subgroup=None,
        gain=gain,
        fit=fit,
        ranks=ranks,
        path=path,
        rows=SampledRows(
            np.arange(20), np.arange(20) % 2, rng.normal(size=(20, 2)), rng.normal(size=(20, 2))
        ),
    )


def made_model_audit(groups=(OLD, YOUNG), on_rows_fitted_to=False, outside=None):
    """A model audit with the same figures."""
    audit = made_audit(groups, gain=None)
    origin = replace(audit.provenance, judged="PCA(n_components=2)", fitted_here=False, n_folds=0)
    return ModelAudit(
        verdict=audit.verdict,
        groups=audit.groups,
        overall=audit.overall,
        readings=audit.readings,
        columns=audit.columns,
        scale=audit.scale,
        left_out=audit.left_out,
        provenance=origin,
        leakage=audit.leakage,
        selected=audit.selected,
        outcomes=audit.outcomes,
        subgroup=audit.subgroup,
        on_rows_fitted_to=on_rows_fitted_to,
        outside=outside,
        column_errors=audit.fit.pca_column_errors,
        loadings=np.eye(4)[:2],
    )


@cache
def made_cases():
    """An audit for each case of the verdict."""
    none = 0.0, -0.01, 0.01
    women = made_group("women", 900, (0.03, -0.02, 0.08), none)
    no_gap = made_audit((women, made_group("men", 800, (-0.03, -0.08, 0.02), none)))
    men = made_group("men", 358, (0.95, 0.36, 1.53), (-0.02, -0.06, 0.03))
    few_women = made_group("women", 39, (-0.49, -0.6, -0.27), (0.11, 0.05, 0.2))
    no_remedy = made_audit((men, few_women))
    lines = DecidingColumn("lines", 1, 999999.375, 55.0, 0.99, False, True, "75 and older")
    return {
        "remedy": made_audit(),
        "no gap": no_gap,
        "no remedy": no_remedy,
        "one value": made_audit(columns=[lines]),
        "nothing compressed": made_audit(nothing_compressed=True),
        "one column": made_audit(nothing_compressed=True, columns_are_lost=True),
        "too few": made_audit((made_group("a", 20, GAP, CHANGE), made_group("b", 12, GAP, CHANGE))),
        "model": made_model_audit(),
    }
