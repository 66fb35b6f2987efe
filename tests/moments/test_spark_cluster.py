"""A Spark cluster of several processes; a file of its own, as no other session may be alive."""

import os
import signal
from pathlib import Path

import pandas as pd
import pytest
from helpers.data import assert_same_moments, unequal_groups
from helpers.spark import IGNORES_WARNINGS, require_spark, spark_session

from fairpca import GroupMoments

require_spark()

pytestmark = [pytest.mark.slow, IGNORES_WARNINGS]

X, SEX = unequal_groups()


def test_a_killed_executor_changes_nothing(tmp_path):
    mark = str(tmp_path / "killed")

    def kill_once(batches):
        for batch in batches:
            if not os.path.exists(mark):
                open(mark, "w").close()
                daemon = os.getppid()
                status = Path(f"/proc/{daemon}/stat").read_text()
                executor = int(status.rpartition(")")[2].split()[1])
                os.kill(executor, signal.SIGKILL)
            yield batch

    with spark_session(master="local-cluster[2,1,1024]") as spark:
        # In one process the executor would be the driver, and the test would end itself.
        assert spark.sparkContext.master.startswith("local-cluster")
        table = pd.DataFrame(X, columns=list("abcd")).assign(sex=SEX)
        frame = spark.createDataFrame(table).repartition(6)
        expected = GroupMoments.from_data(X, SEX)
        assert_same_moments(GroupMoments.from_spark(frame, "sex"), expected)
        dying = frame.mapInArrow(kill_once, frame.schema)
        assert_same_moments(GroupMoments.from_spark(dying, "sex"), expected)
    assert os.path.exists(mark)
