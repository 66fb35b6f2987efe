"""Dask collections give what the same rows in memory give, on every scheduler."""

import re

import numpy as np
import pandas as pd
import pytest
from helpers.cluster import die_once
from helpers.data import assert_same_moments, unequal_groups
from helpers.marks import slow_case
from hypothesis import given, settings
from hypothesis import strategies as st

from fairpca import FairPCA, GroupMoments

dask = pytest.importorskip("dask", reason="needs the dask extra")
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402

# Of dask's own making: converting pandas' string columns to arrays, and sockets of a dying cluster.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Dask currently has limited support:UserWarning",
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
)

X, SEX = unequal_groups()
EXPECTED = GroupMoments.from_data(X, SEX)
COLUMNS = ["a", "b", "c", "d"]


def frame(npartitions=3):
    return dd.from_pandas(pd.DataFrame(X, columns=COLUMNS).assign(sex=SEX), npartitions=npartitions)


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("dask.distributed", reason="needs the dask extra")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@st.composite
def chunks(draw):
    n = len(X)
    cuts = draw(st.lists(st.integers(1, n - 1), max_size=6, unique=True))
    return tuple(np.diff([0, *sorted(cuts), n]).tolist())


def test_several_columns_of_labels_are_crossed():
    labels = pd.DataFrame({"sex": SEX, "old": np.arange(len(X)) % 3 == 0})
    expected = GroupMoments.from_data(X, labels)
    ddf = frame().assign(old=dd.from_pandas(labels["old"], npartitions=3))
    moments = GroupMoments.from_data(ddf[COLUMNS], ddf[["sex", "old"]])
    assert_same_moments(moments, expected)
    both = labels.astype(str).to_numpy().astype(str)
    given = da.from_array(X, chunks=(100, 2))
    expected = GroupMoments.from_data(X, both)
    for crossed in (both, da.from_array(both, chunks=(70, 1))):
        assert_same_moments(GroupMoments.from_data(given, crossed), expected)


@settings(max_examples=20, deadline=None)
@given(rows=chunks(), labels=chunks(), columns=st.sampled_from([(4,), (1, 3), (2, 2)]))
def test_any_chunks(rows, labels, columns):
    with dask.config.set(scheduler="synchronous"):
        moments = GroupMoments.from_data(
            da.from_array(X, chunks=(rows, columns)), da.from_array(SEX, chunks=(labels,))
        )
    assert_same_moments(moments, EXPECTED)


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", slow_case("processes")])
def test_schedulers(scheduler):
    with dask.config.set(scheduler=scheduler, num_workers=2):
        fair = FairPCA(2).fit(
            da.from_array(X, chunks=(100, 2)), sensitive_features=da.from_array(SEX, chunks=300)
        )
        check_fit(fair, np.asarray(fair.transform(da.from_array(X, chunks=(100, 2)))))


def check_fit(fair, scores):
    expected = FairPCA(2).fit(X, sensitive_features=SEX)
    np.testing.assert_allclose(fair.components_, expected.components_, atol=1e-10)
    np.testing.assert_allclose(fair.group_errors_, expected.group_errors_, rtol=1e-10)
    np.testing.assert_allclose(scores, expected.transform(X), atol=1e-9)


def test_labels_and_weights_of_every_kind():
    weights = np.arange(len(X)) % 3 * 0.5
    weights[:250] = 0  # two whole blocks weigh nothing
    expected = GroupMoments.from_data(X, SEX, weights)
    array = da.from_array(X, chunks=(100, 4))
    for labels in (
        SEX,
        SEX.tolist(),
        pd.Series(SEX, dtype="category"),
        da.from_array(SEX)[:, None],
    ):
        for given_weights in (weights, da.from_array(weights, chunks=90)):
            assert_same_moments(GroupMoments.from_data(array, labels, given_weights), expected)
    with pytest.raises(ValueError, match="no rows of positive weight"):
        GroupMoments.from_data(array, SEX, da.zeros(len(X)))


def test_data_frames():
    ddf = frame()
    fair = FairPCA(2).fit(ddf[COLUMNS], sensitive_features=ddf["sex"])
    assert fair.feature_names_in_.tolist() == COLUMNS
    scores = fair.transform(ddf[COLUMNS])
    assert isinstance(scores, da.Array)
    assert scores.shape[1] == 2
    check_fit(fair, scores.compute())
    with pytest.raises(ValueError, match="feature names"):
        fair.transform(ddf[COLUMNS[::-1]]).compute()

    by_block = FairPCA(2).partial_fit(ddf[COLUMNS], sensitive_features=ddf["sex"])
    by_block.partial_fit(ddf[COLUMNS], sensitive_features=ddf["sex"])
    np.testing.assert_allclose(by_block.components_, fair.components_, atol=1e-10)
    with pytest.raises(ValueError, match="columns that differ"):
        by_block.partial_fit(ddf[COLUMNS[::-1]], sensitive_features=ddf["sex"])
    assert by_block.group_sizes_.sum() == 2 * len(X)


