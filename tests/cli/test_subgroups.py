"""--subgroups: columns of a file that may describe a subgroup nobody named."""

import json

import numpy as np
import pandas as pd
import pytest
from helpers.command import run


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Women of one town vary more; neither sex nor town shows it alone."""
    rng = np.random.default_rng(0)
    n = 2000
    X = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 5)) + 0.3 * rng.normal(size=(n, 5))
    people = pd.DataFrame(X, columns=[f"x{j}" for j in range(5)])
    people["sex"] = rng.choice(["f", "m"], n)
    people["town"] = rng.choice(["east", "north", "west"], n)
    people["age"] = rng.integers(20, 80, n)
    hidden = (people["sex"] == "f") & (people["town"] == "east")
    people.loc[hidden, "x0":"x4"] += 1.5 * rng.normal(size=(hidden.sum(), 5))
    people.loc[::50, "x1"] = np.nan
    path = tmp_path_factory.mktemp("data") / "people.csv"
    people.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("missing", ["available", "drop"])
def test_a_subgroup_of_other_columns_is_found(table, tmp_path, missing):
    out = tmp_path / "audit.json"
    asked = ["people.csv", "-g", "sex", "--subgroups", "sex,town", "--subgroups", "age", "-r", "2"]
    done = run("audit", *asked, "--missing", missing, "--json", str(out), cwd=table.parent)
    found = json.loads(out.read_text())
    assert set(found["subgroup"]["conditions"]) == {"sex = f", "town = east"}
    assert found["subgroup"]["p"] < 0.05
    assert not found["subgroup"]["by_feature"]
    assert found["provenance"]["feature_names"] == [f"x{j}" for j in range(5)]
    assert "town = east" in done.stdout
