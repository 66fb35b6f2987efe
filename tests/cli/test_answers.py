"""The answers of the command, on real files."""

from __future__ import annotations

import json

import numpy as np
import pytest
from helpers.command import fails, run

import fairpca
from fairpca.datasets import load_diabetes_by_sex, load_rand_health

pa = pytest.importorskip("pyarrow", reason="the command line needs the cli extra")
pytest.importorskip("typer")
import pyarrow.csv as pc  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402


def test_bundled_report_and_json(tmp_path):
    done = run("report", "--json", "out.json", cwd=tmp_path)
    assert "black" in done.stdout
    assert done.stdout.startswith("On new rows, fair PCA reconstructs “black”")
    assert "stopped by cross-validation" in done.stdout
    assert "\x1b" not in done.stdout
    numbers = json.loads((tmp_path / "out.json").read_text("utf-8"))
    bunch = load_rand_health()
    fair = fairpca.FairPCA(0.7).fit(bunch.data, sensitive_features=bunch.sensitive_features)
    assert numbers["n_components"] == fair.n_components_
    assert numbers["pca"]["group_errors"] == pytest.approx(fair.pca_group_errors_)
    assert numbers["data"]["command"] == "fairpca report --json out.json"
    assert (tmp_path / "report.html").stat().st_size < 1_500_000


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "feather"])
def test_every_format_gives_the_same_numbers(diabetes_files, tmp_path, kind):
    options = ["--group", "sex", "--drop", "id", "--label", "y", "--json", "-"]
    done = run("audit", diabetes_files / f"d.{kind}", *options, cwd=tmp_path)
    numbers = json.loads(done.stdout)
    bunch = load_diabetes_by_sex()
    fair = fairpca.FairPCA(4).fit(bunch.data, sensitive_features=bunch.sensitive_features)
    assert numbers["pca"][3]["group_errors"] == pytest.approx(fair.pca_group_errors_)
    assert numbers["groups"] == ["female", "male"]


def test_standard_input_and_semicolons(diabetes_files, tmp_path):
    content = (diabetes_files / "d.csv").read_text("utf-8").replace(",", ";")
    options = ["-g", "sex", "--label", "y", "--drop", "id,ward"]
    done = run("audit", "-", *options, cwd=tmp_path, stdin=content)
    assert "2.546" in done.stdout


def test_text_columns_are_named_or_encoded(diabetes_files, tmp_path):
    options = ["-g", "sex", "--label", "y", "--drop", "id"]
    plain = run("audit", diabetes_files / "d.csv", *options, cwd=tmp_path)
    assert "left out, not numbers: ward (--encode)" in plain.stdout
    encoded = run(
        "audit", diabetes_files / "d.csv", *options, "--encode", "--json", "-", cwd=tmp_path
    )
    assert len(json.loads(encoded.stdout)["pca"]) == 9 + 3


def test_one_value_against_the_rest_and_intersections(diabetes_files, tmp_path):
    options = ["--label", "y", "--drop", "id", "--json", "-"]
    path = diabetes_files / "d.csv"
    done = run("audit", path, "-g", "ward", "--positive", "east", *options, cwd=tmp_path)
    assert json.loads(done.stdout)["groups"] == ["east", "not east"]
    done = run("audit", path, "-g", "ward", "-g", "sex", "--positive", "east & male",
               *options, cwd=tmp_path)  # fmt: skip
    assert json.loads(done.stdout)["groups"] == ["east & male", "not east & male"]
    line = fails("audit", path, "-g", "id", cwd=tmp_path)
    assert "more than 50 groups, such as '0000'" in line
    assert "--positive '0000'" in line