def test_empty_partitions():
    ddf = frame(4)
    ddf = ddf[(ddf["a"] > 0) | (ddf.index > 400)]
    kept = (X[:, 0] > 0) | (np.arange(len(X)) > 400)
    none = ddf.partitions[0][ddf.partitions[0]["a"] > 1e9]
    ddf = dd.concat([none, ddf], interleave_partitions=True)
    moments = GroupMoments.from_data(ddf[COLUMNS], ddf["sex"])
    assert_same_moments(moments, GroupMoments.from_data(X[kept], SEX[kept]))
    fair = FairPCA(2).fit(moments)
    assert fair.transform(ddf[COLUMNS]).compute().shape == (kept.sum(), 2)


def test_unknown_chunks():
    ddf = frame()
    array, labels = ddf[COLUMNS].to_dask_array(), ddf["sex"].to_dask_array()
    assert np.isnan(array.shape[0])
    for known in (labels, ddf["sex"]):
        assert_same_moments(GroupMoments.from_data(array, known), EXPECTED)
    with pytest.raises(ValueError, match=r"lengths are known.* X\.compute_chunk_sizes\(\)"):
        GroupMoments.from_data(array, SEX)
    with pytest.raises(ValueError, match=r"X\.to_dask_array\(\)\.compute_chunk_sizes\(\)"):
        GroupMoments.from_data(ddf[COLUMNS], SEX)
    assert_same_moments(GroupMoments.from_data(array.compute_chunk_sizes(), SEX), EXPECTED)
    with pytest.raises(ValueError, match="X has 3 blocks but sensitive_features has 5"):
        GroupMoments.from_data(ddf[COLUMNS], frame(5)["sex"])


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """Eight Parquet files of many columns: dask joins files when it reads few of the columns."""
    folder = tmp_path_factory.mktemp("people")
    rng = np.random.default_rng(0)
    for i in range(8):
        part = pd.DataFrame(rng.normal(size=(50, 40)) * np.arange(1, 41)).add_prefix("x")
        part["sex"], part["old"] = rng.choice(["f", "m"], 50), rng.choice([True, False], 50)
        part["w"] = rng.random(50)
        part.to_parquet(folder / f"part{i}.parquet")
    return folder


@pytest.mark.parametrize("n_columns", [2, slow_case(40)])
@pytest.mark.parametrize("labels", ["sex", ["sex", "old"]])
def test_parquet_files_of_many_columns(people, n_columns, labels):
    whole, lazy = pd.read_parquet(people), dd.read_parquet(people)
    columns = [f"x{i}" for i in range(n_columns)]
    for rows, ddf in (
        (whole, lazy),
        (whole[whole["x39"] > 0], lazy[lazy["x39"] > 0]),
        (whole, lazy.repartition(partition_size="20kB")),
    ):
        expected = GroupMoments.from_data(rows[columns], rows[labels], rows["w"])
        moments = GroupMoments.from_data(ddf[columns], ddf[labels], ddf["w"])
        assert_same_moments(moments, expected)
    fair = FairPCA(1, alpha=1).fit(whole[columns], sensitive_features=whole[labels])
    for method in ("fit", "partial_fit"):
        given = {"sensitive_features": lazy[labels]}
        found = getattr(FairPCA(1, alpha=1), method)(lazy[columns], **given)
        np.testing.assert_allclose(found.components_, fair.components_, atol=1e-10)
        scores = found.transform(lazy[columns]).compute()
        np.testing.assert_allclose(scores, fair.transform(whole[columns]), atol=1e-8)


def test_named_remedies_work(people):
    whole, lazy = pd.read_parquet(people), dd.read_parquet(people)
    X, sex = lazy[[f"x{i}" for i in range(40)]], lazy["sex"].repartition(npartitions=5)
    expected = GroupMoments.from_data(whole[list(X.columns)], whole["sex"])
    for rows, labels in ((X, sex), (X.to_dask_array(), sex), (X, sex.to_dask_array()), (X, SEX)):
        with pytest.raises(ValueError, match=r"lengths .* known") as refusal:
            GroupMoments.from_data(rows, labels)
        remedies = re.findall(r"\S+\.compute_chunk_sizes\(\)", str(refusal.value))
        assert len(remedies) == (1 if labels is SEX else 2)
        named = {"X": rows, "sensitive_features": labels}
        known = [eval(remedy, {}, named) for remedy in remedies]
        known = [*known, whole["sex"]] if labels is SEX else known
        assert_same_moments(GroupMoments.from_data(*known), expected)


