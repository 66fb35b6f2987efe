"""What a classifier makes of the scores of each method, held out, and how long fits take.

Run ``python -m benchmarks.outcomes``; it stores its rows in docs/benchmarks_outcomes.csv and
docs/benchmarks_blind.csv. The first part needs ``FAIRPCA_DATA`` with the ten splits of Lee et al.
(2022) in ``studies/lee2022``.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._harness import DOCS, race, row, run_cases
from benchmarks.core import made_data
from fairpca import BlindPCA, FairPCA, FairPLS, LevellingDownWarning, ParityInfeasibleWarning
from fairpca._moments.operand import Operand
from fairpca._problems.fair import FairProblem
from fairpca._solvers import solve

OUTCOMES, SPEED = DOCS / "benchmarks_outcomes.csv", DOCS / "benchmarks_blind.csv"
R = 2


class EqualInformation:
    """Theorem 1 of the paper for a target: ``Q_g = S_xy S_yx`` of each group in place of ``C_g``.

    A blend with ``C_g``, since Q_g alone has rank one.
    """

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma

    def fit(self, X, y, sensitive_features):
        """Find the projection."""
        self.mean_ = X.mean(axis=0)
        Z, centred = X - self.mean_, y - y.mean()
        labels = np.unique(sensitive_features)
        parts = [sensitive_features == g for g in labels]
        C = np.array([Z[rows].T @ Z[rows] / rows.sum() for rows in parts])
        S = np.array([Z[rows].T @ centred[rows] / rows.sum() for rows in parts])
        Q = np.einsum("gi,gj->gij", S, S)
        shares = np.array([rows.mean() for rows in parts])
        C, Q = (M / np.trace(np.tensordot(shares, M, axes=1)) for M in (C, Q))
        blend = Operand((1 - self.gamma) * C + self.gamma * Q, shares)
        self.components_ = solve(FairProblem(), blend, R).basis.T
        return self

    def transform(self, X):
        """Scores of the rows."""
        return (X - self.mean_) @ self.components_.T


METHODS = {
    "PCA": PCA(R),
    "FairPCA": FairPCA(R),
    "BlindPCA": BlindPCA(R),
    "theorem 1 for a target": EqualInformation(0.9),
    "PLS": FairPLS(R),
    "FairPLS, demographic parity": FairPLS(R, notion="demographic_parity"),
    "FairPLS, equal opportunity": FairPLS(R, notion="equal_opportunity"),
    "FairPLS, equalised odds": FairPLS(R, notion="equalized_odds"),
}


def measure(method, train, test):
    """AUC of the target; gaps of selection rate, TPR, FPR; AUC of a linear probe for the group."""
    X, y, group = train[:, :-2], train[:, -2], train[:, -1]
    groups = {} if isinstance(method, PCA) else {"sensitive_features": group}
    fitted = method.fit(X, y, **groups)
    scores, new = fitted.transform(X), fitted.transform(test[:, :-2])

    def classifier(labels):
        return make_pipeline(StandardScaler(), LogisticRegression()).fit(scores, labels)

    chosen = classifier(y).predict(new)
    truth, of = test[:, -2], [test[:, -1] == g for g in (0, 1)]

    def gap(rows):
        rates = [chosen[rows & here].mean() for here in of]
        return abs(rates[0] - rates[1])

    return [
        roc_auc_score(truth, classifier(y).predict_proba(new)[:, 1]),
        gap(np.ones(len(truth), dtype=bool)),
        gap(truth == 1),
        gap(truth == 0),
        roc_auc_score(test[:, -1], classifier(group).predict_proba(new)[:, 1]),
    ]


def held_out(options):
    folder = Path(os.environ.get("FAIRPCA_DATA", "")) / "studies" / "lee2022"
    if not folder.is_dir():
        return
    warnings.simplefilter("ignore", ParityInfeasibleWarning)
    warnings.simplefilter("ignore", LevellingDownWarning)
    for name in ("compas", "german", "adult"):
        splits = np.load(folder / f"{name}.npz")
        for method, estimator in METHODS.items():
            found = [
                measure(estimator, splits[f"train_{i}"], splits[f"test_{i}"])
                for i in range(options.pick(10, 1))
            ]
            auc, selection, tpr, fpr, probe = np.mean(found, axis=0)
            yield {
                "data": name,
                "method": method,
                "AUC of the target": f"{auc:.3f}",
                "selection-rate gap": f"{selection:.3f}",
                "TPR gap": f"{tpr:.3f}",
                "FPR gap": f"{fpr:.3f}",
                "AUC of the group": f"{probe:.3f}",
            }


def speed(options):
    n, d, r = options.pick((1_000_000, 50, 10), (3000, 20, 3))
    X, groups = made_data(n, d)
    X[groups == 1] += 0.3
    classes = X[:, 0] + X[:, 1] > 0
    numbers = X[:, 0] + X[:, 1]
    odds = {"notion": "equalized_odds"}
    fits = {
        "BlindPCA": lambda: BlindPCA(r).fit(X, sensitive_features=groups),
        "BlindPCA, budget": lambda: BlindPCA(r, max_mean_gap=0.1).fit(X, sensitive_features=groups),
        "BlindPCA, equalised odds": lambda: BlindPCA(r, **odds).fit(
            X, classes, sensitive_features=groups
        ),
        "FairPLS, equalised odds": lambda: FairPLS(r, **odds).fit(
            X, classes, sensitive_features=groups
        ),
        "FairPLS, numbers": lambda: FairPLS(r).fit(X, numbers, sensitive_features=groups),
    }
    timing = race({"PCA": lambda: PCA(r).fit(X), **fits}, rounds=5)
    for name in fits:
        yield row(f"{name}, {n:,} x {d}, r = {r}", timing, name, "PCA", "1.5")


def main(arguments=None) -> None:
    run_cases(__doc__, {"held out": held_out}, OUTCOMES, arguments)
    run_cases(__doc__, {"speed": speed}, SPEED, arguments)


if __name__ == "__main__":
    main()
