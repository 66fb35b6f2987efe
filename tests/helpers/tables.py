"""Tables in files of every kind."""

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

WRITERS = {
    "csv": pa_csv.write_csv,
    "tsv": lambda t, path: pa_csv.write_csv(t, path, pa_csv.WriteOptions(delimiter="\t")),
    "parquet": pq.write_table,
    "arrow": lambda t, path: write_ipc(t, path, pa.ipc.new_file),
    "feather": lambda t, path: write_ipc(t, path, pa.ipc.new_file),
    "ipc": lambda t, path: write_ipc(t, path, pa.ipc.new_file),
}


def write_ipc(table, path, new):
    with pa.OSFile(str(path), "wb") as sink, new(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=100)


def as_table(X, sex, **more):
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    return pa.table({"id": [f"p{i}" for i in range(len(X))], **columns, "sex": sex, **more})
