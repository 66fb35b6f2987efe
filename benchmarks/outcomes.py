"""What a classifier makes of the scores of each method, held out.

Run ``python -m benchmarks.outcomes``; it stores its rows in docs/benchmarks_outcomes.csv. It needs
``FAIRPCA_DATA`` with the ten splits of Lee et al. (2022) in ``studies/lee2022``.
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

from benchmarks._harness import DOCS, run_cases
from fairpca import BlindPCA, FairPCA, FairPLS, LevellingDownWarning, ParityInfeasibleWarning
from fairpca._moments.operand import Operand
from fairpca._problems.problems import FairProblem
from fairpca._solvers import solve
from fairpca.metrics import probe_groups

OUTCOMES = DOCS / "benchmarks_outcomes.csv"
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
    "PLS": FairPLS(R, notion=None),
    "FairPLS, demographic parity": FairPLS(R, notion="demographic_parity"),
    "FairPLS, equal opportunity": FairPLS(R, notion="equal_opportunity"),
    "FairPLS, equalised odds": FairPLS(R, notion="equalized_odds"),
}


def measure(method, train, test):
    """AUC of the target, and of the group where it is least; gaps; AUC of a probe for the group."""
    X, y, group = train[:, :-2], train[:, -2], train[:, -1]
    groups = {} if isinstance(method, PCA) else {"sensitive_features": group}
    fitted = method.fit(X, y, **groups)
    scores, new = fitted.transform(X), fitted.transform(test[:, :-2])

    classifier = make_pipeline(StandardScaler(), LogisticRegression())
    chance = classifier.fit(scores, y).predict_proba(new)[:, 1]
    chosen = chance >= 0.5
    truth, of = test[:, -2], [test[:, -1] == g for g in (0, 1)]

    def gap(rows):
        rates = [chosen[rows & here].mean() for here in of]
        return abs(rates[0] - rates[1])

    own = [roc_auc_score(truth[here], chance[here]) for here in of]
    probes = {"logistic": classifier}
    (probe,) = probe_groups(None, new, test[:, -1], probes=probes, random_state=0)
    return [
        roc_auc_score(truth, chance),
        min(own),
        abs(own[0] - own[1]),
        gap(np.ones(len(truth), dtype=bool)),
        gap(truth == 1),
        gap(truth == 0),
        probe.auc,
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
            auc, least, apart, selection, tpr, fpr, probe = np.mean(found, axis=0)
            yield {
                "data": name,
                "method": method,
                "AUC of the target": f"{auc:.3f}",
                "in the worse group": f"{least:.3f}",
                "AUC gap": f"{apart:.3f}",
                "selection-rate gap": f"{selection:.3f}",
                "TPR gap": f"{tpr:.3f}",
                "FPR gap": f"{fpr:.3f}",
                "AUC of the group": f"{probe:.3f}",
            }


def main(arguments=None) -> None:
    run_cases(__doc__, {"held out": held_out}, OUTCOMES, arguments)


if __name__ == "__main__":
    main()
