"""What the scores tell about the group, and what classifiers make of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import FunctionTransformer

from fairpca._audit.any_model import Rebuilt, RebuiltSums
from fairpca._audit.people import People, entries_of
from fairpca._audit.record import Leakage, SampledRows
from fairpca._audit.refits import FEWEST_FOLDS, both_of, fit_quietly
from fairpca._audit.setup import Setup
from fairpca._input.folds import FoldRule
from fairpca._input.units import keyed
from fairpca._linear_map import LinearMap
from fairpca._moments.group_differences import positive_class
from fairpca._moments.group_moments import GroupMoments
from fairpca._sklearn import safe_indexing
from fairpca._typing import Array, Codes
from fairpca.exceptions import quietly
from fairpca.metrics import Outcomes, Selection, classifier_outcomes, probe_groups
from fairpca.metrics.classifiers import fewest_units, selection
from fairpca.metrics.separation import separation

_MOST_ROWS = 10_000  # Classifiers get a sample of larger tables.
_FOLDS = 5  # for classifiers
_MOST_SCORES = 600  # people in the sample of scores
_SALT_OF_HALVES = 2**63 + 7  # unlike any seed


def leakage(setup: Setup, both: Sequence[Any], probes: bool, smaller: Any = None) -> Leakage | None:
    """How far apart the scores of judged groups are, and how well the group can be guessed.

    If ``smaller``, an estimator for fewer rows, is given, projections are fitted to one half of the
    rows and probes guess the groups of the other half.
    """
    if max(int((setup.judged & members).sum()) for members in setup.folds.moments.partitions) < 2:
        return None
    people = setup.people
    baseline, alternative = (_apart(setup, own) for own in both)
    one_group_each = setup.origin.crossing
    if people is None or not one_group_each or (not probes and people.classes is None):
        return Leakage(baseline, alternative)
    rows = _sampled(setup, people)
    if smaller is not None:
        fitted_to, rows = _halves(setup, people, rows)
        half = people.moments_of(people.values, FoldRule(FEWEST_FOLDS), fitted_to)
        both = both_of(fit_quietly(smaller, half), half)
    how: dict[str, Any] = {"cv": _FOLDS, "level": setup.level, "random_state": setup.seed}
    how["units"] = people.units_of(rows)
    scores = [_scores(own, people, rows) for own in both]
    probed = [probe_groups(None, own, people.groups[rows], **how) for own in scores]
    return Leakage(baseline, alternative, probed[0], probed[1], len(rows))


def _halves(setup: Setup, people: People, rows: Codes) -> tuple[Codes, Codes]:
    """Rows to fit to and rows to judge by; all rows of a unit are in one half."""
    if people.units is not None:
        second = keyed(people.units[rows], _SALT_OF_HALVES, 2).astype(bool)
        return rows[~second], rows[second]
    stratify = people.groups[rows]
    halves = train_test_split(rows, test_size=0.5, stratify=stratify, random_state=setup.seed)
    return np.sort(halves[0]), np.sort(halves[1])


def _apart(setup: Setup, own: LinearMap | Rebuilt | RebuiltSums) -> dict[str, float]:
    """The separation of the scores, for the two judged groups that are furthest apart."""
    moments = setup.folds.moments
    if isinstance(own, Rebuilt | RebuiltSums):
        moments = own.moments_of_scores()
        encode = np.eye(moments.n_features)
    else:
        encode = own.encode
    by_group = [part for _, part in moments.keep().by_group()]
    apart = []
    for members in moments.partitions:
        parts = [by_group[g] for g in np.flatnonzero(members & setup.judged)]
        if len(parts) > 1:
            found = separation(GroupMoments().merge(*parts), encode)
            apart.append((float(found.discriminant_auc.max()), found.centroid_share))
    furthest, share = max(apart)
    return {"centroid_share": share, "discriminant_auc": furthest}


def _scores(own: LinearMap | Rebuilt, people: People, rows: Codes) -> Array:
    if isinstance(own, Rebuilt):
        return np.asarray(own.scores[rows])
    return own.scores(people.filled(rows))


def selected(setup: Setup) -> Selection | None:
    """How often each judged group has the positive outcome in the data."""
    people = setup.people
    if people is None or people.classes is None or setup.judged.sum() < 2:
        return None
    rows = np.flatnonzero(setup.judged[people.codes])
    judged, codes = np.unique(people.codes[rows], return_inverse=True)
    label = positive_class(np.unique(people.classes).tolist(), people.pos_label)
    labels = np.asarray(people.labels, object)[judged]
    units = entries_of(people.units, rows)
    return selection(people.classes[rows] == label, codes, labels, setup.level, label, units)


def outcomes(setup: Setup, model: Any, X: Any) -> list[Outcomes] | None:
    """Rates by judged group of classifiers on the scores, on PCA's scores and on all features.

    ``model`` is fitted without each fold, or holds the scores of all rows.
    """
    people = setup.people
    if people is None or people.classes is None or setup.judged.sum() < 2:
        return None
    if not setup.origin.crossing:
        return None
    rows = _sampled(setup, people)
    y = people.classes[rows]
    positive = y == positive_class(np.unique(y).tolist(), people.pos_label)
    cells = 2 * people.codes[rows] + positive
    fewest = fewest_units(cells, entries_of(people.units, rows))
    if fewest < 2 or len(np.unique(cells)) < 2 * setup.judged.sum():
        return None  # no classifier can be trained and judged by groups of one class
    X = safe_indexing(X, rows)
    if hasattr(X, "toarray"):
        X = X.toarray()
    if isinstance(model, np.ndarray):
        scores = model[rows]
        model = FunctionTransformer(lambda _: scores)
    with quietly():
        found = classifier_outcomes(
            model,
            X,
            people.groups[rows],
            y,
            pos_label=people.pos_label,
            units=people.units_of(rows),
            cv=min(_FOLDS, fewest),
            level=setup.level,
            random_state=setup.seed,
        )
    return [replace(result, data=None) for result in found]  # without predictions for people


def _sampled(setup: Setup, people: People) -> Codes:
    """The rows of judged groups; if there are too many, a random sample stratified by group."""
    rows = np.flatnonzero(setup.judged[people.codes])
    if len(rows) <= _MOST_ROWS:
        return rows
    stratify = people.codes[rows]
    sample, _ = train_test_split(
        rows, train_size=_MOST_ROWS, stratify=stratify, random_state=setup.seed
    )
    return np.sort(sample)


def sampled_scores(setup: Setup, both: Sequence[LinearMap]) -> SampledRows | None:
    """Scores of a random sample, with about the same number of people of each judged group."""
    people = setup.people
    judged = np.flatnonzero(setup.judged)
    if people is None or not len(judged):
        return None
    rng = np.random.default_rng(setup.seed)
    each = max(_MOST_SCORES // len(judged), 1)
    members = [rng.permutation(np.flatnonzero(people.codes == g))[:each] for g in judged]
    rows = np.concatenate([np.sort(own) for own in members])
    values = people.filled(rows)
    pca, fair = (own.scores(values)[:, :2] for own in both)
    return SampledRows(people.positions[rows], people.codes[rows], pca, fair)
