"""Models come back as they were saved; anything else is refused with a reason."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from fairpca import FairPCA, GroupMoments, MinMaxPCA, SubsetFairPCA, WelfarePCA, load_model
from fairpca._models.pipeline import ModelPipeline
from fairpca._models.safetensors import _checksum, read_extra, write_model
from fairpca.datasets import load_diabetes_by_sex

safetensors = pytest.importorskip("safetensors", reason="needs the model extra")
safetensors_numpy = pytest.importorskip("safetensors.numpy")
pd = pytest.importorskip("pandas")

DIABETES = load_diabetes_by_sex()
X, SEX = DIABETES.data, DIABETES.sensitive_features


@pytest.fixture
def fair():
    frame = pd.DataFrame(X, columns=DIABETES.feature_names)
    return FairPCA(3, max_disparity=0.01).fit(frame, sensitive_features=SEX)


def test_everything_but_the_moments_comes_back(fair, tmp_path):
    fair.save(tmp_path / "model.safetensors")
    again = FairPCA.load(tmp_path / "model.safetensors")
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
    assert FairPCA.load(tmp_path / "m").status_ == "parity reached"


@pytest.mark.parametrize("estimator", [MinMaxPCA(3), SubsetFairPCA(3), WelfarePCA(3)])
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


def standardized_model(raw):
    moments, scale = GroupMoments.from_data(raw, SEX).standardize()
    return ModelPipeline.of(FairPCA(2).fit_moments(moments), scale)


def test_standardized_model_and_extra(tmp_path):
    raw = load_diabetes_by_sex(prepare=False).data
    write_model(standardized_model(raw), tmp_path / "m", extra={"columns": ["a", "b"]})
    again = load_model(tmp_path / "m")
    assert again.transform(raw) == pytest.approx(
        FairPCA(2).fit_transform(X, sensitive_features=SEX)
    )
    assert read_extra(tmp_path / "m") == {"columns": ["a", "b"]}
    with pytest.raises(ValueError, match=r"fairpca\.load_model"):
        FairPCA.load(tmp_path / "m")


def test_standardized_model_knows_its_columns(tmp_path):
    frame = pd.DataFrame(load_diabetes_by_sex(prepare=False).data).add_prefix("c")
    standardized_model(frame).save(tmp_path / "m")
    for model in (load_model(tmp_path / "m"), load_model(tmp_path / "m").to_sklearn()):
        assert list(model.feature_names_in_) == list(frame.columns)
        assert model.transform(frame) == pytest.approx(
            FairPCA(2).fit_transform(X, sensitive_features=SEX)
        )  # without a warning about names
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame.add_suffix("?"))


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_standardized_model_is_saved_and_exported_like_any_other(tmp_path, offset):
    pytest.importorskip("onnx", reason="needs the onnx extra")
    runtime = pytest.importorskip("onnxruntime")
    raw = load_diabetes_by_sex(prepare=False).data + offset
    standardized_model(raw).save(tmp_path / "m")
    model = load_model(tmp_path / "m")
    scores = model.transform(raw)
    assert scores[:, 0].std() > 1
    model.to_onnx(tmp_path / "m.onnx")
    session = runtime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"X": raw})[0], scores, atol=1e-6)
    pipeline = model.to_sklearn()
    assert [type(step) for _, step in pipeline.steps] == [StandardScaler, PCA]
    # scikit-learn subtracts the mean after the product, which costs digits of a large offset.
    np.testing.assert_allclose(pipeline.transform(raw), scores, atol=1e-6 if offset else 1e-12)
    back = model.inverse_transform(scores)
    np.testing.assert_allclose(pipeline.inverse_transform(scores), back, rtol=1e-12)
    assert np.square((raw - back) / raw.std(axis=0)).sum() < np.square(raw / raw.std(axis=0)).sum()


@pytest.mark.parametrize("standardize", [True, False])
def test_medians_travel_with_the_model(tmp_path, standardize):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx", reason="needs the onnx extra")
    raw = load_diabetes_by_sex(prepare=False).data.copy()
    raw[::7, 2] = raw[::3, 4] = np.nan
    frame = pd.DataFrame(raw).add_prefix("c")
    imputer = SimpleImputer(strategy="median").set_output(transform="pandas")
    moments, scale = GroupMoments.from_data(imputer.fit_transform(frame), SEX), None
    if standardize:
        moments, scale = moments.standardize()
    fair = FairPCA(2).fit_moments(moments)
    ModelPipeline.of(fair, scale, imputer.statistics_).save(tmp_path / "m")
    model = load_model(tmp_path / "m")
    full = imputer.transform(frame).to_numpy()
    expected = (full / (1 if scale is None else scale) - fair.mean_) @ fair.components_.T
    np.testing.assert_allclose(model.transform(frame), expected, atol=1e-9)
    np.testing.assert_allclose(model.to_sklearn().transform(frame), expected, atol=1e-9)
    model.to_onnx(tmp_path / "m.onnx")
    session = runtime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"X": raw})[0], expected, atol=1e-6)
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
    with pytest.raises(TypeError, match="SimpleImputer"):
        write_model(
            make_pipeline(StandardScaler(with_mean=False), SimpleImputer().fit(X), fair),
            tmp_path / "m",
        )


def test_only_our_models_are_saved(fair, tmp_path):
    with pytest.raises(TypeError, match="StandardScaler"):
        write_model(make_pipeline(MinMaxScaler(), fair), tmp_path / "m")


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
    with pytest.raises(ValueError, match=r"format version 99.*newer fairpca"):
        load_model(path)
    write(None)
    with pytest.raises(ValueError, match="not one written by fairpca"):
        load_model(path)
    with pytest.raises(FileNotFoundError, match="no model file"):
        load_model(tmp_path / "absent")


def rewrite(path, change):
    """Write a model file again, with a right checksum, after ``change(header, arrays)``."""
    with safetensors.safe_open(path, framework="numpy") as file:
        header = json.loads(file.metadata()["fairpca"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    text = change(header, arrays) or json.dumps(header)
    metadata = {"fairpca": text, "sha256": _checksum(text, arrays)}
    safetensors_numpy.save_file(arrays, path, metadata=metadata)


@pytest.mark.parametrize(
    ("part", "content", "expected"),
    [
        ("class", None, "'class' must be str, but is None"),
        ("params", [1], r"'params' must be dict, but is \[1\]"),
        ("attributes", None, "'attributes' must be dict"),
        ("extra", None, "'extra' must be dict"),
        ("extra", {"columns": [1, 2]}, "'columns' must be a list of texts"),
        ("extra", {"categories": {"a": "b"}}, "'categories' must be a list of texts"),
        ("surprise", 1, "'surprise' is not known"),
        ("format_version", True, "'format_version' must be int, but is True"),
        ("class", "GroupMoments", "holds a 'GroupMoments'"),
        ("params", {"n_components": 3, "depth": 2}, "parameters that this fairpca"),
        ("params", {"n_components": "three"}, "parameters that this fairpca"),
        ("params", {"n_components": {"class": "FairPCA"}}, "parameters that this fairpca"),
        ("attributes", {}, "n_components_ is missing|noise_variance_ is missing"),
    ],
)
def test_wrong_headers_are_refused(fair, tmp_path, part, content, expected):
    fair.save(tmp_path / "m")
    rewrite(tmp_path / "m", lambda header, _: header.update({part: content}))
    with pytest.raises(ValueError, match=expected):
        load_model(tmp_path / "m")


NAN = float("nan")


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("components_", lambda U: U * np.nan, "holds NaN or infinity"),
        ("components_", lambda U: U + np.inf, "holds NaN or infinity"),
        ("components_", lambda U: 1.001 * U, "not orthonormal"),
        ("components_", lambda U: U[[0, 0, 1]], "not orthonormal"),
        ("components_", lambda U: U.astype(int), "array of floats, but is int64"),
        ("components_", lambda U: U[0], "two dimensions"),
        ("components_", lambda U: U[:, 1:], "not orthonormal|shape"),
        ("components_", lambda U: U[:2], "shape 2, but is|must be 2, but is"),
        ("mean_", lambda m: m[1:], r"mean_ must be of shape 9, but is \(8,\)"),
        ("mean_", lambda m: m[None], "mean_ must be of shape"),
        ("mean_", lambda m: m * np.nan, "mean_ holds NaN"),
        ("explained_variance_", lambda v: v[1:], "explained_variance_ must be of shape 3"),
        ("group_sizes_", lambda n: n[:1], "group_sizes_ must be of shape 2"),
        ("group_sizes_", lambda n: n.astype(float), "group_sizes_ must be an array of integers"),
        ("group_sizes_", lambda n: -n, "group_sizes_ must be from 0 on, but holds -"),
        ("group_errors_", lambda e: e - 9, "group_errors_ must be from 0 on, but holds -"),
        ("pca_group_errors_", lambda e: -e, "pca_group_errors_ must be from 0 on"),
        ("explained_variance_", lambda v: -v, "explained_variance_ must be from 0 on"),
        ("explained_variance_ratio_", lambda v: v * 9, "ratio_ must be from 0 to 1, but holds"),
        ("group_explained_variance_ratio_", lambda v: v + 1, "ratio_ must be up to 1, but holds"),
        ("noise_variance_", -1.0, "noise_variance_ must be from 0 on"),
        ("reconstruction_error_", -1.0, "reconstruction_error_ must be from 0 on"),
        ("status_", "splendid", "status_ 'splendid' is not known"),
        ("stop_", 1.5, "stop_ must be from 0 to 1"),
        ("stop_", NAN, "stop_ holds NaN"),
        ("held_out_disparity_interval_", lambda _: np.array([NAN, 1.0]), "holds NaN"),
        ("held_out_changes_interval_", lambda _: np.array([[0, 1], [2, 1.0]]), "lower end first"),
        ("group_errors_", lambda e: np.append(e, 1.0), "group_errors_ must be of shape 2"),
        ("scale", lambda _: np.ones(3), "scale must be of shape 9"),
        ("scale", lambda _: np.zeros(9), "scale must be positive"),
        ("moments_", lambda _: np.ones(3), "'moments_' is not an attribute"),
        ("strange_", lambda _: np.ones(3), "'strange_' is not an attribute"),
        ("transform", 1, "'transform' is not an attribute"),
        ("mean_", [0.0] * 9, "mean_ must be an array of floats, but is"),
        ("groups_", ["one"], "shape 1|not one of groups_"),
        ("groups_", ["male", "male"], "names a group twice|not one of groups_"),
        ("groups_", ["male", None], "groups_ must be a list of labels"),
        ("groups_", "male", "groups_ a list"),
        ("harmed_group_", "nobody", "harmed_group_ is not one of groups_"),
        ("harmed_group_", ["male"], "harmed_group_ must be a label"),
        ("n_components_", 2, "n_components_ must be 3, but is 2"),
        ("n_components_", True, "n_components_ must be 3, but is True"),
        ("n_features_in_", 9.0, "n_features_in_ must be 9, but is 9.0"),
        ("noise_variance_", "much", "noise_variance_ must be a number, but is 'much'"),
        ("noise_variance_", NAN, "noise_variance_ holds NaN"),
        ("status_", None, "status_ must be text, but is None"),
        ("error_gap_", {"a": 1}, "error_gap_ must be an array, a number"),
        ("feature_names_in_", [1] * 9, "feature_names_in_ must be a list of texts"),
        ("feature_names_in_", ["a"], "feature_names_in_ must be of shape 9"),
    ],
)
def test_bad_content_with_a_right_checksum_is_refused(fair, tmp_path, name, content, expected):
    fair.save(tmp_path / "m")

    def change(header, arrays):
        if callable(content):
            arrays[name] = np.ascontiguousarray(content(arrays.get(name)))
        else:
            arrays.pop(name, None)
            header["attributes"][name] = content

    rewrite(tmp_path / "m", change)
    with pytest.raises(ValueError, match=f"does not hold a model: .*({expected})"):
        load_model(tmp_path / "m")


def test_parameters_agree_with_what_they_led_to(fair, tmp_path):
    fair.save(tmp_path / "m")
    rewrite(tmp_path / "m", lambda header, _: header["params"].update(n_components=2))
    with pytest.raises(ValueError, match="n_components_ is 3, but n_components=2 was asked for"):
        load_model(tmp_path / "m")
    fair.set_params(n_components=2)
    with pytest.raises(ValueError, match="could not be read again: n_components_ is 3"):
        fair.save(tmp_path / "m")


def test_a_deeply_nested_header_is_refused_in_words(fair, tmp_path):
    for nested in ("[" * 100_000 + "]" * 100_000, '{"a":' * 50_000 + "1" + "}" * 50_000):
        fair.save(tmp_path / "m")
        rewrite(tmp_path / "m", lambda header, arrays, text=nested: text)
        with pytest.raises(ValueError, match="nested too deeply"):
            load_model(tmp_path / "m")


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


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_onnx_runs_to_the_same_scores(tmp_path, offset):
    pytest.importorskip("onnx", reason="needs the onnx extra")
    runtime = pytest.importorskip("onnxruntime")
    fair = FairPCA(3).fit(X + offset, sensitive_features=SEX)
    fair.to_onnx(tmp_path / "m.onnx")
    session = runtime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    (scores,) = session.run(None, {"X": X + offset})
    np.testing.assert_allclose(scores, fair.transform(X + offset), atol=1e-6)
