"""GroupMoments against definitions computed in one line of numpy."""

from __future__ import annotations

import copy
import functools
import itertools
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from helpers.data import assert_same, make_groups
from hypothesis import given, settings
from hypothesis import strategies as st

from fairpca import GroupMoments


def by_definition(X, groups, weights=None, center="overall"):
    X = np.asarray(X, dtype=np.float64)
    w = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
    overall = np.average(X, axis=0, weights=w)
    moments = []
    for label in np.unique(groups):
        rows = groups == label
        origin = overall if center == "overall" else np.average(X[rows], axis=0, weights=w[rows])
        Z = X[rows] - origin
        moments.append((Z * w[rows, None]).T @ Z / w[rows].sum())
    return np.array(moments)


@pytest.mark.parametrize("center", ["overall", "group"])
@pytest.mark.parametrize("weighted", [False, True])
def test_definition(two_groups, center, weighted):
    X, groups = two_groups
    w = np.random.default_rng(1).uniform(0.1, 3, len(X)) if weighted else None
    moments = GroupMoments.from_data(X, groups, w)
    np.testing.assert_allclose(
        moments.second_moments(center), by_definition(X, groups, w, center), rtol=1e-12, atol=1e-13
    )
    np.testing.assert_allclose(moments.mean, np.average(X, axis=0, weights=w), atol=1e-14)
    assert moments.counts.tolist() == [np.sum(groups == "g0"), np.sum(groups == "g1")]


def test_many_blocks_and_threads():
    X, groups = make_groups(n=(9000, 4000, 1), d=70)
    moments = GroupMoments.from_data(X, groups)
    np.testing.assert_allclose(
        moments.second_moments(), by_definition(X, groups), rtol=1e-11, atol=1e-11
    )


def test_a_group_that_appears_late():
    X, groups = make_groups(n=(6000, 10), d=3)
    order = np.argsort(groups, kind="stable")
    moments = GroupMoments.from_data(X[order] + 1e6, groups[order])
    np.testing.assert_allclose(
        moments.second_moments(), by_definition(X[order], groups[order]), rtol=1e-8
    )


@pytest.mark.parametrize("offset", [1e9, -1e12])
def test_offsets_lose_no_digits(offset):
    # Multiples of 1/8 stay exact after the shift, so all that is lost is lost by the moments.
    X, groups = make_groups(d=4)
    X = np.round(X * 8) / 8
    plain, moved = GroupMoments.from_data(X, groups), GroupMoments.from_data(X + offset, groups)
    tolerance = 1e-12 if offset == 1e9 else 1e-9
    np.testing.assert_allclose(
        moved.second_moments(), plain.second_moments(), rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("offset", [0.0, 1e5, 1e9])
def test_sparse_rows_far_from_zero_keep_their_digits(offset):
    X, groups = make_groups(d=4)
    X = np.round(X * 8) / 8
    X[:, 1] = np.where(np.abs(X[:, 1]) < 1, 0, X[:, 1])
    X[:, 0] += offset
    dense, sparse = (GroupMoments.from_data(form(X), groups) for form in (np.asarray, sp.csr_array))
    np.testing.assert_allclose(
        sparse.second_moments(), dense.second_moments(), rtol=1e-6, atol=1e-6
    )


def test_a_constant_sparse_column_needs_no_shift():
    X, groups = make_groups(d=4)
    X[:, 2] = 1.0
    moments = GroupMoments.from_data(sp.csr_array(X), groups)
    assert not moments._sums.shifts.any()
    np.testing.assert_allclose(moments.second_moments(), by_definition(X, groups), atol=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64", "uint8", "bool"])
def test_dtypes(dtype):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2 if dtype == "bool" else 9, size=(50, 3)).astype(dtype)
    groups = rng.integers(0, 2, 50)
    moments = GroupMoments.from_data(X, groups)
    np.testing.assert_allclose(
        moments.second_moments(), by_definition(X.astype(float), groups), atol=1e-13
    )


def test_float32_has_float64_accuracy():
    X, groups = make_groups(n=(3000, 2000), d=5)
    X32 = (X + 100).astype(np.float32)
    moments = GroupMoments.from_data(X32, groups)
    np.testing.assert_allclose(moments.second_moments(), by_definition(X32, groups), rtol=1e-11)


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_array, sp.coo_array, sp.lil_matrix])
@pytest.mark.parametrize("weighted", [False, True])
def test_sparse(form, weighted):
    X, groups = make_groups(d=8)
    X[np.abs(X) < 1] = 0
    w = np.linspace(0, 2, len(X)) if weighted else None
    assert_same(GroupMoments.from_data(form(X), groups, w), GroupMoments.from_data(X, groups, w))


