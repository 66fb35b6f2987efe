"""More than two groups: the price of a fit, and the solver against multiplicative weights.

Run ``python -m benchmarks.many_groups``; it stores its rows in docs/benchmarks_many_groups.csv.
"""

from __future__ import annotations

import functools
import os
import time

import numpy as np
from scipy.special import softmax
from sklearn.decomposition import PCA

from benchmarks._harness import DOCS, Timing, extra_memory, race, row, run_cases
from fairpca import FairPCA, GroupMoments, MinMaxPCA, tradeoff_path
from fairpca._blas import single_threaded_blas
from fairpca._moments.operand import Operand
from fairpca._solvers import spaces_of
from fairpca._solvers.worst_off import solve_worst
from fairpca.datasets import load_lfw

TABLE = DOCS / "benchmarks_many_groups.csv"


def made_data(n, d, k):
    """Groups of unequal size that share most of a decaying spectrum."""
    rng = np.random.default_rng(0)
    groups = rng.choice(k, n, p=np.arange(1, k + 1) / (k * (k + 1) / 2))
    X = rng.standard_normal((n, d)) * (3 * np.arange(1, d + 1) ** -0.5)
    turns = [np.linalg.qr(np.eye(d) + 0.1 * rng.standard_normal((d, d)))[0] for _ in range(k)]
    for start in range(0, n, 4096):
        for g in range(k):
            rows = start + np.flatnonzero(groups[start : start + 4096] == g)
            X[rows] = X[rows] @ turns[g]
    return X, groups


def fit(made, estimator, with_groups=True):
    X, groups = made
    return estimator.fit(X, sensitive_features=groups) if with_groups else estimator.fit(X)


def fits(options):
    """Whole fits against scikit-learn's PCA."""
    n, d, k, r = options.pick((1_000_000, 50, 10, 10), (5000, 10, 4, 2))
    prepare = functools.partial(made_data, n, d, k)
    made = prepare()
    competitors = {
        "FairPCA": functools.partial(fit, estimator=FairPCA(r)),
        "MinMaxPCA": functools.partial(fit, estimator=MinMaxPCA(r)),
        "PCA": functools.partial(fit, estimator=PCA(r), with_groups=False),
    }
    timing = race({name: functools.partial(run, made) for name, run in competitors.items()}, 5)
    memory = {name: extra_memory(prepare, run) for name, run in competitors.items()}
    for name in ("FairPCA", "MinMaxPCA"):
        case = f"{name}, {n:,} x {d}, {k} groups, r = {r}"
        yield row(case, timing, name, "PCA", "1.5", memory[name], memory["PCA"])


def rescaled_data(n, d, k):
    """Groups that differ in the scale of each column, by factors from 0.5 to 1.5."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, k, n)
    X = rng.standard_normal((n, d)) * np.arange(1, d + 1) ** -0.5
    X *= rng.uniform(0.5, 1.5, (k, d))[groups]
    return X, groups


def rescaled(options):
    """As the number of groups grows, against scikit-learn's PCA."""
    n, d, r = options.pick((200_000, 50, 5), (5000, 10, 2))
    for k, target in options.pick([(8, "1.5"), (20, "1.6"), (50, "3")], [(4, "")]):
        prepare = functools.partial(rescaled_data, n, d, k)
        made = prepare()
        fair = functools.partial(fit, estimator=FairPCA(r))
        pca = functools.partial(fit, estimator=PCA(r), with_groups=False)
        runs = {"FairPCA": functools.partial(fair, made), "PCA": functools.partial(pca, made)}
        timing = race(runs, 7)
        memory = [extra_memory(prepare, run) for run in (fair, pca)]
        yield row(f"FairPCA, {n:,} x {d}, {k} groups", timing, "FairPCA", "PCA", target, *memory)


