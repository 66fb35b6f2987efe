"""Groups that are passed in a wrong way are refused, or warned of, before anything is computed."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from helpers.data import make_groups
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import (
    BlindPCA,
    FairColumns,
    FairPCA,
    FairPLS,
    GroupMoments,
    WelfarePCA,
    audit,
    audit_model,
    tradeoff_path,
)
from fairpca.baselines import RobustFairPCA
from fairpca.exceptions import quietly
from fairpca.metrics import (
    classifier_outcomes,
    group_reconstruction_errors,
    group_separation,
    probe_groups,
    reconstruction_disparity,
)


@pytest.mark.parametrize("estimator", [FairPCA(2), RobustFairPCA(2), WelfarePCA(2), BlindPCA(2)])
@pytest.mark.parametrize("kind", [float, int])
def test_a_continuous_column_is_refused(estimator, kind):
    rng = np.random.default_rng(0)
    age = rng.uniform(16, 90, 5190) if kind is float else rng.integers(16, 90, 5190)
    with pytest.raises(ValueError, match=r"looks continuous.*pd\.cut"):
        estimator.fit(rng.normal(size=(5190, 3)), sensitive_features=age)


def test_a_continuous_column_is_refused_with_the_first_block():
    rng = np.random.default_rng(0)
    X, age = rng.normal(size=(300, 3)), rng.uniform(16, 90, 300)
    with pytest.raises(ValueError, match="continuous"):
        FairPCA(2).partial_fit(X, sensitive_features=age)
    FairPCA(2, tol=1).partial_fit(X[:40], sensitive_features=age[:40])
    merging = BlindPCA(1, min_group_size=20, small_groups="merge")
    merging.partial_fit(X, sensitive_features=np.where(age > 40, age.round(1), 0))


def test_a_continuous_column_is_refused_without_an_estimator():
    rng = np.random.default_rng(0)
    X, age = rng.normal(size=(5190, 3)), rng.uniform(16, 90, 5190)
    judge = partial(audit_model, PCA(2).fit(X))
    for use in (
        GroupMoments.from_data,
        partial(tradeoff_path, n_components=2, cv=3),
        partial(audit, None),
        judge,
    ):
        with pytest.raises(ValueError, match="continuous"):
            use(X, age)
        with pytest.raises(ValueError, match="continuous"):
            use(X, age.astype(int))
    moments = GroupMoments().update(X[:60], age[:60])  # of a block, labels say little
    assert len(moments.groups) == 60


def test_many_strings_are_groups():
    X, _ = make_groups((120, 120), d=4)
    states = np.array([f"state {i:02d}" for i in np.arange(240) % 51])
    for fit in (
        lambda: WelfarePCA(2, inequality_aversion=0).fit(X, sensitive_features=states),
        lambda: WelfarePCA(2, inequality_aversion=0).fit(GroupMoments.from_data(X, states)),
    ):
        assert len(fit().groups_) == 51
    blocks = WelfarePCA(2, inequality_aversion=0)
    for rows in np.array_split(np.arange(240), 4):  # in each of them most states occur once
        blocks.partial_fit(X[rows], sensitive_features=states[rows])
    assert len(blocks.groups_) == 51


def test_names_of_rows_are_no_groups():
    X, _ = make_groups((120, 120), d=4)
    ids = np.array([f"person {i:03d}" for i in range(240)])
    ids[:60] = ids[60:120]
    for use in (
        GroupMoments.from_data,
        partial(tradeoff_path, n_components=2),
        lambda X, groups: FairPCA(2).fit(X, sensitive_features=groups),
        lambda X, groups: FairPCA(2).partial_fit(X, sensitive_features=groups).transform(X),
    ):
        with pytest.raises(ValueError, match=r"180 different labels .* most of them occur once"):
            use(X, ids)
    few = np.where(np.arange(240) < 200, "common", ids)
    with quietly():
        merged = FairPCA(2, min_group_size=2, small_groups="merge")
        assert len(merged.fit(X, sensitive_features=few).groups_) == 2
        two_alone = np.where(np.arange(240) < 238, "common", ids)
        assert len(FairPCA(1).fit(X, sensitive_features=two_alone).groups_) == 3


def test_what_is_no_group_in_an_audit():
    X, _ = make_groups((120, 120), d=4)
    with pytest.raises(ValueError, match=r"looks continuous.*pass strings"):
        audit(PCA(2), X, np.arange(240) % 60)
    with pytest.raises(ValueError, match="none of the 240 groups has two rows"):
        audit(PCA(2), X, np.arange(240).astype(str))


def test_a_number_of_many_rows_is_a_group():
    """A few rows with numbers of their own do not make the others continuous."""
    X, _ = make_groups((30, 30), d=4)
    with quietly():
        fair = FairPCA(1, tol=1).fit(X, sensitive_features=np.r_[0, 1, 2, np.full(57, 3)])
    assert fair.group_sizes_.tolist() == [1, 1, 1, 57]


def test_few_numbers_are_groups():
    X, _ = make_groups((60, 60), d=4)
    bands = np.arange(120) // 20
    assert len(FairPCA(2, tol=1).fit(X, sensitive_features=bands).groups_) == 6
    few_rows = np.arange(20) // 2 + 0.5
    assert len(FairPCA(2, tol=1).fit(X[:20], sensitive_features=few_rows).groups_) == 10


def test_an_index_in_another_order_is_refused():
    X, groups = make_groups(d=4)
    frame, labels = pd.DataFrame(X).add_prefix("c"), pd.Series(groups)
    order = np.random.default_rng(0).permutation(len(X))
    expected = FairPCA(2).fit(frame, sensitive_features=labels)
    with pytest.raises(ValueError, match=r"sensitive_features\.loc\[X\.index\]"):
        FairPCA(2).fit(frame, sensitive_features=labels.iloc[order])
    with pytest.raises(ValueError, match="sample_weight"):
        FairPCA(2).fit(
            frame,
            sensitive_features=labels,
            sample_weight=pd.Series(1.0, range(len(X))).iloc[order],
        )
    with pytest.raises(ValueError, match="in another order"):
        FairPCA(2).partial_fit(frame, sensitive_features=labels.iloc[order].to_frame())
    for use in (GroupMoments.from_data, partial(tradeoff_path, n_components=2)):
        with pytest.raises(ValueError, match="in another order"):
            use(frame, labels.iloc[order])
    # Matched, by position on purpose, and with labels that have nothing to do with those of X.
    for right in (
        labels.iloc[order].loc[frame.index],
        labels.to_numpy(),
        pd.Series(groups, index=[f"row {i}" for i in range(len(X))]),
    ):
        found = FairPCA(2).fit(frame, sensitive_features=right)
        np.testing.assert_array_equal(found.components_, expected.components_)


def test_no_function_takes_an_index_in_another_order():
    X, groups = make_groups(d=4)
    frame = pd.DataFrame(X, index=[*"ab", *range(len(X) - 2)]).add_prefix("c")
    labels, y = pd.Series(groups, index=frame.index).iloc[::-1], np.arange(len(X)) % 2
    pca = PCA(2).fit(frame)
    for use in (
        lambda: audit(PCA(2), frame, labels),
        lambda: audit_model(pca, frame, labels),
        lambda: group_reconstruction_errors(pca, frame, labels),
        lambda: reconstruction_disparity(pca, frame, labels),
        lambda: group_separation(pca, frame, labels),
        lambda: probe_groups(None, frame, labels),
        lambda: classifier_outcomes(PCA(2), frame, labels, y),
        lambda: FairColumns(2).fit(frame, sensitive_features=labels),
    ):
        with pytest.raises(ValueError, match="in another order"):
            use()


@pytest.mark.parametrize(
    "coded", [lambda g: (g == "g1") * 1.0, lambda g: np.where(g == "g1", 7, 3)]
)
def test_the_group_among_the_features_is_warned_of(coded):
    X, groups = make_groups((900, 700), d=3)
    frame = pd.DataFrame(X, columns=list("abc")).assign(sex=coded(groups), same=1)
    with pytest.warns(UserWarning, match=r"drop\(columns='sex'"):
        FairPCA(2).fit(frame, sensitive_features=groups)
    with pytest.warns(UserWarning, match="column 'sex' of X tells the group"):
        audit_model(PCA(2).fit(frame), frame, groups)
    nearly = frame.assign(sex=np.where(np.arange(1600) == 1500, 1 - frame.sex, frame.sex))
    FairPCA(2).fit(nearly, sensitive_features=groups)  # warnings are errors


def test_the_group_among_the_features_is_warned_of_wherever_groups_are_passed():
    X, groups = make_groups((90, 70), d=3)
    frame = pd.DataFrame(X, columns=list("abc")).assign(sex=(groups == "g1") * 1, race=2)
    frame.loc[::3, "race"] = 5
    piped = make_pipeline(StandardScaler(), PCA(2))
    for use in (GroupMoments.from_data, partial(audit, piped)):
        with pytest.warns(UserWarning, match="tells the group"):
            use(frame, groups)
    with pytest.warns(UserWarning, match="of X tells one of") as caught:
        GroupMoments.from_data(frame, frame[["sex", "race"]])
    assert ["'sex'" in str(w.message) for w in caught] == [True, False]
    frame.loc[0, "sex"] = 7  # a group of one row
    with pytest.warns(UserWarning, match="tells the group"):
        GroupMoments.from_data(frame, frame.sex)


def test_forgotten_groups():
    X, groups = make_groups(d=4)
    y = groups == "g0"
    named = make_pipeline(StandardScaler(), FairPCA(2))
    with pytest.raises(TypeError, match=r"pipeline\.fit\(X, fairpca__sensitive_features=groups\)"):
        named.fit(X)
    named.fit(X, fairpca__sensitive_features=groups)
    made = make_pipeline(FairPLS(2), LogisticRegression())
    with pytest.raises(TypeError, match=r"fit\(X, y, fairpls__sensitive_features=groups\)"):
        made.fit(X, y)
    with pytest.raises(TypeError, match="sensitive_features=y"):
        FairPCA(2).fit(X, groups)


def test_a_group_of_one_row_has_no_covariance_to_hide():
    X, groups = make_groups((60, 40), d=4)
    groups = np.where(np.arange(100) == 3, "alone", groups)
    with pytest.raises(ValueError, match=r"'alone'.*single row.*min_group_size=2") as refusal:
        BlindPCA(2, hide_covariances=1).fit(X, sensitive_features=groups)
    assert "center" not in str(refusal.value)


def test_scores_of_no_variance_explain_nothing():
    """Rounding once gave shares of -1.4 and .34 where the rows give .12 and .09."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        groups = np.arange(200) % 2
        small = rng.normal(size=(200, 5)) * 1e-8
        X = small + (rng.normal(size=(200, 1)) + 3 * groups[:, None]) * rng.normal(size=(1, 5))
        y = rng.normal(size=200) + 0.2e8 * small[:, 0]
        with pytest.warns(UserWarning, match="target_r2_ is rounding"):
            pls = FairPLS(2).fit(X, y, sensitive_features=groups)
        assert pls.target_r2_ == 0.0