def test_memory_map_is_not_loaded_whole(tmp_path):
    X, groups = make_groups(n=(3000, 5000), d=5)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert isinstance(mapped, np.memmap)
    assert_same(GroupMoments.from_data(mapped, groups), GroupMoments.from_data(X, groups))


@pytest.mark.parametrize("order", ["C", "F"])
def test_input_is_not_modified(order):
    X, groups = make_groups()
    X = np.array(X + 50, order=order)
    kept, labels = X.copy(), groups.copy()
    X.flags.writeable = False
    GroupMoments.from_data(X, groups, np.ones(len(X)))
    np.testing.assert_array_equal(X, kept)
    np.testing.assert_array_equal(groups, labels)


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, pl.DataFrame, lambda data: pa.table(data)], ids=["pd", "pl", "pa"]
)
def test_frames(frame):
    X, groups = make_groups(d=3)
    table = frame({"a": X[:, 0], "b": np.round(X[:, 1]).astype(int), "c": X[:, 2] > 0})
    expected = np.column_stack([X[:, 0], np.round(X[:, 1]), X[:, 2] > 0])
    moments = GroupMoments.from_data(table, groups)
    assert moments.feature_names == ["a", "b", "c"]
    assert_same(moments, GroupMoments.from_data(expected, groups))


@pytest.mark.parametrize(
    "labels",
    [
        ["x", "y"],
        [False, True],
        [0, 1],
        [-5, 10**15],
        [0.5, 1.5],
        [1, "one"],
        [pd.Timestamp("2020"), pd.Timestamp("2021")],
        [np.datetime64("2020-01-01"), np.datetime64("2021-01-01")],
    ],
    ids=str,
)
def test_labels_of_any_kind(two_groups, labels):
    X, groups = two_groups
    codes = (groups == "g1").astype(int)
    given = [labels[c] for c in codes]
    moments = GroupMoments.from_data(X, given)
    assert moments.groups.tolist() == labels
    expected = GroupMoments.from_data(X, groups)
    np.testing.assert_array_equal(moments.counts, expected.counts)
    np.testing.assert_array_equal(moments.second_moments(), expected.second_moments())


@pytest.mark.parametrize(
    "wrap",
    [
        list,
        tuple,
        pd.Series,
        lambda g: pd.Series(g, dtype="category"),
        lambda g: pd.Categorical(g, categories=["g1", "g0", "unused"]),
        lambda g: pl.Series(g),
        lambda g: pl.Series(g, dtype=pl.Categorical),
        lambda g: pa.chunked_array([g.tolist()]),
        lambda g: pa.chunked_array([g.tolist()]).dictionary_encode(),
        lambda g: pd.DataFrame({"sex": g}),
        lambda g: g[:, None],
        lambda g: g.astype(object),
    ],
)
def test_label_containers(two_groups, wrap):
    X, groups = two_groups
    moments = GroupMoments.from_data(X, wrap(groups))
    assert moments.groups.tolist() == ["g0", "g1"]
    assert_same(moments, GroupMoments.from_data(X, groups))


def test_weight_two_is_a_row_twice(two_groups):
    X, groups = two_groups
    w = np.where(groups == "g1", 2.0, 1.0)
    twice = np.repeat(np.arange(len(X)), w.astype(int))
    left = GroupMoments.from_data(X, groups, w)
    right = GroupMoments.from_data(X[twice], groups[twice])
    np.testing.assert_allclose(left.second_moments(), right.second_moments(), rtol=1e-12)
    np.testing.assert_allclose(left.weights, right.weights)


