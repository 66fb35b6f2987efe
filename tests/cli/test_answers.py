"""The answers of the command, on real files."""

from __future__ import annotations

import json
import subprocess

import numpy as np
import pandas as pd
import pytest
from helpers.audits import made_audit, made_group
from helpers.command import COMMAND, fails, run

import fairpca
from fairpca import FairPCA, FairPCACV, audit
from fairpca.cli.options import Asked
from fairpca.cli.reader.table import Table
from fairpca.cli.work import EXIT_CODES, compare
from fairpca.datasets import load_checkup

OTHERS = made_group("others", 500, (-0.1, -0.15, -0.05), (0.0, 0.0, 0.0))
TINY = made_group("tiny", 5, (3.0, 3.0, 3.0), (0.0, 0.0, 0.0))
USUAL = ["-g", "sex", "--drop", "passed,ward,weight", "-r", "2"]


def numbers(*command, cwd, code=0):
    return json.loads(run(*command, "--json", "-", cwd=cwd, code=code).stdout)


def rows_of(folder):
    """The rows and groups of ``gap.csv``."""
    lines = [line.split(",") for line in (folder / "gap.csv").read_text("utf-8").splitlines()[1:]]
    return np.array([line[:5] for line in lines], float), np.array([line[6] for line in lines])


def test_the_demonstration_says_who_is_short_changed(tmp_path):
    done = run("report", "--json", "out.json", cwd=tmp_path)
    assert done.stdout.startswith(
        "PCA describes “age_group = 75 and older” 33 % worse than “younger”."
    )
    assert "\x1b" not in done.stdout
    found = json.loads((tmp_path / "out.json").read_text("utf-8"))
    people = load_checkup()
    same = audit(FairPCACV(0.7, standardize=True), people.data, people.sensitive_features)
    assert found["provenance"]["n_components"] == same.n_components == 5
    assert found["verdict"]["gap"]["value"] == pytest.approx(same.verdict.gap.value)
    assert found["verdict"]["case"] == same.verdict.case.value
    assert found["origin"]["command"] == "fairpca report --json out.json"
    assert len(found["origin"]["sha256"]) == 64
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "PCA describes “age_group = 75 and older” 33" in page
    assert len(page) < 1_500_000


@pytest.fixture(scope="module")
def usual(people, tmp_path_factory):
    """The figures of ``gap.csv``."""
    return numbers("audit", people / "gap.csv", *USUAL, cwd=tmp_path_factory.mktemp("usual"))


def test_fit_writes_the_model_that_was_judged(people, tmp_path, usual):
    data = people / "gap.csv"
    for options in ([], ["--cv", "0"], ["--max-error-increase", "0.01"], ["--criterion", "error"]):
        found = numbers("audit", data, *USUAL, *options, cwd=tmp_path) if options else usual
        run("fit", data, *USUAL, *options, "-o", "m.safetensors", cwd=tmp_path)
        model = fairpca.load_model(tmp_path / "m.safetensors")
        assert repr(model) == found["provenance"]["alternative"]
        assert model.group_errors_ == pytest.approx(found["fit"]["fair_errors"])
        assert model.alpha_ == pytest.approx(found["fit"]["alpha"], nan_ok=True) or options


def test_a_fit_reads_all_rows_once(people, tmp_path, monkeypatch):
    whole, batches = [], Table.batches

    def counted(self, *columns, limit=None, **options):
        whole.append(limit is None)
        return batches(self, *columns, limit=limit, **options)

    monkeypatch.setattr(Table, "batches", counted)
    run("fit", people / "gap.csv", *USUAL, "-o", "m.safetensors", cwd=tmp_path)
    assert sum(whole) == 1


def test_columns_are_judged_on_held_out_people(tmp_path):
    done = run("columns", "-r", "3", cwd=tmp_path)
    assert "fair choice: weight, systolic, diastolic" in done.stdout
    assert "held-out people" in done.stdout
    found = json.loads(run("columns", "-r", "3", "--json", "-", cwd=tmp_path).stdout)
    usual, fair = (
        [row[kind]["error"] for row in found["groups"]] for kind in ("baseline", "alternative")
    )
    assert max(fair) < max(usual)
    assert found["kept"]["lower_bound"] < max(fair)
    largest = max(found["fit"]["pca_errors"]), max(found["fit"]["fair_errors"])
    for figure in (*largest, found["kept"]["lower_bound"]):
        assert f"{figure:.3g}" in done.stdout
    assert "not proven" not in done.stdout
    assert "-r" in fails("columns", cwd=tmp_path)
    assert "too few" in run("columns", "-r", "2", "--judge-from", "10000", cwd=tmp_path).stdout
    offered = run("columns", "--help", cwd=tmp_path).stdout
    assert "--group" in offered
    for option in ("--alpha", "--criterion", "--constraint", "--max-disparity"):
        assert option not in offered


