"""What a user would pick instead: PCA by other libraries, and other ways to fair projections.

Run ``python -m benchmarks.competitors``; it stores its rows in docs/benchmarks_competitors.csv. The
methods of a part took turns in one run. Libraries that are not installed are left out with a note.
"""

from __future__ import annotations

import functools
import importlib
import os
import warnings
from math import sqrt

import cvxpy as cp
import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.decomposition import PCA, IncrementalPCA

from benchmarks._harness import DOCS, extra_memory, race, row, run_cases
from benchmarks.core import fit_fair, lfw, made_data
from benchmarks.many_groups import least_largest_loss, made_spaces, multiplicative_weights
from fairpca import FairPCA, GroupMoments, ParityInfeasibleWarning

TABLE = DOCS / "benchmarks_competitors.csv"
SOLVERS = ("full", "covariance_eigh", "arpack", "randomized")
OFF = "its distance from the optimum"


def line(*arguments, off=""):
    """A row of the table; ``off`` is how much worse the competitor's projection is, as a share."""
    shown = f"{max(off, 0.0):.1g}" if off != "" else ""
    return {**row(*arguments), OFF: shown}


def fit_pca(made, r, solver):
    if solver == "incremental":
        return IncrementalPCA(r, batch_size=2000).fit(made[0])
    return PCA(r, svd_solver=solver, random_state=0).fit(made[0])


def intelex(X, r):
    from sklearnex.decomposition import PCA as IntelPCA

    return functools.partial(IntelPCA(r).fit, X)


