"""The paper's claims about its results, each tested on ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fairpca import FairPCA, GroupMoments
from fairpca.datasets import make_two_groups
from reproduction.experiments import PAPER_DATASETS
from reproduction.results import Result
from reproduction.statements import NEGLIGIBLE, STATEMENTS, Case


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, whether it holds for our results, and the numbers behind it.

    ``finding`` is "holds", "holds in part", "does not hold" or "not run".
    """

    variant: str
    statement: str
    finding: str
    numbers: str


class Cases:
    """Results side by side: in one variant of the paper's data, all methods at the same r."""

    def __init__(self, results: Iterable[Result], variant: str) -> None:
        self._by_key: dict[tuple[str, int], Case] = {}
        for result in results:
            if result.variant == variant and result.dataset in PAPER_DATASETS:
                self._by_key.setdefault((result.dataset, result.r), {})[result.method] = result

    def having(self, *methods: str) -> list[Case]:
        """The cases in which all these methods were run and PCA leaves something out."""
        return [
            case
            for case in self._by_key.values()
            if all(method in case for method in methods)
            and case[methods[0]].pca_harmed_error > NEGLIGIBLE
        ]


def check_claims(results: Sequence[Result]) -> list[Claim]:
    """Test every statement on results; "not run" where the methods it needs are missing.

    The first claim is theorem 1, as printed; it needs no results.
    """
    claims = [check_theorem()]
    for variant in ("unbalanced", "balanced"):
        cases = Cases(results, variant)
        for statement, methods, test in STATEMENTS[variant]:
            found = cases.having(*methods)
            finding, numbers = test(found) if found else ("not run", "")
            claims.append(Claim(variant, statement, finding, numbers))
    return claims


def check_theorem() -> Claim:
    """Theorem 1 as printed, with ``C_A - C_B``, on the data of the illustration, r = 1."""
    made = make_two_groups(random_state=0)
    moments = GroupMoments.from_data(made.data, made.sensitive_features)
    alpha = 0.8
    pca = FairPCA(1, alpha=1.0).fit(moments)
    corrected = FairPCA(1, alpha=alpha).fit(moments)
    A, B = (pca.groups_.tolist().index(g) for g in (pca.privileged_group_, pca.harmed_group_))
    C_g = moments.second_moments()
    C = np.tensordot(pca.group_sizes_ / pca.group_sizes_.sum(), C_g, axes=1)
    u = np.linalg.eigh(alpha * C + (1 - alpha) * (C_g[A] - C_g[B])).eigenvectors[:, -1]
    printed = np.trace(C_g, axis1=1, axis2=2) - u @ C_g @ u
    return Claim(
        "illustration",
        "The top eigenvectors of alpha C + (1 - alpha)(C_A - C_B) minimise alpha R + (1 - alpha) D "
        "(theorem 1).",
        "holds"
        if printed[B] - printed[A] <= corrected.disparity_ + NEGLIGIBLE
        else "does not hold",
        f"At alpha = {alpha} and r = 1 the disparity D becomes {printed[B] - printed[A]:.2f} with "
        f"the printed sign, {corrected.disparity_:.2f} with C_B - C_A; under PCA it is "
        f"{pca.disparity_:.2f}. The sign is lost in the last step of the proof.",
    )
