"""Loaders: the real files against the published results, made files for the look-up."""

from __future__ import annotations

import csv
import functools
import hashlib
import http.server
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from helpers.marks import needs_data

from fairpca import datasets
from fairpca.datasets import _paper

DATA = os.environ.get("FAIRPCA_DATA", "")


@functools.cache
def load(name, **options):
    return getattr(datasets, f"load_{name}")(**options)


def reference(name):
    path = Path(DATA).parent / "reference" / f"{name}.csv"
    if not path.is_file():
        pytest.skip(f"no published results at {path}")
    with path.open() as stream:
        return list(csv.DictReader(stream))


def pca_errors(bunch, first):
    """Overall error, error of the group `first`, of the other one: for r = 0, 1, ..., d."""
    X = bunch.data - bunch.data.mean(axis=0)
    mask = bunch.sensitive_features == first
    C_A = X[mask].T @ X[mask] / mask.sum()
    C_B = X[~mask].T @ X[~mask] / (~mask).sum()
    C = mask.mean() * C_A + (~mask).mean() * C_B
    V = np.linalg.eigh(C)[1][:, ::-1]
    kept = [np.cumsum(np.einsum("ij,ij->j", V, M @ V)) for M in (C, C_A, C_B)]
    return np.array([np.r_[0.0, k] for k in kept]) * -1 + [[np.trace(M)] for M in (C, C_A, C_B)]


# --- the real files ---------------------------------------------------------------------------


