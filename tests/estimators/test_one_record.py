"""A fit is published in one step: what is seen of an estimator belongs to one fit."""

from __future__ import annotations

import sys
import threading
import warnings
from copy import deepcopy
from functools import partial

import numpy as np
import pytest
from helpers.data import make_groups
from sklearn.utils.validation import check_is_fitted

from fairpca import FairColumns, FairPCA, FairPCACV, FairPLS, GroupEraser, GroupMoments, MinMaxPCA

WIDE, GROUPS = make_groups((60, 40), d=10)
NARROW = WIDE[:, :5].copy()
Y = np.arange(100) % 3


class RaiseAtLine:
    """Raise at the n-th line that runs in this package."""

    def __init__(self, n, error):
        self.left = n
        self.error = error

    def trace(self, frame, event, _):
        if "fairpca/_estimators" not in frame.f_code.co_filename:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise self.error
        return self.trace

    def stops(self, call):
        """Whether the call was stopped."""
        before = sys.gettrace()
        sys.settrace(self.trace)
        try:
            call()
        except self.error:
            return True
        finally:
            sys.settrace(before)
        return False


@pytest.mark.parametrize(
    "estimator",
    [
        FairPCA(2),
        GroupEraser(),
        pytest.param(MinMaxPCA(2), marks=pytest.mark.slow),
        pytest.param(FairPLS(2), marks=pytest.mark.slow),
        pytest.param(FairColumns(2), marks=pytest.mark.slow),
        pytest.param(FairPCACV(2, cv=3), marks=pytest.mark.slow),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_fit_that_is_stopped_at_any_line_leaves_one_whole_fit(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old = deepcopy(estimator).fit(WIDE, Y, sensitive_features=GROUPS)
        new = deepcopy(estimator).fit(NARROW, Y, sensitive_features=GROUPS)
        wholes = {10: (vars(old).keys(), old.transform(WIDE)),
                  5: (vars(new).keys(), new.transform(NARROW))}  # fmt: skip
        stopped, n, seen = True, 0, set()
        while stopped:
            n += 1
            refit = deepcopy(old)
            error = MemoryError if n % 2 else KeyboardInterrupt
            fit_again = partial(refit.fit, NARROW, Y, sensitive_features=GROUPS)
            stopped = RaiseAtLine(n, error).stops(fit_again)
            d = refit.n_features_in_
            seen.add(d)
            names, scores = wholes[d]
            assert vars(refit).keys() == names
            check_is_fitted(refit)
            np.testing.assert_array_equal(refit.transform(WIDE if d == 10 else NARROW), scores)
    assert seen == {5, 10}
    assert d == 5
    assert n > 50


def test_a_block_that_is_stopped_at_any_line_is_added_as_a_whole_or_not_at_all():
    first = FairPCA(2).partial_fit(WIDE[::2], sensitive_features=GROUPS[::2])
    stopped, n, seen = True, 0, set()
    while stopped:
        n += 1
        refit = deepcopy(first)
        add = partial(refit.partial_fit, WIDE[1::2], sensitive_features=GROUPS[1::2])
        stopped = RaiseAtLine(n, KeyboardInterrupt).stops(add)
        seen.add(refit.n_samples_)
        assert refit.moments_.counts.sum() == refit.n_samples_
    assert seen == {50, 100}


@pytest.mark.parametrize("estimator", [FairPCA(2), GroupEraser(), FairColumns(2)])
def test_rows_may_be_transformed_while_another_thread_fits_again(estimator):
    fits = [GroupMoments.from_data(X, GROUPS) for X in (WIDE, WIDE[:, ::-1] * 3 + 1)]
    wholes = [deepcopy(estimator).fit(moments).transform(WIDE) for moments in fits]
    shared = deepcopy(estimator).fit(fits[0])
    faults = []
    done = threading.Event()

    def transform():
        while not done.is_set():
            try:
                scores = shared.transform(WIDE)
                if not any(np.array_equal(scores, whole) for whole in wholes):
                    faults.append("mixed")
            except Exception as error:
                faults.append(repr(error))

    threads = [threading.Thread(target=transform) for _ in range(8)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for i in range(30):
            shared.fit(fits[i % 2])
    finally:
        done.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert not faults


def test_a_failed_fit_leaves_the_names_of_the_columns():
    pd = pytest.importorskip("pandas")
    fair = FairPCA(2).fit(pd.DataFrame(WIDE).add_prefix("c"), sensitive_features=GROUPS)
    before = vars(fair).copy()
    with pytest.raises(ValueError, match="n_components=2"):
        fair.fit(pd.DataFrame(WIDE[:, :1]).add_prefix("d"), sensitive_features=GROUPS)
    assert vars(fair) == before
    assert fair.fit(WIDE, sensitive_features=GROUPS).n_samples_ == 100
    assert not hasattr(fair, "feature_names_in_")
