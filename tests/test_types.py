"""What users write, as their type checkers read it: ``make types`` runs mypy --strict over this.

Each ``type: ignore`` marks a mistake that mypy must report; it fails if one of them is not needed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fairpca import (
    BlindPCA,
    FairColumns,
    FairPCA,
    FairPCACV,
    FairPLS,
    GroupEraser,
    GroupMoments,
    MinMaxPCA,
    WelfarePCA,
    audit,
    load_model,
    tradeoff_path,
)

X = np.random.default_rng(0).normal(size=(90, 4)) * [4, 3, 2, 1]
GROUPS = np.repeat(["a", "b"], [30, 60])


def test_a_fitted_estimator_tells_its_attributes() -> None:
    fair = FairPCA(2, max_error_increase=0.1).fit(X, sensitive_features=GROUPS)
    sizes: list[int] = fair.group_sizes_.tolist()
    status: str = fair.status_
    figures: list[float] = [fair.disparity_, fair.reconstruction_error_, fair.duality_gap_]
    columns = FairColumns(2).fit(X, sensitive_features=GROUPS).columns_ + 1
    held_out = FairPCACV(2, cv=3).fit(X, sensitive_features=GROUPS).held_out_changes_.round(2)
    assert sizes == [30, 60]
    assert status
    assert len(figures) == len(held_out) + 1 == len(columns) + 1 == 3


def test_a_loaded_model_transforms(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    path = tmp_path / "model.safetensors"
    fair = MinMaxPCA(2).fit(GroupMoments.from_data(X, GROUPS))
    fair.save(path)
    assert load_model(path).transform(X).shape == (90, 2)
    assert load_model(path).n_features_in_ == 4


def test_results_need_no_questions_first() -> None:
    pytest.importorskip("pandas")
    path = tradeoff_path(X, GROUPS, n_components=2, n_points=3)
    assert len(path.to_frame()) == 3
    found = audit(FairPCACV(2), X, GROUPS, judge_from=10)
    for row in found.groups:
        assert row.change.low <= row.change.value <= row.change.high


def test_wrong_arguments_are_reported() -> None:
    with pytest.raises(TypeError):
        FairPCA(5, max_disparty=0.1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        FairPCACV(5, alpha=0.1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        MinMaxPCA(5, centre="group")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        WelfarePCA(5, aversion=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        BlindPCA(5, notions="equalized_odds")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        FairPLS(5, max_gap=0.1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        GroupEraser(power=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        FairPCA(2).fit(X, groups=GROUPS)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="constraint"):
        FairPCA(2, constraint="none").fit(X, sensitive_features=GROUPS)  # type: ignore[arg-type]
