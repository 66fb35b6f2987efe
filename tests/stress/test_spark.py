"""Hostile rows in a Spark frame give the moments that they give in memory."""

from __future__ import annotations

import os
import shutil
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from helpers.data import assert_same
from stress.generators import any_kind

from fairpca import GroupMoments

pytest.importorskip("pyspark", reason="pyspark is not installed (the extra fairpca[spark])")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java, and there is none", allow_module_level=True)

# pyspark warns about newer versions of pandas, and leaves sockets to the garbage collector.
pytestmark = [
    pytest.mark.stress,
    pytest.mark.filterwarnings(
        "ignore::FutureWarning", "ignore::ResourceWarning", "ignore::DeprecationWarning"
    ),
]


@pytest.fixture(scope="module")
def session():
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .getOrCreate()
        )
        yield spark
        spark.stop()


def test_moments(session, rng):
    X, groups = any_kind(rng)
    columns = [f"c{j}" for j in range(X.shape[1])]
    table = pd.DataFrame(X, columns=columns).assign(group=groups)
    frame = session.createDataFrame(table).repartition(int(rng.integers(1, 5)))
    moments = GroupMoments.from_spark(frame, group="group", columns=columns)
    assert_same(moments, GroupMoments.from_data(X, np.asarray(groups)), rtol=1e-10)
