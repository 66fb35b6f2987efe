"""A Spark session for tests, where there are pyspark and Java."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from contextlib import contextmanager

import pytest

# pyspark warns about newer versions of pandas, and leaves sockets to the garbage collector.
IGNORES_WARNINGS = pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore::ResourceWarning", "ignore::DeprecationWarning"
)


def require_spark():
    """Skip the module that calls this where Spark cannot run."""
    pytest.importorskip("pyspark", reason="pyspark is not installed (the extra fairpca[spark])")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, and there is none", allow_module_level=True)


@contextmanager
def spark_session(master="local[2]", **settings):
    """A local session with two workers; ``settings`` are those under ``spark.sql``."""
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
        # Java that lives for a minute gains nothing from being compiled with care.
        for part in ("driver", "executor"):
            builder = builder.config(f"spark.{part}.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        for name, value in {"shuffle.partitions": "4", **settings}.items():
            builder = builder.config(f"spark.sql.{name}", value)
        spark = builder.getOrCreate()
        yield spark
        spark.stop()
