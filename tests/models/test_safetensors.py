"""Models come back as they were saved; anything else is refused with a reason."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from fairpca import FairPCA, GroupMoments, MinMaxPCA, SubsetFairPCA, WelfarePCA, load_model
from fairpca._models.safetensors import _checksum, read_extra, write_model
from fairpca._models.standardized import StandardizedModel
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
    return StandardizedModel.of(FairPCA(2).fit_moments(moments), scale)


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


@pytest.mark.parametrize(
    ("part", "content", "expected"),
    [
        ("class", None, "lacks class"),
        ("params", [1], "lacks params"),
        ("attributes", None, "lacks attributes"),
        ("extra", None, "lacks extra"),
        ("class", "GroupMoments", "holds a 'GroupMoments'"),
        ("params", {"n_components": 3, "depth": 2}, "parameters that this fairpca"),
        ("attributes", {}, "lacks duality_gap_, groups_"),
        ("attributes", {"transform": 1}, "holds 'transform'"),
        ("attributes", {"groups_": ["one"]}, "do not fit together"),
    ],
)
def test_incomplete_and_unknown_headers_are_refused(fair, tmp_path, part, content, expected):
    path = tmp_path / "m.safetensors"
    fair.save(path)
    with safetensors.safe_open(path, framework="numpy") as file:
        header = json.loads(file.metadata()["fairpca"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if part == "attributes" and content:
        content = header["attributes"] | content
    header[part] = content
    text = json.dumps(header)
    metadata = {"fairpca": text, "sha256": _checksum(text, arrays)}
    safetensors_numpy.save_file(arrays, path, metadata=metadata)
    with pytest.raises(ValueError, match=expected):
        load_model(path)


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
