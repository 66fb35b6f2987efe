"""The answers of the command, on real files."""

from __future__ import annotations

import json

import numpy as np
import pytest
from helpers.command import fails, run

import fairpca
from fairpca.datasets import load_diabetes_by_sex, load_rand_health
from fairpca.exceptions import quietly
from fairpca.metrics import group_reconstruction_errors, row_reconstruction_errors

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


def test_limits_decide_the_exit_code(diabetes_files, tmp_path):
    options = ["audit", diabetes_files / "d.csv", "-g", "sex", "--label", "y", "--drop", "id"]
    kept = run(*options, "--max-disparity", "0.2", cwd=tmp_path)
    assert "disparity 0.1134 is within --max-disparity 0.2 (PCA on the rows" in kept.stdout
    run(*options, "-r", "2", "--max-disparity", "0.1", cwd=tmp_path)
    done = run(*options, "--max-disparity", "0.1", cwd=tmp_path, code=1)
    assert len(done.stderr.splitlines()) == 1
    assert (
        "disparity 0.1134 exceeds --max-disparity 0.1 (PCA on the rows fitted to, 3" in done.stderr
    )
    bunch = load_diabetes_by_sex()
    pca = fairpca.FairPCA(3, alpha=1).fit(bunch.data, sensitive_features=bunch.sensitive_features)
    share = abs(pca.disparity_) / pca.reconstruction_error_
    relative = [*options, "-r", "3", "--max-relative-disparity"]
    run(*relative, share * 1.001, cwd=tmp_path)
    done = run(*relative, share * 0.999, "--max-disparity", 9, cwd=tmp_path, code=1)
    assert f"relative disparity {share:.4g} exceeds --max-relative" in done.stderr
    assert "disparity 0.1134 is within --max-disparity 9" in done.stderr
    full = run(*options, "-r", "9", "--max-relative-disparity", 0, cwd=tmp_path).stdout
    assert "nothing was compressed: that is no proof of fairness" in full
    assert "9 components, which lose nothing:" in full


def test_limits_on_rows_that_were_not_fitted_to(diabetes_files, tmp_path):
    options = ["audit", diabetes_files / "d.csv", "-g", "sex", "--label", "y", "--drop", "id"]
    assert "-r 3" in fails(*options, "--held-out", cwd=tmp_path)
    out = run(*options, "--held-out", "-r", 3, "--seed", 2, "--json", "-", cwd=tmp_path).stdout
    bunch = load_diabetes_by_sex(prepare=False)
    X, groups = bunch.data, bunch.sensitive_features
    full = fairpca.audit(X, groups, fairpca.FairPCA(3, alpha=1), random_state=2, n_points=2)
    (found,), expected = json.loads(out)["pca"], full.cross_validation.pca
    assert found["group_errors"] == pytest.approx(expected.group_errors)
    assert found["reconstruction_error"] == pytest.approx(expected.overall)
    limit = ["--held-out", "-r", 3, "--seed", 2, "--max-disparity"]
    run(*options, *limit, abs(expected.disparity) + 1e-6, cwd=tmp_path)
    done = run(*options, *limit, abs(expected.disparity) - 1e-6, cwd=tmp_path, code=1)
    assert "(PCA held out in 10 folds, 3 components: 'male'" in done.stderr
    (tmp_path / "few.csv").write_text("a,b,c,g\n1,2,7,x\n2,1,3,x\n4,4,1,x\n0,5,2,y\n")
    line = fails("audit", "few.csv", "-g", "g", "--held-out", "-r", 1, cwd=tmp_path)
    assert "more rows than these 4, 1 of them of group 'y'" in line


@pytest.mark.parametrize("options", [[], ["--no-standardize"], ["--encode", "--drop", "id"]])
def test_a_model_is_judged_as_it_is_on_new_rows(diabetes_files, tmp_path, options):
    table = pq.read_table(diabetes_files / "d.parquet")
    pq.write_table(table[:300], tmp_path / "old.parquet")
    pq.write_table(table[300:].filter(pa.array(np.arange(142) % 3 > 0)), tmp_path / "new.parquet")
    run("fit", "old.parquet", "-g", "sex", "-r", 3, "--label", "y", *options, "-o",
        "m.safetensors", cwd=tmp_path)  # fmt: skip
    audit = ["audit", "--model", "m.safetensors", "new.parquet"]
    numbers = json.loads(run(*audit, "--json", "-", cwd=tmp_path).stdout)
    model = fairpca.load_model(tmp_path / "m.safetensors")
    new = pq.read_table(tmp_path / "new.parquet").to_pandas()
    for ward in ("east", "north", "south"):
        new[f"ward={ward}"] = (new["ward"] == ward).astype(float)
    X = new[model.feature_names_in_]
    assert ("ward=east" in X) == ("--encode" in options)
    expected = list(group_reconstruction_errors(model, X, new["sex"]).values())
    (found,) = numbers["model"]
    assert found["group_errors"] == pytest.approx(expected)
    mean = row_reconstruction_errors(model, X).mean()
    assert found["reconstruction_error"] == pytest.approx(mean)
    D = np.ptp(expected)
    run(*audit, "--max-disparity", D * 1.001, cwd=tmp_path)
    done = run(*audit, "--max-disparity", D * 0.999, cwd=tmp_path, code=1)
    assert "(m.safetensors on these rows, 3 components: " in done.stderr


