"""Threads, forks and signals in the middle of a fit: the right answer, or none."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers.data import make_groups
from helpers.inside import blas_threads, single_threaded_blas
from helpers.marks import posix
from sklearn.base import clone
from stress.estimators import EVERY, FOR_TWO_GROUPS

from fairpca.exceptions import quietly

pytestmark = pytest.mark.stress

_HUNG = 60  # seconds after which a child counts as hung


def any_fit(rng):
    """An estimator and its data, large enough to be interrupted."""
    name = list(EVERY)[rng.integers(len(EVERY))]
    sizes = (900, 600) if name in FOR_TWO_GROUPS else (700, 500, 300)
    X, groups = make_groups(sizes, d=30, seed=int(rng.integers(1000)), alike=0.7)
    return clone(EVERY[name]), X, groups


def test_threads(rng):
    """Fits at the same time give what they give one after the other."""
    jobs = [any_fit(rng) for _ in range(6)]

    def run(job):
        fair, X, groups = job
        return clone(fair).fit(X, sensitive_features=groups).components_

    with quietly():
        expected = [run(job) for job in jobs]
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(run, jobs))
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


@posix
def test_forks_while_threads_limit_blas(rng):
    """A child can fit, and has all BLAS threads, whatever threads its parent had.

    The threads enter and leave the limit, but do not fit: numpy alone may hang in a child that was
    forked while another thread was inside BLAS, and so may functools.cached_property of Python
    3.11, which locks.
    """
    fair, X, groups = any_fit(rng)
    n_threads, stop, inside = blas_threads(), threading.Event(), threading.Event()

    def come_and_go():
        while not stop.is_set():
            with single_threaded_blas():
                pass

    def stay():
        with single_threaded_blas():
            inside.set()
            stop.wait()

    with quietly(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: threads and fork
        threads = [threading.Thread(target=target) for target in (come_and_go, come_and_go, stay)]
        for thread in threads:
            thread.start()
        inside.wait()
        try:
            for _ in range(20):
                assert _child_fits(fair, X, groups, n_threads)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    assert blas_threads() == n_threads


def _child_fits(fair, X, groups, n_threads):
    child = os.fork()
    if child == 0:  # pragma: no cover
        code = 1
        try:
            signal.alarm(_HUNG)
            assert blas_threads() == n_threads
            clone(fair).fit(X, sensitive_features=groups)
            assert blas_threads() == n_threads
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == 0


class _Interrupted(BaseException):
    pass


@posix
def test_signals(rng):
    """A fit that is interrupted leaves the estimator as it was before, and usable."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals arrive in the main thread")
    fair, X, groups = any_fit(rng)

    def interrupt(number, frame):
        raise _Interrupted

    with quietly():
        whole = clone(fair).fit(X, sensitive_features=groups)
        start = time.perf_counter()
        fair.fit(X[::2], sensitive_features=groups[::2])
        duration = time.perf_counter() - start
        before = fair.components_
        handler = signal.signal(signal.SIGALRM, interrupt)
        try:
            for _ in range(10):
                try:
                    signal.setitimer(signal.ITIMER_REAL, max(rng.uniform(0, 2 * duration), 1e-6))
                    fair.fit(X, sensitive_features=groups)
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except _Interrupted:
                    pass
                after = fair.components_
                done = np.array_equal(after, whole.components_)
                assert done or np.array_equal(after, before)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)
        fair.fit(X, sensitive_features=groups)
    np.testing.assert_array_equal(fair.components_, whole.components_)
    np.testing.assert_array_equal(fair.group_errors_, whole.group_errors_)