def test_columns_that_a_search_found_are_not_called_the_best(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6)) @ rng.standard_normal((6, 30))
    frame = pd.DataFrame(X + rng.standard_normal((60, 30)))
    frame.add_prefix("x").assign(g=np.arange(60) % 2).to_csv(tmp_path / "wide.csv", index=False)
    done = run("columns", "wide.csv", "-g", "g", "-r", "12", "--cv", "2", cwd=tmp_path)
    assert "not proven the best" in done.stdout


def test_a_limit_for_each_group_is_kept(people, tmp_path):
    limit = ["--max-group-increase", "0.01", "--cv", "0"]
    run("fit", people / "gap.csv", *USUAL, *limit, "-o", "m.safetensors", cwd=tmp_path)
    model = fairpca.load_model(tmp_path / "m.safetensors")
    assert (model.group_errors_ <= 1.01 * model.pca_group_errors_ * (1 + 1e-9)).all()


def test_the_fit_command_of_a_page_can_be_typed(people, tmp_path):
    import shlex

    found = numbers("report", people / "gap.csv", *USUAL, "-o", "p.html", cwd=tmp_path)
    program, *words = shlex.split(found["origin"]["fit_command"])
    assert program == "fairpca"
    run(*words, cwd=tmp_path)
    model = fairpca.load_model(tmp_path / "model.safetensors")
    assert model.group_errors_ == pytest.approx(found["fit"]["fair_errors"])
    step = found["origin"]["step_command"].replace("{step}", "0.005")
    run(*shlex.split(step)[1:], cwd=tmp_path)
    smaller = fairpca.load_model(tmp_path / "model.safetensors")
    cost = smaller.reconstruction_error_ / smaller.pca_reconstruction_error_ - 1
    assert cost == pytest.approx(0.005, rel=1e-3)


def test_audit_and_report_say_the_same(people, tmp_path, usual):
    found = numbers("report", people / "gap.csv", *USUAL, "-o", "p.html", cwd=tmp_path)
    for part in ("verdict", "groups", "provenance", "fit"):
        assert found[part] == usual[part]


def test_the_gate_decides_the_exit_code(people, tmp_path, usual):
    data = people / "gap.csv"
    gap = usual["verdict"]["gap"]
    assert 0 < gap["low"] < gap["value"]
    between = str((gap["low"] + gap["value"]) / 2)
    done = run("audit", data, *USUAL, "--fail-above", "0.01", cwd=tmp_path, code=1)
    assert len(done.stderr.splitlines()) == 1
    assert "exceeds --fail-above 1 %" in done.stderr
    unproven = run("audit", data, *USUAL, "-q", "--fail-above", between, cwd=tmp_path, code=4)
    assert len(unproven.stderr.splitlines()) == 1
    assert "Not proven that no gap exceeds --fail-above" in unproven.stderr
    run("audit", data, *USUAL, "--fail-above", between, "--fail-on", "gap", cwd=tmp_path)
    run(
        "audit",
        data,
        *USUAL,
        "--fail-above",
        between,
        "--fail-on",
        "estimate",
        cwd=tmp_path,
        code=1,
    )
    run("audit", people / "even.csv", *USUAL, "--fail-above", "0.5", cwd=tmp_path)


def test_a_gate_looks_at_the_lower_end_and_never_at_small_groups():
    rows = made_group("a", 500, (0.12, 0.07, 0.17), (0.0, 0.0, 0.0)), OTHERS, TINY
    kept = {"small_groups": "error", "min_group_size": 1}
    for limit, fail_on, code in ((0.1, "gap", 0), (0.1, "estimate", 1), (0.05, "gap", 1)):
        asked = Asked(fail_above=limit, fail_on=fail_on, **kept)
        found, line = compare(made_audit(rows), asked)
        assert EXIT_CODES[found.answer] == code
        assert "PCA describes “age_group = a” (500 people) 12 % worse than everyone else" in line