def test_a_model_is_judged_with_a_group_of_one_row(diabetes_files, tmp_path):
    table = pq.read_table(diabetes_files / "d.parquet").select(["age", "bmi", "bp", "sex"])
    run("fit", diabetes_files / "d.parquet", "-g", "sex", "-r", 2, "--columns", "age,bmi,bp", "-o",
        "m.safetensors", cwd=tmp_path)  # fmt: skip
    new = table[:40].to_pandas()
    new.loc[7, "sex"] = "x"
    new.to_csv(tmp_path / "new.csv", index=False)
    audit = ["audit", "--model", "m.safetensors", "new.csv", "--json", "-"]
    (found,) = json.loads(run(*audit, cwd=tmp_path).stdout)["model"]
    model = fairpca.load_model(tmp_path / "m.safetensors")
    expected = group_reconstruction_errors(model, new[["age", "bmi", "bp"]], new["sex"])
    assert found["group_errors"] == pytest.approx(list(expected.values()))


@pytest.mark.parametrize(
    ("group", "ending"), [("male", "csv"), ("ward", "parquet"), ("sex,male", "csv")]
)
def test_a_model_is_judged_by_a_column_that_is_its_feature(diabetes_files, tmp_path, group, ending):
    people = pq.read_table(diabetes_files / "d.parquet").to_pandas()[["age", "bmi", "ward", "sex"]]
    people.insert(1, "male", (people["sex"] == people["sex"][0]).astype(int))
    pq.write_table(pa.Table.from_pandas(people), tmp_path / "p.parquet")
    people.to_csv(tmp_path / "p.csv", index=False)
    run("fit", f"p.{ending}", "-g", "sex", "-r", 2, "--encode", "-o", "m", cwd=tmp_path)
    judged = ["--model", "m", f"p.{ending}", "-g", group]
    audited = json.loads(run("audit", *judged, "--json", "-", cwd=tmp_path).stdout)
    for ward in ("east", "north", "south"):
        people[f"ward={ward}"] = (people["ward"] == ward).astype(float)
    X = people[fairpca.load_model(tmp_path / "m").feature_names_in_]
    parts = people["sex"] + " & male=" + people["male"].astype(str)
    groups = parts if "," in group else people[group].astype(str)
    expected = group_reconstruction_errors(fairpca.load_model(tmp_path / "m"), X, groups)
    assert dict(zip(audited["groups"], audited["model"][0]["group_errors"], strict=True)) == (
        pytest.approx(expected)
    )
    run("report", *judged, "--json", "r.json", cwd=tmp_path)
    reported = json.loads((tmp_path / "r.json").read_text("utf-8"))
    assert reported["errors"]["group_errors"] == pytest.approx(list(expected.values()))
    assert reported["data"]["code"] == ""
    line = fails("report", *judged[:3], "--target", "male", "-o", "t.html", cwd=tmp_path)
    assert "--target 'male' is a feature of m" in line


def test_what_a_model_cannot_be_judged_by(diabetes_files, tmp_path):
    data = diabetes_files / "d.csv"
    run("fit", data, "-g", "sex", "-r", 2, "--columns", "age,bmi,bp", "-o", "m.safetensors",
        cwd=tmp_path)  # fmt: skip
    audit = ["audit", "--model", "m.safetensors"]
    assert "pass the file to judge it by" in fails(*audit, cwd=tmp_path)
    line = fails("report", "m.safetensors", "-g", "sex", cwd=tmp_path)
    assert "m.safetensors is a model, not a table; to judge it, pass --model m.safetensors" in line
    for option in (["--held-out"], ["-r", 1], ["--drop", "age"], ["--no-standardize"]):
        line = fails(*audit, data, *option, cwd=tmp_path)
        assert "leave out --" in line
    line = fails(*audit, data, "--target", "target", cwd=tmp_path)
    assert line.endswith("leave out --label or --target.\n")
    (tmp_path / "a.csv").write_text("age,bmi,sex\n1,2,f\n2,3,m\n")
    assert "'bp'" in fails(*audit, "a.csv", cwd=tmp_path)
    (tmp_path / "b.csv").write_text("age,bmi,bp\n1,2,3\n2,3,1\n")
    assert "'sex'" in fails(*audit, "b.csv", cwd=tmp_path)