def dask_ml(X, r):
    import dask.array as da
    from dask_ml.decomposition import PCA as DaskPCA

    rows = da.from_array(X, chunks=(len(X) // 4, X.shape[1]))
    return functools.partial(DaskPCA(r, random_state=0).fit, rows)


def torch_lowrank(X, r):
    import torch

    return functools.partial(torch.pca_lowrank, torch.from_numpy(X), r)


def spark_ml(X, r):
    """Spark on this machine, its table in memory before the clock starts."""
    import pandas as pd
    from pyspark.ml.feature import PCA as SparkPCA
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.memory": "4g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    table = session.createDataFrame(pd.DataFrame({"row": list(X)}))
    table = table.select(array_to_vector("row").alias("row")).repartition(4).cache()
    table.count()
    return functools.partial(SparkPCA(k=r, inputCol="row", outputCol="scores").fit, table)


#: Name in the table, the module it needs, and what makes the fit.
LIBRARIES = {
    "scikit-learn-intelex": ("sklearnex", intelex),
    "dask-ml": ("dask_ml", dask_ml),
    "Spark ML": ("pyspark", spark_ml),
    "torch.pca_lowrank": ("torch", torch_lowrank),
}


def installed(X, r):
    """The fits of the libraries that can be imported here."""
    for name, (module, prepare) in LIBRARIES.items():
        try:
            importlib.import_module(module)
        except Exception as error:  # whatever keeps it from being loaded
            print(f"# {name} is left out: {error}")
        else:
            yield name, prepare(X, r)


def pca(options):
    """Time of plain PCA by what people use; fairpca returns a fair one."""
    n, d, r = options.pick((100_000, 100, 10), (2000, 20, 3))
    prepare = functools.partial(made_data, n, d)
    made = prepare()
    fits = {"FairPCA": functools.partial(fit_fair, r=r)}
    for solver in SOLVERS:
        fits[f"PCA, {solver}"] = functools.partial(fit_pca, r=r, solver=solver)
    fits["IncrementalPCA, batches of 2000"] = functools.partial(fit_pca, r=r, solver="incremental")
    runs = {name: functools.partial(fit, made) for name, fit in fits.items()}
    runs |= dict(installed(made[0], r))
    timing = race(runs, rounds=3)
    memory = {name: extra_memory(prepare, fit) for name, fit in fits.items()}
    for name in list(runs)[1:]:
        case = f"{n:,} x {d}, r = {r}"
        yield line(case, timing, "FairPCA", name, "", memory["FairPCA"], memory.get(name))


class Weighted:
    """The projections of two groups for each alpha, each by one full decomposition."""

    def __init__(self, moments, r):
        self.C, self.r = moments.second_moments(), r
        p = moments.weights / moments.weights.sum()
        self.overall = p[0] * self.C[0] + p[1] * self.C[1]
        first = self.errors(1.0, self.overall)[0]
        self.a, self.b = (0, 1) if first[0] <= first[1] else (1, 0)
        self.difference = self.C[self.b] - self.C[self.a]

    def errors(self, alpha, M=None):
        """Error of each group, and of the sum of eigenvalues left out."""
        M = alpha * self.overall + (1 - alpha) * self.difference if M is None else M
        values, vectors = np.linalg.eigh(M)
        U = vectors[:, -self.r :]
        errors = [np.trace(C_g) - np.sum(U * (C_g @ U)) for C_g in self.C]
        return np.array(errors), values[: -self.r].sum()


def authors_search(moments, r, tolerance=1e-6):
    """The published search: golden section on [0, 1] with full eigendecompositions."""
    family = Weighted(moments, r)
    low, high, ratio = 0.0, 1.0, (sqrt(5) + 1) / 2
    while high - low > tolerance:
        right, left = low + (high - low) / ratio, high - (high - low) / ratio
        F = [np.diff(family.errors(alpha)[0])[0] ** 2 for alpha in (left, right)]
        if F[0] < F[1]:
            high = right
        else:
            low = left
    return family.errors((low + high) / 2)[0]


def eigopt(moments, r, tolerance=1e-9):
    """Brent's method on the concave ``(min_U alpha R + (1 - alpha) D) / alpha``, as EigOpt would.

    It bounds the error of every projection at parity from below; its maximum is at the fair one.
    """
    family = Weighted(moments, r)
    found = minimize_scalar(
        lambda alpha: -family.errors(alpha)[1] / alpha,
        bounds=(0.0, 1.0),
        method="bounded",
        options={"xatol": tolerance},
    )
    return family.errors(found.x)[0]


def golden(moments, r):
    """The search as the paper prints it, by this library."""
    return fit_parity(moments, r, solver="golden")


def parity(options):
    """Equal errors of two groups, from the same moments.

    The distance is the disparity left beyond ours, as a share of the overall error.
    """
    sizes = options.pick([(50, 5), (200, 5), (500, 5)], [(10, 2)])
    for d, r in sizes:
        prepare = functools.partial(moments_of, made_data, 20 * d, d)
        yield from compare_searches(f"parity, d = {d}, r = {r}", prepare, r, rounds=3)
    if os.environ.get("FAIRPCA_DATA") and not options.quick:
        prepare = functools.partial(moments_of, lfw)
        case = "parity, LFW, d = 1764, r = 5"
        yield from compare_searches(case, prepare, 5, rounds=1)


def compare_searches(case, prepare, r, rounds):
    competitors = {
        "exact": fit_parity,
        "the authors' golden section": authors_search,
        'solver="golden"': golden,
        "EigOpt's, Brent on the dual": eigopt,
    }
    moments = prepare()
    runs = {name: functools.partial(run, moments, r) for name, run in competitors.items()}
    timing, found = race_for_results(runs, rounds)
    memory = extra_memory(prepare, functools.partial(fit_parity, r=r))
    for name in list(runs)[1:]:
        off = (left(found[name]) - left(found["exact"])) / found["exact"].reconstruction_error_
        yield line(case, timing, "exact", name, "", memory, off=off)


def race_for_results(runs, rounds):
    """The timing of a race, and what each competitor returned last."""
    results = {}

    def kept(name):
        results[name] = runs[name]()

    return race({name: functools.partial(kept, name) for name in runs}, rounds), results


def left(found):
    """The difference between the errors of both groups."""
    errors = found if isinstance(found, np.ndarray) else found.group_errors_
    return abs(float(errors[0] - errors[1]))


def moments_of(load, *size):
    return GroupMoments.from_data(*load(*size))


def fit_parity(moments, r, solver="exact"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParityInfeasibleWarning)
        return FairPCA(r, constraint="parity", solver=solver).fit(moments)


def semidefinite(made, solver):
    """Least largest loss as Samadi et al. state it, by cvxpy."""
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
    problem.solve(solver=solver)
    return problem.value * unit


def min_max(options):
    """Least largest loss: ours, multiplicative weights to a relative gap of 1e-3, and the SDP.

    The distance is that of the value found from the proven bound, as a share of it. Theirs are
    values of a relaxed projection, which has more than r components.
    """
    for d, k, r in options.pick([(10, 2, 3), (20, 4, 3)], [(6, 3, 2)]):
        made = made_spaces(d, k, r)
        competitors = {
            "ours": lambda made: least_largest_loss(made).value,
            "multiplicative weights": lambda made: multiplicative_weights(made)[1],
            "SDP, Clarabel": functools.partial(semidefinite, solver="CLARABEL"),
            "SDP, SCS": functools.partial(semidefinite, solver="SCS"),
        }
        runs = {name: functools.partial(run, made) for name, run in competitors.items()}
        timing, found = race_for_results(runs, rounds=2)
        memory = extra_memory(functools.partial(made_spaces, d, k, r), least_largest_loss)
        case = f"least largest loss, d = {d}, {k} groups, r = {r}"
        bound = least_largest_loss(made).bound
        for name in list(runs)[1:]:
            off = abs(found[name] - bound) / bound
            yield line(case, timing, "ours", name, "", memory, off=off)


CASES = {"pca": pca, "parity": parity, "min_max": min_max}


def main(arguments=None) -> None:
    run_cases(__doc__, CASES, TABLE, arguments)


if __name__ == "__main__":
    main()