def test_a_gate_on_shares_says_so(people, tmp_path):
    gate = ["audit", people / "gap.csv", *USUAL, "--relative-errors", "--fail-above", "0.01"]
    done = run(*gate, cwd=tmp_path, code=1)
    assert "relative to how much each group varies" in done.stderr
    assert "share lost against all others" in done.stdout


def test_a_reference_group_that_is_worse_off_is_no_pass(people, tmp_path):
    gate = ["audit", people / "gap.csv", *USUAL, "--reference", "men", "--fail-above", "0.01"]
    done = run(*gate, "--json", "-", cwd=tmp_path, code=1)
    assert "PCA describes “sex = men” (" in done.stderr
    run(*gate, "--fail-on", "estimate", cwd=tmp_path, code=1)
    found = json.loads(done.stdout)
    assert (found["verdict"]["group"], found["verdict"]["worse"]) == ("men", ["men"])
    run(*gate[:-1], "1", "--fail-on", "gap", cwd=tmp_path)


def test_what_cannot_be_judged_is_no_pass(people, tmp_path):
    data = people / "gap.csv"
    keep_all = [*USUAL[:-2], "-r", "5", "--fail-above", "0.1"]
    done = run("audit", data, *keep_all, "--json", "-", cwd=tmp_path, code=3)
    assert "nothing was compressed" in done.stderr
    assert json.loads(done.stdout)["gate"]["exit_code"] == 3
    few = [*USUAL, "--judge-from", "300", "--fail-above", "0.1"]
    assert "too few" in run("audit", data, *few, cwd=tmp_path, code=3).stderr


def test_a_saved_model_is_judged_as_it_is(people, tmp_path):
    run("fit", people / "even.csv", *USUAL, "-o", "m.safetensors", cwd=tmp_path)
    found = numbers("audit", people / "gap.csv", "--model", "m.safetensors", cwd=tmp_path)
    X, sex = rows_of(people)
    model = fairpca.load_model(tmp_path / "m.safetensors")
    same = fairpca.audit_model(model, pd.DataFrame(X, columns=[f"x{j}" for j in range(5)]), sex)
    assert found["verdict"]["gap"] == pytest.approx(same.verdict.gap._asdict())
    assert found["provenance"]["fitted_here"] is False
    run("report", people / "gap.csv", "--model", "m.safetensors", cwd=tmp_path)
    assert "a model judged as it is" in (tmp_path / "report.html").read_text("utf-8")
    gate = ["audit", people / "even.csv", "--model", "m.safetensors", "--fail-above"]
    assert "was fitted to" in run(*gate, "0.5", cwd=tmp_path, code=3).stderr
    run(*gate, "0", "--fail-on", "estimate", cwd=tmp_path, code=1)
    line = fails("audit", people / "gap.csv", "--model", "m.safetensors", "-r", "3", cwd=tmp_path)
    assert "leave out --components" in line


def test_weights_groups_and_targets(people, tmp_path):
    data = people / "gap.csv"
    weighted = ["-g", "sex", "--weight", "weight", "--drop", "passed,ward", "-r", "2"]
    found = numbers("audit", data, *weighted, cwd=tmp_path)
    assert found["provenance"]["weighted"] is True
    # Without a judged group nothing is sought beyond the names.
    crossed = ["-g", "sex,ward", "--drop", "passed,weight", "-r", "2", "--judge-from", "500"]
    names = [g["name"] for g in numbers("audit", data, *crossed, cwd=tmp_path)["groups"]]
    pairs = [(sex, ward) for sex in ("men", "women") for ward in ("north", "south")]
    assert names == [f"sex = {sex}, ward = {ward}" for sex, ward in pairs]
    target = ["-g", "sex", "--target", "passed", "--drop", "ward,weight", "-r", "2"]
    done = run("report", data, *target, cwd=tmp_path)
    assert "selected (“1”)" in done.stdout
    assert "What a classifier makes of it" in (tmp_path / "report.html").read_text("utf-8")
    found = numbers(
        "audit", data, "-g", "passed", "--drop", "sex,ward,weight", "-r", "2", cwd=tmp_path
    )
    assert [g["name"] for g in found["groups"]] == ["passed = 0", "passed = 1"]