def test_columns_that_a_model_needs_are_named(diabetes_files, tmp_path):
    data = diabetes_files / "d.csv"
    run("fit", data, "-g", "sex", "-r", 1, "--columns", "age,bmi,bp", "-o", "m.safetensors",
        cwd=tmp_path)  # fmt: skip
    people = pq.read_table(diabetes_files / "d.parquet").to_pandas()
    people.rename(columns={"age": "wage"}).to_csv(tmp_path / "t.csv", index=False)
    people.drop(columns=["age", "bp"]).to_csv(tmp_path / "two.csv", index=False)
    people.drop(columns="sex").to_csv(tmp_path / "g.csv", index=False)
    audit = ["audit", "--model", "m.safetensors"]
    line = fails(*audit, "t.csv", cwd=tmp_path)
    assert line.endswith("m.safetensors needs the column 'age', which t.csv does not have.\n")
    line = fails(*audit, "two.csv", "-g", "sex", cwd=tmp_path)
    assert "needs the columns 'age', 'bp', which two.csv does not have" in line
    line = fails(*audit, "g.csv", cwd=tmp_path)
    assert "needs the column 'sex', which g.csv does not have; name another with --group." in line
    run(*audit, "g.csv", "-g", "ward", cwd=tmp_path)
    assert "there is no column 'race' in g.csv" in fails(
        *audit, "g.csv", "-g", "race", cwd=tmp_path
    )
    people.to_csv(tmp_path / "v.csv", header=[*map(str, range(people.shape[1]))], index=False)
    assert "pass --no-header" in fails(*audit, "v.csv", cwd=tmp_path)


def test_target_is_another_name_for_the_label(diabetes_files, tmp_path):
    audit = ["audit", diabetes_files / "d.csv", "-g", "sex", "--json", "-"]
    label, target = (
        run(*audit, option, "bmi", cwd=tmp_path).stdout for option in ("--label", "--target")
    )
    assert label == target
    assert label != run(*audit, cwd=tmp_path).stdout
    run("fit", *audit[1:4], "-r", 1, "--target", "bmi", "-o", "m", cwd=tmp_path)
    assert "bmi" not in fairpca.load_model(tmp_path / "m").feature_names_in_


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


@pytest.mark.parametrize(
    ("options", "estimator"),
    [
        (["--constraint", "no_worse"], fairpca.FairPCA(3, constraint="no_worse")),
        (["--parity"], fairpca.FairPCA(3, constraint=None)),
        (["--constraint", "none", "--max-disparity", 0.05],
         fairpca.FairPCA(3, constraint=None, max_disparity=0.05)),
        (["--max-error-increase", 0.005, "--cv", 0], fairpca.FairPCA(3, max_error_increase=0.005)),
        (["--alpha", 0.7], fairpca.FairPCA(3, alpha=0.7)),
        (["--criterion", "error"], fairpca.MinMaxPCA(3, criterion="error")),
    ],
)  # fmt: skip
def test_fit_by_every_choice(diabetes_files, tmp_path, options, estimator):
    data = diabetes_files / "d.csv", "-g", "sex", "-r", "3", "--label", "y", "--drop", "id"
    run("fit", *data, *options, "--out", "m.safetensors", cwd=tmp_path)
    bunch = load_diabetes_by_sex()
    with quietly():
        estimator.fit(bunch.data, sensitive_features=bunch.sensitive_features)
    model = fairpca.load_model(tmp_path / "m.safetensors")[-1]
    assert repr(model) == repr(estimator)
    assert model.group_errors_ == pytest.approx(estimator.group_errors_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--parity", "--constraint", "pareto"], "--parity is short for --constraint none"),
        (["--criterion", "loss", "--cv", 5], "MinMaxPCA, which knows no --cv"),
        (["--criterion", "loss", "--parity"], "MinMaxPCA, which knows no --parity"),
        (
            ["--alpha", 0.5, "--max-disparity", 0.1],
            "--alpha 0.5 and --max-disparity 0.1 contradict each other",
        ),
        (["--alpha", 0.7, "--cv", 10], "--alpha 0.7 says where to stop, and --cv 10 asks"),
        (["--alpha", 2], "pass a weight from 0 to 1"),
        (["--max-disparity", -1], "pass a number from 0 on"),
        (["--cv", 1], "pass a number of folds such as 10, or 0"),
        (["--constraint", "x"], "'--constraint': 'x' is not one of 'pareto', 'no_worse', 'none'"),
    ],
)
@pytest.mark.parametrize("command", ["fit", "report"])
def test_choices_that_contradict_or_do_not_exist(tmp_path, command, options, message):
    out = {"fit": "m.safetensors", "report": "out.html"}[command]
    assert message in fails(command, *options, "-o", out, cwd=tmp_path)


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
