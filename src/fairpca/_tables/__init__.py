"""Tables on clusters."""

from fairpca._input.folds import FoldRule

_MERGE_BYTES = 1 << 28  # memory for one merge of the results of a cluster


def merge_fan_in(n_features: int, folds: FoldRule | None) -> int:
    """How many results are merged at once; fewer if they are large."""
    n_cells = 1 if folds is None else folds.n_folds
    return max(2, min(16, _MERGE_BYTES // (8 * n_cells * max(1, n_features) ** 2)))
