"""How to fit what a stop of the slider shows: a call and the options of a command."""

from __future__ import annotations

import shlex
from numbers import Integral
from typing import Any

from fairpca._audit.result import Audit
from fairpca._estimators.fair_pca import FairPCA

_SHARED = ("normalize", "min_group_size", "small_groups")
_STOPS = ("constraint", "max_disparity", "max_error_increase")


def fits_of_path(audit: Audit) -> list[dict[str, Any]]:
    """Parameters of the FairPCA that ends at each point of the path.

    The first point is PCA, and the last is as far as one can go.
    """
    shared = _shared(audit)
    between = [
        {"constraint": None, "max_disparity": _shown(D), **shared}
        for D in audit.path.disparity[1:-1].tolist()
    ]
    return [{"alpha": 1, **shared}, *between, {"constraint": None, **shared}]


def fit_of_choice(audit: Audit) -> dict[str, Any]:
    """Parameters that end where the audit's FairPCA did, without its folds.

    A price is a place on every frontier. A disparity is one for two groups only, up to parity, and
    is what the page is about. Beyond parity it is the weight.
    """
    if len(audit.groups) == 2 and audit.fair.disparity < 0:
        stop: dict[str, Any] = {"alpha": _shown(audit.alpha)}
    elif len(audit.groups) == 2:
        stop = {"constraint": None, "max_disparity": _shown(audit.fair.disparity)}
    else:
        constraint = audit.parameters["constraint"]
        stop = {"constraint": constraint, "max_error_increase": _shown(audit.cost)}
    return {**stop, **_shared(audit)}


def fit_by_folds(audit: Audit) -> dict[str, str] | None:
    """The call and the options that let folds choose again; None unless so many folds chose."""
    folds = audit.parameters.get("cv")
    if audit.path.held_out is None or not isinstance(folds, Integral):
        return None
    given = {name: audit.parameters[name] for name in _STOPS} | {"cv": int(folds)}
    fit, seed = {**_shared(audit), **given}, audit.random_state
    options = options_of(fit) + (f" --seed {seed}" if seed else "")
    return {"python": python_of({**fit, "random_state": seed}), "options": options}


def python_of(fit: dict[str, Any]) -> str:
    """The estimator as code, with the parameters that are not its defaults."""
    return " ".join(repr(FairPCA(**fit)).split())


def options_of(fit: dict[str, Any]) -> str:
    """The same as options of ``fairpca fit``."""
    changed, defaults = FairPCA(**fit).get_params(), FairPCA().get_params()
    words = ["-r", str(changed.pop("n_components"))]
    for name, value in changed.items():
        if value != defaults[name]:
            flag = "--" + name.replace("_", "-")
            words += [flag] if value is True else [flag, str(value).lower()]
    return shlex.join(words)


def _shared(audit: Audit) -> dict[str, Any]:
    """What holds for the whole audit; what the estimator has no parameter for is the default."""
    given = {name: audit.parameters[name] for name in _SHARED if name in audit.parameters}
    return {"n_components": audit.n_components, **given}


def _shown(value: float) -> float:
    """Two figures more than the page shows."""
    return float(f"{max(value, 0.0):.6g}")