def test_weight_zero_is_a_row_left_out(two_groups):
    X, groups = two_groups
    w = np.ones(len(X))
    w[::3] = 0
    assert_same(
        GroupMoments.from_data(X, groups, w), GroupMoments.from_data(X[w > 0], groups[w > 0])
    )


def test_merge_changes_neither_operand_and_adds_groups():
    X, groups = make_groups(n=(20, 30, 5))
    left = GroupMoments.from_data(X[:25], groups[:25])
    right = GroupMoments.from_data(X[25:], groups[25:])
    before = left.second_moments(), right.second_moments()
    merged = left.merge(right)
    np.testing.assert_array_equal(left.second_moments(), before[0])
    np.testing.assert_array_equal(right.second_moments(), before[1])
    assert_same(merged, GroupMoments.from_data(X, groups))
    assert_same(right.merge(left), merged)
    empty = GroupMoments()
    assert_same(empty.merge(left), left)
    assert_same(left.merge(empty), left)
    empty.merge(left).update(X, groups)  # a copy: left is not affected
    np.testing.assert_array_equal(left.second_moments(), before[0])


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    cuts=st.lists(st.integers(0, 60), max_size=5),
    offset=st.sampled_from([0.0, 1e6]),
    weighted=st.booleans(),
)
def test_any_split_in_any_order(seed, cuts, offset, weighted):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(60, 3)) * 16) / 16 + offset
    groups = rng.integers(0, 3, 60)
    w = rng.integers(0, 4, 60).astype(float) if weighted else None
    edges = [0, *sorted(cuts), 60]
    parts = []
    for a, b in itertools.pairwise(edges):
        if a < b and (w is None or w[a:b].any()):
            parts.append(GroupMoments.from_data(X[a:b], groups[a:b], None if w is None else w[a:b]))
    rng.shuffle(parts)
    merged = functools.reduce(GroupMoments.merge, parts)
    updated = GroupMoments()
    for a, b in itertools.pairwise(edges):
        if a < b and (w is None or w[a:b].any()):
            updated.update(X[a:b], groups[a:b], None if w is None else w[a:b])
    assert_same(merged, updated, rtol=1e-9)
    if (merged.weights > 0).all() and w is None:
        np.testing.assert_allclose(
            merged.second_moments(), by_definition(X, groups), rtol=1e-9, atol=1e-9
        )


