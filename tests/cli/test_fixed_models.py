"""Models that are judged as they are: tables of weights, rebuilt rows, and files that run code."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from helpers.command import fails, run
from sklearn.decomposition import PCA, FactorAnalysis

from fairpca import audit_model

NAMES = [f"x{j}" for j in range(5)]
JUDGED = ["-g", "sex", "--loadings", "w.csv"]


@pytest.fixture
def rows(people):
    """The numbers and the sexes of gap.csv."""
    with open(people / "gap.csv", encoding="utf-8") as stream:
        table = list(csv.DictReader(stream))
    X = np.array([[float(row[name]) for name in NAMES] for row in table])
    return X, np.array([row["sex"] for row in table])


def table(weights, mean=None, scale=None, delimiter=",", decimal="."):
    """A table of weights as text."""
    given = {"mean": mean, "scale": scale}
    columns = {name: values for name, values in given.items() if values is not None}
    columns |= {f"pc{i}": own for i, own in enumerate(np.transpose(weights))}
    lines = [delimiter.join(["name", *columns])]
    for name, *values in zip(NAMES, *columns.values(), strict=True):
        lines.append(delimiter.join([name, *(str(v).replace(".", decimal) for v in values)]))
    return "\n".join(lines) + "\n"


def judged(people, folder, text, *options):
    (folder / "w.csv").write_text(text, "utf-8")
    done = run("audit", people / "gap.csv", *JUDGED, *options, "--json", "-", cwd=folder)
    return json.loads(done.stdout)


def errors_in(found):
    return {group["label"]: group["baseline"]["error"] for group in found["groups"]}


def expected(pca, X, sex):
    errors = ((X - pca.inverse_transform(pca.transform(X))) ** 2).sum(axis=1)
    return {label: pytest.approx(errors[sex == label].mean()) for label in ("men", "women")}


def test_the_pca_that_people_have_is_judged_by_its_weights(people, rows, tmp_path):
    X, sex = rows
    mean, scale = X.mean(axis=0), X.std(axis=0)
    Z = (X - mean) / scale
    pca = PCA(2).fit(Z)
    wanted = expected(pca, Z, sex)
    weights = pca.components_.T
    loadings = weights * np.sqrt(pca.explained_variance_)
    angle = np.array([[0.8, -0.6], [0.6, 0.8]])
    texts = [
        table(weights, mean, scale),
        table(loadings @ angle, mean, scale),  # as Varimax turns them
        table(weights, mean, scale, ";", ","),
        table(weights, mean, scale, "\t"),
        table(loadings),  # without means and scales, as of correlations
        table(loadings, scale=scale),
    ]
    for text in texts:
        assert errors_in(judged(people, tmp_path, text)) == wanted
    raw = PCA(2).fit(X)
    wanted = expected(raw, X, sex)
    for text, options in (
        (table(raw.components_.T, mean), []),
        (table(raw.components_.T), ["--no-standardize"]),
    ):
        assert errors_in(judged(people, tmp_path, text, *options)) == wanted


def test_tables_of_spss_and_r(people, rows, tmp_path):
    X, sex = rows
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    weights = np.array([[0.8, 0.0], [0.7, 0.1], [0.0, 0.9], [-0.4, 0.5], [0.0, 0.0]])
    basis = np.linalg.qr(weights)[0]
    errors = ((Z - Z @ basis @ basis.T) ** 2).sum(axis=1)
    wanted = {label: pytest.approx(errors[sex == label].mean()) for label in ("men", "women")}
    cells = [["" if w == 0 else f"{w}".replace("0.", ",") for w in own] for own in weights]
    lines = [";".join([name, *own]) for name, own in zip(NAMES, cells, strict=True)]
    lines[-1] = "x4;,0;,0"
    above = ["Rotierte Komponentenmatrix(a);;", ";Komponente;", ";1;2"]
    below = ["Extraktionsmethode: Hauptkomponentenanalyse.;;", "a. In 3 Iterationen konvergiert.;;"]
    spss = "\n".join([*above, *lines, *below])
    found = judged(people, tmp_path, spss)
    assert errors_in(found) == wanted
    notes = " ".join(found["origin"]["notes"])
    assert "2 blank weights counted as 0" in notes
    assert "centred and standardised by these rows" in notes
    r = ['"","RC1","RC2","h2","u2"']
    r += [f'"{name}",{a},{b},0.5,0.5' for name, (a, b) in zip(NAMES, weights.tolist(), strict=True)]
    assert errors_in(judged(people, tmp_path, "\n".join(r))) == wanted


GOOD = np.eye(5)[:, :2] + 0.1
MISTAKES = {
    "scales must be above 0": table(GOOD, np.zeros(5), np.zeros(5)),
    "depend on each other": table(np.ones((5, 2))),
    "holds 'nan'; give finite numbers": table(GOOD).replace("x2,0.1", "x2,nan"),
    "holds 'much'; give finite numbers": table(GOOD).replace("x2,0.1", "x2,much"),
    "no line has a name and then numbers": "name,mean,pc0\n",
    "holds no weights": "name,mean\n" + "".join(f"{name},0\n" for name in NAMES),
    "has 2 cells, but the line of names has 3": table(GOOD).replace("x4,0.1,0.1", "x4,0.1"),
    "names 'x1' twice": table(GOOD).replace("x2", "x1"),
    "a mean is blank": table(GOOD, np.zeros(5)).replace("x3,0.0", "x3,"),
    "neither names nor weights": table(GOOD).replace("x0,1.1", "x0,l.l"),
    "'y0'": table(GOOD).replace("x0", "y0"),
}


@pytest.mark.parametrize("said", MISTAKES)
def test_each_mistake_in_a_table_of_weights_has_its_message(people, tmp_path, said):
    (tmp_path / "w.csv").write_text(MISTAKES[said], "utf-8")
    assert said in fails("audit", people / "gap.csv", *JUDGED, cwd=tmp_path)


@pytest.mark.parametrize("with_scale", [False, True])
@pytest.mark.parametrize("times", [1, 100, 0.001])
def test_weights_made_in_other_units_are_noticed(tmp_path, with_scale, times):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5)) * [10, 12, 3, 1, 1] + [170, 70, 0, 5, 5]
    mean, scale = X.mean(axis=0), X.std(axis=0)
    text = table(PCA(2).fit(X / scale).components_.T, mean, scale if with_scale else None)
    (tmp_path / "w.csv").write_text(text, "utf-8")
    new = rng.normal(size=(300, 5)) * [13, 14, 2, 1, 1] + [165, 76, 0.5, 5, 5]
    new[:, 0] *= times
    lines = [",".join([*NAMES, "sex"])]
    lines += [",".join([*map(str, row), "mf"[i % 2]]) for i, row in enumerate(new.tolist())]
    (tmp_path / "d.csv").write_text("\n".join(lines), "utf-8")
    if times == 1:
        run("audit", "d.csv", *JUDGED, cwd=tmp_path)
    else:
        line = fails("audit", "d.csv", *JUDGED, cwd=tmp_path)
        assert "in other units than these rows: its mean of 'x0' is 1" in line


def test_rebuilt_rows_are_judged(people, rows, tmp_path):
    X, sex = rows
    model = FactorAnalysis(2).fit(X)
    rebuilt = model.mean_ + model.transform(X) @ model.components_
    wanted = audit_model((X, rebuilt), sensitive_features=sex)

    def written(values, names=NAMES):
        lines = [",".join(names), *(",".join(map(str, row)) for row in values.tolist())]
        (tmp_path / "r.csv").write_text("\n".join(lines), "utf-8")
        return [
            people / "gap.csv",
            "-g",
            "sex",
            "--features",
            "x0,x1,x2,x3,x4",
            "--rebuilt",
            "r.csv",
        ]

    data = written(rebuilt[:, ::-1], NAMES[::-1])  # columns in any order
    found = json.loads(run("audit", *data, "--json", "-", cwd=tmp_path).stdout)
    for group in found["groups"]:
        assert group["baseline"]["error"] == pytest.approx(
            wanted.group(group["label"]).baseline.error
        )
    assert found["loadings"] is None
    run("report", *data, "--target", "passed", cwd=tmp_path)
    (tmp_path / "report.html").unlink()
    line = fails("audit", *written(rebuilt[1:]), cwd=tmp_path)
    assert "has 599 rows" in line
    assert "gap.csv has 600" in line
    line = fails("audit", *written(rebuilt[:, 1:], NAMES[1:]), cwd=tmp_path)
    assert "no column 'x0'" in line
    line = fails("audit", *data, "--loadings", "w.csv", cwd=tmp_path)
    assert "--loadings and --rebuilt both name what is judged" in line


@pytest.mark.parametrize("name", ["m.joblib", "m.pkl"])
def test_files_that_run_code_are_refused(people, tmp_path, name):
    (tmp_path / name).write_bytes(b"\x80\x04.")
    line = fails("audit", people / "gap.csv", "--model", name, cwd=tmp_path)
    assert "runs the code in it" in line
    assert "--rebuilt" in line
    assert "fairpca.audit_model(" in line
