"""The package with its core dependencies alone.

CI runs this file in an environment of its own, with fairpca and pytest only. Elsewhere the last
test runs it once more, in a process that cannot import any optional library.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec

import numpy as np
import pytest
from helpers.data import make_groups
from sklearn.decomposition import PCA

import fairpca
from fairpca import (
    BlindPCA,
    FairPCA,
    GroupMoments,
    MinMaxPCA,
    WelfarePCA,
    audit,
    datasets,
    load_model,
    metrics,
    plotting,
    tradeoff_path,
)
from fairpca.__main__ import main
from fairpca.baselines import MultiplicativeWeightsPCA, SubsetFairPCA

#: Whatever the extras install.
OPTIONAL = [
    *("array_api_strict", "click", "cvxpy", "dask", "distributed", "fairlearn"),
    *("hypothesis", "jinja2"),
    *("matplotlib", "onnx", "onnxruntime", "pandas", "playwright", "polars", "pyarrow"),
    *("pymoo", "pyspark", "safetensors", "torch", "vl_convert"),
]


#: Makes a Python in which nothing optional can be imported, and runs pytest in it.
BARE = f"""
import sys, pytest

class Barrier:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OPTIONAL}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Barrier())
sys.exit(pytest.main())
"""


def installed(library):
    with suppress(ModuleNotFoundError):
        return find_spec(library) is not None
    return False


def missing(library):
    return pytest.mark.skipif(installed(library), reason=f"{library} is installed")


@pytest.fixture
def data():
    return make_groups()


@pytest.fixture
def fair(data):
    return FairPCA(2).fit(data[0], sensitive_features=data[1])


@pytest.mark.parametrize("name", fairpca.__all__)
def test_public_names(name):
    assert getattr(fairpca, name) is not None


TWO_GROUPS = [
    FairPCA(2, alpha=0.7),
    FairPCA(2, solver="golden"),
    MultiplicativeWeightsPCA(2),
    SubsetFairPCA(2),
]
ANY_GROUPS = [
    *(FairPCA(2), FairPCA(2, constraint="parity"), FairPCA(0.8)),
    *(MinMaxPCA(2), WelfarePCA(2), BlindPCA(2)),
]


@pytest.mark.parametrize(
    ("estimator", "n"),
    [
        *((estimator, (90, 60)) for estimator in TWO_GROUPS + ANY_GROUPS),
        *((estimator, (90, 60, 40)) for estimator in ANY_GROUPS),
    ],
    ids=str,
)
@pytest.mark.filterwarnings(
    "ignore::fairpca.ParityInfeasibleWarning",
    "ignore::fairpca.DualityGapWarning",
    "ignore::fairpca.LevellingDownWarning",
)
def test_every_estimator(estimator, n):
    X, groups = make_groups(n)
    scores = estimator.fit_transform(X, sensitive_features=groups)
    assert scores.shape == (len(X), estimator.n_components_)
    assert estimator.inverse_transform(scores).shape == X.shape
    errors = metrics.group_reconstruction_errors(estimator, X, groups)
    np.testing.assert_allclose(list(errors.values()), estimator.group_errors_, rtol=1e-9)
    again = type(estimator)(**estimator.get_params()).partial_fit(X, sensitive_features=groups)
    np.testing.assert_allclose(again.group_errors_, estimator.group_errors_, rtol=1e-9)


def test_measures(fair, data):
    plain = PCA(2).fit(data[0])
    measured = [metrics.reconstruction_disparity(model, *data) for model in (fair, plain)]
    assert measured[0] < 1e-10 < measured[1]


def test_moments_and_path(data):
    path = tradeoff_path(GroupMoments.from_data(*data), n_components=2, n_points=4)
    assert path.parity_reached
    np.testing.assert_allclose(path.disparity[-1], 0, atol=1e-12)


def test_audit(data):
    result = audit(FairPCA(2), *data, n_points=3, cv=2)
    assert result.fit.status == FairPCA(2).fit(data[0], sensitive_features=data[1]).status_


def test_bundled_data():
    people = datasets.load_rand_health()
    fair = FairPCA(8).fit(people.data, sensitive_features=people.sensitive_features)
    assert fair.status_ == "parity reached"
    made = datasets.make_two_groups(random_state=0)
    assert len(made.data) == len(made.sensitive_features)


# --- what is missing is named, with the command that installs it -------------------------------


@missing("safetensors")
def test_model_files(fair, tmp_path):
    (tmp_path / "there.safetensors").touch()
    for call in (fair.save, load_model):
        with pytest.raises(ImportError, match=r"safetensors.*pip install safetensors"):
            call(tmp_path / "there.safetensors")


@missing("matplotlib")
def test_drawing(data):
    with pytest.raises(ImportError, match=r"matplotlib.*pip install matplotlib"):
        plotting.GroupErrorDisplay.from_data(*data)


@missing("pymoo")
def test_search_for_subsets():
    X, groups = make_groups(d=30)
    with pytest.raises(ImportError, match=r"pymoo.*pip install pymoo"):
        SubsetFairPCA(9, solver="spea2").fit(X, sensitive_features=groups)


@missing("jinja2")
def test_page(data, tmp_path):
    result = audit(FairPCA(2), *data, n_points=3, cv=2)
    with pytest.raises(ImportError, match="pip install jinja2"):
        result.to_html(tmp_path / "page.html")
    assert not list(tmp_path.iterdir())


@missing("click")
def test_command(capsys):
    with pytest.raises(SystemExit) as end:
        main(["report"])
    assert end.value.code == 2
    error = capsys.readouterr().err
    assert error.endswith("safetensors vl-convert-python.\n")
    assert len(error.splitlines()) == 1


@pytest.mark.skipif(not any(map(installed, OPTIONAL)), reason="nothing optional is installed")
def test_without_what_is_installed():
    done = subprocess.run(
        [sys.executable, "-c", BARE, "-q", "-p", "no:cacheprovider", __file__],
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 skipped" in done.stdout
