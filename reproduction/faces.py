"""Something to look at: faces of women and men, rebuilt by PCA and by each fair projection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from fairpca import BlindPCA, FairPCA, GroupMoments, MinMaxPCA, WelfarePCA
from fairpca.metrics import row_reconstruction_errors
from reproduction import drawing
from reproduction.tools import Array, Codes, quietly

_RANK = 20
_QUANTILES = (0.1, 0.5, 0.9)  # of PCA's error: an easy face, a typical one, a hard one
_N_COMPONENTS = 8


def projections_of_faces(rank: int) -> dict[str, Any]:
    """What is compared, by the name that the figures show."""
    return {
        "PCA": FairPCA(rank, alpha=1.0),
        "FairPCA": FairPCA(rank),
        "MinMaxPCA": MinMaxPCA(rank),
        "WelfarePCA": WelfarePCA(rank, inequality_aversion=1),
        "BlindPCA": BlindPCA(rank),
    }


def draw_faces(lfw: Bunch, folder: Path, rank: int = _RANK) -> list[Path]:
    """Fit every projection to the faces and write two figures: rebuilt faces, and components."""
    moments = GroupMoments.from_data(lfw.data, lfw.sensitive_features)
    with quietly():
        methods = projections_of_faces(rank)
        fits = {name: fair.fit(moments) for name, fair in methods.items()}
    shown = _typical_faces(lfw, fits["PCA"])
    files = drawing.save(lambda: _rebuilt(lfw, fits, shown), folder, "faces_rebuilt")
    return files + drawing.save(lambda: _components(lfw, fits), folder, "faces_components")


def _typical_faces(lfw: Bunch, pca: Any) -> Codes:
    """For each group the faces at three quantiles of PCA's error."""
    errors = row_reconstruction_errors(pca, lfw.data)
    shown = []
    for group in lfw.groups:
        rows = np.flatnonzero(lfw.sensitive_features == group)
        ordered = rows[np.argsort(errors[rows])]
        shown += [ordered[int(q * (len(ordered) - 1))] for q in _QUANTILES]
    return np.array(shown)


def _rebuilt(lfw: Bunch, fits: dict[str, Any], shown: Codes) -> Any:
    """One row for each projection, under the faces as they are; each with its error."""
    faces = lfw.data[shown]
    figure, axes = drawing.grid(len(fits) + 1, len(shown), 8.6, 10.4)
    _row_of_pictures(axes[0], "original", faces, lfw.image_shape)
    for panel, group in zip(axes[0], lfw.sensitive_features[shown], strict=True):
        panel.set_title(group)
    for panels, (name, fair) in zip(axes[1:], fits.items(), strict=True):
        errors = dict(zip(fair.groups_.tolist(), fair.group_errors_, strict=True))
        means = "\n".join(f"{group} {error:.2f}" for group, error in errors.items())
        rebuilt = fair.inverse_transform(fair.transform(faces))
        _row_of_pictures(panels, f"{name}\n{means}", rebuilt, lfw.image_shape)
        for panel, error in zip(panels, row_reconstruction_errors(fair, faces), strict=True):
            panel.set_xlabel(f"{error:.1f}")
    return figure


def _components(lfw: Bunch, fits: dict[str, Any]) -> Any:
    """The first components of each projection; dark is negative, light positive."""
    n = min(_N_COMPONENTS, fits["PCA"].n_components_)
    figure, axes = drawing.grid(len(fits), n, 8.6, 7.2)
    for panels, (name, fair) in zip(axes, fits.items(), strict=True):
        parts: Array = fair.components_[:n]
        parts = parts / np.abs(parts).max(axis=1, keepdims=True)
        _row_of_pictures(panels, name, parts, lfw.image_shape, darkest=-1.0)
    for i, panel in enumerate(axes[0]):
        panel.set_title(f"{i + 1}")
    return figure


def _row_of_pictures(
    panels: Any, name: str, pictures: Array, shape: tuple[int, int], darkest: float = 0.0
) -> None:
    for panel, picture in zip(panels, pictures, strict=True):
        panel.imshow(picture.reshape(shape), cmap="gray", vmin=darkest, vmax=1.0)
        panel.set(xticks=[], yticks=[])
        panel.grid(visible=False)
        panel.spines[:].set_visible(False)
    panels[0].set_ylabel(name, rotation=0, ha="right", va="center")
