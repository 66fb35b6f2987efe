"""Models come back as they were saved; anything else is refused with a reason."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from helpers.data import diabetes_by_sex
from helpers.model_files import ModelPipeline, read_extra, rewrite, write_model
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from fairpca import FairPCA, MinMaxPCA, WelfarePCA, load_model
from fairpca.baselines import MultiplicativeWeightsPCA, SubsetFairPCA

safetensors = pytest.importorskip("safetensors", reason="needs the model extra")
safetensors_numpy = pytest.importorskip("safetensors.numpy")
pd = pytest.importorskip("pandas")

DIABETES = diabetes_by_sex()
X, SEX = DIABETES.data, DIABETES.sensitive_features


@pytest.fixture
def fair():
    frame = pd.DataFrame(X, columns=DIABETES.feature_names)
    return FairPCA(3, max_disparity=0.01).fit(frame, sensitive_features=SEX)


def test_everything_but_the_moments_comes_back(fair, tmp_path):
    fair.save(tmp_path / "model.safetensors")
    again = load_model(tmp_path / "model.safetensors")
    assert again.get_params() == fair.get_params()
    for name, value in vars(fair).items():
        if name.endswith("_") and name != "moments_":
            assert type(getattr(again, name)) is type(value), name
            np.testing.assert_array_equal(getattr(again, name), value)
    frame = pd.DataFrame(X, columns=DIABETES.feature_names)
    assert (again.transform(frame) == fair.transform(frame)).all()
    with pytest.raises(ValueError, match="has no moments"):
        again.partial_fit(frame, sensitive_features=SEX)
    assert clone(again).fit(frame, sensitive_features=SEX).disparity_ == fair.disparity_


def test_columns_that_were_named_at_fit_are_known_after_loading(tmp_path):
    people = fair_rows().assign(sex=SEX)
    fair = FairPCA(2).fit(people, sensitive_features="sex")
    fair.save(tmp_path / "m")
    scores = load_model(tmp_path / "m").transform(people)
    np.testing.assert_array_equal(scores, fair.transform(people))


@pytest.mark.parametrize("labels", [[0, 1], [True, False], [1.5, 2.5], ["ä", "</script>"]])
def test_labels_keep_their_type(labels, tmp_path):
    groups = np.array(labels)[(SEX == "male").astype(int)]
    FairPCA(2).fit(X, sensitive_features=groups).save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert again.groups_.dtype == np.unique(groups).dtype
    assert set(again.groups_.tolist()) == set(labels)
    assert again.harmed_group_ in labels


def test_results_of_partial_fit_are_computed_before_saving(tmp_path):
    fair = FairPCA(2).partial_fit(X, sensitive_features=SEX)
    fair.save(tmp_path / "m")
    assert load_model(tmp_path / "m").status_ == "parity reached"


@pytest.mark.parametrize(
    "estimator", [MinMaxPCA(3), MultiplicativeWeightsPCA(3), SubsetFairPCA(3), WelfarePCA(3)]
)
@pytest.mark.filterwarnings("ignore::fairpca.LevellingDownWarning")
def test_other_estimators_come_back_too(estimator, tmp_path):
    estimator.fit(X, sensitive_features=SEX).save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert type(again) is type(estimator)
    assert (again.transform(X) == estimator.transform(X)).all()
    assert again.status_ == estimator.status_


def test_labels_that_json_cannot_hold_are_refused_and_nothing_is_left(tmp_path):
    groups = np.empty(len(SEX), dtype=object)
    groups[:] = [("a", 1) if s == "male" else ("b", 2) for s in SEX]
    with pytest.raises(TypeError, match="tuple"):
        FairPCA(2).fit(X, sensitive_features=groups).save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_the_same_model_gives_the_same_bytes(fair, tmp_path):
    saved = []
    for i in range(8):
        clone(fair).fit(fair_rows(), sensitive_features=SEX).save(tmp_path / f"{i}")
        saved.append((tmp_path / f"{i}").read_bytes())
    assert len(set(saved)) == 1


def test_the_same_model_gives_the_same_bytes_in_every_process(tmp_path):
    script = (
        "import sys, numpy as np; from fairpca import FairPCA;"
        "X = np.random.default_rng(0).normal(size=(60, 4));"
        "FairPCA(2).fit(X, sensitive_features=np.arange(60) % 2).save(sys.argv[1])"
    )
    other = {
        **os.environ,
        "PYTHONHASHSEED": "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1",
    }
    subprocess.run([sys.executable, "-c", script, tmp_path / "other"], env=other, check=True)
    rows = np.random.default_rng(0).normal(size=(60, 4))
    FairPCA(2).fit(rows, sensitive_features=np.arange(60) % 2).save(tmp_path / "own")
    assert (tmp_path / "own").read_bytes() == (tmp_path / "other").read_bytes()


def fair_rows():
    return pd.DataFrame(X, columns=DIABETES.feature_names)


def test_standardized_model_and_extra(tmp_path):
    frame = pd.DataFrame(diabetes_by_sex(prepare=False).data).add_prefix("c")
    fair = FairPCA(2, standardize=True).fit(frame, sensitive_features=SEX)
    write_model(fair, tmp_path / "m", extra={"columns": ["a", "b"]})
    again = load_model(tmp_path / "m")
    np.testing.assert_array_equal(again.transform(frame), fair.transform(frame))
    assert read_extra(tmp_path / "m") == {"columns": ["a", "b"]}
    pipeline = again.to_sklearn()
    assert [type(step) for _, step in pipeline.steps] == [StandardScaler, PCA]
    assert list(pipeline.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        pipeline.transform(frame.add_suffix("?"))


@pytest.mark.parametrize("standardize", [True, False])
def test_medians_travel_with_the_model(tmp_path, standardize):
    raw = diabetes_by_sex(prepare=False).data.copy()
    raw[::7, 2] = raw[::3, 4] = np.nan
    frame = pd.DataFrame(raw).add_prefix("c")
    imputer = SimpleImputer(strategy="median").set_output(transform="pandas")
    full = imputer.fit_transform(frame)
    fair = FairPCA(2, standardize=standardize).fit(full, sensitive_features=SEX)
    expected = fair.transform(full)
    ModelPipeline.of(fair, fill=imputer.statistics_).save(tmp_path / "m")
    model = load_model(tmp_path / "m")
    np.testing.assert_allclose(model.transform(frame), expected, atol=1e-9)
    np.testing.assert_allclose(model.to_sklearn().transform(frame), expected, atol=1e-9)
    back = model.inverse_transform(expected)
    np.testing.assert_allclose(model.transform(pd.DataFrame(back).add_prefix("c")), expected,
                               atol=1e-9)  # fmt: skip


@pytest.mark.parametrize(
    "imputer",
    [
        SimpleImputer(add_indicator=True),
        SimpleImputer(missing_values=-1),
        SimpleImputer(strategy="constant", fill_value=None),
    ],
)
def test_imputers_that_do_more_are_not_saved(fair, imputer, tmp_path):
    if imputer.strategy == "constant":
        imputer.fit(np.array([["a"], [None]], dtype=object))
    else:
        imputer.fit(X)
    with pytest.raises(TypeError, match="SimpleImputer"):
        write_model(make_pipeline(imputer, fair), tmp_path / "m")


def test_only_our_models_are_saved(fair, tmp_path):
    for scaler in (MinMaxScaler(), StandardScaler()):
        with pytest.raises(TypeError, match="standardize=True"):
            write_model(make_pipeline(scaler, fair), tmp_path / "m")


@pytest.mark.parametrize("damage", ["empty", "truncated", "flipped", "text"])
def test_damaged_files_are_refused(fair, tmp_path, damage):
    path = tmp_path / "m.safetensors"
    fair.save(path)
    content = bytearray(path.read_bytes())
    if damage == "flipped":
        content[-9] ^= 1
    path.write_bytes(
        {"empty": b"", "text": b"hello " * 99, "truncated": content[:-8], "flipped": content}[
            damage
        ]
    )
    with pytest.raises(ValueError, match="damaged"):
        load_model(path)


def test_other_versions_and_classes_are_refused(fair, tmp_path):
    path = tmp_path / "m.safetensors"
    arrays = {"components_": fair.components_, "mean_": fair.mean_}

    def write(header):
        metadata = None if header is None else {"fairpca": json.dumps(header)}
        safetensors_numpy.save_file(arrays, path, metadata=metadata)

    write({"format_version": 99})
    with pytest.raises(ValueError, match="version 99"):
        load_model(path)
    write(None)
    with pytest.raises(ValueError, match="the header is missing"):
        load_model(path)
    with pytest.raises(FileNotFoundError, match="no model file"):
        load_model(tmp_path / "absent")


@pytest.mark.parametrize(
    ("part", "content", "expected"),
    [
        ("class", None, "'class' must be str, but is None"),
        ("params", [1], r"'params' must be dict, but is \[1\]"),
        ("attributes", None, "'attributes' must be dict"),
        ("extra", None, "'extra' must be dict"),
        ("format_version", True, "has format version True"),
        ("class", "GroupMoments", "holds a 'GroupMoments'"),
        ("params", {"n_components": 3, "depth": 2}, "unexpected keyword argument 'depth'"),
        ("params", {"n_components": "three"}, "'n_components' parameter of FairPCA must be"),
        ("params", {"n_components": {"class": "FairPCA"}}, "'n_components' parameter of FairPCA"),
        ("params", {"n_components": {"class": "FairPCA", "params": [1]}}, "not a fairpca model"),
        ("attributes", {}, "n_features_in_ is missing"),
    ],
)
def test_wrong_headers_are_refused(fair, tmp_path, part, content, expected):
    fair.save(tmp_path / "m")
    rewrite(tmp_path / "m", lambda header, _: header.update({part: content}))
    with pytest.raises(ValueError, match=expected):
        load_model(tmp_path / "m")


NAN = float("nan")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("components_", lambda U: U * np.nan),
        ("components_", lambda U: U + np.inf),
        ("components_", lambda U: 1.001 * U),
        ("components_", lambda U: U[[0, 0, 1]]),
        ("components_", lambda U: U.astype(int)),
        ("components_", lambda U: U[0]),
        ("components_", lambda U: U[:, 1:]),
        ("components_", lambda U: U[:2]),
        ("mean_", lambda m: m[1:]),
        ("mean_", lambda m: m[None]),
        ("mean_", lambda m: m * np.nan),
        ("mean_", lambda m: m + 1.7e308),
        ("mean_", [0.0] * 9),
        ("scale_", lambda s: s[1:]),
        ("scale_", lambda s: 0 * s),
        ("scale_", lambda s: 1e-200 * s),
        ("explained_variance_", lambda v: v[1:]),
        ("group_sizes_", lambda n: n[:1]),
        ("group_errors_", lambda e: np.append(e, 1.0)),
        ("noise_variance_", 2**64 * 10**140),
        ("noise_variance_", "much"),
        ("noise_variance_", NAN),
        ("fill", lambda _: np.ones(3)),
        ("moments", lambda _: np.ones(3)),
        ("transform", 1),
        ("singular_values_", lambda _: np.ones(3)),
        ("groups_", ["one"]),
        ("groups_", "male"),
        ("n_components_", 2),
        ("n_components_", True),
        ("n_components_", 3.0),
        ("n_features_in_", 9.0),
        ("feature_names_in_", ["a"]),
        ("x" * 100_000, 1),
    ],
)
def test_bad_content_with_a_right_checksum_is_refused(fair, tmp_path, name, content):
    fair.save(tmp_path / "m")

    def change(header, arrays):
        if callable(content):
            arrays[name] = np.ascontiguousarray(content(arrays.get(name)))
        else:
            arrays.pop(name, None)
            header["attributes"][name] = content

    rewrite(tmp_path / "m", change)
    with pytest.raises(ValueError, match="not a fairpca model") as refusal:
        load_model(tmp_path / "m")
    assert len(str(refusal.value)) < 500


def test_whole_numbers_of_any_size_are_numbers(fair, tmp_path):
    fair.save(tmp_path / "m")
    rewrite(tmp_path / "m", lambda header, _: header["attributes"].update(noise_variance_=2**64))
    assert load_model(tmp_path / "m").noise_variance_ == 2**64


def test_a_model_that_could_not_be_read_again_is_not_written(fair, tmp_path):
    fair.mean_ = fair.mean_ * np.nan
    with pytest.raises(ValueError, match="'mean_'"):
        fair.save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_a_deeply_nested_header_is_refused_in_words(fair, tmp_path):
    for nested in ("[" * 100_000 + "]" * 100_000, '{"a":' * 50_000 + "1" + "}" * 50_000):
        fair.save(tmp_path / "m")
        rewrite(tmp_path / "m", lambda header, arrays, text=nested: text)
        with pytest.raises(ValueError, match="not a fairpca model") as refusal:
            load_model(tmp_path / "m")
        assert len(str(refusal.value)) < 500


def test_unknown_class_is_refused(fair, tmp_path):
    class Stranger(FairPCA):
        pass

    fair.__class__ = Stranger
    fair.save(tmp_path / "m")
    with pytest.raises(ValueError, match="'Stranger'"):
        load_model(tmp_path / "m")


def test_failed_save_leaves_the_old_file(fair, tmp_path, monkeypatch):
    path = tmp_path / "m"
    fair.save(path)
    before = path.read_bytes()

    def fail(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(safetensors_numpy, "save", fail)
    with pytest.raises(KeyboardInterrupt):
        fair.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_to_sklearn_is_the_same_transform(fair):
    frame = pd.DataFrame(X, columns=DIABETES.feature_names)
    pca = fair.to_sklearn()
    assert isinstance(pca, PCA)
    np.testing.assert_allclose(pca.transform(frame), fair.transform(frame), atol=1e-12)
    back = fair.inverse_transform(fair.transform(frame))
    np.testing.assert_allclose(pca.inverse_transform(pca.transform(frame)), back, atol=1e-12)
    assert pca.get_feature_names_out().tolist() == ["pca0", "pca1", "pca2"]
    assert pca.score(frame) == pytest.approx(fair.score(frame))


def test_alpha_one_to_sklearn_is_scikit_learns_fit():
    ours = FairPCA(3, alpha=1.0).fit(X, sensitive_features=SEX).to_sklearn()
    theirs = PCA(3).fit(X)
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name))
    assert ours.noise_variance_ == pytest.approx(theirs.noise_variance_)
    assert ours.n_samples_ == theirs.n_samples_


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"standardize": True}, {"whiten": True}])
def test_onnx_by_skl2onnx_gives_the_same_scores(options):
    """The recipe in the docstring of ``to_sklearn``."""
    skl2onnx = pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    raw = diabetes_by_sex(prepare=False).data
    fair = FairPCA(3, **options).fit(raw, sensitive_features=SEX)
    graph = skl2onnx.to_onnx(fair.to_sklearn(), raw[:1]).SerializeToString()
    session = runtime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    (scores,) = session.run(None, {"X": raw})
    np.testing.assert_allclose(scores, fair.transform(raw), atol=1e-9)