def test_what_is_refused():
    array = da.from_array(X, chunks=(100, 4))
    with pytest.raises(ValueError, match="has 100 entries but X has 700 rows"):
        GroupMoments.from_data(array, da.from_array(SEX[:100]))
    with pytest.raises(ValueError, match="has 100 entries but X has 700 rows"):
        GroupMoments.from_data(array, SEX[:100])
    for column in (array[:, 0], frame()["a"]):
        with pytest.raises(ValueError, match="Expected 2D array"):
            GroupMoments.from_data(column, SEX)
    broken = X.copy()
    broken[250, 1] = np.nan
    with pytest.raises(ValueError, match=r"block 2 of X: .*NaN in column 1, first in row 50"):
        GroupMoments.from_data(da.from_array(broken, chunks=(100, 4)), SEX)
    labels = da.from_array(SEX, chunks=100)
    array, labels = array[array[:, 0] > -1e9], labels[1:][labels[1:] != "nobody"]
    with pytest.raises(ValueError, match=r"block 0 of X: .*99 labels but X has 100 rows"):
        GroupMoments.from_data(array, labels)


def test_transform_is_lazy_and_keeps_single_precision():
    fair = FairPCA(2).fit(X, sensitive_features=SEX)
    calls = []

    def block(x):
        calls.append(len(x))
        return x

    lazy = da.from_array(X.astype(np.float32), chunks=(100, 4)).map_blocks(block, dtype="f4")
    calls.clear()
    scores = fair.transform(lazy)
    assert not calls
    assert scores.dtype == np.float32
    assert scores.chunks == ((100,) * 7, (2,))
    assert scores.compute(scheduler="synchronous").dtype == np.float32
    graph = scores.__dask_graph__()
    assert "moments_" not in str(dict(graph))


def test_inverse_transform_is_lazy():
    fair = FairPCA(2).fit(X, sensitive_features=SEX)
    scores = fair.transform(X)
    expected = fair.inverse_transform(scores)
    some = da.from_array(scores, chunks=(100, 1))
    none = some[:100][some[:100, 0] > 1e9]  # a block without rows
    ddf = dd.from_pandas(pd.DataFrame(scores), npartitions=3)
    for lazy in (some, ddf, da.concatenate([none, some], allow_unknown_chunksizes=True)):
        rows = fair.inverse_transform(lazy)
        assert isinstance(rows, da.Array)
        np.testing.assert_allclose(rows.compute(), expected, atol=1e-12)
    assert fair.inverse_transform(some.astype("f4")).dtype == np.float32
    assert fair.inverse_transform(some.astype("f4")).compute().dtype == np.float32


def test_wrong_columns_are_refused_at_once():
    fair = FairPCA(2).partial_fit(X, sensitive_features=SEX)
    array = da.from_array(X, chunks=(100, 2))
    for wrong in (array[:, :3], frame()[COLUMNS[:3]]):
        with pytest.raises(ValueError, match=r"X has 3 features.* expecting"):
            fair.transform(wrong)
        with pytest.raises(ValueError, match=r"X has 3 features.* expecting 2"):
            fair.inverse_transform(wrong)
    for method in (fair.transform, fair.inverse_transform):
        with pytest.raises(ValueError, match="Expected 2D array, got 1D"):
            method(array[:, 0])


@pytest.mark.slow
def test_cluster(cluster):
    ddf = frame(6)
    fair = FairPCA(2).fit(ddf[COLUMNS], sensitive_features=ddf["sex"])
    check_fit(fair, fair.transform(ddf[COLUMNS]).compute())


@pytest.mark.slow
def test_killed_worker_changes_nothing(cluster, tmp_path):
    array = da.from_array(X, chunks=(50, 4))
    dangerous = array.map_blocks(die_once, X[0, 0], str(tmp_path / "died"), dtype=float)
    before = set(cluster.scheduler_info()["workers"])
    moments = GroupMoments.from_data(dangerous, SEX)
    assert (tmp_path / "died").exists()
    assert set(cluster.scheduler_info()["workers"]) != before
    np.testing.assert_array_equal(
        moments.second_moments(), GroupMoments.from_data(array, SEX).second_moments()
    )
    assert_same_moments(moments, EXPECTED)


def test_names_of_columns():
    ddf = frame().assign(w=1.0)
    moments = GroupMoments.from_data(ddf, "sex", "w")
    assert_same_moments(moments, EXPECTED)
    assert moments.feature_names == COLUMNS
    with pytest.raises(ValueError, match="X has no column 'gender'"):
        GroupMoments.from_data(ddf, "gender")


def test_several_attributes_are_not_crossed():
    groups = pd.DataFrame({"sex": SEX, "odd": np.arange(len(X)) % 2})
    expected = GroupMoments.from_data(X, groups, crossing=False)
    array = da.from_array(X, chunks=(50, 4))
    ddf = dd.from_pandas(pd.DataFrame(X, columns=COLUMNS).join(groups), npartitions=4)
    for moments in (
        GroupMoments.from_data(array, groups, crossing=False),
        GroupMoments.from_data(ddf, ["sex", "odd"], crossing=False),
    ):
        assert_same_moments(moments, expected)
        assert moments.n_rows == len(X)
