"""Small blocks added one by one: the result is that of all rows at once."""

from __future__ import annotations

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pandas as pd
import pytest
from helpers.data import assert_same, make_groups
from helpers.inside import accumulate
from hypothesis import given, settings
from hypothesis import strategies as st

from fairpca import FairPCA, GroupMoments

ACTIONS = ["nothing", "read", "pickle", "copy", "deepcopy", "merge", "refused"]


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.lists(
        st.tuples(st.integers(1, 50), st.sampled_from(ACTIONS)), min_size=1, max_size=12
    ),
    weighted=st.booleans(),
)
def test_whatever_comes_between_blocks(seed, steps, weighted):
    rng = np.random.default_rng(seed)
    n = sum(size for size, _ in steps)
    X = rng.normal(size=(n, 3)) * [1, 10, 0.1] + [1e4, 0, -5]
    groups = rng.integers(0, 3, n)
    w = rng.uniform(0.5, 2, n) if weighted else None
    moments, start = GroupMoments(), 0
    for size, action in steps:
        rows = slice(start, start + size)
        passed = X[rows].copy()
        moments.update(passed, groups[rows], None if w is None else w[rows])
        passed[:] = np.nan  # the caller may use its array again
        start += size
        if action == "read":
            assert moments.counts.sum() == start
        elif action == "pickle":
            moments = pickle.loads(pickle.dumps(moments))
        elif action == "copy":
            moments = copy.copy(moments)
        elif action == "deepcopy":
            moments = copy.deepcopy(moments)
        elif action == "merge":
            moments = GroupMoments().merge(moments)
        elif action == "refused":
            with pytest.raises(ValueError, match="NaN"):
                moments.update(passed, groups[rows])
    assert_same(moments, GroupMoments.from_data(X, groups, w), rtol=1e-9)


def test_copy_and_original_part_ways():
    X, groups = make_groups(n=(60, 40), d=3)
    moments = GroupMoments.from_data(X[:50], groups[:50]).update(X[50:60], groups[50:60])
    merged, copied = moments.merge(GroupMoments()), copy.copy(moments)
    moments.update(X[60:], groups[60:])
    for other in (merged, copied):
        assert_same(other, GroupMoments.from_data(X[:60], groups[:60]))
    assert_same(moments, GroupMoments.from_data(X, groups))


def test_no_rows_are_pickled():
    X, groups = make_groups(n=(60, 40), d=3)
    moments = GroupMoments.from_data(X[:20], groups[:20]).update(X[20:], groups[20:])
    assert len(pickle.dumps(moments)) < X.nbytes


@pytest.mark.parametrize("weight", [None, 1.0])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, "NaN in column 1, first in row 2"),
        (np.inf, "infinity in column 1, first in row 2"),
        (-np.inf, "infinity in column 1, first in row 2"),
        (1e200, "squares overflow"),
        (-1e200, "squares overflow"),
    ],
)
def test_refused_at_once(value, message, weight):
    X, groups = make_groups(n=(30, 30), d=3)
    moments = GroupMoments.from_data(X, groups).update(X[:30], groups[:30])
    bad = X[:20].copy()
    bad[2, 1] = value
    w = None if weight is None else np.full(20, weight)
    with pytest.raises(ValueError, match=message):
        moments.update(bad, groups[:20], w)
    together = np.concatenate([X, X[:30]]), np.concatenate([groups, groups[:30]])
    assert_same(moments, GroupMoments.from_data(*together))


@pytest.mark.parametrize(("value", "weight"), [(1e180, 1e-40), (-1e180, 1e-40), (1e90, 1e200)])
def test_squares_of_weighted_rows_that_overflow(value, weight):
    X, groups = make_groups(n=(20, 15), d=3)
    moments = GroupMoments.from_data(X, groups)
    bad, weights = X.copy(), np.ones(len(X))
    bad[3, 1], weights[3] = value, weight
    with pytest.raises(ValueError, match="squares overflow"):
        moments.update(bad, groups, weights)
    assert_same(moments, GroupMoments.from_data(X, groups))


