"""One BLAS thread as long as any of our threads needs that; parallel work keeps its order."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from threading import Event, get_ident

import pytest
from helpers.inside import _blas, blas_threads, parallel_map, single_threaded_blas


class Library:
    """A BLAS library as threadpoolctl shows it."""

    num_threads = 4

    def set_num_threads(self, number):
        self.num_threads = number


@pytest.fixture
def blas(monkeypatch):
    library = Library()
    monkeypatch.setattr(_blas, "_libraries", lambda: [library])
    return library


def test_the_last_thread_lifts_the_limit(blas):
    entered, leave = Event(), Event()

    def hold():
        with single_threaded_blas():
            entered.set()
            leave.wait()

    with ThreadPoolExecutor(1) as pool:
        with single_threaded_blas():
            held = pool.submit(hold)
            entered.wait()
        assert blas.num_threads == 1
        leave.set()
        held.result()
    assert blas.num_threads == blas_threads() == 4


def test_the_limit_is_lifted_after_an_error(blas):
    with pytest.raises(KeyError), single_threaded_blas(), single_threaded_blas():
        raise KeyError
    assert blas.num_threads == 4


@pytest.mark.parametrize("n_threads", [None, 1, 2, 5])
def test_results_keep_the_order_of_the_items(blas, n_threads):
    results = list(parallel_map(lambda i: (i, blas.num_threads), range(20), n_threads))
    assert results == [(i, 1) for i in range(20)]
    assert blas.num_threads == 4


def test_items_are_drawn_a_few_ahead(blas):
    drawn = []
    results = parallel_map(str, (drawn.append(i) or i for i in range(100)), 2)
    assert next(results) == "0"
    assert len(drawn) == 3
    results.close()
    assert blas.num_threads == 4


def test_work_is_shared(blas):
    """The first thread ends only when another one has begun."""
    threads, both = set(), Event()

    def work(_):
        threads.add(get_ident())
        if len(threads) == 2:
            both.set()
        return both.wait(60)

    assert all(parallel_map(work, range(2), 2))


@pytest.mark.parametrize("n_threads", [1, 3])
def test_an_error_ends_the_work(blas, n_threads):
    done = []

    def work(i):
        done.append(i)
        return 1 / (i - 5)

    with pytest.raises(ZeroDivisionError):
        list(parallel_map(work, range(1000), n_threads))
    assert len(done) < 1000
    assert blas.num_threads == 4


def test_parallel_work_within_parallel_work_ends(blas):
    many = 4 * (os.cpu_count() or 1)

    def work(i):
        return sum(parallel_map(lambda j: i * j, range(many), many))

    total = many * (many - 1) // 2
    assert list(parallel_map(work, range(many), many)) == [i * total for i in range(many)]