@pytest.mark.parametrize(
    "model", [fairpca.FairColumns(2), fairpca.GroupEraser(strength=0.8)], ids=lambda m: repr(m)[:5]
)
def test_saved_columns_and_erasers_are_shown_and_applied(people, tmp_path, model):
    table = pd.read_csv(people / "gap.csv")
    X = table[[f"x{j}" for j in range(5)]]
    model.fit(X, sensitive_features=table["sex"]).save(tmp_path / "m.safetensors")
    shown = run("inspect", "m.safetensors", cwd=tmp_path).stdout
    assert "women" in shown
    told = json.loads(run("inspect", "m.safetensors", "--json", "-", cwd=tmp_path).stdout)
    assert not told["standardized"]
    if "kept" in told:
        assert told["kept"] == model.get_feature_names_out().tolist()
        assert all(name in shown for name in told["kept"])
        assert told["baseline_group_errors"] == pytest.approx(model.baseline_group_errors_)
    else:
        assert told["change"] == pytest.approx(model.change_)
    run("transform", "m.safetensors", str(people / "gap.csv"), "--out", "t.csv", cwd=tmp_path)
    written = pd.read_csv(tmp_path / "t.csv")
    expected = model.set_output(transform="pandas").transform(X)
    pd.testing.assert_frame_equal(written, expected, rtol=1e-12, atol=1e-12)


def test_fit_and_inspect_print_labels_with_their_column(people, tmp_path):
    by_number = ["-g", "passed", "--drop", "sex,ward,weight", "-r", "2", "--cv", "0"]
    fitted = run("fit", people / "gap.csv", *by_number, "-o", "m.safetensors", cwd=tmp_path).stdout
    shown = run("inspect", "m.safetensors", cwd=tmp_path).stdout
    assert "Column “id”: left out, probably an id" in fitted
    for text in (fitted, shown):
        assert [line.split("  ")[0] for line in text.splitlines() if line.startswith("passed")] == [
            "passed",
            "passed = 0",
            "passed = 1",
        ]


def test_fit_knows_the_rules_of_the_verdict(people, tmp_path):
    rules = ["--judge-from", "2000", "--small-gap", "0.5", "-o", "m.safetensors"]
    assert "too few people" in run("fit", people / "gap.csv", *USUAL, *rules, cwd=tmp_path).stdout
    wrong = [*USUAL, "--reference", "nobody", "-o", "n.safetensors"]
    assert run("fit", people / "gap.csv", *wrong, cwd=tmp_path, code=2).stderr.count("nobody")
    assert not (tmp_path / "n.safetensors").exists()


def test_single_people_only_on_request(people, tmp_path, usual):
    assert "rows" not in usual
    asked = numbers("audit", people / "gap.csv", *USUAL, "--with-rows", cwd=tmp_path)
    assert asked["rows"]["rows"]


def test_a_query_is_data(people, tmp_path, usual):
    query = f"SELECT x0, x1, x2, x3, x4, sex FROM '{people / 'gap.csv'}' WHERE x0 > -100"
    found = numbers("audit", query, "-g", "sex", "-r", "2", cwd=tmp_path)
    assert found["verdict"]["gap"] == pytest.approx(usual["verdict"]["gap"])


def test_standard_input(people, tmp_path):
    content = (people / "gap.csv").read_text("utf-8")
    done = run("audit", "-", *USUAL, cwd=tmp_path, stdin=content)
    assert "describes “sex = men”" in done.stdout
    assert "Column “id”: left out" in done.stdout


def test_scores_of_new_rows_are_those_of_the_model(people, tmp_path):
    data = people / "gap.csv"
    run("fit", data, *USUAL, "-o", "m.safetensors", cwd=tmp_path)
    run("transform", "m.safetensors", data, "--keep", "id", "-o", "s.csv", cwd=tmp_path)
    model = fairpca.load_model(tmp_path / "m.safetensors")
    plain = {"delimiter": ",", "skiprows": 1, "converters": _unquoted, "encoding": "utf-8"}
    scores = np.loadtxt(tmp_path / "s.csv", **plain)
    X, _ = rows_of(people)
    assert scores[:, 0] == pytest.approx(np.arange(600))
    assert scores[:, 1:] == pytest.approx((X - model.mean_) / model.scale_ @ model.components_.T)
    told = json.loads(run("inspect", "m.safetensors", "--json", "-", cwd=tmp_path).stdout)
    assert told["held_out_changes"] == pytest.approx(model.held_out_changes_)
    assert told["group"] == ["sex"]
    assert told["standardized"]
    assert told["components"] == pytest.approx(model.components_)
    assert "standardize=True" in run("inspect", "m.safetensors", cwd=tmp_path).stdout


