"""Pages name files and functions that exist, and their code prints what they show."""

from __future__ import annotations

import ast
import contextlib
import csv
import importlib
import importlib.util
import io
import re
import shlex
import warnings
from pathlib import Path

import numpy as np
import pytest
from helpers.command import run
from helpers.marks import needs_data
from sklearn.pipeline import make_pipeline

import fairpca
from fairpca import FairColumns, FairPCA, FairPCACV, audit, baselines, exceptions, load_model
from fairpca.baselines import SubsetFairPCA
from fairpca.datasets import load_checkup, load_lsac

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "fairpca"
PAGES = ["architecture", "contributing", "releasing"]
IS_PATH = re.compile(r"[\w.*/-]+(/|\.(py|rst|md|txt|toml|cff|yml|csv))")


CODE = re.compile(r"^```(python|text|bash)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def text_of(page: str) -> str:
    return (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")


def literals(page: str) -> set[str]:
    text = re.sub(r"^```.*?^```$", "", text_of(page), flags=re.DOTALL | re.MULTILINE)
    return {" ".join(found.split()) for found in re.findall(r"`([^`]+)`", text)}


def rows_of(text: str) -> list[list[str]]:
    """The cells of the tables of a text, without their headings."""
    lines = re.findall(r"^\|(.*)\|$", text, re.MULTILINE)
    rules = [i for i, line in enumerate(lines) if set(line) <= set("-| ")]
    heads = {i - 1 for i in rules} | set(rules)
    rows = [re.split(r"(?<!\\)\|", line) for i, line in enumerate(lines) if i not in heads]
    return [[cell.strip() for cell in row] for row in rows]


def shown(name: str) -> list[list[str]]:
    """The cells of a table that a script writes into its page."""
    pages = (path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md"))
    (found,) = (rows for text in pages if (rows := shown_in(text, name)))
    return found


def shown_in(text: str, name: str) -> list[list[str]]:
    found = re.findall(rf"<!-- table: {name} -->(.*?)<!-- end of table -->", text, re.DOTALL)
    return rows_of("".join(found))


@pytest.mark.parametrize("page", PAGES)
def test_files_exist(page):
    paths = [name for name in literals(page) if IS_PATH.fullmatch(name)]
    missing = [p for p in paths if not any(ROOT.glob(p)) and not any(PACKAGE.glob(p))]
    assert paths
    assert missing == []


def test_names_are_in_the_code():
    words = set()
    for file in [*PACKAGE.rglob("*.py"), *(ROOT / "reproduction").rglob("*.py")]:
        words |= set(re.findall(r"\w+", file.read_text(encoding="utf-8")))
    others = [name for name in literals("architecture") if not IS_PATH.fullmatch(name)]
    dotted = [name for name in others if re.fullmatch(r"\w+(\.\w+)*", name)]
    names = {part for name in dotted for part in name.split(".")}
    assert {"solve", "Solution"} <= names
    assert names - words == set()


def test_the_reference_lists_every_public_name():
    page = (ROOT / "docs" / "reference" / "api.rst").read_text(encoding="utf-8")
    listed = {word.rpartition(".")[2] for word in page.split()}
    for name in ("", ".metrics", ".datasets", ".plotting", ".exceptions", ".path", ".baselines"):
        public = set(importlib.import_module(f"fairpca{name}").__all__)
        assert public - listed <= {"__version__"}


def test_fields_of_an_audit_exist():
    people, page = load_checkup(), (ROOT / "docs" / "reference" / "api.rst").read_text("utf-8")
    result = audit(FairPCACV(5, standardize=True), people.data, people.sensitive_features)
    names = re.findall(r"``([\w.\[\]]+)``", " ".join(re.findall(r"\* - (.*)", page)))
    assert len(names) > 15
    for name in names:
        assert eval(f"result.{name}", {"result": result}) is not None or name == "outcomes"


def test_code_in_the_reference_is_left_as_it_is():
    for needed in ("matplotlib", "click"):
        pytest.importorskip(needed)
    escape = module(ROOT / "docs" / "conf.py").escape_fitted_names
    code = [">>> fair.status_, fair.groups_", "    >>> f(fair.mean_)", "``W (x - mean_)`` is it."]
    lines = [*code, "an array of shape (n_components_, k), or ``(k_,)``"]
    escape(None, "", "", None, None, lines)
    assert lines == [*code, "an array of shape (n_components\\_, k), or ``(k_,)``"]


RUN = ["audit", "columns", "getting_started", "held_out", "index", "more_groups"]


def test_every_page_with_code_is_run():
    pages = [path.stem for path in (ROOT / "docs").glob("*.md")]
    with_code = [page for page in pages if "```python" in text_of(page)]
    assert sorted(with_code) == sorted([*RUN, "large_data"])


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{name}.md" for name in RUN)])
def test_code_prints_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = ROOT / page
    known, printed, compared = {}, "", 0
    for kind, block in CODE.findall(path.read_text(encoding="utf-8")):
        text = block.strip()
        if kind == "text":
            assert printed.strip() == text
            compared += 1
        elif kind == "python":
            with contextlib.redirect_stdout(io.StringIO()) as stream:
                exec(text, known)
            printed = stream.getvalue()
    assert compared


def checkup_frame():
    """The check-up data as a table of people might be."""
    people = load_checkup()
    columns = dict(zip(people.feature_names, people.data.T, strict=True))
    columns |= {"sex": people.sex, "age": people.age, "id": np.arange(len(people.data))}
    return (
        pytest.importorskip("pandas")
        .DataFrame(columns)
        .assign(year=lambda frame: 2023 + frame["id"] % 2)
    )


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of pandas, inside dask
def test_code_of_large_data_runs(tmp_path, monkeypatch):
    """With a folder as the page has it; Spark has tests of its own."""
    pytest.importorskip("dask.dataframe")
    duckdb, frame = pytest.importorskip("duckdb"), checkup_frame()
    (tmp_path / "people").mkdir()
    duckdb.from_df(frame).write_parquet(str(tmp_path / "people" / "a.parquet"))
    monkeypatch.chdir(tmp_path)
    known = {}
    for kind, code in CODE.findall(text_of("large_data")):
        if kind == "python" and "spark" not in code:
            exec(code, known)
        elif kind == "bash" and code.strip().startswith("fairpca"):
            for line in code.strip().splitlines():
                run(*shlex.split(line)[1:], cwd=tmp_path)
    assert (tmp_path / "scores.parquet").exists()
    assert len(known["scores"].compute()) == len(frame)


def module(path):
    """A script of the repository that is not part of the package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_tables_of_the_pages_are_as_the_scripts_make_them(monkeypatch):
    for needed in ("matplotlib", "click"):
        pytest.importorskip(needed)
    monkeypatch.syspath_prepend(ROOT / "docs")
    made = module(ROOT / "docs" / "make_pages.py")
    pages = {path.name: path.read_text(encoding="utf-8") for path in made.PAGES}
    stale = [name for name, text in pages.items() if made.filled(text) != text]
    assert stale == [], "run: make pages"
    named = {name for text in pages.values() for _, name, _ in made.TABLE.findall(text)}
    unseen = {"benchmarks_growth", "benchmarks_downstream"}  # drawn instead
    assert set(made.tables()) - named == unseen


def test_tables_of_options_are_the_help():
    runner = pytest.importorskip("click.testing").CliRunner()
    app = importlib.import_module("fairpca.cli").app
    told = {}
    for part in ("start", "columns", "choice", "output"):
        for option, *_, commands in shown(f"options_{part}"):
            for command in commands.split(", "):
                told.setdefault(command, set()).update(re.findall(r"--[\w-]+", option))
    for command, options in told.items():
        lines = runner.invoke(app, [command, "--help"]).stdout.splitlines()
        lines = [line for line in lines if re.match(r" {2}-", line)]
        names = {name for line in lines for name in re.findall(r"--[\w-]+", line.split("   ")[0])}
        assert names == options | {"--help"}


def commands_of_the_pages():
    """The lines that call fairpca, each once."""
    text = text_of("getting_started") + text_of("command_line")
    lines = re.findall(r"^\$ (fairpca .*)$", text, re.MULTILINE)
    return list(dict.fromkeys(shlex.join(shlex.split(line, comments=True)[1:]) for line in lines))


@pytest.mark.slow
def test_commands_of_the_pages_run(tmp_path, monkeypatch):
    duckdb, frame = pytest.importorskip("duckdb"), checkup_frame()
    run_command = pytest.importorskip("fairpca.cli").run_command
    (tmp_path / "people").mkdir()
    monkeypatch.chdir(tmp_path)
    for name in ("people.csv", "new.csv"):
        duckdb.from_df(frame).write_csv(name)
    duckdb.from_df(frame).write_parquet("people/a.parquet")
    with duckdb.connect("people.duckdb") as base:
        base.from_df(frame).create("people")
    found = commands_of_the_pages()
    assert len(found) > 8
    for line in found:
        endings = {0, 4} if "--fail-above" in line else {0}  # 4: not proven of so few rows
        assert run_command(shlex.split(line)) in endings, line


def texts_of_warnings():
    """The strings of each call of ``warn``, or of its function if the message is made before."""

    def strings(node):
        parts = [part for part in ast.walk(node) if isinstance(part, ast.Constant)]
        return " ".join(part.value for part in parts if isinstance(part.value, str))

    for path in PACKAGE.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.FunctionDef):
                continue
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "warn":
                    inline = strings(call)
                    yield inline if len(inline) > 20 else strings(function)


def test_every_warning_is_explained():
    page = text_of("what_can_go_wrong")
    assert [name for name in exceptions.__all__ if f"exceptions.{name}`" not in page] == []
    rows = rows_of(page.split("## Errors\n")[0])
    quoted = [text for row in rows for text in re.findall(r'"([^"]+)"', row[0])]
    issued = list(texts_of_warnings())

    def announces(quote, text):
        return all(part.strip(" .") in text for part in quote.split("..."))

    assert len(issued) > 15
    assert [text for text in issued if not any(announces(q, text) for q in quoted)] == []
    assert [quote for quote in quoted if not any(announces(quote, t) for t in issued)] == []


def test_errors_begin_as_the_page_says(tmp_path):
    pytest.importorskip("safetensors")
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X, two, three = rng.normal(size=(60, 4)), np.repeat(["a", "b"], 30), np.repeat([*"abc"], 20)
    holes, unknown = np.where(X > 2, np.nan, X), np.where(two == "a", None, two)
    few, frame, turned = two.copy(), pd.DataFrame(X), pd.Series(two)[::-1]
    few[:3] = "c"

    def update_loaded():
        FairPCA(2).fit(X, sensitive_features=two).save(tmp_path / "model")
        load_model(tmp_path / "model").partial_fit(X, sensitive_features=two)

    calls = [
        lambda: FairPCA(2).fit(X),
        lambda: make_pipeline(FairPCA(2)).fit(X, sensitive_features=two),
        lambda: FairPCA(2).fit(holes, sensitive_features=two),
        lambda: FairPCA(2).fit(X, sensitive_features=unknown),
        lambda: FairPCA(2).fit(X, sensitive_features=X[:, 0]),
        lambda: FairPCA(2, min_group_size=10).fit(X, sensitive_features=few),
        lambda: FairPCACV(2).fit(X, sensitive_features=few),
        lambda: SubsetFairPCA(2).fit(X, sensitive_features=three),
        lambda: FairPCA(5).fit(X, sensitive_features=two),
        lambda: FairPCA(2, max_disparity=1, max_error_increase=1).fit(X, sensitive_features=two),
        lambda: FairPCA(2).fit(frame, sensitive_features=turned),
        update_loaded,
    ]
    page = text_of("what_can_go_wrong").split("## Errors\n")[1].split("## Surprises\n")[0]
    quoted = [
        (row[0].split("`")[1], text)
        for row in rows_of(page)
        for text in re.findall(r'"([^"]+)"', row[0])
    ]
    for (kind, text), call in zip(quoted, calls, strict=True):
        with pytest.raises((TypeError, ValueError)) as caught:
            call()
        assert kind in [kin.__name__ for kin in type(caught.value).__mro__]
        assert all(part.strip(" .") in str(caught.value) for part in text.split("..."))


def table(name, *key):
    """The rows of a table of the docs, by the columns that tell them apart."""
    with (ROOT / "docs" / name).open(encoding="utf-8") as file:
        return {tuple(row[column] for column in key): row for row in csv.DictReader(file)}


def percents(text, *shares):
    """A text with shares as percentages."""
    return text.format(*(f"{100 * float(getattr(x, 'value', x)):.0f} %" for x in shares))


def words(page):
    return " ".join(text_of(page).split())


def test_what_equalised_odds_does_is_told_of_every_table():
    rows, text = table("benchmarks_outcomes.csv", "data", "method"), words("fairness")
    assert "narrows one of the TPR and FPR gaps and widens the other, against plain PLS" in text
    for data in ("compas", "german", "adult"):
        plain, odds = rows[data, "PLS"], rows[data, "FairPLS, equalised odds"]
        gaps = [(plain[gap], odds[gap]) for gap in ("TPR gap", "FPR gap")]
        assert sorted(after < before for before, after in gaps) == [False, True]
    assert 'on COMPAS `"demographic_parity"` beats it in both, and in AUC' in text
    odds = rows["compas", "FairPLS, equalised odds"]
    parity = rows["compas", "FairPLS, demographic parity"]
    assert parity["TPR gap"] < odds["TPR gap"]
    assert parity["FPR gap"] < odds["FPR gap"]
    assert parity["AUC of the target"] > odds["AUC of the target"]


def test_what_scores_are_good_for_is_told_as_measured():
    rows = table("benchmarks_downstream.csv", "measure", "group")
    text = words("held_out").split("What the scores are good for")[1]
    for measure, group in [
        ("error of distances", "75 and older"),
        ("error of systolic and diastolic", "75 and older"),
        ("error of distances", "black"),
        ("error of distances", "younger"),
        ("error of distances", "white and other"),
    ]:
        row = rows[measure, group]
        assert f"from {row['PCA'][1:]} to {row['FairPCACV'][1:]}" in text
        assert row["beyond chance"]
    shares = {
        group: tuple(round(100 * float(row[name])) for name in ("FairPCACV", "PCA"))
        for (measure, group), row in rows.items()
        if measure == "neighbours kept"
    }
    for group in ("75 and older", "black", "white and other"):
        assert re.search(
            r"{} %( of their neighbours)? instead of {} %".format(*shares[group]), text
        )
    clusters = [row for (measure, _), row in rows.items() if measure == "agreement of clusters"]
    assert [row["beyond chance"] for row in clusters] == [""] * 4
    assert all(float(row["gain, %"]) < 0 for row in clusters)
    assert f"of {len(rows)} of them" in text


def test_every_example_has_a_picture_and_a_place():
    """A script without a figure gets the gallery's placeholder; one without a place stops it."""
    scripts = {path.name: path.read_text("utf-8") for path in (ROOT / "examples").glob("*.py")}
    assert [name for name, text in scripts.items() if "plt.show()" not in text] == []
    order = (ROOT / "docs" / "gallery_order.py").read_text("utf-8")
    assert sorted(re.findall(r'"(\w+\.py)"', order)) == sorted(scripts)


def test_table_of_the_readme_is_the_audit():
    people = load_checkup()
    found = audit(FairPCACV(5, standardize=True), people.data, people.sensitive_features)
    line = r"^\| .* \(([\d,]+)\) \| ([\d.]+) \| ([\d.]+) \| (.*) \|$"
    rows = re.findall(line, readme(), re.MULTILINE)
    assert len(rows) == len(found.groups) == 2
    for (size, before, after, text), row in zip(rows, found.groups, strict=True):
        assert int(size.replace(",", "")) == row.n
        assert (before, after) == (f"{row.baseline.error:.2f}", f"{row.alternative.error:.2f}")
        change, *ends = (round(100 * abs(x)) for x in row.change)
        assert [int(n) for n in re.findall(r"\d+", text)] == [change, *sorted(ends)]
    older, younger = found.groups
    gap, share, robust = older.baseline.gap, older.baseline.share_gap, older.baseline.robust
    told = " ".join(readme().split())
    assert percents("describes people aged 75 and older {} worse than everyone else", gap) in told
    assert f"(95 % interval {100 * gap.low:.0f} to {100 * gap.high:.0f} %)" in told
    better = "describes {} of the older people better than before, and {} of the younger"
    assert percents(better, older.better_off, younger.better_off) in told
    six = FairPCACV(6, standardize=True)
    six.fit(people.data, sensitive_features=people.sensitive_features)
    first, second = six.held_out_pca_group_errors_
    assert f"error from {older.baseline.error:.2f} to {first:.2f}, and the" in told
    assert f"gap from {100 * gap.value:.0f} % to {100 * (first / second - 1):.0f} %" in told
    others = (share, robust.median_gap, robust.trimmed_gaps[0.01])
    shown = "{} by the share of each group's variance, {} by medians, and {} without the 1 %"
    assert percents(shown, *others) in words("getting_started")


def test_figures_of_columns_are_what_the_fits_say():
    people, text = load_checkup(), words("columns")
    for r in (3, 4, 5):
        fair = FairColumns(r, standardize=True)
        fair.fit(people.data, sensitive_features=people.sensitive_features)
        figures = [*fair.baseline_group_errors_, *fair.group_errors_, fair.lower_bound_]
        assert re.search(".{,99}?".join(re.escape(f"{x:.2f}") for x in figures), text)


def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def test_cases_of_the_pages_are_those_measured():
    rows, told = table("held_out.csv", "data", "method"), " ".join(readme().split())
    public = {method: row for (data, method), row in rows.items() if "to report" in data}
    plain, chosen = public["efficient"], public["efficient, cv=10"]
    harmed, other, largest = (
        chosen[f"{name}"] for name in ("harmed group", "other group", "largest error")
    )
    assert (
        f"Over {chosen['of']} public cases**, the worst-described group's error changes by {harmed}"
        in told
    )
    assert f"the other's by {other}, and the largest error by {largest}." in told
    assert f"In {chosen['stays at PCA']} of them `FairPCACV` finds" in told
    worse = "worse off than under PCA in {} with `FairPCA`, which does not check, and in {} with"
    assert worse.format(plain["harmed worse"], chosen["harmed worse"]) in told
    told = words("held_out")
    assert f"the {chosen['of']} cases, the largest error of a group changes by {largest} on" in told
    assert f"{plain['largest error']} with `FairPCA`. In {chosen['stays at PCA']} of them" in told


def test_times_of_the_readme_are_those_measured():
    rows = table("benchmarks_in_pca_fits.csv", "part")
    plain = [float(row["FairPCA, in fits of PCA"]) for row in rows.values()]
    chosen = {
        two: [
            row["FairPCACV, in fits of PCA"]
            for row in rows.values()
            if (row["groups"] == "2") is two
        ]
        for two in (True, False)
    }
    (two, more) = (sorted(map(int, chosen[kind])) for kind in (True, False))
    told = " ".join(readme().split())
    assert (
        f"`FairPCA` takes {min(plain)} to {max(plain)}, `FairPCACV` {two[0]} to {two[-1]}" in told
    )
    assert f"with two groups and {more[0]} to {more[-1]} with three or ten" in told


def test_names_of_the_paper_stand_where_people_look():
    names = [row[1] for row in shown_in(readme(), "names")]
    for page in ("index", "choosing"):
        assert [row[1] for row in shown_in(text_of(page), "names")] == names
    calls = [re.match("`([^`]*)`", name)[1] for name in names]
    known = {"r": 2, "baselines": baselines} | {
        name: getattr(fairpca, name) for name in fairpca.__all__
    }
    fits = [eval(call, known) for call in calls]
    assert [type(fit).__name__ for fit in fits[:3]] == ["FairPCA"] * 3
    assert [getattr(fit, "constraint", None) for fit in fits[1:3]] == ["parity", "no_worse"]
    assert all(call in FairPCA.__doc__ for call in calls)


def test_first_screen_of_the_readme_has_the_paper():
    with (ROOT / "docs/_static/reproduction/claims.csv").open(encoding="utf-8") as file:
        findings = [row["finding"] for row in csv.DictReader(file)]
    counts = (findings.count(word) for word in ("holds", "holds in part", "does not hold"))
    first = readme().splitlines()[:60]
    counted = "claims, {} were checked: {} hold, {} hold in part, {} does not"
    assert counted.format(len(findings), *counts) in " ".join(first)
    commands = re.findall(r"^```bash\n(.*)\n```$", readme(), re.MULTILINE)
    assert len(commands) == 3
    assert set(commands) < set(first)
    for word in ("u-FPCA", "c-FPCA", "MOFPCA", "Samadi", "Pelegrina", "TCRED", "LFW", "LSAC"):
        assert word in " ".join(first)


@needs_data
def test_tables_of_lsac_are_what_the_fits_say():
    lsac, printed = load_lsac(), io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec((ROOT / "examples" / "paper_data" / "lsac_three_races.py").read_text("utf-8"), {})
    four = re.compile(r"^.*? +" + r"(\d\.\d{3}) +" * 3 + r"(\d\.\d{3}) *(.*)$", re.MULTILINE)
    computed = four.findall(printed.getvalue())
    assert len(computed) == 8
    told = [tuple(row[1:]) for row in rows_of(text_of("more_groups")) if len(row) == 6]
    assert sorted(told) == sorted(computed)
    two = r"^\| .* \| (\d\.\d{3}) \| (\d\.\d{3}) \|(?: (\d+) % more)? "
    found = re.findall(two, text_of("fairness"), re.MULTILINE)
    for row, options in zip(
        found, ({"alpha": 1}, {}, {"constraint": "no_worse"}, {"constraint": "parity"}), strict=True
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", exceptions.LevellingDownWarning)
            fair = FairPCA(5, **options).fit(lsac.data, sensitive_features=lsac.sensitive_features)
        assert row[:2] == tuple(f"{error:.3f}" for error in fair.group_errors_)
        price = fair.reconstruction_error_ / fair.pca_reconstruction_error_ - 1
        assert row[2] == ("" if "alpha" in options else f"{100 * price:.0f}")


@pytest.mark.slow
def test_table_of_the_guide_is_what_the_example_computes():
    pytest.importorskip("matplotlib").use("Agg")
    known = {}
    rows = {row[0]: row[1:] for row in rows_of(text_of("fairness")) if len(row) == 8}
    exec((ROOT / "examples" / "which_fairness.py").read_text("utf-8"), known)
    for name, figures in zip(known["methods"], known["table"], strict=True):
        np.testing.assert_allclose([float(x) for x in rows[name]], figures, atol=0.012)


@pytest.mark.slow
def test_twenty_halves_of_the_page_are_what_the_example_prints():
    pytest.importorskip("matplotlib").use("Agg")
    known = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec((ROOT / "examples" / "new_people.py").read_text("utf-8"), known)
    told = [row for row in rows_of(text_of("getting_started")) if len(row) == 3]
    pca, fair = known["pca"], known["fair"]["FairPCACV"]
    changes = 100 * (fair / pca - 1)
    assert len(told) == len(pca)
    for i, (rank, *cells) in enumerate(told):
        assert int(rank) == known["ranks"][i]
        for g, cell in enumerate(cells):
            low, high = changes[i, :, g].min(), changes[i, :, g].max()
            before, after = pca[i, :, g].mean(), fair[i, :, g].mean()
            assert cell == f"{before:.2f}, {after:.2f} ({low:+.0f} to {high:+.0f} %)"


def test_links_of_the_readme():
    """They are files of the repository, and become addresses once the project is published."""
    pytest.importorskip("hatchling")
    hatch_build = module(ROOT / "hatch_build.py")
    told = readme()
    published = hatch_build.absolute(told, "https://example.org/fairpca")
    link = r"(?:\]\(|<img src=\")([^)\"]*)[)\"]"
    links, made = (re.findall(link, text) for text in (told, published))
    paths = [link for link in links if not link.startswith("https://")]
    assert "docs/_static/report.png" in paths
    assert all((ROOT / path.partition("#")[0]).exists() for path in paths)
    assert len(made) == len(links)
    assert all(link.startswith("https://") for link in made)


def test_links_of_the_pages_work_on_a_code_host():
    """They are files of the repository, and headings as a code host names them."""

    def headings(path: Path) -> set[str]:
        found = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        return {re.sub(r"[^\w\s-]", "", name).strip().lower().replace(" ", "-") for name in found}

    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        assert not re.search(r"{\w+}`|:(doc|ref):|csv-table", text), page
        for link in re.findall(r"(?:\]\(|src=\")([^)\"\s]+)", text):
            if link.startswith("https://"):
                continue
            path, _, heading = link.partition("#")
            target = page.parent / path if path else page
            assert target.exists(), f"{page.name}: {link}"
            assert not heading or heading in headings(target), f"{page.name}: {link}"


def test_messages_name_packages_that_can_be_installed():
    """fairpca is not published, so ``pip install "fairpca[cli]"`` would not find it."""
    named = set()
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "fairpca[" not in text, path
        joined = re.sub(r'"\s*\n\s*f?"', "", text)
        for packages in re.findall(r"pip install ([-'\w\[\], ]+)", joined):
            named |= set(re.findall(r"[a-z][-\w]+(?![-\w]*\])(?=\W|$)", packages.split(" or ")[0]))
    extras = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    known = set(re.findall(r'"([-\w]+)[\[>]', extras))
    assert {"duckdb", "safetensors", "pyspark"} <= named & known
