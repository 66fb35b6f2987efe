"""Other methods: scikit-learn's solvers, the authors' search, and two ways to solve min-max.

Run ``python -m benchmarks.competitors``; it stores its rows in docs/benchmarks_competitors.csv. The
two methods in a row took turns in one run.
"""

from __future__ import annotations

import functools
import os
import warnings
from math import sqrt

import cvxpy as cp
import numpy as np
from sklearn.decomposition import PCA, IncrementalPCA

from benchmarks._harness import DOCS, extra_memory, race, row, run_cases
from benchmarks.core import fit_fair, lfw, made_data
from benchmarks.many_groups import least_largest_loss, made_spaces, multiplicative_weights
from fairpca import FairPCA, GroupMoments, ParityInfeasibleWarning

TABLE = DOCS / "benchmarks_competitors.csv"
SOLVERS = ("full", "covariance_eigh", "arpack", "randomized")


def fit_pca(made, r, solver):
    if solver == "incremental":
        return IncrementalPCA(r, batch_size=2000).fit(made[0])
    return PCA(r, svd_solver=solver, random_state=0).fit(made[0])


def pca_solvers(options):
    n, d, r = options.pick((100_000, 100, 10), (2000, 20, 3))
    prepare = functools.partial(made_data, n, d)
    made = prepare()
    fits = {"FairPCA": functools.partial(fit_fair, r=r)}
    for solver in SOLVERS:
        fits[f"PCA, {solver}"] = functools.partial(fit_pca, r=r, solver=solver)
    fits["IncrementalPCA, batches of 2000"] = functools.partial(fit_pca, r=r, solver="incremental")
    timing = race({name: functools.partial(fit, made) for name, fit in fits.items()}, rounds=2)
    memory = {name: extra_memory(prepare, fit) for name, fit in fits.items()}
    for name in list(fits)[1:]:
        case = f"{n:,} x {d}, r = {r}"
        yield row(case, timing, "FairPCA", name, "", memory["FairPCA"], memory[name])


def authors_search(C, p, r, tolerance=1e-6):
    """The published search: golden section on [0, 1] with full eigendecompositions."""

    def errors(M):
        U = np.linalg.eigh(M)[1][:, -r:]
        return np.array([np.trace(C_g) - np.trace(U.T @ C_g @ U) for C_g in C])

    overall = p[0] * C[0] + p[1] * C[1]
    first = errors(overall)
    a, b = (0, 1) if first[0] <= first[1] else (1, 0)
    low, high, ratio = 0.0, 1.0, (sqrt(5) + 1) / 2
    while high - low > tolerance:
        right, left = low + (high - low) / ratio, high - (high - low) / ratio
        F = [
            np.diff(errors(alpha * overall + (1 - alpha) * (C[b] - C[a])))[0] ** 2
            for alpha in (left, right)
        ]
        if F[0] < F[1]:
            high = right
        else:
            low = left
    alpha = (low + high) / 2
    return errors(alpha * overall + (1 - alpha) * (C[b] - C[a]))


def golden_section(options):
    """The authors' search against the exact solver, both from the same moments."""
    sizes = options.pick([(50, 5), (200, 5), (500, 5)], [(10, 2)])
    for d, r in sizes:
        prepare = functools.partial(moments_of, made_data, 20 * d, d)
        yield compare_search(f"moments, d = {d}, r = {r}", prepare, r, rounds=3)
    if os.environ.get("FAIRPCA_DATA") and not options.quick:
        prepare = functools.partial(moments_of, lfw)
        yield compare_search("moments of LFW, d = 1764, r = 5", prepare, 5, rounds=1)


def compare_search(case, prepare, r, rounds):
    competitors = {
        "exact": functools.partial(fit_parity, r=r),
        "the authors' golden section": functools.partial(search_parity, r=r),
    }
    moments = prepare()
    timing = race(
        {name: functools.partial(run, moments) for name, run in competitors.items()}, rounds
    )
    short = functools.partial(search_parity, r=r, tolerance=0.1)  # fewer steps, the same memory
    memory = [extra_memory(prepare, run) for run in (competitors["exact"], short)]
    return row(case, timing, *competitors, "", *memory)


def moments_of(load, *size):
    return GroupMoments.from_data(*load(*size))


def fit_parity(moments, r):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParityInfeasibleWarning)
        return FairPCA(r, constraint=None).fit_moments(moments)


def search_parity(moments, r, tolerance=1e-6):
    p = moments.weights / moments.weights.sum()
    return authors_search(moments.second_moments(), p, r, tolerance)


def semidefinite(made):
    """Least largest loss as Samadi et al. state it, by cvxpy and Clarabel."""
    spaces, least = made
    C, traces, r = spaces.matrices, spaces.traces, spaces.rank
    d, unit = C.shape[1], traces.max()
    P = cp.Variable((d, d), symmetric=True)
    losses = [
        (trace - cp.sum(cp.multiply(C_g, P)) - own) / unit
        for C_g, trace, own in zip(C, traces, least, strict=True)
    ]
    constraints = [P >> 0, np.eye(d) - P >> 0, cp.trace(P) == r]
    problem = cp.Problem(cp.Minimize(cp.max(cp.hstack(losses))), constraints)
    problem.solve(solver="CLARABEL")
    return problem.value * unit


def min_max(options):
    """Least largest loss: ours, multiplicative weights to a relative gap of 1e-3, and the SDP."""
    for d, k, r in options.pick([(10, 2, 3), (20, 4, 3)], [(6, 3, 2)]):
        made = made_spaces(d, k, r)
        found = least_largest_loss(made)
        assert abs(found.bound - semidefinite(made)) <= 1e-5 * made[0].traces.max()
        competitors = {
            "ours": least_largest_loss,
            "multiplicative weights": multiplicative_weights,
            "SDP by cvxpy": semidefinite,
        }
        runs = {name: functools.partial(run, made) for name, run in competitors.items()}
        timing = race(runs, rounds=2)
        prepare = functools.partial(made_spaces, d, k, r)
        memory = {name: extra_memory(prepare, run) for name, run in competitors.items()}
        case = f"least largest loss, d = {d}, {k} groups, r = {r}"
        for name in list(competitors)[1:]:
            yield row(case, timing, "ours", name, "", memory["ours"], memory[name])


CASES = {"pca_solvers": pca_solvers, "golden_section": golden_section, "min_max": min_max}


def main(arguments=None) -> None:
    run_cases(__doc__, CASES, TABLE, arguments)


if __name__ == "__main__":
    main()
