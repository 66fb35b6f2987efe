"""One BLAS thread for each test process, and shared data."""

from __future__ import annotations

import os
from pathlib import Path

# Before numpy is loaded. Commands that tests start inherit it; an empty value counts as unset.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = os.environ.get(_name) or "1"

import pytest
from helpers.data import diabetes_by_sex, make_groups

from fairpca import GroupMoments
from fairpca.datasets import load_tcred


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """A worker that has no tests left takes some of another's."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


@pytest.fixture
def two_groups():
    return make_groups()


@pytest.fixture(scope="session")
def reference_folder() -> Path:
    data = os.environ.get("FAIRPCA_DATA")
    folder = Path(data).parent / "reference" if data else None
    if folder is None or not folder.is_dir():
        pytest.skip("FAIRPCA_DATA is not set, or has no folder `reference` beside it")
    return folder


@pytest.fixture(scope="session")
def tcred_moments() -> GroupMoments:
    if not os.environ.get("FAIRPCA_DATA"):
        pytest.skip("FAIRPCA_DATA names no folder with the paper's data files")
    bunch = load_tcred()
    return GroupMoments.from_data(bunch.data, bunch.sensitive_features)


@pytest.fixture(scope="session")
def diabetes_files(tmp_path_factory):
    """The diabetes data as a file of each kind; the command line needs pyarrow for them."""
    pa = pytest.importorskip("pyarrow", reason="the command line needs the cli extra")
    import pyarrow.csv as pc
    from pyarrow import feather
    from pyarrow import parquet as pq

    folder = tmp_path_factory.mktemp("data")
    bunch = diabetes_by_sex(prepare=False)
    columns = dict(zip(bunch.feature_names, bunch.data.T, strict=True))
    ids = [f"{i:04d}" for i in range(len(bunch.data))]
    ward = [("north", "south", "east")[i % 3] for i in range(len(ids))]
    sex = bunch.sensitive_features.tolist()
    table = pa.table({"id": ids, **columns, "ward": ward, "sex": sex, "y": bunch.target})
    pc.write_csv(table, folder / "d.csv")
    pc.write_csv(table, folder / "d.tsv", pc.WriteOptions(delimiter="\t"))
    pq.write_table(table, folder / "d.parquet", row_group_size=100)
    feather.write_feather(table, folder / "d.feather")
    return folder


def pytest_collection_modifyitems(items):
    """Refuse names with an address in memory: two workers would not agree on them.

    Spark is slow to start. Its tests come first: one worker has all of them, and none waits at the
    end for them.
    """
    items.sort(key=lambda item: "test_spark" not in item.path.name)
    addresses = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if addresses:
        raise pytest.UsageError(f"give these tests ids: {addresses}")
