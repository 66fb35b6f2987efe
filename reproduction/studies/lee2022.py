"""MMD-based fair PCA on COMPAS, German credit and Adult, two components."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.utils import Bunch

from fairpca import BlindPCA
from reproduction.claims import Claim
from reproduction.studies.comparison import EXACT, Figure, Study, agreement, finding_of
from reproduction.studies.hiding import Revealed, measure, width_of_kernel
from reproduction.study_data import load_adult, load_compas, load_german, read_results
from reproduction.tools import Array, Progress

_LOADERS: dict[str, Callable[..., Bunch]] = {
    "compas": load_compas,
    "german": load_german,
    "adult": load_adult,
}
_OURS: dict[str, dict[str, Any]] = {
    "means hidden": {},
    "means and half of the covariances hidden": {"keep_covariances": 0.5},
}
#: The measure, its column among the published results, and its honest twin.
_MEASURED = {
    "explained_variance": ("explained_variance_percent", None),
    "mmd2": ("mmd2", None),
    "accuracy": ("rbf_svm_accuracy_percent_in_sample", "held_out_accuracy"),
    "parity_gap": ("demographic_parity_gap", "held_out_parity_gap"),
}

_NEARLY = 0.01


def _load_mmd() -> dict[str, Any]:
    splits = {name: [load(split=i) for i in range(10)] for name, load in _LOADERS.items()}
    return {"splits": splits, "published": read_results("lee2022")}


def _run_mmd(data: dict[str, Any], progress: Progress) -> tuple[list[Figure], list[Claim]]:
    figures, claims = [], []
    for name, splits in data["splits"].items():
        measured: dict[str, list[Revealed]] = {"PCA": [], **{ours: [] for ours in _OURS}}
        for i, split in enumerate(splits):
            progress(f"{name}, split {i}")
            for method, revealed in _measure_all(split).items():
                measured[method].append(revealed)
        published = [row for row in data["published"] if row["dataset"] == name]
        figures += _same_method(name, measured["PCA"], published)
        figures += _other_methods(name, measured, published)
        claims += _claims_about(name, measured)
    same = "All stored figures of PCA, split by split."
    return figures, [agreement(figures, same, "compas, german"), *claims]


def _measure_all(split: Bunch) -> dict[str, Revealed]:
    pca: Array = PCA(2, svd_solver="covariance_eigh").fit(split.data).components_.T
    width = width_of_kernel(split.data @ pca)
    measured = {"PCA": measure(split, pca, width)}
    for name, options in _OURS.items():
        blind = BlindPCA(2, **options)
        blind.fit(split.data, sensitive_features=split.sensitive_features)
        measured[name] = measure(split, blind.components_.T, width)
    return measured


def _same_method(
    name: str, measured: list[Revealed], published: list[dict[str, str]]
) -> list[Figure]:
    """PCA on every split, which must agree."""
    return [
        Figure(
            name,
            2,
            row["split"],
            "PCA",
            what,
            float(row[column]),
            getattr(measured[int(row["split"])], what),
            EXACT,
            None if honest is None else getattr(measured[int(row["split"])], honest),
        )
        for row in published
        if row["method"] == "PCA"
        for what, (column, honest) in _MEASURED.items()
    ]


def _other_methods(
    name: str, measured: dict[str, list[Revealed]], published: list[dict[str, str]]
) -> list[Figure]:
    """Means over the splits: the authors' methods, and beside them ours from moments alone."""
    figures = []
    for what, (column, honest) in _MEASURED.items():
        for theirs in ("FPCA", "MbF-PCA(1e-3)"):
            values = [float(row[column]) for row in published if row["method"] == theirs]
            hidden = "means hidden" if theirs == "FPCA" else list(_OURS)[1]
            figures.append(
                Figure(
                    name,
                    2,
                    "mean",
                    f"BlindPCA, {hidden}" + (f" (beside {theirs})" if values else ""),
                    what,
                    float(np.mean(values)) if values else None,
                    _mean(measured[hidden], what),
                    held_out=None if honest is None else _mean(measured[hidden], honest),
                )
            )
    return figures


def _mean(measured: list[Revealed], what: str) -> float:
    return float(np.mean([getattr(revealed, what) for revealed in measured]))


def _claims_about(name: str, measured: dict[str, list[Revealed]]) -> list[Claim]:
    pca, hidden = measured["PCA"], measured["means hidden"]
    lower = sum(ours.mmd2 < plain.mmd2 for ours, plain in zip(hidden, pca, strict=True))
    hiding = Claim(
        name,
        "Hiding the groups' means lowers MMD^2.",
        finding_of(lower, len(pca)),
        f"MMD^2 {_mean(pca, 'mmd2'):.3f} -> {_mean(hidden, 'mmd2'):.3f}, lower on {lower} of "
        f"{len(pca)} splits; explained variance {_mean(pca, 'explained_variance'):.1f} -> "
        f"{_mean(hidden, 'explained_variance'):.1f} %.",
    )
    return [hiding, _in_sample(name, measured)]


def _in_sample(name: str, measured: dict[str, list[Revealed]]) -> Claim:
    """Whether the published protocol tells what a classifier does on other rows."""
    told, numbers = [], []
    for method, revealed in measured.items():
        shown, honest = _mean(revealed, "accuracy"), _mean(revealed, "held_out_accuracy")
        gap, honest_gap = _mean(revealed, "parity_gap"), _mean(revealed, "held_out_parity_gap")
        told += [abs(shown - honest) <= _NEARLY, abs(gap - honest_gap) <= _NEARLY]
        numbers.append(f"{method}: {shown:.3f} -> {honest:.3f}, {gap:.3f} -> {honest_gap:.3f}")
    return Claim(
        name,
        "A classifier trained and judged on the same test rows shows how accurate and how fair it "
        "would be on others.",
        finding_of(sum(told), len(told)),
        "Accuracy and parity gap, in sample -> held out, means over the splits. "
        + "; ".join(numbers)
        + ".",
    )


LEE2022 = Study(
    name="lee2022",
    title="Fast and efficient MMD-based fair PCA via optimization over Stiefel manifold",
    reference="J. Lee, G. Kim, M. Olfat, M. Hasegawa-Johnson and C. D. Yoo, AAAI 2022.",
    notes=(
        "Two components, ten divisions into training and test rows. Explained variance is that of "
        "the test rows. MMD^2 has a Gaussian kernel whose width is set by PCA's training scores.",
        "Accuracy and parity gap as published come from an RBF support vector machine that was "
        "trained and judged on the same test rows. The column held_out has the same figure for a "
        "machine trained on the training rows.",
        "The authors' own methods (MbF-PCA, and FPCA of Olfat and Aswani) are other methods than "
        "ours; their figures stand beside ours for comparison. For Adult no figures are stored.",
    ),
    load=_load_mmd,
    run=_run_mmd,
)
