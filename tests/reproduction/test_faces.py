"""Faces rebuilt by every projection."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils import Bunch

from reproduction.faces import draw_faces


def made_faces():
    """Sixty pictures of 6 x 5 pixels; the groups differ in where they are bright."""
    rng = np.random.default_rng(0)
    groups = np.repeat(["female", "male"], (20, 40))
    patterns = rng.random((2, 4, 30))
    weights = rng.random((60, 4))
    pictures = np.where((groups == "male")[:, None], weights @ patterns[0], weights @ patterns[1])
    return Bunch(
        data=0.2 * pictures + 0.05 * rng.random((60, 30)),
        sensitive_features=groups,
        groups=np.unique(groups),
        image_shape=(6, 5),
    )


@pytest.mark.slow
def test_both_figures_are_drawn(tmp_path):
    files = draw_faces(made_faces(), tmp_path, rank=3)
    assert sorted(path.name for path in files) == [
        "faces_components.png",
        "faces_components.svg",
        "faces_rebuilt.png",
        "faces_rebuilt.svg",
    ]
    assert all(path.stat().st_size > 5000 for path in files)
    shown = (tmp_path / "faces_rebuilt.svg").read_text(encoding="utf-8")
    for name in ("original", "PCA", "FairPCA", "MinMaxPCA", "WelfarePCA", "BlindPCA", "female"):
        assert f"<!-- {name}" in shown
