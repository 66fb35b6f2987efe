"""The fitted attributes of an estimator, from the solution of its problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairpca._moments.operand import Operand
from fairpca._moments.small_groups import SettledGroups
from fairpca._problems.solution import Solution, disparity
from fairpca._typing import Array


def fitted_attributes(
    settled: SettledGroups, measured: Operand, solution: Solution
) -> dict[str, Any]:
    """What a fit publishes, by the names of the attributes; ``measured`` is what was solved for."""
    operand, compared = settled.operand, settled.compared
    components, variances = _principal_basis(operand, solution.basis)
    r, d = components.shape
    n = int(settled.moments.counts.sum())
    total, unbiased = float(operand.shares @ operand.traces), n / max(n - 1, 1)
    left = max(total - float(variances.sum()), 0.0)
    errors = np.maximum(solution.errors, 0.0)
    pca_errors = np.maximum(solution.pca.errors, 0.0)
    labels = settled.moments.groups.tolist()
    D = disparity(solution.errors, compared, solution.harmed, solution.privileged)
    return {
        "components_": components,
        "mean_": settled.moments.mean,
        "n_components_": r,
        "explained_variance_": variances * unbiased,
        "explained_variance_ratio_": _ratio(variances, total),
        "noise_variance_": left * unbiased / (d - r) if r < d else 0.0,
        "groups_": settled.moments.groups,
        "group_sizes_": settled.moments.counts,
        "group_errors_": errors,
        "group_explained_variance_ratio_": 1.0 - _ratio(errors, measured.traces),
        "reconstruction_error_": float(measured.shares @ errors),
        "disparity_": float(D),
        "privileged_group_": labels[solution.privileged],
        "harmed_group_": labels[solution.harmed],
        "pca_group_errors_": pca_errors,
        "pca_reconstruction_error_": float(measured.shares @ pca_errors),
        "alpha_": solution.alpha,
        "duality_gap_": max(solution.gap, 0.0),  # below zero only by rounding
        "status_": str(solution.status),
        "n_eigensolves_": solution.n_eigensolves,
        "small_groups_": settled.small,
        **solution.extras,
    }


def _principal_basis(operand: Operand, basis: Array) -> tuple[Array, Array]:
    """Components with uncorrelated scores ordered by variance, and these variances.

    Errors depend on the subspace alone, so the rotation costs nothing. The entry of largest
    magnitude of each component is positive, the first one on a tie.
    """
    C_U = np.tensordot(operand.shares, operand.products(basis), axes=1)
    values, rotation = np.linalg.eigh(basis.T @ C_U)
    components = rotation[:, ::-1].T @ basis.T
    magnitudes = np.abs(components)
    near_largest = magnitudes >= magnitudes.max(axis=1, keepdims=True) * (1 - 1e-7)
    decisive = components[np.arange(len(components)), near_largest.argmax(axis=1)]
    return components * np.sign(decisive)[:, None], np.maximum(values[::-1], 0.0)


def _ratio(part: Array, whole: Any) -> Array:
    """``part / whole``, or 0 where the whole is 0."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), 0.0)