def test_refused_rows_add_nothing(two_groups):
    X, groups = two_groups
    moments = GroupMoments.from_data(X, groups)
    before = moments.second_moments()
    bad = X.copy()
    bad[7, 2] = np.nan
    with pytest.raises(ValueError, match="NaN in column 2, first in row 7"):
        moments.update(bad, groups)
    with pytest.raises(ValueError, match=r"3 features.*had 6"):
        moments.update(X[:, :3], groups)
    np.testing.assert_array_equal(moments.second_moments(), before)
    assert moments.counts.sum() == len(X)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.zeros((3, 2)) * 1j, ValueError, "Complex data not supported"),
        (np.array([["a", "b"]] * 3), TypeError, "must hold numbers"),
        (np.zeros((0, 2)), ValueError, r"0 sample\(s\)"),
        (np.zeros((3, 0)), ValueError, r"0 feature\(s\)"),
        (np.array([[1, "x"]] * 3, dtype=object), ValueError, "not numbers.*OneHotEncoder"),
        (np.ma.masked_less(np.eye(3), 0.5), ValueError, "masked entries"),
        (np.zeros(3), ValueError, "Expected 2D array, got 1D.*Reshape"),
        (np.zeros((3, 2, 2)), ValueError, "Expected 2D array, got 3D"),
        (np.diag([1e200, -1e200, 1]), ValueError, "squares overflow"),
        (np.diag([1e200, 1, 1]), ValueError, "squares overflow"),
        (
            np.array([[1, 2], [np.inf, 1], [1, 1]]),
            ValueError,
            "infinity in column 0, first in row 1",
        ),
        (
            sp.csr_array([[1, np.nan], [0, 1], [1, 1]]),
            ValueError,
            "NaN in column 1, first in row 0",
        ),
        (pd.DataFrame({"a": [1, 2, 3], "b": list("xyz")}), TypeError, "not numbers: 'b'"),
        (pd.DataFrame({"a": [1, None, 3], "b": [1, 2, 3]}), ValueError, "NaN in column 'a'"),
        (pl.DataFrame({"a": [1, 2, 3], "b": [1, None, 2]}), ValueError, "NaN in column 'b'"),
        (pd.DataFrame({"a": pd.array([1, None, 3], "Int64")}), ValueError, "NaN in column 'a'"),
    ],
    ids=lambda value: str(value)[:30].replace("\n", " "),
)
def test_bad_X(X, error, message):
    with pytest.raises(error, match=message):
        GroupMoments.from_data(X, [0, 1, 1][: X.shape[0]])


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        (["a", "b"], ValueError, "2 labels but X has 4 rows"),
        (["a", None, "b", "a"], ValueError, "1 missing labels, the first in row 1"),
        ([1.0, np.nan, 2.0, np.nan], ValueError, "2 missing labels, the first in row 1"),
        (pd.Series(["a", "b", None, "a"]), ValueError, "missing labels, the first in row 2"),
        (pl.Series(["a", "b", "b", None]), ValueError, "missing labels, the first in row 3"),
        (pd.Series([1, 2, None, 1], dtype="Int64"), ValueError, "missing labels"),
        (np.zeros((4, 2, 2)), ValueError, r"shape \(4, 2, 2\)"),
        (np.zeros((3, 2)), ValueError, "3 labels but X has 4 rows"),
        (np.zeros((4, 0)), ValueError, "table without columns"),
        (pd.DataFrame({"a": list("xyxy"), "b": [1, 1, 1, None]}), ValueError, "1 missing labels"),
        (np.array([1j, 2, 3, 4]), TypeError, "complex"),
        ("sex", TypeError, r"sensitive_features='sex' is a name, but X \(ndarray\) has no columns"),
    ],
    ids=lambda value: str(value)[:30].replace("\n", " "),
)
def test_bad_groups(groups, error, message):
    X = np.arange(12.0).reshape(4, 3)
    with pytest.raises(error, match=message):
        GroupMoments.from_data(X, groups)


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        ([1, 1, 1], ValueError, r"shape \(3,\) but X has 4 rows"),
        ([1, -1, 1, 1], ValueError, "row 1 has -1.0"),
        ([1, 1, np.nan, 1], ValueError, "row 2 has nan"),
        ([1, 1, np.inf, 1], ValueError, "row 2 has inf"),
        ([0, 0, 0, 0], ValueError, "zero in every row"),
        (["a", "b", "c", "d"], TypeError, "must be numbers"),
        ([1j, 1, 1, 1], TypeError, "complex"),
        (np.ones((4, 1)), ValueError, r"shape \(4, 1\)"),
    ],
    ids=str,
)
def test_bad_weights(weights, error, message):
    X = np.arange(12.0).reshape(4, 3)
    with pytest.raises(error, match=message):
        GroupMoments.from_data(X, [0, 1, 0, 1], weights)


def test_other_refusals(two_groups):
    X, groups = two_groups
    with pytest.raises(ValueError, match="empty; add rows"):
        GroupMoments().second_moments()
    with pytest.raises(ValueError, match="center='mean': pass 'overall', 'group' or 'balanced'"):
        GroupMoments.from_data(X, groups).second_moments("mean")
    alone = np.where(np.arange(len(X)) == 3, "alone", "others")
    moments = GroupMoments.from_data(X, alone)
    assert np.isfinite(moments.second_moments()).all()
    with pytest.raises(ValueError, match=r"\['alone'\]"):
        moments.second_moments("group")
    with pytest.raises(ValueError, match=r"\['alone'\]"):
        moments.operand("group", np.array([True, True]))
    assert moments.operand("group").traces[0] == pytest.approx(0, abs=1e-9)
    with pytest.raises(ValueError, match=r"\['alone'\]"):
        GroupMoments.from_data(X, alone, (alone != "alone").astype(float)).second_moments()
    with pytest.raises(TypeError, match=r"got ndarray; add rows with update"):
        GroupMoments.from_data(X, groups).merge(X)
    with pytest.raises(TypeError, match=r"fit\(duckdb.sql\(.*people.csv"):
        GroupMoments.from_data("people.csv", groups)
    left = GroupMoments.from_data(pd.DataFrame(X, columns=list("abcdef")), groups)
    right = GroupMoments.from_data(pd.DataFrame(X, columns=list("abcdeg")), groups)
    with pytest.raises(ValueError, match=r"unexpected: \['g'\], missing: \['f'\]"):
        left.merge(right)
    reordered = GroupMoments.from_data(pd.DataFrame(X, columns=list("abcdfe")), groups)
    with pytest.raises(ValueError, match="another order"):
        left.merge(reordered)