def test_several_groups(diabetes_files, tmp_path):
    path, options = diabetes_files / "d.csv", ["--label", "y", "--drop", "id,ward"]
    done = run("audit", path, "-g", "ward", *options, "--json", "-", cwd=tmp_path)
    numbers = json.loads(done.stdout)
    assert numbers["groups"] == ["east", "north", "south"]
    assert numbers["pca"][0]["disparity"] == pytest.approx(
        np.ptp(numbers["pca"][0]["group_errors"])
    )
    crossed = ["-g", "sex", "-g", "ward", "-r", "3"]
    done = run("report", path, *crossed, *options, "--json", "out.json", cwd=tmp_path)
    numbers = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert numbers["groups"][:2] == ["female & east", "female & north"]
    assert numbers["fair"]["disparity"] == pytest.approx(np.ptp(numbers["fair"]["group_errors"]))
    assert "female & south" in done.stdout
    run("fit", path, *crossed, *options, "--out", "m.safetensors", cwd=tmp_path)
    done = run("inspect", "m.safetensors", "--json", cwd=tmp_path)
    model = json.loads(done.stdout)
    assert model["groups"] == numbers["groups"]
    worst = max(numbers["pca"]["group_errors"])
    assert max(model["group_errors"]) < worst
    assert max(numbers["fair"]["group_errors"]) <= worst * (1 + 1e-9)
    assert model["group"] == ["sex", "ward"]


def test_small_groups_and_relative_errors(diabetes_files, tmp_path):
    table = pq.read_table(diabetes_files / "d.parquet")
    clinic = np.repeat(["a", "b", "c", "d"], [200, 200, 30, 12]).tolist()
    pq.write_table(table.append_column("clinic", [clinic]), tmp_path / "d.parquet")
    data = ["d.parquet", "-g", "clinic", "--label", "y", "--drop", "id,sex,ward"]
    line = fails("audit", *data, "--min-group-size", 50, cwd=tmp_path)
    assert "'c' (30 rows), 'd' (12 rows)" in line
    line = fails("audit", *data, "--small-groups", "x", cwd=tmp_path)
    assert "'--small-groups': " in line
    assert "'x' is not one of 'error', 'merge', 'ignore'" in line

    small = ["--min-group-size", 40, "--small-groups", "merge", "--normalize"]
    done = run("audit", *data, *small, cwd=tmp_path)
    assert "merged into 'rest', fewer than 40 rows: c, d" in done.stdout
    numbers = json.loads(run("audit", *data, *small, "--json", "-", cwd=tmp_path).stdout)
    X = load_diabetes_by_sex().data
    fair = fairpca.FairPCA(3, normalize=True, min_group_size=40, small_groups="merge")
    fair.fit(X, sensitive_features=clinic)
    assert numbers["groups"] == ["a", "b", "rest"]
    assert numbers["pca"][2]["group_errors"] == pytest.approx(fair.pca_group_errors_)
    assert numbers["small_groups"] == ["c", "d"]

    options = [*small, "-r", 3, "--json", "out.json"]
    done = run("report", *data, *options, cwd=tmp_path)
    assert "variance lost" in done.stdout
    assert "Merged into “rest”" in (tmp_path / "report.html").read_text("utf-8")
    numbers = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert numbers["pca"]["group_errors"] == pytest.approx(fair.pca_group_errors_)
    assert "small_groups='merge'" in numbers["data"]["code"]
    done = run("fit", *data, *small, "-r", 3, "-o", "m.safetensors", cwd=tmp_path)
    assert "merged into 'rest'" in done.stdout
    done = run("audit", *data, "--min-group-size", 20, "--small-groups", "ignore", "--json", "-",
               cwd=tmp_path)  # fmt: skip
    numbers = json.loads(done.stdout)
    assert numbers["compared"] == [True, True, True, False]
    row = numbers["pca"][2]
    assert row["disparity"] == pytest.approx(np.ptp(row["group_errors"][:3]))


def test_max_disparity_decides_the_exit_code(diabetes_files, tmp_path):
    options = ["audit", diabetes_files / "d.csv", "-g", "sex", "--label", "y", "--drop", "id"]
    run(*options, "--max-disparity", "0.2", cwd=tmp_path)
    run(*options, "-r", "2", "--max-disparity", "0.1", cwd=tmp_path)
    done = run(*options, "--max-disparity", "0.1", cwd=tmp_path, code=1)
    assert "disparity 0.1134 exceeds --max-disparity 0.1" in done.stderr


