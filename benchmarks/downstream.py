"""Uses of scores, by group: neighbours, distances, clusters and columns of held-out people.

Run ``python -m benchmarks.downstream``; it stores its rows in docs/benchmarks_downstream.csv. LSAC
is looked for in the folder ``FAIRPCA_DATA``.

One half of the rows, stratified by group, is fitted to: deviations of the columns, five components
of PCA and of ``FairPCACV``, and the centres of the clusters. All figures are those of the other
half, where the standardised columns are compared with the scores:

* neighbours: share of the ten nearest people, of any group, who are nearest in the scores too;
* distances: median error of the distance to another person, relative to that in all columns;
* clusters: adjusted Rand index, over the members of a group, of a k-means clustering of the scores
  and one of all columns, averaged over 3, 4, 5 and 6 clusters;
* columns: mean squared error of rebuilt values, in units of the column's variance. Two columns are
  told apart: the blood pressures, which the demonstration is about, and LSAT score and grades, by
  which law schools admit.

A gain is the change in percent of the figure under PCA, positive where fair PCA is better, averaged
over splits. Splits overlap, so its 95 % interval uses the corrected variance ``s^2 (1/F + 1)`` of
Nadeau and Bengio (2003).
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from itertools import product

import numpy as np
from scipy.stats import t
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from benchmarks._harness import DOCS, run_cases
from fairpca import FairPCACV, datasets

RANK, SPLITS, NEIGHBOURS, CLUSTERS = 5, 20, 10, (3, 4, 5, 6)
MOST_PEOPLE, PARTNERS = 1000, 50  # of each group, and of each person
STUDIES = {
    "check-up": (datasets.load_checkup, ["systolic", "diastolic"]),
    "LSAC": (partial(datasets.load_lsac, prepare=False), ["lsat", "ugpa"]),
}


def neighbours_kept(rows, scores, people):
    """Share of the nearest neighbours of these people that the scores keep."""
    nearest = []
    for values in (rows, scores):
        search = NearestNeighbors(n_neighbors=NEIGHBOURS + 1).fit(values)
        nearest.append(search.kneighbors(values[people], return_distance=False))
    found = zip(people, *nearest, strict=True)
    return np.mean([len(({*a} & {*b}) - {i}) for i, a, b in found]) / NEIGHBOURS


def distance_error(rows, scores, people, others):
    """Median relative error of the distance between each of these people and another one."""
    true, kept = (np.linalg.norm(v[people] - v[others], axis=1) for v in (rows, scores))
    return np.median(1 - kept[true > 0] / true[true > 0])


def clusterings(fitted, new, seed):
    """The cluster of each new row, for each number of clusters."""
    models = [KMeans(k, n_init=5, random_state=seed).fit(fitted) for k in CLUSTERS]
    return [model.predict(new) for model in models]


def agreement(some, others, members):
    """Adjusted Rand index of clusterings of these members, averaged over numbers of clusters."""
    pairs = zip(some, others, strict=True)
    return np.mean([adjusted_rand_score(a[members], b[members]) for a, b in pairs])


def half_split(bunch, columns, train, test, seed):
    """Figures under PCA and under fair PCA, by measure and group; and the weight of fair PCA."""
    groups, scaler = bunch.sensitive_features, StandardScaler().fit(bunch.data[train])
    fitted, rows = scaler.transform(bunch.data[train]), scaler.transform(bunch.data[test])
    fair = FairPCACV(RANK).fit(fitted, sensitive_features=groups[train])
    chosen = [bunch.feature_names.index(name) for name in columns]
    rng, in_all_columns = np.random.default_rng(seed), clusterings(fitted, rows, seed)
    members = {group: np.flatnonzero(groups[test] == group) for group in bunch.groups}
    people = {group: rng.permutation(here)[:MOST_PEOPLE] for group, here in members.items()}
    figures = defaultdict(list)
    for model in (PCA(RANK).fit(fitted), fair):
        scores = model.transform(rows)
        squares = (rows - model.inverse_transform(scores)) ** 2
        in_scores = clusterings(model.transform(fitted), scores, seed)
        for group, here in members.items():
            firsts = people[group].repeat(PARTNERS)
            others = np.random.default_rng(seed).integers(len(rows), size=len(firsts))
            for measure, figure in {
                "neighbours kept": neighbours_kept(rows, scores, people[group]),
                "error of distances": distance_error(rows, scores, firsts, others),
                "agreement of clusters": agreement(in_all_columns, in_scores, here),
                "error of all columns": squares[here].mean(),
                f"error of {' and '.join(columns)}": squares[here][:, chosen].mean(),
                "error of the other columns": np.delete(squares[here], chosen, axis=1).mean(),
            }.items():
                figures[measure, group].append(figure)
    return figures, fair.alpha_


def held_out(options, name):
    """Figures by measure and group, averaged over splits, and their gains."""
    load, columns = STUDIES[name]
    bunch, n_splits = load(), options.pick(SPLITS, 2)
    halves = StratifiedShuffleSplit(n_splits, test_size=0.5, random_state=0)
    splits = [
        half_split(bunch, columns, train, test, seed)
        for seed, (train, test) in enumerate(halves.split(bunch.data, bunch.sensitive_features))
    ]
    left = sum(alpha < 1 for _, alpha in splits)
    print(f"# fair PCA differs from PCA in {left} of {n_splits} splits")
    measures = dict.fromkeys(measure for measure, _ in splits[0][0])
    for measure, group in product(measures, bunch.groups):
        found = np.array([figures[measure, group] for figures, _ in splits])
        sign = -1 if measure.startswith("error") else 1
        gains = 100 * sign * (found[:, 1] / found[:, 0] - 1)
        gain = gains.mean()
        half = t.ppf(0.975, n_splits - 1) * np.sqrt(gains.var(ddof=1) * (1 / n_splits + 1))
        before, after = found.mean(axis=0)
        clear = "better" if gain > half else "worse" if gain < -half else ""
        yield {
            "measure": measure,
            "group": group,
            "PCA": f"{before:.3f}",
            "FairPCACV": f"{after:.3f}",
            "gain, %": f"{gain:+.1f}",
            "from": f"{gain - half:+.1f}",
            "to": f"{gain + half:+.1f}",
            "beyond chance": clear,
        }


def main(arguments=None):
    cases = {name: partial(held_out, name=name) for name in STUDIES}
    run_cases(__doc__, cases, DOCS / "benchmarks_downstream.csv", arguments)


if __name__ == "__main__":
    main()
