"""What the rooms of the command read from files: rows, moments, fits and scores."""

from sklearn.utils import Bunch

from fairpca._input.folds import FoldRule
from fairpca.cli.columns.prepare import prepare
from fairpca.cli.columns.roles import choose_roles
from fairpca.cli.reader.read import open_table
from fairpca.cli.writer import write_scores

READING = ("query", "encoding", "decimal", "header", "sheet", "missing_values")


def _split(options):
    reading = {name: options.pop(name) for name in READING if name in options}
    options.setdefault("unit", "none")
    options.setdefault("keep_duplicates", True)
    return reading, options


def read_table(data, sensitive_features, **options):
    """Rows, groups and the record of what was left out."""
    reading, options = _split(options)
    table = open_table(data, **reading)
    found = prepare(
        table, sensitive_features=sensitive_features, rows_up_to=float("inf"), **options
    )
    names = ("data", "sensitive_features", "target", "sample_weight", "record")
    rows = {name: getattr(found, name) for name in names}
    return Bunch(**rows, feature_names=found.roles.feature_names)


def moments_of(data, *, folds=None, fold_seed=0, progress=None, **options):
    """The moments of the rows; ``progress`` is called with the fraction that is read."""
    reading, options = _split(options)
    if progress is not None:
        options["progress"] = lambda doing, done=None: progress(done) if done is not None else None
    rule = None if folds is None else FoldRule(folds, fold_seed)
    return prepare(open_table(data, **reading), folds=rule, rows_up_to=0, **options).moments


def fitted_to(estimator, data, **options):
    """The estimator, fitted to the moments of the rows."""
    return estimator.fit(moments_of(data, **options))


def write_scores_of(model, data, output, *, keep=(), features=None, missing="error", **reading):
    """Write the scores of the rows under a fitted model."""
    features = getattr(model, "feature_names_in_", None) if features is None else features
    progress = reading.pop("progress", None)
    table = open_table(data, **reading)
    roles, _ = choose_roles(table, features=features, keep=keep, missing=missing)
    write_scores(table, roles, output, model, progress=progress)
    return output