@needs_data
@pytest.mark.parametrize(
    ("name", "options", "sizes"),
    [
        ("tcred", {}, {"higher": 24615, "lower": 5385}),
        ("tcred", {"balanced": True}, {"higher": 5385, "lower": 5385}),
        ("lsac", {}, {"black": 1790, "white and other": 24761}),
        ("lsac", {"balanced": True}, {"black": 1790, "white and other": 1790}),
        ("lsac", {"other": "drop"}, {"black": 1790, "white": 21936}),
        ("lsac", {"other": "drop", "balanced": True}, {"black": 1790, "white": 1790}),
    ],
)
def test_tables(name, options, sizes):
    bunch = load(name, **options)
    n, d = sum(sizes.values()), {"tcred": 22, "lsac": 10}[name]
    assert bunch.data.shape == (n, d)
    assert bunch.data.dtype == np.float64
    assert len(bunch.feature_names) == len(set(bunch.feature_names)) == d
    assert bunch.target.shape == (n,)
    labels, counts = np.unique(bunch.sensitive_features, return_counts=True)
    assert dict(zip(labels.tolist(), counts.tolist(), strict=True)) == sizes
    assert bunch.groups.tolist() == sorted(sizes)
    np.testing.assert_allclose(bunch.data.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(bunch.data.std(axis=0, ddof=1), 1, rtol=1e-12)
    assert ("first" in bunch.description) is options.get("balanced", False)
    assert "standardised" in bunch.description


@needs_data
def test_attributes_leave_out_the_sensitive_one_and_the_label():
    assert not {"ID", "EDUCATION", "default payment next month"} & set(load("tcred").feature_names)
    assert {"SEX", "LIMIT_BAL", "AGE"} <= set(load("tcred").feature_names)
    assert not {"race", "bar"} & set(load("lsac").feature_names)


@needs_data
def test_lsac_has_rank_nine_and_keeps_the_three_races():
    lsac = load("lsac")
    assert np.linalg.matrix_rank(lsac.data) == 9
    labels, counts = np.unique(lsac.race, return_counts=True)
    assert dict(zip(labels, counts, strict=True)) == {"white": 21936, "black": 1790, "other": 2825}
    assert ((lsac.race == "black") == (lsac.sensitive_features == "black")).all()
    assert set(load("lsac", other="drop").race) == {"black", "white"}


@needs_data
def test_raw_attributes_are_those_of_the_file():
    raw = load("tcred", prepare=False)
    assert raw.data[0, raw.feature_names.index("LIMIT_BAL")] == 20000
    assert raw.data[0, raw.feature_names.index("AGE")] == 24
    assert "standardised" not in raw.description


@needs_data
@pytest.mark.parametrize(
    ("published", "name", "options", "first"),
    [
        ("tcred", "tcred", {}, "lower"),
        ("tcred_balanced", "tcred", {"balanced": True}, "lower"),
        ("lsac", "lsac", {}, "black"),
        ("lsac_balanced", "lsac", {"balanced": True}, "black"),
        ("lsac_without_other", "lsac", {"other": "drop"}, "black"),
        ("lsac_without_other_balanced", "lsac", {"other": "drop", "balanced": True}, "black"),
    ],
)
def test_pca_errors_agree_with_the_authors(published, name, options, first):
    errors = pca_errors(load(name, **options), first)
    for row in reference(published):
        expected = [float(row[column]) for column in ("pca_rec", "pca_recA", "pca_recB")]
        # Beyond the rank of LSAC all errors are zero up to rounding.
        np.testing.assert_allclose(errors[:, int(row["r"])], expected, rtol=1e-8, atol=1e-11)


@pytest.mark.slow
@needs_data
@pytest.mark.parametrize("balanced", [False, True])
def test_lfw(balanced):
    lfw = datasets.load_lfw(balanced=balanced)
    n_female, n_male = (2962, 2962) if balanced else (2962, 10270)
    assert lfw.data.shape == (n_female + n_male, 1764)
    assert lfw.data.dtype == np.float64
    assert lfw.image_shape == (49, 36)
    assert len(lfw.feature_names) == 1764
    assert np.sum(lfw.sensitive_features == "female") == n_female
    assert lfw.data.min() >= 0
    assert lfw.data.max() <= 1
    assert lfw.data[0, 0] == pytest.approx(34.333332 / 255, rel=1e-7)
    for label in ("asian", "black", "white"):
        assert lfw[label].shape == (n_female + n_male,)
        assert lfw[label].dtype == bool
        alone = lfw[label] & (lfw.asian.astype(int) + lfw.black + lfw.white == 1)
        np.testing.assert_array_equal(lfw.race == label, alone)
    assert set(lfw.race) == {"asian", "black", "white", "unclear"}
    errors = pca_errors(lfw, "female")
    for row in reference("lfw_balanced" if balanced else "lfw"):
        if int(row["r"]) in (1, 5, 15):
            expected = [float(row[column]) for column in ("pca_rec", "pca_recA", "pca_recB")]
            np.testing.assert_allclose(errors[:, int(row["r"])], expected, rtol=1e-8)


# --- data that need no file -------------------------------------------------------------------


@pytest.mark.parametrize("n_features", [2, 5])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_first_component_serves_the_minority_badly(n_features, seed):
    made = datasets.make_two_groups((250, 50), n_features, random_state=seed)
    assert made.data.shape == (300, n_features)
    assert made.groups.tolist() == ["majority", "minority"]
    _, majority, minority = pca_errors(made, "majority")[:, 1]
    assert minority > 3 * majority


def test_two_groups_shift_and_seed():
    near, again, far = (
        datasets.make_two_groups((300, 40), 3, shift=shift, random_state=7)
        for shift in (0.0, 0.0, 4.0)
    )
    np.testing.assert_array_equal(near.data, again.data)
    moved = far.data - near.data
    np.testing.assert_allclose(moved[near.sensitive_features == "majority"], 0, atol=1e-12)
    lengths = np.linalg.norm(moved[near.sensitive_features == "minority"], axis=1)
    np.testing.assert_allclose(lengths, 4.0)


@pytest.mark.parametrize("n_samples", [(10,), (10, 0), (1, 2, 3)])
def test_two_groups_refuses_sizes(n_samples):
    with pytest.raises(ValueError, match=r"n_samples=.*for example n_samples=\(250, 50\)"):
        datasets.make_two_groups(n_samples)


@pytest.mark.parametrize("n_features", [1, 2.5])
def test_two_groups_refuses_numbers_of_features(n_features):
    with pytest.raises(ValueError, match=f"n_features={n_features}: pass an integer of at least 2"):
        datasets.make_two_groups(n_features=n_features)


def test_lsac_refuses_an_unknown_treatment_of_other():
    with pytest.raises(ValueError, match=r"other='keep' is not known.*with_white.*drop"):
        datasets.load_lsac(other="keep")


# --- the look-up, with made files -------------------------------------------------------------

LSAC_TEXT = (
    "-1.79,0,68,2,2,1,2,4,30,3.1,625.8,0\n"
    "1.33,1.88,69,2,2,1,4,5,44,3.5,886.8,1\n"
    "-0.11,-0.57,69,1,1,2,2,4,29,3.5,650.0,1\n"
    "0.5,0.2,70,1,1,3,1,3,35,3.0,700.0,1\n"
)


class Server(http.server.ThreadingHTTPServer):
    """A real server on this machine; `truncate` cuts the body it has announced."""

    truncate = False
    requests = 0


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests += 1
        if self.path != "/lsac.csv":
            self.send_error(404)
            return
        body = LSAC_TEXT.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if self.server.truncate else body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Server(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        running.url = f"http://127.0.0.1:{running.server_port}/"
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """An empty data home of scikit-learn and no data folder."""
    monkeypatch.delenv("FAIRPCA_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache" / "fairpca"


@pytest.fixture
def table(monkeypatch):
    """Expect a made LSAC file at an address; returns the function that does it."""

    def put(address, text=LSAC_TEXT):
        monkeypatch.setattr(_paper, "AUTHORS", address)
        monkeypatch.setitem(_paper.SHA256, "lsac.csv", hashlib.sha256(text.encode()).hexdigest())

    return put


def left_behind(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_download_then_cache(server, cache, table, capfd):
    table(server.url)
    first = datasets.load_lsac(prepare=False)
    assert first.data.shape == (4, 10)
    assert left_behind(cache) == ["lsac.csv"]
    np.testing.assert_array_equal(datasets.load_lsac(prepare=False).data, first.data)
    assert server.requests == 1
    assert capfd.readouterr() == ("", "")


def test_address_that_holds_nothing_is_named(server, cache, table):
    table(server.url + "elsewhere/")
    with pytest.raises(FileNotFoundError, match=r"elsewhere/lsac\.csv .*404"):
        datasets.load_lsac()
    assert left_behind(cache) == []


def test_data_home_takes_the_download(server, cache, table, tmp_path):
    table(server.url)
    datasets.load_lsac(prepare=False, data_home=tmp_path / "mine")
    assert left_behind(tmp_path / "mine") == ["lsac.csv"]
    assert left_behind(cache) == []


def test_named_folder_comes_first(server, cache, table, tmp_path, monkeypatch):
    table(server.url)
    (tmp_path / "lsac.csv").write_text(LSAC_TEXT)
    monkeypatch.setenv("FAIRPCA_DATA", str(tmp_path))
    datasets.load_lsac(prepare=False)
    assert server.requests == 0


def test_download_with_wrong_checksum_is_refused(server, cache, table):
    table(server.url, text="another file")
    wanted = _paper.SHA256["lsac.csv"]
    found = hashlib.sha256(LSAC_TEXT.encode()).hexdigest()
    with pytest.raises(FileNotFoundError, match=rf"\({found}\) differs from expected \({wanted}\)"):
        datasets.load_lsac()
    assert left_behind(cache) == []


def test_truncated_download_is_refused(server, cache, table):
    server.truncate = True
    table(server.url)
    with pytest.raises(FileNotFoundError, match=r"lsac\.csv is not at hand"):
        datasets.load_lsac()
    assert left_behind(cache) == []


def test_altered_file_is_refused_by_name(cache, table, tmp_path, monkeypatch):
    table("http://127.0.0.1:9/")
    altered = tmp_path / "lsac.csv"
    altered.write_text(LSAC_TEXT.replace("3.1", "3.2"))
    found = hashlib.sha256(altered.read_bytes()).hexdigest()
    monkeypatch.setenv("FAIRPCA_DATA", str(tmp_path))
    with pytest.raises(ValueError, match="Delete it") as refusal:
        datasets.load_lsac()
    for part in (str(altered), found, _paper.SHA256["lsac.csv"]):
        assert part in str(refusal.value)
    assert altered.is_file()


def test_offline_message_says_which_file_goes_where(cache, table, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    table("http://127.0.0.1:9/")  # nothing listens on the discard port
    with pytest.raises(FileNotFoundError) as refusal:
        datasets.load_lsac()
    for part in ("lsac.csv", "http://127.0.0.1:9/", str(cache), "FAIRPCA_DATA", "data_home="):
        assert part in str(refusal.value)


def test_lfw_has_no_address_and_says_so(cache):
    with pytest.raises(FileNotFoundError, match="pack_lfw"):
        datasets.load_lfw()


def test_downloads_go_to_the_named_folder(server, cache, table, tmp_path, monkeypatch):
    table(server.url)
    monkeypatch.setenv("FAIRPCA_DATA", str(tmp_path / "named"))
    datasets.load_lsac(prepare=False)
    assert left_behind(tmp_path / "named") == ["lsac.csv"]
    assert left_behind(cache) == []


def test_archive_is_recognised_by_what_is_inside(tmp_path):
    packed, stored = tmp_path / "packed.npz", tmp_path / "stored.npz"
    arrays = {"a": np.arange(500), "b": np.ones((3, 3))}
    np.savez_compressed(packed, **arrays)
    np.savez(stored, **arrays)
    assert packed.read_bytes() != stored.read_bytes()
    assert _paper.digest(stored) == _paper.digest(packed)
    stored.write_bytes(stored.read_bytes()[:-40])
    assert _paper.digest(stored) == "unreadable"
