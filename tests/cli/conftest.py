"""Small tables with known answers."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("click", reason="the command line needs the cli extra")
pytest.importorskip("duckdb", reason="the command line needs the cli extra")


def write_csv(path, columns):
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", "utf-8")


@pytest.fixture(scope="session")
def people(tmp_path_factory):
    """A folder with ``gap.csv`` (men are described worse) and ``even.csv`` (nobody is)."""
    folder, rng = tmp_path_factory.mktemp("people"), np.random.default_rng(0)
    sex = np.repeat(["women", "men"], [400, 200])
    X = rng.normal(size=(600, 5)) @ np.diag([3, 2, 1, 1, 1])
    order = rng.permutation(600)
    passed = (X[:, 0] + rng.normal(size=600) > 0).astype(int)
    for name in ("even", "gap"):
        if name == "gap":
            X[sex == "men"] = 1.5 * X[sex == "men"][:, [3, 4, 0, 2, 1]]
        columns = {f"x{j}": X[order, j] for j in range(5)}
        others = {"id": np.arange(600), "sex": sex[order], "passed": passed[order]}
        others["ward"] = np.array(["north", "south"])[rng.integers(0, 2, 600)]
        others["weight"] = rng.integers(1, 4, 600)
        write_csv(folder / f"{name}.csv", columns | others)
    return folder
