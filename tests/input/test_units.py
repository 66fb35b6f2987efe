"""Units: one label, one number, whatever it was read as."""

from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fairpca._input.units import encode_units, how_many, keyed, smallest

SEVENS = {
    "list": [7, 8],
    "list of texts": ["7", "8"],
    "list of floats": [7.0, 8.0],
    "mixed list": [7, "8"],
    "int32": np.array([7, 8], np.int32),
    "uint64": np.array([7, 8], np.uint64),
    "float32": np.array([7, 8], np.float32),
    "numpy text": np.array(["7", "8"]),
    "decimals": [Decimal("7.00"), Decimal(8)],
    "objects": np.array(["7", 8.0], object),
    "pandas": pd.Series([7, 8], index=[5, 3]),
    "pandas nullable": pd.Series([7, 8], dtype="Int64"),
    "pandas text": pd.Series(["7", "8"]),
    "pandas categories": pd.Series(["7", "8"], dtype="category"),
    "polars": pl.Series([7, 8]),
    "polars text": pl.Series(["7", "8"]),
    "polars categories": pl.Series(["7", "8"], dtype=pl.Categorical),
    "polars floats": pl.Series([7.0, 8.0]),
    "frame of one column": pl.DataFrame({"person": [7, 8]}),
    "arrow": pa.chunked_array([[7], [8]]),
    "arrow dictionary": pa.chunked_array([pa.array(["7", "8"]).dictionary_encode()]),
}


@pytest.mark.parametrize("labels", SEVENS.values(), ids=list(SEVENS))
def test_a_number_is_one_unit_however_it_is_stored(labels):
    np.testing.assert_array_equal(encode_units(labels, 2), encode_units([7, 8], 2))


def test_other_texts_are_other_units():
    labels = ["7", "007", "7.0", "7 ", "-7", "٧", "x", "X", "", 7.5, "7.5", -7, 2**70, str(2**70)]
    numbers = encode_units(labels, len(labels)).tolist()
    assert len(set(numbers)) == len(labels) - 2  # 7.5 and 2**70 are written in one way only
    assert numbers[-1] == numbers[-2]


def test_numbers_never_change():
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]  # SplitMix64, seed 0
    assert encode_units([0, 1, 2], 3).tolist() == published
    assert encode_units(["x"], 1).tolist() == [5717441744405258058]  # BLAKE2b of its UTF-8


def test_a_row_without_a_label_is_a_unit_by_itself():
    labels = [None, float("nan"), "a", pd.NA, "a", np.datetime64("NaT")]
    numbers = encode_units(np.array(labels, object), 6)
    assert len(set(numbers.tolist())) == 5
    assert numbers[2] == numbers[4]
    later = encode_units([None], 1, before=6)
    assert later[0] not in numbers
    assert encode_units([None], 1, before=1)[0] == numbers[1]


def test_dates_are_one_unit_in_every_library():
    days = [date(2020, 1, 2), date(2021, 1, 2)]
    assert len({*encode_units(days, 2).tolist(), *encode_units(pl.Series(days), 2).tolist()}) == 2
    times = [datetime(2020, 1, 2, 3), datetime(2021, 1, 2)]
    kinds = [times, pl.Series(times), pd.Series(times), np.array(times, "datetime64[ns]")]
    assert len({n for labels in kinds for n in encode_units(labels, 2).tolist()}) == 2


@pytest.mark.parametrize("labels", [np.zeros((2, 2)), [1], "ab"])
def test_what_is_no_column_is_refused(labels):
    with pytest.raises(ValueError, match="units has"):
        encode_units(labels, 2)


def test_folds_are_even_and_unrelated_for_other_salts():
    units = encode_units(np.arange(20_000), 20_000)
    first, second = (keyed(units, salt, 10) for salt in (0, 1))
    table = np.zeros((10, 10))
    np.add.at(table, (first, second), 1)
    assert abs(table.sum(axis=0) / 2000 - 1).max() < 0.1
    assert abs(table / 200 - 1).max() < 0.3


@pytest.mark.parametrize("n", [0, 1, 4095, 4096, 50_000])
def test_units_are_counted_in_any_order(n):
    units = encode_units(np.arange(n), n)
    some, others = smallest(units[: n // 3]), smallest(units[n // 4 :])
    kept = smallest(np.concatenate([others, some]))
    np.testing.assert_array_equal(kept, smallest(units))
    assert how_many(kept) == n if n < 4096 else abs(how_many(kept) / n - 1) < 0.05