def _unquoted(text):
    return float(text.strip('"'))


def test_a_card_for_a_repository(people, tmp_path):
    run("report", people / "gap.csv", *USUAL, "--model-card", "card.md", cwd=tmp_path)
    card = (tmp_path / "card.md").read_text("utf-8")
    assert "PCA describes “sex = men”" in card.replace("\\", "")
    assert "fairpca report" in card
    line = fails("report", people / "gap.csv", *USUAL, "--model-card", "card.json", cwd=tmp_path)
    assert "card.md" in line


def test_budgets_and_gates_have_their_own_names(people, tmp_path):
    data = people / "gap.csv"
    done = run(
        "audit", data, *USUAL, "--max-disparity", "0.000001", "--no-standardize", cwd=tmp_path
    )
    assert "max_disparity" in done.stdout or "“men”" in done.stdout
    for option in ("--held-out", "--max-relative-disparity=0.1", "--label=x", "--columns=x"):
        assert "No such option" in fails("audit", data, *USUAL, option, cwd=tmp_path)


def test_estimators_and_options_that_contradict_each_other(people, tmp_path):
    data = people / "gap.csv"
    fit = ["fit", data, *USUAL, "-o", "m.safetensors"]
    line = fails(*fit, "--alpha", ".5", "--max-disparity", "1", cwd=tmp_path)
    assert "contradict" in line
    assert "(here: --max-disparity, --alpha)" in line
    line = fails(*fit, "--criterion", "loss", "--constraint", "parity", cwd=tmp_path)
    assert "--criterion loss is for MinMaxPCA" in line
    line = fails(
        "fit", data, *USUAL, "--min-group-size", "300", "-o", "m.safetensors", cwd=tmp_path
    )
    assert "--min-group-size" in line
    run("fit", data, *USUAL, "--alpha", "1", "-o", "m.safetensors", cwd=tmp_path)
    model = fairpca.load_model(tmp_path / "m.safetensors")
    assert isinstance(model, FairPCA)
    assert model.group_errors_ == pytest.approx(model.pca_group_errors_)


def test_missing_values_are_refused_dropped_or_filled_in(people, tmp_path):
    lines = (people / "gap.csv").read_text("utf-8").splitlines()
    lines[1:41] = ["," + line.partition(",")[2] for line in lines[1:41]]
    (tmp_path / "holes.csv").write_text("\n".join(lines))
    line = fails("audit", "holes.csv", *USUAL, "--missing", "error", cwd=tmp_path)
    assert all(option in line for option in ("--missing drop", "--missing median", "--drop"))
    dropped = run("audit", "holes.csv", *USUAL, "--missing", "drop", cwd=tmp_path).stdout
    assert "40 rows: left out, missing values" in dropped
    filled = run("audit", "holes.csv", *USUAL, "--missing", "median", cwd=tmp_path).stdout
    assert "x0 (40)" in filled
    by_number = ["-g", "passed", "--drop", "sex,ward,weight", "-r", "2", "--missing", "median"]
    filled = run("audit", "holes.csv", *by_number, cwd=tmp_path).stdout
    assert "(passed = 0)" in filled
    run("fit", "holes.csv", *USUAL, "--missing", "median", "-o", "m.safetensors", cwd=tmp_path)
    run("transform", "m.safetensors", "holes.csv", "-o", "s.csv", cwd=tmp_path)
    assert len((tmp_path / "s.csv").read_text("utf-8").splitlines()) == 601


