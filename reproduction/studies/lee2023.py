"""Fair streaming PCA on German credit, two components: everything from moments of the groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import null_space
from sklearn.utils import Bunch

from fairpca import BlindPCA, GroupMoments
from reproduction.claims import Claim
from reproduction.studies.comparison import Figure, Study, agreement, finding_of, printed
from reproduction.studies.hiding import measure, width_of_kernel
from reproduction.study_data import load_german
from reproduction.tools import Array, Progress

_RANK = 2


def _load_streaming() -> list[Bunch]:
    return [load_german(split=i, version=2023) for i in range(10)]


class _Hidden:
    """The directions that the published methods leave, from the moments of two groups."""

    def __init__(self, moments: GroupMoments) -> None:
        n = moments.counts
        first, second = moments.second_moments("group") * (n / (n - 1))[:, None, None]
        self.C = np.tensordot(n / n.sum(), moments.second_moments(), axes=1)
        self.covariances = second - first  # the unbiased ones
        self.means = np.diff(moments.means, axis=0).T

    def nothing(self) -> Array:
        return self._most_variance(np.eye(len(self.C)))

    def mean(self) -> Array:
        return self._most_variance(null_space(self.means.T))

    def share(self, kept: float) -> Array:
        """Inside the complement of the means, the part where covariances differ least (-S)."""
        N = null_space(self.means.T)
        V = _by_difference(N.T @ self.covariances @ N)
        return self._most_variance(N @ V[:, : max(_RANK, int(kept * len(N)))])

    def worst(self, m: int) -> Array:
        """The complement of the means and of the m directions of largest difference."""
        V = _by_difference(self.covariances)[:, ::-1][:, :m]
        return self._most_variance(null_space(np.hstack([self.means, V]).T))

    def _most_variance(self, B: Array) -> Array:
        return np.asarray(B @ np.linalg.eigh(B.T @ self.C @ B)[1][:, : -_RANK - 1 : -1])


def _by_difference(D: Array) -> Array:
    """Eigenvectors, those of the smallest absolute eigenvalues first."""
    values, vectors = np.linalg.eigh(D)
    return np.asarray(vectors[:, np.argsort(np.abs(values))])


#: What the study calls it, explained variance in percent and MMD^2 as printed, the same from
#: moments, and BlindPCA's closest relative.
_METHODS: list[tuple[str, float, float, Callable[[_Hidden], Array], dict[str, Any] | None]] = [
    ("PCA", 11.13, 0.293, _Hidden.nothing, None),
    ("Fair PCA", 10.39, 0.031, _Hidden.mean, {}),
    ("Fair PCA-S (0.85)", 6.97, 0.021, lambda h: h.share(0.85), {"keep_covariances": 0.85}),
    ("Fair PCA-S (0.5)", 4.66, 0.017, lambda h: h.share(0.5), {"keep_covariances": 0.5}),
    ("Ours (offline, 2)", 8.20, 0.027, lambda h: h.worst(2), {"hide_covariances": 2}),
    ("Ours (offline, 10)", 6.36, 0.017, lambda h: h.worst(10), {"hide_covariances": 10}),
]


def _run_streaming(splits: list[Bunch], progress: Progress) -> tuple[list[Figure], list[Claim]]:
    figures: list[Figure] = []
    prepared = []
    for split in splits:
        hidden = _Hidden(GroupMoments.from_data(split.data, split.sensitive_features))
        prepared.append((split, hidden, width_of_kernel(split.data @ hidden.nothing())))
    for name, explained, mmd2, basis, options in _METHODS:
        progress(name)
        values = [
            measure(split, basis(hidden), width, classify=False)
            for split, hidden, width in prepared
        ]
        figures += _two_figures(f"{name}, from moments", explained, mmd2, values, printed_too=True)
        if options is None:
            continue
        blind = [
            BlindPCA(_RANK, **options).fit(split.data, sensitive_features=split.sensitive_features)
            for split, _, _ in prepared
        ]
        values = [
            measure(split, fair.components_.T, width, classify=False)
            for fair, (split, _, width) in zip(blind, prepared, strict=True)
        ]
        call = ", ".join(["2", *(f"{key}={value}" for key, value in options.items())])
        figures += _two_figures(
            f"BlindPCA({call})", explained, mmd2, values, printed_too=not options
        )
    return figures, [
        agreement(figures, "Explained variance and MMD^2, means over ten splits.", "german"),
        _covariances_too(figures),
    ]


def _covariances_too(figures: list[Figure]) -> Claim:
    plain, hidden, *others = [
        figure.ours
        for figure in figures
        if figure.measure == "mmd2" and figure.method.endswith("from moments")
    ]
    return Claim(
        "german",
        "Hiding covariances too reveals less than hiding means alone.",
        finding_of(sum(value < hidden for value in others), len(others)),
        f"MMD^2 is {plain:.3f} under PCA, {hidden:.3f} with means hidden, and {min(others):.3f} to "
        f"{max(others):.3f} with covariances. The moments of the groups are enough for all of it.",
    )


def _two_figures(
    method: str, explained: float, mmd2: float, values: list[Any], printed_too: bool
) -> list[Figure]:
    means = np.mean([(v.explained_variance, v.mmd2) for v in values], axis=0)
    measures = zip(("explained_variance", "mmd2"), (explained, mmd2), means, (2, 3), strict=True)
    return [
        Figure(
            "german",
            _RANK,
            "mean",
            method,
            what,
            published,
            float(ours),
            printed(digits) if printed_too else None,
        )
        for what, published, ours, digits in measures
    ]


LEE2023 = Study(
    name="lee2023",
    title="Fair streaming principal component analysis: statistical and algorithmic viewpoint",
    reference="J. Lee, H. Cho, S.-Y. Yun and C. Yun, NeurIPS 2023.",
    notes=(
        "German credit, 59 features, two components, means over ten divisions into training and "
        "test rows; explained variance (of the test rows, in percent) to two decimals, MMD^2 to "
        "three.",
        "Fair PCA is that of Kleindessner et al. (2023): means hidden; -S (f) keeps int(f d) "
        "directions in which the covariances differ least. The study's own method, Ours (offline, "
        "m), leaves out the mean difference and the m directions of largest covariance difference.",
        "The rows from moments use unbiased covariances (divided by n - 1), and for the study's "
        "own method directions of the whole space, as the authors do. BlindPCA divides by n and "
        "looks inside the complement of the means; it stands beside them for comparison.",
    ),
    load=_load_streaming,
    run=_run_streaming,
)
