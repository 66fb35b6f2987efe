"""How often a shown gap depends on how the figures are read, on clean tables and on spoilt ones.

Run ``python -m benchmarks.readings``; the counts are stored in docs/benchmarks_readings.csv. Every
table has 1,000 rows of 8 columns and a group of 20 %. In *clean* tables with harm its columns vary
in other directions; in those without harm the groups do not differ. Spoilt tables have no harm, but
a defect in rows of the smaller group, or columns that say who belongs to it. ``shown`` counts
tables with a gap before readings, ``depends`` those in which a reading overturns it, ``stands``
those in which no reading does. Groups of 25 among 2,000 units are tested by permutation: there
``shown`` counts those found worse off, at one-sided 2.5 %.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np

from benchmarks._harness import DOCS, run_cases
from fairpca import FairPCA, audit
from fairpca._audit.small_groups import permutation_p

_ROWS, _COLUMNS, _RANK = 1000, 8, 3
_OF_AUDITS = ("depends", "stands", "cannot be judged", "on")


def drawn(rng, harm, tails):
    """Standardised columns of two groups, and who belongs to the smaller one."""
    few = rng.random(_ROWS) < 0.2
    loadings = rng.normal(size=(_RANK, _COLUMNS))
    noise = rng.normal(size=(_ROWS, _COLUMNS))
    if tails:
        noise *= np.sqrt(tails / rng.chisquare(tails, size=(_ROWS, 1)))
    X = rng.normal(size=(_ROWS, _RANK)) @ loadings + noise
    if harm:
        X[few] += 1.2 * rng.normal(size=(few.sum(), _RANK)) @ rng.normal(size=(_RANK, _COLUMNS))
    return X, few


def clean(rng, harm=False, tails=None):
    """No defect; with ``tails``, Student's t with this many degrees of freedom."""
    return drawn(rng, harm, tails)


def likert(rng, harm=False, codes=()):
    """Answers from 1 to 5, of which some of the smaller group are codes."""
    X, few = drawn(rng, harm, None)
    X = np.clip(np.round(3 + X / 1.5), 1, 5)
    for j, code in enumerate(codes):
        X[rng.choice(np.flatnonzero(few), 40, replace=False), j] = code
    return X, few


def codes_in_numbers(rng, n, code):
    """Pressures of about 120, of which some of the smaller group are a code."""
    X, few = drawn(rng, False, None)
    X = 120 + 8 * X
    X[rng.choice(np.flatnonzero(few), n, replace=False), 0] = code
    return X, few


def restated(rng):
    """Two columns that say which of three groups a row belongs to."""
    X, few = drawn(rng, False, None)
    third = ~few & (rng.random(_ROWS) < 0.4)
    others = ~few & ~third
    return np.column_stack([X[:, : _COLUMNS - 2], 3.0 * third, 3.0 * others]), few


def few_people(rng):
    """Eight people of the smaller group have wrong values, all different, in one column."""
    X, few = drawn(rng, False, None)
    rows = rng.choice(np.flatnonzero(few), 8, replace=False)
    X[rows, 0] += rng.uniform(15, 30, 8) * rng.choice([-1, 1], 8)
    return X, few


DESIGNS = {
    "harm, Gaussian": partial(clean, harm=True),
    "harm, t5": partial(clean, harm=True, tails=5),
    "harm, answers from 1 to 5": lambda rng: (
        lambda X, few: (np.clip(np.round(3 + X / 1.5), 1, 5), few)
    )(*drawn(rng, True, None)),
    "no harm, Gaussian": clean,
    "no harm, t5": partial(clean, tails=5),
    "no harm, answers from 1 to 5": likert,
    "99 in answers from 1 to 5": partial(likert, codes=(99,)),
    "99 and -9 in answers from 1 to 5": partial(likert, codes=(99, -9)),
    "0 for a missing pressure": partial(codes_in_numbers, n=50, code=0.0),
    "999 in 30 rows": partial(codes_in_numbers, n=30, code=999.0),
    "the group restated": restated,
    "eight wrong values": few_people,
}


def counted(options, name):
    """How many tables of a design show a gap, and how many of these depend."""
    n = options.pick(100, 3)
    found = Counter()
    on = Counter()
    for seed in range(n):
        X, few = DESIGNS[name](np.random.default_rng([seed, 42]))
        groups = np.where(few, "few", "many")
        estimator = FairPCA(_RANK, standardize=True)
        result = audit(estimator, X, groups, ranks=[_RANK], n_points=2)
        verdict = result.verdict
        found["shown"] += bool(verdict.worse or verdict.depending)
        found["depends"] += verdict.case.name == "DEPENDS"
        found["stands"] += bool(verdict.worse)
        found["not judged"] += verdict.case.name == "CANNOT_JUDGE"
        on.update(reading.name for reading in result.readings if reading.overturns)
    yield {
        "table": name,
        "tables": str(n),
        "shown": str(found["shown"]),
        "depends": str(found["depends"]),
        "stands": str(found["stands"]),
        "cannot be judged": str(found["not judged"]),
        "on": ", ".join(f"{reading} {times}" for reading, times in on.most_common()),
    }


def tested(options, times, tails):
    """How often 25 units whose errors are so many times as large are found worse off."""
    n = options.pick(100, 3)
    found = 0
    for seed in range(n):
        rng = np.random.default_rng([seed, 43])
        noise = rng.normal(size=(2000, 5))
        if tails:
            noise = rng.standard_t(tails, size=(2000, 5))
        errors = (noise**2).sum(axis=1)
        errors[:25] *= times
        found += permutation_p(errors, np.ones(2000), np.arange(25), rng) <= 0.025
    tail = f"t{tails}" if tails else "Gaussian"
    name = f"25 of 2,000, {times:g} times the error, {tail}"
    yield {"table": name, "tables": str(n), "shown": str(found)} | dict.fromkeys(_OF_AUDITS, "")


SMALL = [(1, None), (1, 3), (1.5, None), (3, 3)]
CASES = {name: partial(counted, name=name) for name in DESIGNS} | {
    f"small, {times:g}, {tails}": partial(tested, times=times, tails=tails)
    for times, tails in SMALL
}


def main(arguments=None):
    run_cases(__doc__, CASES, DOCS / "benchmarks_readings.csv", arguments)


if __name__ == "__main__":
    main()