def test_advice_names_only_options_that_help(people, tmp_path):
    lines = (people / "gap.csv").read_text("utf-8").splitlines()
    holes = ["," + line.partition(",")[2] for line in lines[1:41]]
    (tmp_path / "holes.csv").write_text("\n".join([lines[0], *holes, *lines[41:]]))
    nameless = [line.replace("women", "").replace("men", "") for line in lines[1:41]]
    (tmp_path / "nameless.csv").write_text("\n".join([lines[0], *nameless, *lines[41:]]))
    line = fails("audit", "nameless.csv", *USUAL, cwd=tmp_path)
    assert "--missing drop" in line
    assert "--missing median" not in line
    assert "--missing-group 'not recorded'" in line
    (tmp_path / "one.csv").write_text("\n".join([lines[0], nameless[0], *lines[2:]]))
    dropped = run("audit", "one.csv", *USUAL, "--missing", "drop", cwd=tmp_path).stdout
    assert "1 row: left out, missing values" in dropped
    assert "did you mean 'one.csv'?" in fails("audit", "onee.csv", *USUAL, cwd=tmp_path)
    named = [*USUAL, "--missing-group", "not recorded", "--judge-from", "500"]
    assert "not recorded" in run("audit", "nameless.csv", *named, cwd=tmp_path).stdout
    run("fit", people / "gap.csv", *USUAL, "-o", "m.safetensors", cwd=tmp_path)
    line = fails("transform", "m.safetensors", "holes.csv", "-o", "s.csv", cwd=tmp_path)
    assert "--missing drop" in line
    assert "--missing median" not in line
    target = ["-g", "sex", "--target", "x0", "--drop", "passed,ward,weight", "-r", "2"]
    assert "(here: --target)" in fails("audit", people / "gap.csv", *target, cwd=tmp_path)
    table = pd.read_csv(people / "gap.csv").assign(three=np.arange(600) % 3)
    table.to_csv(tmp_path / "three.csv", index=False)
    target = ["-g", "sex", "--target", "three", "-r", "2"]
    assert "(here: --target-positive)" in fails("audit", "three.csv", *target, cwd=tmp_path)
    assert "'sex', 'ward'" in fails("audit", people / "gap.csv", cwd=tmp_path)
    twice = fails("audit", people / "gap.csv", "-g", "sex", "--features", "sex,x0", cwd=tmp_path)
    assert "leave it out of features" in twice


def test_a_warning_is_one_line(people, tmp_path):
    table = pd.read_csv(people / "gap.csv").assign(again=lambda t: (t["sex"] == "men").astype(int))
    table.to_csv(tmp_path / "again.csv", index=False)
    code = [*COMMAND[:1], "-m", "fairpca", "audit", "again.csv", *USUAL]
    done = subprocess.run(code, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr.startswith("fairpca: warning: column 'again'")
    assert len(done.stderr.splitlines()) == 1


def test_fit_warns_of_a_model_that_the_audit_does_not_advise(people, tmp_path):
    save = ["-o", "m.safetensors"]
    warned = run("fit", people / "even.csv", *USUAL, "--cv", "0", *save, cwd=tmp_path).stdout
    judged = run("audit", people / "even.csv", *USUAL, "--cv", "0", cwd=tmp_path).stdout
    assert judged.splitlines()[0] in warned.splitlines()[0]
    assert warned.startswith("! ")
    advised = run("fit", people / "gap.csv", *USUAL, *save, cwd=tmp_path).stdout
    assert "PCA describes" not in advised


@pytest.mark.parametrize("sizes", [(2, 1), (12, 2, 1), (40, 1)])
def test_tiny_groups_are_listed_by_every_command(tmp_path, sizes):
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b", "c"][: len(sizes)], sizes)
    frame = pd.DataFrame(rng.normal(size=(len(groups), 4)).round(3), columns=list("wxyz"))
    frame.assign(group=groups).to_csv(tmp_path / "tiny.csv", index=False)
    few = ["tiny.csv", "-g", "group", "--features", "w,x,y,z", "-r", "2"]
    found = numbers("audit", *few, cwd=tmp_path)
    assert [group["n"] for group in found["groups"]] == list(sizes)
    assert not any(group["judged"] for group in found["groups"] if group["n"] < 30)
    assert found["provenance"]["n_folds"] <= max(sizes)
    run("fit", *few, "-o", "m.safetensors", cwd=tmp_path)
    model = fairpca.load_model(tmp_path / "m.safetensors")
    assert " ".join(repr(model).split()) == found["provenance"]["alternative"]
