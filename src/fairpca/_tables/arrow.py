"""The only file that imports pyarrow."""

from __future__ import annotations

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq
except ImportError as error:
    raise ImportError(
        "reading and writing files needs pyarrow; install it with pip install 'fairpca[files]'."
    ) from error

__all__ = ["pa", "pa_csv", "pc", "pq"]
