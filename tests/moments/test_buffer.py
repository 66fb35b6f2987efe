"""Small blocks added one by one, whose sums wait for the next block."""

from __future__ import annotations

import copy
import itertools
import os
import pickle
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, current_thread

import numpy as np
import pandas as pd
import pytest
from helpers.data import assert_same, make_groups
from hypothesis import given, settings
from hypothesis import strategies as st

from fairpca import FairPCA, GroupMoments
from fairpca._moments import buffer as pending

CAPACITY = 40


WAYS = {"in the call": 1, "in the background": 2}  # by the number of threads


def use_small_buffers(patch, way):
    patch.setattr(pending, "_room", lambda k, d: CAPACITY)
    patch.setattr(pending, "blas_threads", lambda: WAYS[way])


@pytest.fixture(params=WAYS)
def small_buffers(request, monkeypatch):
    use_small_buffers(monkeypatch, request.param)


ACTIONS = ["nothing", "read", "pickle", "copy", "deepcopy", "merge", "refused"]


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.lists(
        st.tuples(st.integers(1, CAPACITY + 10), st.sampled_from(ACTIONS)), min_size=1, max_size=12
    ),
    weighted=st.booleans(),
    way=st.sampled_from(list(WAYS)),
)
def test_whatever_comes_between_blocks(seed, steps, weighted, way):
    rng = np.random.default_rng(seed)
    n = sum(size for size, _ in steps)
    X = rng.normal(size=(n, 3)) * [1, 10, 0.1] + [1e4, 0, -5]
    groups = rng.integers(0, 3, n)
    w = rng.uniform(0.5, 2, n) if weighted else None
    with pytest.MonkeyPatch.context() as patch:
        use_small_buffers(patch, way)
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


def test_copy_and_original_part_ways(small_buffers):
    X, groups = make_groups(n=(60, 40), d=3)
    moments = GroupMoments.from_data(X[:50], groups[:50]).update(X[50:60], groups[50:60])
    merged = moments.merge(GroupMoments())
    moments.update(X[60:], groups[60:])
    assert_same(merged, GroupMoments.from_data(X[:60], groups[:60]))
    assert_same(moments, GroupMoments.from_data(X, groups))


@pytest.mark.parametrize("weight", [None, 1.0])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, "NaN in column 1, first in row 2"),
        (np.inf, "infinity in column 1, first in row 2"),
        (1e200, "squares overflow"),
    ],
)
def test_refused_at_once(small_buffers, value, message, weight):
    X, groups = make_groups(n=(30, 30), d=3)
    moments = GroupMoments.from_data(X, groups).update(X[:30], groups[:30])
    bad = X[:20].copy()
    bad[2, 1] = value
    w = None if weight is None else np.full(20, weight)
    with pytest.raises(ValueError, match=message):
        moments.update(bad, groups[:20], w)
    together = np.concatenate([X, X[:30]]), np.concatenate([groups, groups[:30]])
    assert_same(moments, GroupMoments.from_data(*together))


def test_a_new_group_and_a_large_block(small_buffers):
    X, groups = make_groups(n=(100, 80, 20), d=3)
    order = np.argsort(groups, kind="stable")
    X, groups = X[order], groups[order]
    moments = GroupMoments()
    for rows in (slice(0, 30), slice(30, 35), slice(35, 150), slice(150, 160), slice(160, 200)):
        moments.update(X[rows], groups[rows])
    assert_same(moments, GroupMoments.from_data(X, groups))


def test_kinds_of_rows(small_buffers):
    X, groups = make_groups(n=(60, 40), d=3)
    X = np.round(X * 8).astype(np.float32)
    moments = GroupMoments.from_data(X[:20], groups[:20])
    moments.update(X[20:40].astype(int), groups[20:40])
    moments.update(X[40:60], groups[40:60])
    moments.update(pd.DataFrame(X[60:80], columns=list("abc")), groups[60:80])
    assert moments.feature_names == ["a", "b", "c"]
    moments.update(X[80:].tolist(), groups[80:])
    assert_same(moments, GroupMoments.from_data(X, groups))


def test_the_first_results_are_asked_for_by_several_threads(small_buffers):
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


def test_results_repeat(small_buffers):
    X, groups = make_groups(n=(300, 200), d=6)

    def in_blocks():
        moments = GroupMoments()
        for start in range(0, 500, 30):
            moments.update(X[start : start + 30], groups[start : start + 30])
        return moments.second_moments()

    np.testing.assert_array_equal(in_blocks(), in_blocks())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork a process")