def faces(options):
    """LFW by sex and race, if ``FAIRPCA_DATA`` names the folder with the paper's data."""
    if not os.environ.get("FAIRPCA_DATA") or options.quick:
        return
    data = load_lfw()
    groups = np.column_stack([data.sensitive_features, data.race])
    for r in (5, 10, 20):
        run = functools.partial(fit, (data.data, groups), FairPCA(r))
        case = f"FairPCA, LFW 13232 x 1764, 8 groups, r = {r}"
        yield row(case, race({"FairPCA": run}, 2), "FairPCA", target="3 s")


def path(options):
    """The whole frontier of two groups, from moments."""
    n, d = options.pick((5000, 500), (200, 20))
    moments = GroupMoments.from_data(*rescaled_data(n, d, 2))
    for r in options.pick((5, 10, 20), (2,)):
        run = functools.partial(tradeoff_path, moments, n_components=r)
        yield row(
            f"tradeoff_path, d = {d}, r = {r}", race({"ours": run}, 3), "ours", target="0.5 s"
        )


def made_operand(d, k):
    """Second moments that share forty directions, with twenty more for each group."""
    rng = np.random.default_rng(0)
    common = rng.standard_normal((d, 40)) * np.arange(1, 41) ** -0.5
    C = np.empty((k, d, d))
    for g in range(k):
        own = rng.standard_normal((d, 20)) * np.arange(1, 21) ** -0.5
        C[g] = common @ common.T + own @ own.T + 0.1 * np.eye(d)
    sizes = rng.integers(100, 1000, k)
    return Operand(C, sizes / sizes.sum())


def made_spaces(d, k, r):
    """The eigenspaces, and the error of each group under its own best projection."""
    spaces = spaces_of(made_operand(d, k), r)
    with single_threaded_blas():
        return spaces, np.array([spaces.top(e).errors[g] for g, e in enumerate(np.eye(k))])


def least_largest_loss(made):
    spaces, _ = made
    with single_threaded_blas():
        return solve_worst(spaces, "loss", tol=1e-6)


def multiplicative_weights(made, gap=1e-3, eta=1.0, most=600):
    """Rounds until the average projection is within a relative gap of the bound, at most ``most``.

    The average does not have rank r, so this is kinder to the method than asking for a projection.
    Of the step sizes 0.3, 1 and 3, it does best with 1.
    """
    spaces, least = made
    with single_threaded_blas():
        k = len(spaces.shares)
        logarithms, total, bound = np.zeros(k), np.zeros(k), -np.inf
        for rounds in range(1, most + 1):
            weights = softmax(logarithms)
            point = spaces.top(weights)
            losses = point.errors - least
            total += losses
            bound = max(bound, point.bound - float(weights @ least))
            value = (total / rounds).max()
            if value - bound <= gap * value:
                break
            logarithms += eta / value * losses
    return rounds, value


def seconds_of(run):
    """Seconds of one run, and its result."""
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


def solvers(options):
    """Least largest loss to a relative gap of 1e-3; the weights are given the own projections."""
    d, k, r = options.pick((1000, 16, 3), (60, 4, 2))
    prepare = functools.partial(made_spaces, d, k, r)
    made = prepare()
    ours, found = seconds_of(lambda: least_largest_loss(made))
    theirs, (rounds, _) = seconds_of(lambda: multiplicative_weights(made))
    assert found.gap <= 1e-3 * found.value
    few = functools.partial(multiplicative_weights, most=5)
    other = f"multiplicative weights, {rounds} rounds"
    yield row(
        f"least largest loss, d = {d}, {k} groups, r = {r}",
        Timing({"ours": ours, other: theirs}),
        "ours",
        other,
        "0.1",
        extra_memory(prepare, least_largest_loss),
        extra_memory(prepare, few),
    )


CASES = {"fits": fits, "rescaled": rescaled, "faces": faces, "path": path, "solvers": solvers}


def main(arguments=None) -> None:
    run_cases(__doc__, CASES, TABLE, arguments)


if __name__ == "__main__":
    main()
