"""One BLAS thread for as long as any of our threads needs that, in forked processes too."""

from __future__ import annotations

import os
import signal
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread, get_ident

import pytest

from fairpca import _threads
from fairpca._threads import (
    blas_threads,
    computed_once,
    ordered_map,
    share_out,
    single_threaded_blas,
)


class Library:
    """A BLAS library as threadpoolctl shows it."""

    num_threads = 4

    def set_num_threads(self, number):
        self.num_threads = number


@pytest.fixture
def blas(monkeypatch):
    library = Library()
    monkeypatch.setattr(_threads, "_libraries", lambda: [library])
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


def test_results_keep_the_order_of_the_items(blas):
    assert list(ordered_map(lambda i: (i, blas.num_threads), range(20))) == [
        (i, 1) for i in range(20)
    ]
    assert blas.num_threads == 4


def test_items_are_drawn_a_few_ahead(blas):
    drawn = []
    results = ordered_map(str, (drawn.append(i) or i for i in range(100)), 2)
    assert next(results) == "0"
    assert len(drawn) == 3
    results.close()
    assert blas.num_threads == 4


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_shared_work_keeps_the_order_of_the_items(blas, n_threads):
    assert share_out(lambda i: (i, blas.num_threads), range(20), n_threads) == [
        (i, 1) for i in range(20)
    ]
    assert blas.num_threads == 4


def test_work_is_shared(blas):
    """The first thread ends only when another one has begun."""
    threads, both = set(), Event()

    def work(_):
        threads.add(get_ident())
        if len(threads) == 2:
            both.set()
        return both.wait(60)

    assert all(share_out(work, range(2), 2))


def test_an_error_ends_shared_work(blas):
    for n_threads in (1, 3):
        with pytest.raises(ZeroDivisionError):
            share_out(lambda i: 1 / (i - 5), range(1000), n_threads)
        assert blas.num_threads == 4


def test_an_error_in_another_thread_ends_the_work_of_this_one(blas):
    mine, failed = get_ident(), Event()

    def work(i):
        if get_ident() != mine:
            failed.set()
            raise KeyError(i)
        failed.wait(60)
        return i

    done = []
    with pytest.raises(KeyError):
        share_out(lambda i: done.append(work(i)), range(10**6), 2)
    assert len(done) < 10**6


def test_work_is_done_alone_where_no_thread_can_be_had(blas, monkeypatch):
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    monkeypatch.setattr(_threads, "_pool", lambda: pool)
    assert share_out(str, range(3), 2) == ["0", "1", "2"]


def test_work_shared_out_within_other_work_ends(blas):
    """However many threads are kept, all of them wait here for parts of their own work."""
    many = 4 * (os.cpu_count() or 1)

    def work(i):
        return sum(share_out(lambda j: i * j, range(many), many))

    total = many * (many - 1) // 2
    assert share_out(work, range(many), many) == [i * total for i in range(many)]


def succeeds_in_a_child(work):
    """Whether ``work()`` is true in a forked process; a child that hangs is ended by an alarm."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: threads and fork
        child = os.fork()
    if child == 0:  # pragma: no cover
        signal.alarm(60)
        os._exit(0 if work() else 1)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork a process")
class TestFork:
    def test_while_another_thread_holds_the_lock(self, blas):
        acquired, release = Event(), Event()

        def hold():
            with _threads._lock:
                acquired.set()
                release.wait()

        def use_the_limit():
            with single_threaded_blas():
                limited = blas.num_threads
            return (limited, blas.num_threads) == (1, 4)

        thread = Thread(target=hold)
        thread.start()
        acquired.wait()
        try:
            assert succeeds_in_a_child(use_the_limit)
        finally:
            release.set()
            thread.join()

    def test_while_another_thread_holds_the_limit(self, blas):
        entered, leave = Event(), Event()

        def hold():
            with single_threaded_blas():
                entered.set()
                leave.wait()

        thread = Thread(target=hold)
        thread.start()
        entered.wait()
        try:
            assert succeeds_in_a_child(lambda: blas.num_threads == 4 and not _threads._holders)
            assert blas.num_threads == 1
        finally:
            leave.set()
            thread.join()
        assert blas.num_threads == 4

    def test_within_the_limit(self, blas):
        with single_threaded_blas():
            assert succeeds_in_a_child(
                lambda: blas.num_threads == 1 and _threads._holders == [get_ident()]
            )
        assert blas.num_threads == 4

    def test_threads_that_are_kept_are_not_those_of_the_parent(self, blas):
        share_out(str, range(4), 3)
        with _threads._pool() as parents:
            assert succeeds_in_a_child(lambda: _threads._pool() is not parents)
            assert succeeds_in_a_child(lambda: share_out(str, range(4), 3) == list("0123"))
        _threads._pool.cache_clear()

    def test_while_another_thread_computes_a_property(self):
        computing, go_on = Event(), Event()

        class Slow:
            wait = True

            @computed_once
            def value(self):
                if self.wait:
                    computing.set()
                    go_on.wait()
                return 7

        quick = Slow()
        quick.wait = False
        thread = Thread(target=lambda: Slow().value)
        thread.start()
        computing.wait()
        try:
            assert succeeds_in_a_child(lambda: quick.value == 7)
        finally:
            go_on.set()
            thread.join()


def test_a_property_is_computed_once():
    class Counting:
        calls = 0

        @computed_once
        def value(self):
            """How often."""
            self.calls += 1
            return self.calls

    counting = Counting()
    assert (counting.value, counting.value, counting.calls) == (1, 1, 1)
    assert Counting().value == 1
    assert Counting.value.__doc__ == "How often."


def test_no_property_of_ours_has_a_lock():
    """``functools.cached_property`` has one up to Python 3.11."""
    package = Path(_threads.__file__).parent
    for path in package.rglob("*.py"):
        assert "import cached_property" not in path.read_text(encoding="utf-8"), path