def test_fit_transform_inspect(diabetes_files, tmp_path):
    options = ["-g", "sex", "-r", "3", "--label", "y", "--drop", "id"]
    run("fit", diabetes_files / "d.csv", *options, "--out", "m.safetensors", cwd=tmp_path)
    bunch = load_diabetes_by_sex()
    fair = fairpca.FairPCA(3).fit(bunch.data, sensitive_features=bunch.sensitive_features)
    expected = fair.transform(bunch.data)
    for data, out in (("d.csv", "s.csv"), ("d.parquet", "s.parquet"), ("d.feather", "t.csv")):
        run("transform", "m.safetensors", diabetes_files / data, "--keep", "id,sex",
            "--out", out, cwd=tmp_path)  # fmt: skip
        read = pq.read_table if out.endswith("parquet") else pc.read_csv
        scores = read(tmp_path / out).to_pandas()
        assert scores.columns.tolist() == ["id", "sex", "fairpca0", "fairpca1", "fairpca2"]
        assert scores["sex"].tolist() == bunch.sensitive_features.tolist()
        np.testing.assert_allclose(scores.to_numpy()[:, 2:].astype(float), expected, atol=1e-9)
    assert (tmp_path / "s.csv").read_text().splitlines()[1].startswith('"0000"')
    shown = run("inspect", "m.safetensors", cwd=tmp_path).stdout
    assert "3 components of 9 features, standardised" in shown
    plain = json.loads(run("inspect", "m.safetensors", "--json", cwd=tmp_path).stdout)
    assert plain["group_errors"] == pytest.approx(fair.group_errors_)
    assert plain["columns"] == bunch.feature_names


def test_encoded_model_transforms_and_refuses_new_values(diabetes_files, tmp_path):
    options = ["-g", "sex", "-r", "3", "--label", "y", "--drop", "id", "--encode"]
    run("fit", diabetes_files / "d.csv", *options, "--out", "m.safetensors", cwd=tmp_path)
    done = run(
        "transform", "m.safetensors", diabetes_files / "d.parquet", "--out", "-", cwd=tmp_path
    )
    assert len(done.stdout.splitlines()) == 443
    other = (diabetes_files / "d.csv").read_text("utf-8").replace("north", "moon")
    (tmp_path / "o.csv").write_text(other, "utf-8")
    line = fails("transform", "m.safetensors", "o.csv", "--out", "s.csv", cwd=tmp_path)
    assert "'moon'" in line


def test_transform_refuses_missing_columns_values_and_endings(diabetes_files, tmp_path):
    run("fit", diabetes_files / "d.csv", "-g", "sex", "-r", "2", "--columns", "age,bmi,bp",
        "--out", "m.safetensors", cwd=tmp_path)  # fmt: skip
    (tmp_path / "a.csv").write_text("age,bmi,BP\n1,2,3\n")
    (tmp_path / "b.csv").write_text("age,bmi,bp\n1,2,3\n1,,3\n")
    (tmp_path / "c.csv").write_text("age,bmi,bp\n1,2,3\n1,x,3\n")
    transform = ["transform", "m.safetensors"]
    assert "did you mean 'BP'?" in fails(*transform, "a.csv", "--out", "s.csv", cwd=tmp_path)
    line = fails(*transform, "b.csv", "--out", "s.csv", cwd=tmp_path)
    assert "b.csv has a missing value in column 'bmi', line 3" in line
    assert "'x'" in fails(*transform, "c.csv", "--out", "s.csv", cwd=tmp_path)
    line = fails(*transform, "c.csv", "--out", "s.xlsx", cwd=tmp_path)
    assert "end it in .parquet or .csv" in line
    line = fails("transform", "a.csv", "a.csv", "--out", "s.csv", cwd=tmp_path)
    assert "not a fairpca model file" in line
