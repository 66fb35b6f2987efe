"""Multi-criteria dimensionality reduction: least variance, largest loss, Nash welfare; k = 3, 4."""

from __future__ import annotations

from typing import Any

from fairpca import GroupMoments, MinMaxPCA, WelfarePCA
from reproduction.claims import Claim
from reproduction.studies.comparison import EXACT, Figure, Study, agreement, finding_of
from reproduction.study_data import load_credit, read_results
from reproduction.tools import Progress, quietly

_COLUMNS = {"variance": "MM_Var", "loss": "MM_loss", "nash": "NSW"}
_MEASURES = {
    "variance": "least variance of a group",
    "loss": "largest loss of a group",
    "nash": "geometric mean of the variances",
}
_TOL = 1e-9


def _load_multi_criteria() -> list[dict[str, Any]]:
    tables = {"k3": load_credit(), "k4": load_credit(by="education_and_sex")}
    return [
        {"rows": rows, **{name: read_results(f"{k}_{name}") for name in _COLUMNS}}
        for k, rows in tables.items()
    ]


def _run_multi_criteria(
    data: list[dict[str, Any]], progress: Progress
) -> tuple[list[Figure], list[Claim]]:
    figures, claims = [], []
    for loaded in data:
        rows = loaded["rows"]
        moments = GroupMoments.from_data(rows.data, rows.sensitive_features)
        name = f"credit, {len(rows.groups)} groups"
        for criterion in _COLUMNS:
            progress(f"{name}, {_MEASURES[criterion]}")
            fits = [_fit_criterion(moments, criterion, row) for row in loaded[criterion]]
            found = [_figure_of(name, criterion, row, best) for row, best, _ in fits]
            figures += found
            statement = f"Published: the {_MEASURES[criterion]}, of the relaxed solution."
            claims.append(agreement(found, statement, name))
            claims.append(_projections(name, criterion, [gap for _, _, gap in fits]))
    return figures, claims


def _fit_criterion(
    moments: GroupMoments, criterion: str, row: dict[str, str]
) -> tuple[dict[str, str], float, float]:
    """The published row, the value of our relaxation, and the gap of our projection to it."""
    r = int(row["d"])
    with quietly():
        if criterion == "loss":
            fair: Any = MinMaxPCA(r, center="group", tol=_TOL).fit(moments)
            return row, float(fair.group_losses_.max()) - fair.duality_gap_, fair.duality_gap_
        aversion = 1.0 if criterion == "nash" else float("inf")
        fair = WelfarePCA(r, inequality_aversion=aversion, center="group", tol=_TOL)
        fair.fit(moments)
        return row, fair.welfare_ + fair.duality_gap_, fair.duality_gap_


def _figure_of(name: str, criterion: str, row: dict[str, str], ours: float) -> Figure:
    published = float(row[_COLUMNS[criterion]])
    return Figure(
        data=name,
        r=int(row["d"]),
        split="all rows",
        method={"loss": "MinMaxPCA"}.get(criterion, "WelfarePCA"),
        measure=_MEASURES[criterion],
        published=-published if criterion == "loss" else published,
        ours=ours,
        tolerance=EXACT,
    )


def _projections(name: str, criterion: str, gaps: list[float]) -> Claim:
    n_attained = sum(gap <= EXACT for gap in gaps)
    return Claim(
        name,
        f"A projection of rank r attains the relaxation's {_MEASURES[criterion]}: no extra "
        "dimension is needed.",
        finding_of(n_attained, len(gaps)),
        f"At {n_attained} of {len(gaps)} ranks, to {EXACT:g}; the largest gap is {max(gaps):.2g}.",
    )


TANTIPONGPIPAT2019 = Study(
    name="tantipongpipat2019",
    title="Multi-criteria dimensionality reduction with applications to fairness",
    reference=(
        "U. Tantipongpipat, S. Samadi, M. Singh, J. Morgenstern and S. Vempala, NeurIPS 2019."
    ),
    notes=(
        "Credit data, 30000 rows of 23 columns; groups by education, or by education and sex; each "
        "group is centred on its own mean.",
        "Published figures belong to the solution of a semidefinite program, which need not have "
        "rank r. Ours are the bounds that our projections prove, welfare plus duality gap: the "
        "same number.",
    ),
    load=_load_multi_criteria,
    run=_run_multi_criteria,
)
