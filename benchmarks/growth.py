"""How time and memory grow with rows, features, components and groups.

Run ``python -m benchmarks.growth``; it stores its rows in docs/benchmarks_growth.csv. The
documentation draws its plots from this file.
"""

from __future__ import annotations

import functools

from sklearn.decomposition import PCA

from benchmarks._harness import DOCS, extra_memory, race, row, run_cases
from benchmarks.core import fit_fair
from benchmarks.core import made_data as two_groups
from benchmarks.many_groups import fit, made_data

TABLE = DOCS / "benchmarks_growth.csv"


def compare(part, n, d, r, k=2, rounds=3):
    prepare = (
        functools.partial(two_groups, n, d) if k == 2 else functools.partial(made_data, n, d, k)
    )
    made = prepare()
    ours = functools.partial(fit_fair, r=r)
    pca = functools.partial(fit, estimator=PCA(r), with_groups=False)
    timing = race({"FairPCA": lambda: ours(made), "PCA": lambda: pca(made)}, rounds)
    case = f"{n:,} x {d}, r = {r}, {k} groups"
    memory = extra_memory(prepare, ours), extra_memory(prepare, pca)
    value = {"rows": n, "features": d, "components": r, "groups": k}[part]
    return {"value": str(value), **row(case, timing, "FairPCA", "PCA", "", *memory)}


def rows(options):
    for n in options.pick([10_000, 100_000, 1_000_000, 10_000_000], [1000, 3000]):
        yield compare("rows", n, 20, 5)


def features(options):
    for d in options.pick([10, 50, 200, 500, 2000], [5, 20]):
        yield compare("features", options.pick(20_000, 500), d, 5)


def components(options):
    for r in options.pick([1, 10, 50, 200], [1, 5]):
        yield compare("components", options.pick(20_000, 500), options.pick(500, 20), r)


def groups(options):
    for k in options.pick([2, 5, 10, 20, 50], [2, 4]):
        yield compare("groups", options.pick(200_000, 2000), options.pick(50, 10), 5, k)


CASES = {"rows": rows, "features": features, "components": components, "groups": groups}


def main(arguments=None) -> None:
    run_cases(__doc__, CASES, TABLE, arguments)


if __name__ == "__main__":
    main()
