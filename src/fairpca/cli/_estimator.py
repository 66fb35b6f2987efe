"""The estimator that the options of a command ask for, and options that ask for it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from fairpca._estimators.base import FairProjection

#: Options of the fit that a point of the frontier has its own values for.
_OF_THE_POINT = {
    "out", "components", "parity", "constraint", "alpha", "max_disparity", "max_error_increase",
    "criterion", "cv", "seed", "normalize", "min_group_size", "small_groups", "quiet",
}  # fmt: skip

#: Options of which one at most can be given.
_ENDS = ("alpha", "max_disparity", "max_error_increase")


def chosen_estimator(options: Mapping[str, Any]) -> FairProjection:
    """FairPCA, or MinMaxPCA for ``--criterion``, by the options of ``fit`` and ``report``."""
    from fairpca import FairPCA, MinMaxPCA

    shared = {name: options[name] for name in ("normalize", "min_group_size", "small_groups")}
    names = ("constraint", "alpha", "max_disparity", "max_error_increase", "cv")
    given = {name: options[name] for name in names if options[name] is not None}
    if options["parity"] and given.setdefault("constraint", "none") != "none":
        raise ValueError(
            f"--parity is short for --constraint none, and --constraint {given['constraint']} "
            "contradicts it; pass one of them."
        )
    ends = [f"--{name.replace('_', '-')} {given[name]:g}" for name in _ENDS if name in given]
    if len(ends) > 1:
        raise ValueError(
            f"{' and '.join(ends)} contradict each other: each says how far to go from PCA towards "
            "parity; pass one of them."
        )
    if "alpha" in given and given.get("cv"):
        raise ValueError(
            f"{ends[0]} says where to stop, and --cv {given['cv']} asks for the stop to be chosen; "
            "pass one of them."
        )
    criterion = options["criterion"]
    if criterion is not None and given:
        other = "parity" if options["parity"] else next(iter(given)).replace("_", "-")
        raise ValueError(
            f"--criterion {criterion} is for MinMaxPCA, which knows no --{other}; pass one of them."
        )
    if criterion is not None:
        return MinMaxPCA(options["components"], criterion=criterion, **shared)
    if given.get("constraint") == "none":
        given["constraint"] = None
    given["cv"] = given.get("cv") or None  # 0 folds: by the rows fitted to
    model = FairPCA(options["components"], **given, **shared)
    model._check_params()
    return model


def fit_command_of(context: typer.Context) -> list[str]:
    """The words of ``fairpca fit`` for the data of a report, without what says where to stop."""
    assert context.parent is not None
    group: Any = context.parent.command
    options = context.params
    words, files = ["fairpca", "fit"], list(options["data"] or ())
    for parameter in group.get_command(context.parent, "fit").params:
        value = options.get(parameter.name)
        known = parameter.name in options and parameter.name not in {*_OF_THE_POINT, "data"}
        if known and value not in (None, [], ()) and value != parameter.default:
            words += _words(parameter, value)
    if options["target"] is not None:  # no feature of the report
        words += ["--drop", options["target"]]
    return [*words[:2], *files, *words[2:]]


def _words(parameter: Any, value: Any) -> list[str]:
    """An option with its value, as it is typed."""
    if parameter.is_flag:
        return [(parameter.opts if value else parameter.secondary_opts)[0]]
    values = value if isinstance(value, list | tuple) else [value]
    return [word for one in values for word in (parameter.opts[0], str(one))]