def test_repr(two_groups):
    X, groups = two_groups
    text = repr(GroupMoments.from_data(X, groups))
    assert text == "GroupMoments({'g0': 90, 'g1': 60}, n_features=6)"


def test_rows_of_weight_zero_do_not_cost_digits():
    X, groups = make_groups(n=(150, 150), d=3)
    X[150:] += 1e9
    X[:150] = 0.0
    groups = np.tile(["a", "b"], 150)
    weights = np.repeat([0.0, 1.0], 150)
    assert_same(
        GroupMoments.from_data(X, groups, weights), GroupMoments.from_data(X[150:], groups[150:])
    )


def test_copies_change_alone():
    X, groups = make_groups((90, 60), d=4)
    moments = GroupMoments.from_data(X, groups)
    other = copy.copy(moments).update(X + 5, groups)
    assert_same(moments, GroupMoments.from_data(X, groups))
    assert_same(other, GroupMoments.from_data(np.vstack([X, X + 5]), np.tile(groups, 2)))


def test_labels_that_differ_by_their_type_only():
    X, groups = make_groups((90, 60), d=4)
    numbers = (groups == "g1").astype(int)
    moments = GroupMoments.from_data(X, numbers)
    with pytest.raises(ValueError, match="0 and '0'"):
        moments.update(X, numbers.astype(str))
    assert_same(moments, GroupMoments.from_data(X, numbers))


@pytest.mark.parametrize("value", [1.7e308, 1e200])
def test_rows_of_weight_zero_do_not_cost_others_their_digits(value):
    rng = np.random.default_rng(0)
    X, groups, weights = rng.normal(size=(500, 3)) + 1e8, np.arange(500) % 3 == 0, np.ones(500)
    expected = GroupMoments.from_data(X[1:], groups[1:])
    X[0], weights[0] = value, 0.0
    moments = GroupMoments.from_data(X, groups, weights)
    np.testing.assert_allclose(moments.second_moments(), expected.second_moments(), rtol=1e-9)


def test_pickled_moments_hold_triangles():
    """Of symmetric matrices half of the numbers are enough, to send and to store."""
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(300, 60)), np.arange(300) % 3
    moments = GroupMoments.from_data(X, groups, folds=2)
    content = pickle.dumps(moments)
    assert len(content) < 6 * 8 * 60 * 61 / 2 * 1.1
    again = pickle.loads(content)
    assert_same(again, moments)
    for ours, theirs in zip(again.split(0), moments.split(0), strict=True):
        assert_same(ours, theirs)


def test_many_moments_are_merged_at_once():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) + np.array([1e5, 0, 0])
    groups = rng.choice(list("abc"), 300)
    parts = [
        GroupMoments.from_data(X[start : start + 50], groups[start : start + 50])
        for start in range(0, 300, 50)
    ]
    expected = GroupMoments.from_data(X, groups)
    assert_same(GroupMoments().merge(*parts), expected, rtol=1e-9)
    assert_same(parts[0].merge(*parts[1:]), expected, rtol=1e-9)
    assert_same(parts[0].merge(), parts[0])


def test_groups_come_apart():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(60, 3)), np.arange(60) % 3
    moments = GroupMoments.from_data(X, groups, folds=2)
    parts = dict(moments.by_group())
    assert list(parts) == [0, 1, 2]
    assert_same(parts[1], GroupMoments.from_data(X[groups == 1], groups[groups == 1]), rtol=1e-10)
    again = GroupMoments().merge(*parts.values())
    for ours, theirs in zip(again.split(1), moments.split(1), strict=True):
        assert_same(ours, theirs)
