"""A model file comes back as it was, or is refused in words."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.model_files import rewrite
from sklearn.base import clone
from stress.estimators import EVERY, FOR_TWO_GROUPS
from stress.generators import any_kind

from fairpca import load_model
from fairpca.exceptions import quietly

pytest.importorskip("safetensors", reason="needs the model extra")
pytestmark = [
    pytest.mark.stress,
    pytest.mark.filterwarnings("ignore:.*rounding of float64:RuntimeWarning"),
]


@pytest.fixture
def saved(rng, tmp_path):
    name = list(EVERY)[rng.integers(len(EVERY))]
    X, groups = any_kind(rng, 2 if name in FOR_TWO_GROUPS else None)
    with quietly():
        fair = clone(EVERY[name]).set_params(n_components=1).fit(X, sensitive_features=groups)
    fair.save(tmp_path / "m")
    return tmp_path / "m", fair, X


def test_it_comes_back(saved):
    path, fair, X = saved
    again = load_model(path)
    assert type(again) is type(fair)
    np.testing.assert_array_equal(again.transform(X), fair.transform(X))


def flip_bits(content, rng):
    for _ in range(int(rng.integers(1, 4))):
        content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))


def cut_off(content, rng):
    del content[int(rng.integers(len(content))) :]


def cut_out(content, rng):
    start = int(rng.integers(len(content)))
    del content[start : start + int(rng.integers(1, 64))]


def insert(content, rng):
    start = int(rng.integers(len(content)))
    content[start:start] = rng.bytes(int(rng.integers(1, 64)))


def overwrite(content, rng):
    start = int(rng.integers(len(content)))
    piece = rng.bytes(int(rng.integers(4, 64)))
    content[start : start + len(piece)] = piece


@pytest.mark.parametrize("damage", [flip_bits, cut_off, cut_out, insert, overwrite])
def test_damage_is_refused(damage, saved, rng):
    path, _, _ = saved
    before = path.read_bytes()
    for _ in range(20):
        content = bytearray(before)
        damage(content, rng)
        if content == before:
            continue
        path.write_bytes(content)
        with pytest.raises(ValueError, match="m"):
            load_model(path)


def put(entry):
    def change(arrays, header, rng):
        arrays["components_"][0, rng.integers(arrays["components_"].shape[1])] = entry

    return change


def drop_an_array(arrays, header, rng):
    del arrays[("components_", "mean_")[rng.integers(2)]]


def shorten_the_mean(arrays, header, rng):
    arrays["mean_"] = arrays["mean_"][:-1].copy()


def lengthen_components(arrays, header, rng):
    arrays["components_"] *= 1.01


def make_integers(arrays, header, rng):
    arrays["components_"] = np.round(9 * arrays["components_"]).astype(np.int64)


def change_the_version(arrays, header, rng):
    header["format_version"] = [True, "1", None, 1.5, [1], -1][rng.integers(6)]


def drop_a_part(arrays, header, rng):
    parts = sorted(header)
    del header[parts[rng.integers(len(parts))]]


WRONG = {
    "nan": put(np.nan),
    "infinite": put(np.inf),
    **{
        change.__name__: change
        for change in (
            drop_an_array,
            shorten_the_mean,
            lengthen_components,
            make_integers,
            change_the_version,
            drop_a_part,
        )
    },
}


@pytest.mark.parametrize("content", WRONG)
def test_wrong_content_with_a_right_checksum_is_refused(content, saved, rng):
    path, _, _ = saved
    rewrite(path, lambda header, arrays: WRONG[content](arrays, header, rng))
    with pytest.raises(ValueError, match="m"):
        load_model(path)