def test_a_new_group_and_a_large_block():
    X, groups = make_groups(n=(100, 80, 20), d=3)
    order = np.argsort(groups, kind="stable")
    X, groups = X[order], groups[order]
    moments = GroupMoments()
    for rows in (slice(0, 30), slice(30, 35), slice(35, 150), slice(150, 160), slice(160, 200)):
        moments.update(X[rows], groups[rows])
    assert_same(moments, GroupMoments.from_data(X, groups))


def test_kinds_of_rows():
    X, groups = make_groups(n=(60, 40), d=3)
    X = np.round(X * 8).astype(np.float32)
    moments = GroupMoments.from_data(X[:20], groups[:20])
    moments.update(X[20:40].astype(int), groups[20:40])
    moments.update(X[40:60], groups[40:60])
    moments.update(pd.DataFrame(X[60:80], columns=list("abc")), groups[60:80])
    assert moments.feature_names == ["a", "b", "c"]
    moments.update(X[80:].tolist(), groups[80:])
    assert_same(moments, GroupMoments.from_data(X, groups))


def test_some_blocks_are_weighted_and_some_are_not():
    X, groups = make_groups(n=(60, 40), d=3)
    weights = np.ones(100)
    weights[40:60] = np.arange(20) / 8
    moments = GroupMoments.from_data(X[:20], groups[:20]).update(X[20:40], groups[20:40])
    moments.update(X[40:60], groups[40:60], weights[40:60]).update(X[60:], groups[60:])
    assert_same(moments, GroupMoments.from_data(X, groups, weights))


def test_the_first_results_are_asked_for_by_several_threads():
    X, groups = make_groups(n=(60, 40), d=3)
    moments = GroupMoments.from_data(X[:50], groups[:50])
    for start in range(50, 100, 10):
        moments.update(X[start : start + 10], groups[start : start + 10])
    barrier = Barrier(4)

    def read(_):
        barrier.wait()
        return moments.second_moments()

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(read, range(4)))
    for answer in answers:
        np.testing.assert_array_equal(answer, answers[0])
    assert_same(moments, GroupMoments.from_data(X, groups))


def test_results_repeat():
    X, groups = make_groups(n=(300, 200), d=6)

    def in_blocks():
        moments = GroupMoments()
        for start in range(0, 500, 15):
            moments.update(X[start : start + 15], groups[start : start + 15])
        return moments.second_moments()

    np.testing.assert_array_equal(in_blocks(), in_blocks())


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, -1]),
        np.array([True, False]),
        np.array(["f", "m"]),
        np.array(["f", "m"], object),
        np.array([0.5, 2.0]),
        np.arange(12),
    ],
    ids=str,
)
@pytest.mark.parametrize("wrap", [np.asarray, list, pd.Series], ids=["array", "list", "Series"])
def test_labels_of_all_kinds(labels, wrap):
    X, _ = make_groups(n=(70, 30), d=3)
    groups = np.tile(labels, 50)[:100]
    moments = GroupMoments.from_data(X[:40], wrap(groups[:40]))
    for start in range(40, 100, 20):
        moments.update(X[start : start + 20], wrap(groups[start : start + 20]))
    assert_same(moments, GroupMoments.from_data(X, wrap(groups)))
    with pytest.raises(ValueError, match="2 labels but X has 3 rows"):
        moments.update(X[:3], wrap(groups[:2]))
    assert moments.counts.sum() == 100


def in_blocks(X, groups):
    """Moments of 140 rows."""
    moments = GroupMoments.from_data(X[:10], groups[:10])
    for start, stop in [(10, 50), (50, 90), (90, 130), (130, 140)]:
        moments.update(X[start:stop], groups[start:stop])
    return moments


class InterruptAtLine:
    """Ctrl-C at the n-th line of our own code that runs."""

    def __init__(self, n):
        self.left = n

    def __call__(self, frame, event, arg):
        if "_moments" not in frame.f_code.co_filename:
            return None
        self.left -= event == "line"
        if self.left == 0:
            raise KeyboardInterrupt
        return self

    def stops(self, work, *args):
        """Whether the work was interrupted."""
        before = sys.gettrace()
        sys.settrace(self)
        try:
            work(*args)
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(before)
        return False