def test_a_process_forked_in_between_has_all_rows(monkeypatch):
    """A child has no threads of its parent, so it must not inherit their unfinished work."""
    use_small_buffers(monkeypatch, "in the background")
    multiply = pending.add_gram
    monkeypatch.setattr(pending, "add_gram", lambda G, Z: (time.sleep(0.3), multiply(G, Z)))
    X, groups = make_groups(n=(60, 40), d=3)
    moments = GroupMoments.from_data(X[:30], groups[:30])
    moments.update(X[30:65], groups[30:65]).update(X[65:], groups[65:])
    assert not pending._latest.done()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: threads and fork
        child = os.fork()
    if child == 0:  # pragma: no cover
        same = np.allclose(
            moments.second_moments(), GroupMoments.from_data(X, groups).second_moments()
        )
        os._exit(0 if same else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert_same(moments, GroupMoments.from_data(X, groups))


def test_blocks_of_usual_size_are_multiplied_in_the_background(monkeypatch):
    X, groups = make_groups(n=(60_000, 20_000), d=50)
    monkeypatch.setattr(pending, "blas_threads", lambda: 2)
    multiply, threads = pending.add_gram, set()

    def spy(G, Z):
        threads.add(current_thread().name)
        multiply(G, Z)

    monkeypatch.setattr(pending, "add_gram", spy)
    fair = FairPCA(5)
    for start in range(0, len(X), 4000):
        fair.partial_fit(X[start : start + 4000], sensitive_features=groups[start : start + 4000])
    assert threads == {"fairpca_0"}
    whole = FairPCA(5).fit(X, sensitive_features=groups)
    np.testing.assert_allclose(fair.components_, whole.components_, atol=1e-9)


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
def test_labels_of_all_kinds(small_buffers, labels, wrap):
    X, _ = make_groups(n=(70, 30), d=3)
    groups = np.tile(labels, 50)[:100]
    moments = GroupMoments.from_data(X[:40], wrap(groups[:40]))
    for start in range(40, 100, 20):
        moments.update(X[start : start + 20], wrap(groups[start : start + 20]))
    assert moments._pending._buffers
    assert_same(moments, GroupMoments.from_data(X, wrap(groups)))
    with pytest.raises(ValueError, match="2 labels but X has 3 rows"):
        moments.update(X[:3], wrap(groups[:2]))
    assert moments.counts.sum() == 100


def test_an_interrupt_leaves_whole_blocks(small_buffers, monkeypatch):
    X, groups = make_groups(n=(60, 40), d=3)
    moments, finish = GroupMoments.from_data(X[:20], groups[:20]), pending._finish
    calls = itertools.count()

    def interrupted(buffer):
        if next(calls) % 2 == 0:
            raise KeyboardInterrupt
        finish(buffer)

    monkeypatch.setattr(pending, "_finish", interrupted)
    n_interrupts = 0
    for start in range(20, 100, 10):
        rows = slice(start, start + 10)
        for _ in range(5):
            try:
                moments.update(X[rows], groups[rows])
                break
            except KeyboardInterrupt:
                n_interrupts += 1  # the block was not taken: try again
    monkeypatch.setattr(pending, "_finish", finish)
    assert n_interrupts
    assert_same(moments, GroupMoments.from_data(X, groups))


def test_another_thread_reads_and_writes_meanwhile(small_buffers):
    X, groups = make_groups(n=(20, 15), d=6)
    moments, n_rounds = GroupMoments.from_data(X, groups), 300

    def write():
        for _ in range(n_rounds):
            moments.update(X, groups)

    with ThreadPoolExecutor(2) as pool:
        writers = [pool.submit(write) for _ in range(2)]
        while not all(writer.done() for writer in writers):
            assert moments.counts.sum() % len(X) == 0
        for writer in writers:
            writer.result()
    assert moments.counts.sum() == (2 * n_rounds + 1) * len(X)
    expected = GroupMoments.from_data(X, groups).second_moments()
    np.testing.assert_allclose(moments.second_moments(), expected, atol=1e-9)


def test_a_thread_that_outlives_the_main_one():
    code = """
import threading, time
import numpy as np
from fairpca import GroupMoments
from fairpca._moments import buffer as _pending
_pending.blas_threads = lambda: 2
_pending._room = lambda k, d: 40
X, groups = np.random.default_rng(0).normal(size=(30, 3)), np.arange(30) % 2
def work():
    moments = GroupMoments()
    for _ in range(40):
        moments.update(X, groups)
        time.sleep(0.01)
    print(moments.counts.sum())
threading.Thread(target=work).start()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1200\n", done.stderr


@pytest.mark.parametrize("value", [1e180, -1e180])
def test_squares_of_weighted_rows_that_overflow(small_buffers, value):
    X, groups = make_groups(n=(20, 15), d=3)
    moments = GroupMoments.from_data(X, groups)
    bad, weights = X.copy(), np.ones(len(X))
    bad[3, 1], weights[3] = value, 1e-40
    with pytest.raises(ValueError, match="squares overflow"):
        moments.update(bad, groups, weights)
    assert_same(moments, GroupMoments.from_data(X, groups))


def test_a_block_without_weight_adds_nothing(small_buffers):
    X, groups = make_groups(n=(20, 15), d=3)
    moments = GroupMoments.from_data(X, groups)
    moments.update(X, groups, np.zeros(len(X)))
    assert_same(moments, GroupMoments.from_data(X, groups))
    with pytest.raises(ValueError, match="zero in every row"):
        GroupMoments.from_data(X, groups, np.zeros(len(X)))
