"""What the command judges as it is: a model file, weights, or rows that a model rebuilt."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from fairpca._typing import Array
from fairpca.cli import options as opt
from fairpca.cli.columns.prepare import Prepared
from fairpca.cli.columns.roles import floats_of
from fairpca.cli.options import Asked, changed
from fairpca.cli.reader.read import open_table

#: Options that each name what is judged.
KINDS = ("model", "loadings", "rebuilt")


def refuse_pickle(path: str) -> None:
    """Refuse files that run code when they are opened."""
    if Path(path).suffix.lower() in (".joblib", ".pkl", ".pickle"):
        raise ValueError(
            f"{path}: opening such a file runs the code in it, so fairpca does not; judge the "
            "model in Python, fairpca.audit_model(joblib.load(path), X, groups), or write the rows "
            "that it rebuilds to a table, and pass --rebuilt with that table."
        )


def check_asked(asked: Asked) -> None:
    """Refuse two things to be judged, and options about a model that would be fitted."""
    given = [f"--{name}" for name in KINDS if getattr(asked, name)]
    if given[1:]:
        raise ValueError(f"{' and '.join(given)} both name what is judged; pass one of them.")
    chosen: dict[str, Any] = {"group": (), "target": None, "weight": None, "seed": 0, "unit": None}
    chosen["keep_duplicates"] = False
    if asked.missing != "median":
        chosen["missing"] = "available"
    if asked.loadings:
        chosen["standardize"] = True
    if asked.rebuilt:
        chosen |= {"features": (), "drop": ()}
    rest = changed(asked, **chosen)
    if unused := opt.words(rest, *opt.COLUMNS, *opt.SETTINGS, *opt.CHOICE):
        raise ValueError(
            f"{given[0]} is judged as it is, with its own columns and components; leave out "
            f"{unused[0]}."
        )
    if not asked.data:
        raise ValueError(f"{given[0]} needs rows to be judged by: name a file too.")


def rebuilt_rows(path: str, prepared: Prepared, reading: dict[str, Any]) -> Array:
    """What somebody's model made of the rows of a table, from a table of the same columns."""
    if prepared.record.unordered:
        raise ValueError("the query has no ORDER BY, so rows may not match; add ORDER BY.")
    names = prepared.roles.feature_names
    with closing(open_table(path, **reading)) as table:
        unknown = [name for name in names if name not in table.columns]
        if unknown:
            raise ValueError(
                f"{path} has no column {unknown[0]!r}; rebuild every column, or name those that "
                "are rebuilt with --features."
            )
        batches = table.batches(names)
        parts = [np.column_stack([floats_of(own) for own in batch.columns]) for batch in batches]
    rebuilt = np.concatenate([np.empty((0, len(names))), *parts])
    n = int(prepared.moments.counts.sum())
    if len(rebuilt) != n:
        dropped = prepared.record.n_dropped
        left_out = ""
        if dropped:
            left_out = f" after {dropped:,} were left out"
        raise ValueError(
            f"{path} has {len(rebuilt):,} rows, but {prepared.table.name} has {n:,}{left_out}; "
            "every row must be rebuilt, in the same order."
        )
    return rebuilt
