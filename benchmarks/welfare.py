"""WelfarePCA and RobustFairPCA: the price of a fit, and both against the authors' ways to solve.

Run ``python -m benchmarks.welfare``; it stores its rows in docs/benchmarks_welfare.csv.
"""

from __future__ import annotations

import functools

import cvxpy as cp
import numpy as np
from sklearn.decomposition import PCA

from benchmarks._harness import DOCS, race, row, run_cases
from benchmarks.many_groups import fit, made_data
from fairpca import GroupMoments, WelfarePCA
from fairpca.baselines import RobustFairPCA
from fairpca.baselines._robust import RobustProblem
from fairpca.datasets import load_rand_health

TABLE = DOCS / "benchmarks_welfare.csv"


def fits(options):
    """Whole fits against scikit-learn's PCA."""
    n, d, k, r = options.pick((1_000_000, 50, 6, 10), (5000, 10, 3, 2))
    made = made_data(n, d, k)
    competitors = {
        f"a = {a}": functools.partial(fit, estimator=WelfarePCA(r, inequality_aversion=a))
        for a in (0, 1, 5)
    }
    competitors["PCA"] = functools.partial(fit, estimator=PCA(r), with_groups=False)
    timing = race({name: functools.partial(run, made) for name, run in competitors.items()}, 7)
    for name in list(competitors)[:-1]:
        case = f"WelfarePCA, {name}, {n:,} x {d}, {k} groups, r = {r}"
        yield row(case, timing, name, "PCA", "1.5")


def nash(options):
    """Nash welfare, from moments, against the semidefinite program of Tantipongpipat et al."""
    n, d, k, r = options.pick((20_000, 40, 4, 5), (2000, 8, 3, 2))
    X, groups = made_data(n, d, k)
    moments = GroupMoments.from_data(X, groups)
    ours = functools.partial(WelfarePCA(r, tol=1e-8).fit, moments)
    program = functools.partial(nash_by_sdp, moments.second_moments(), r)
    timing = race({"ours": ours, "SDP, Clarabel": program}, 2)
    apart = abs(ours().welfare_ / program() - 1)
    case = f"Nash welfare, d = {d}, {k} groups, r = {r}; relative difference {apart:.0e}"
    yield row(case, timing, "ours", "SDP, Clarabel")


def nash_by_sdp(C, r):
    d = C.shape[1]
    P = cp.Variable((d, d), symmetric=True)
    kept = cp.hstack([cp.sum(cp.multiply(C_g, P)) for C_g in C])
    limits = [P >> 0, np.eye(d) - P >> 0, cp.trace(P) == r]
    cp.Problem(cp.Maximize(cp.sum(cp.log(kept))), limits).solve(solver="CLARABEL")
    return float(np.exp(np.log(kept.value).mean()))


def robust(options):
    """The robust objective, from moments, against Riemannian subgradients from five starts."""
    people, r = load_rand_health(), 3
    moments = GroupMoments.from_data(people.data, people.sensitive_features)
    ours = functools.partial(RobustFairPCA(r).fit, moments)
    published = functools.partial(
        robust_by_subgradients, moments, r, n_steps=options.pick(1000, 20), starts=5
    )
    other = "Riemannian subgradients, 5 starts of 1000 steps"
    timing = race({"ours": ours, other: published}, 2)
    apart = published() / ours().robust_error_ - 1
    case = f"robust error, RAND health, r = {r}; the other ends {apart:.0e} above"
    yield row(case, timing, "ours", other)


def robust_by_subgradients(moments, r, n_steps, starts):
    """Descent along geodesics with steps 1 / sqrt(t), written from the paper of Vu et al."""
    C, shares = moments.second_moments(), moments.counts / moments.counts.sum()
    problem = RobustProblem(0.15, 0.5, tuple(moments.counts.tolist()))
    traces, radii = np.trace(C, axis1=1, axis2=2), 0.15 / np.sqrt(moments.counts)
    price, rng, best = 0.5 * shares.min(), np.random.default_rng(0), np.inf
    for _ in range(starts):
        U = np.linalg.qr(rng.standard_normal((C.shape[1], r)))[0]
        for t in range(1, n_steps + 1):
            errors = traces - np.einsum("gij,ij->g", C @ U, U)
            worst = problem.worst(errors)
            best = min(best, problem.measure(errors, shares))
            weights = shares + price * np.sign(worst - worst[::-1])
            slopes = weights * (1 + np.sqrt(radii / errors))
            gradient = -2 * np.tensordot(slopes, C, 1) @ U
            gradient -= U @ (U.T @ gradient)
            left, angles, right = np.linalg.svd(
                -gradient / (np.sqrt(t) * np.linalg.norm(gradient)), full_matrices=False
            )
            U = (U @ right.T * np.cos(angles) + left * np.sin(angles)) @ right
            U = np.linalg.qr(U)[0]
    return best


CASES = {"fits": fits, "nash": nash, "robust": robust}


def main(arguments=None):
    run_cases(__doc__, CASES, TABLE, arguments)


if __name__ == "__main__":
    main()