def test_an_interrupt_leaves_whole_blocks():
    X, groups = make_groups(n=(120, 80), d=3)
    rows = slice(140, 200)
    without = GroupMoments.from_data(X[:140], groups[:140])
    with_rows = GroupMoments.from_data(X[: rows.stop], groups[: rows.stop])
    outcomes, interrupted, n = set(), True, 0
    while interrupted:
        n += 1
        moments = in_blocks(X, groups)
        interrupted = InterruptAtLine(n).stops(moments.update, X[rows], groups[rows])
        added = moments.counts.sum() != 140
        outcomes.add((interrupted, added))
        assert_same(moments, with_rows if added else without)
    assert {(True, False), (False, True)} <= outcomes


def test_a_block_without_weight_adds_nothing():
    X, groups = make_groups(n=(20, 15), d=3)
    moments = GroupMoments.from_data(X, groups)
    moments.update(X, groups, np.zeros(len(X)))
    assert_same(moments, GroupMoments.from_data(X, groups))
    with pytest.raises(ValueError, match="zero in every row"):
        GroupMoments.from_data(X, groups, np.zeros(len(X)))


def test_partial_fit_of_blocks_of_usual_size():
    X, groups = make_groups(n=(15_000, 5_000), d=50)
    fair = FairPCA(5)
    for start in range(0, len(X), 4000):
        fair.partial_fit(X[start : start + 4000], sensitive_features=groups[start : start + 4000])
    whole = FairPCA(5).fit(X, sensitive_features=groups)
    np.testing.assert_allclose(fair.components_, whole.components_, atol=1e-9)


def test_a_group_first_met_without_weight_gets_its_shift_from_rows_that_count():
    rng = np.random.default_rng(0)
    first, far = rng.normal(size=(40, 3)), 1e9 + rng.normal(size=(400, 3))
    codes, weights = np.arange(40) % 2, np.arange(40) % 2 == 0
    first[codes == 1] = 0.0
    moments = GroupMoments.from_data(first, codes, weights)
    moments.update(far, np.ones(400, int))
    expected = far.var(axis=0)
    np.testing.assert_allclose(np.diagonal(moments.second_moments("group")[1]), expected, rtol=1e-6)


def test_fewer_rows_than_threads(monkeypatch):
    monkeypatch.setattr(accumulate, "WORK_WORTH_A_THREAD", 1)
    monkeypatch.setattr(accumulate, "blas_threads", lambda: 8)
    X, groups = make_groups((40, 20), d=3)
    moments = GroupMoments.from_data(X, groups)
    for row in range(3):
        moments.update(X[[row]], groups[[row]])
    again = np.r_[: len(X), :3]
    assert_same(moments, GroupMoments.from_data(X[again], groups[again]))


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_parts_shared_among_threads_add_up_and_repeat(monkeypatch, n_threads):
    monkeypatch.setattr(accumulate, "WORK_WORTH_A_THREAD", 1)
    monkeypatch.setattr(accumulate, "_ROWS_A_GROUP", 8)
    monkeypatch.setattr(accumulate, "blas_threads", lambda: n_threads)
    X, groups = make_groups((150, 77), d=3)
    X, groups = X[np.argsort(X[:, 0])] + 1e6, groups[::-1]
    weights = np.linspace(0.0, 2.0, len(X))
    once, again = (GroupMoments.from_data(X, groups, weights) for _ in range(2))
    np.testing.assert_array_equal(once.second_moments(), again.second_moments())
    for g, label in enumerate(once.groups):
        rows, w = X[groups == label], weights[groups == label]
        expected = np.cov(rows.T, aweights=w, ddof=0)
        np.testing.assert_allclose(once.second_moments("group")[g], expected, rtol=1e-8)
        np.testing.assert_allclose(once.means[g], np.average(rows, axis=0, weights=w))


def test_infinities_of_both_signs_in_two_parts_are_refused_by_name(monkeypatch):
    monkeypatch.setattr(accumulate, "WORK_WORTH_A_THREAD", 1)
    monkeypatch.setattr(accumulate, "blas_threads", lambda: 2)
    X, groups = make_groups((40, 20), d=3)
    X[[0, -1], 1] = np.inf, -np.inf
    with pytest.raises(ValueError, match="infinity in column 1, first in row 0"):
        GroupMoments.from_data(X, np.zeros(len(groups), int))
