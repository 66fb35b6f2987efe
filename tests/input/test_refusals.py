"""What is no table, or has no usable columns or labels, is refused by a message that helps."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca import (
    FairColumns,
    FairPCA,
    FairPCACV,
    GroupEraser,
    GroupMoments,
    audit,
    metrics,
    tradeoff_path,
)

pd = pytest.importorskip("pandas")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)) * [4, 3, 2, 1]
GROUPS = np.repeat(["75 and older", "younger"], [20, 40])
FRAME = pd.DataFrame(X, columns=list("abcd"))
FITTED = FairPCA(2).fit(X, sensitive_features=GROUPS)


@pytest.mark.parametrize("method", ["fit", "partial_fit", "fit_transform"])
@pytest.mark.parametrize("estimator", [FairPCA(2), GroupEraser()])
def test_groups_under_another_name(estimator, method):
    with pytest.raises(TypeError, match=type(estimator).__name__ + ".*sensitive_features"):
        getattr(estimator, method)(X, groups=GROUPS)


DOORS = {
    "fit": lambda given: FairPCA(2).fit(given, sensitive_features=GROUPS),
    "moments": lambda given: GroupMoments.from_data(given, GROUPS),
    "update": lambda given: GroupMoments().update(given, GROUPS),
    "transform": FITTED.transform,
    "inverse": FITTED.inverse_transform,
    "score": FITTED.score,
    "erase": GroupEraser().fit(X, sensitive_features=GROUPS).transform,
    "keep": FairColumns(2).fit(X, sensitive_features=GROUPS).transform,
    "rebuild": FairColumns(2).fit(X, sensitive_features=GROUPS).inverse_transform,
    "metric": lambda given: metrics.group_reconstruction_errors(FITTED, given, GROUPS),
    "audit": lambda given: audit(FairPCA(2), given, GROUPS),
    "path": lambda given: tradeoff_path(given, GROUPS, n_components=2),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("given", "told"),
    [
        (None, "NoneType, not a table; pass an array"),
        (5, "int, not a table; pass an array"),
        (object(), "object, not a table; pass an array"),
        ({"a": [1.0], "b": [2.0]}, r"dict, not a table; pass pandas.DataFrame\(X\)"),
        ("people.csv", "'people.csv' is a"),
    ],
    ids=["None", "number", "object", "dict", "name"],
)
def test_what_is_no_table(door, given, told):
    with pytest.raises(TypeError, match=told):
        DOORS[door](given)


@pytest.mark.parametrize("door", DOORS)
def test_two_columns_of_one_name(door):
    twins = FRAME.set_axis(list("abca"), axis=1)
    if door in ("inverse", "rebuild"):
        twins = twins.iloc[:, [0, 3]]
    with pytest.raises(ValueError, match="two columns named 'a'"):
        DOORS[door](twins)


def test_rows_of_unequal_length():
    with pytest.raises(ValueError, match="not of one length"):
        DOORS["fit"]([[1.0, 2.0], [3.0]])


@pytest.mark.parametrize(
    ("given", "cure"),
    [
        (FRAME.astype(object), r"X\.astype\(float\)"),
        (FRAME.astype(str), r"X\.astype\(float\)"),
        (FRAME.assign(a=FRAME.a.astype(object)), r"X\.astype\(float\)"),
        (FRAME.astype(pd.SparseDtype(float, 0.0)), r"X\.sparse\.to_coo\(\)"),
        (FRAME.assign(a=list("xyz") * 20), "OneHotEncoder"),
        (FRAME.assign(a=["1", "?", "3"] * 20), "OneHotEncoder"),
    ],
)
def test_columns_of_numbers_in_another_form(given, cure):
    with pytest.raises(TypeError, match=cure):
        DOORS["fit"](given)


def test_labels_are_shown_as_python_has_them():
    """However they were passed: numpy's own scalars say np.str_('75 and older')."""
    for labels in (list(GROUPS), np.array(list(GROUPS), object), pd.Series(list(GROUPS))):
        with pytest.raises(ValueError, match="group '75 and older'"):
            FairPCACV(2, cv=21).fit(X, sensitive_features=labels)
    numbers = [*np.repeat([1, 2, 3], 20)]
    with pytest.raises(ValueError, match=r"holds 3: \[1, 2, 3\]"):
        FairPCA(2, alpha=0.5).fit(X, sensitive_features=numbers)


def test_few_numbers_of_few_rows_are_groups():
    groups = np.r_[0, 1, 2, np.full(57, 3)]
    assert FairPCA(2).fit(X, sensitive_features=groups).group_sizes_.tolist() == [1, 1, 1, 57]


def test_a_first_block_without_weight_adds_nothing():
    weights = np.r_[np.zeros(30), np.ones(30)]
    expected = FairPCA(2).fit(X, sensitive_features=GROUPS[::-1], sample_weight=weights)
    moments, fair = GroupMoments(), FairPCA(2)
    for rows in (slice(0, 30), slice(30, 60)):
        block = {"sensitive_features": GROUPS[::-1][rows], "sample_weight": weights[rows]}
        moments.update(X[rows], **block)
        fair.partial_fit(X[rows], **block)
    for found in (fair, FairPCA(2).fit(moments)):
        np.testing.assert_allclose(found.group_errors_, expected.group_errors_)
    with pytest.raises(ValueError, match="weight zero"):
        FairPCA(2).fit(GroupMoments().update(X, GROUPS, np.zeros(60)))


def test_numbers_whose_squares_overflow():
    for judge in (metrics.group_reconstruction_errors, metrics.reconstruction_disparity):
        with pytest.raises(ValueError, match="so large"):
            judge(FITTED, np.full((2, 4), 1.7e308), ["75 and older", "younger"])


def test_whole_numbers_too_large_for_floats_in_a_frame():
    frame = pd.DataFrame({"a": [10**400, 1, 2, 3], "b": [1, 2, 3, 4]}, dtype=object)
    with pytest.raises(TypeError, match="too large for float64"):
        FairPCA(1).fit(frame, sensitive_features=list("xyxy"))
