"""Hostile rows in a Spark frame give the moments that they give in memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers.data import assert_same
from helpers.spark import IGNORES_WARNINGS, require_spark, spark_session
from stress.generators import any_kind

from fairpca import GroupMoments

require_spark()

pytestmark = [pytest.mark.stress, IGNORES_WARNINGS]


@pytest.fixture(scope="module")
def session():
    with spark_session() as spark:
        yield spark


def test_moments(session, rng):
    X, groups = any_kind(rng)
    columns = [f"c{j}" for j in range(X.shape[1])]
    table = pd.DataFrame(X, columns=columns).assign(group=groups)
    frame = session.createDataFrame(table).repartition(int(rng.integers(1, 5)))
    moments = GroupMoments.from_spark(frame, sensitive_features="group")
    assert_same(moments, GroupMoments.from_data(X, np.asarray(groups)), rtol=1e-10)
