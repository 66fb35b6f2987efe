"""What all estimators have in common: they publish what is declared, and files and docs agree."""

from __future__ import annotations

import inspect
import pickle
import re

import numpy as np
import pytest
from helpers.data import make_groups
from helpers.inside import declared_by, record_of
from helpers.model_files import rewrite
from sklearn.base import clone

import fairpca
from fairpca import (
    BlindPCA,
    FairColumns,
    FairPCA,
    FairPCACV,
    FairPLS,
    GroupEraser,
    MinMaxPCA,
    WelfarePCA,
    baselines,
    load_model,
)  # fmt: skip
from fairpca.baselines import MultiplicativeWeightsPCA, RobustFairPCA, SubsetFairPCA
from fairpca.exceptions import quietly

TWO = make_groups((60, 40), d=5)
THREE = make_groups((60, 40, 30), d=5)
FITS = [
    (FairPCA(2), TWO),
    (FairPCA(2, order="fair"), TWO),
    (FairPCA(2, solver="golden", constraint="parity"), TWO),
    (FairPCA(2, missing="available"), TWO),
    (FairPCA(2), THREE),
    (FairPCA(2, max_disparity=0.1), THREE),
    (FairPCACV(2, cv=3), TWO),
    (FairPCACV(2, cv=3), THREE),
    (MinMaxPCA(2), THREE),
    (WelfarePCA(2), THREE),
    (WelfarePCA(2, inequality_aversion=np.inf), THREE),
    (BlindPCA(2), TWO),
    (FairPLS(2), TWO),
    (FairPLS(2, target_type="numbers"), TWO),
    (FairColumns(2), TWO),
    (GroupEraser(), TWO),
    (SubsetFairPCA(2), TWO),
    (MultiplicativeWeightsPCA(2), THREE),
    (RobustFairPCA(2), TWO),
]


def fitted(estimator, data):
    X, groups = data
    with quietly():
        return clone(estimator).fit(X, np.arange(len(X)) % 3, sensitive_features=groups)


@pytest.mark.parametrize(("estimator", "data"), FITS)
def test_a_fit_publishes_what_is_declared(estimator, data):
    fair = fitted(estimator, data)
    declared = record_of(fair)
    published = {name for name in vars(fair) if name.endswith("_")}
    assert published <= declared.keys(), "declare it in fairpca/_estimators/fitted.py"
    assert {name for name, kind in declared.items() if not kind.optional} <= published
    again = pickle.loads(pickle.dumps(fair))
    assert vars(again).keys() == vars(fair).keys()


@pytest.mark.parametrize(("estimator", "data"), FITS)
def test_a_file_holds_the_whole_record_and_nothing_else(estimator, data, tmp_path):
    pytest.importorskip("safetensors")
    fair = fitted(estimator, data)
    fair.save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    declared = record_of(fair)
    for name, kind in declared.items():
        if kind.stored == "never":
            assert not hasattr(again, name)
        elif hasattr(fair, name):
            np.testing.assert_array_equal(getattr(again, name), getattr(fair, name))
    content = (tmp_path / "m").read_bytes()
    for name, kind in declared.items():
        if kind.optional:
            continue
        for change in (without, of_another_shape):
            (tmp_path / "m").write_bytes(content)
            rewrite(tmp_path / "m", change(name))
            with pytest.raises(ValueError, match=name):
                load_model(tmp_path / "m")


def without(name):
    def change(header, arrays):
        arrays.pop(name, None)
        header["attributes"].pop(name, None)

    return change


def of_another_shape(name):
    def change(header, arrays):
        if name in arrays:
            arrays[name] = arrays[name][..., None].copy()
        else:
            header["attributes"][name] = {}

    return change


#: What the docstrings call the lengths of axes, and the letters of the declaration.
LETTERS = {"n_components_": "r", "n_columns": "r", "n_features_in_": "d", "n_hidden": "h",
           "n_erased": "h", "k": "k", "2": "2"}  # fmt: skip


def documented(estimator):
    """Names and axes of the attributes that a docstring lists; axes are None if it has none."""
    doc = inspect.cleandoc(estimator.__doc__)
    section = re.search(
        r"^Attributes\n-+\n(.*?)(?=^\w[^\n]*\n---|\Z)", doc, re.DOTALL | re.MULTILINE
    )
    for line in re.findall(r"^[a-z]\w*_(?:,.*| :.*)?$", section[1], re.MULTILINE):
        names, _, kinds = line.partition(" : ")
        names = names.split(", ")
        kinds = re.findall(r"\([^)]*\)|float|int|str|label|list", kinds)
        if len(kinds) != len(names):
            kinds = kinds[:1] * len(names) or [None] * len(names)
        for name, kind in zip(names, kinds, strict=True):
            axes = None
            if kind and kind.startswith("("):
                axes = "".join(LETTERS[part] for part in re.findall(r"\w+", kind))
            yield name, axes


ESTIMATORS = {type(estimator) for estimator, _ in FITS}


@pytest.mark.parametrize("estimator", sorted(ESTIMATORS, key=str), ids=lambda kind: kind.__name__)
def test_the_docstring_lists_what_is_declared(estimator):
    declared = declared_by(estimator)
    listed = dict(documented(estimator))
    for name, axes in listed.items():
        if not isinstance(getattr(estimator, name, None), property):
            assert name in declared
            assert axes in (None, declared[name].axes), name
    elsewhere = dict(documented(FairPCA))  # "Attributes not listed below are those of FairPCA."
    public = {name for name in declared if not name.startswith("_")}
    assert public <= listed.keys() | elsewhere.keys()


def test_every_estimator_is_tested_here():
    names = {*fairpca.__all__, *baselines.__all__}
    assert {kind.__name__ for kind in ESTIMATORS} == {
        name
        for name in names
        if hasattr(getattr(fairpca, name, getattr(baselines, name, None)), "fit")
    }
