"""A fitted model as it is: its errors by group on the data given, which it need not have seen."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from fairpca._audit.about_scores import guess_line, outcomes_lines
from fairpca._audit.figures import Errors
from fairpca._audit.intervals import ends_of_spread
from fairpca._audit.result import plain_json, write_page
from fairpca._estimators.held_out import spread_quantile
from fairpca._input.checks import check_group_weights, check_sample_weight, check_several_groups
from fairpca._input.labels import encode_groups
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.small_groups import SettledGroups
from fairpca._typing import Array
from fairpca.metrics import Outcomes, Probe, row_reconstruction_errors
from fairpca.metrics.projection import projection_of, seen_by_projection

FLATTERY = "If the model was fitted to these rows, they flatter it."
NO_PROOF = "That is no proof of fairness; a model with fewer components tells groups apart."
_ROUNDING = 1e-9  # of the largest error of keeping nothing
_SAME = 1e-8  # of the variance of the scores: other rows differ by more


@dataclass(frozen=True, repr=False)
class ModelAudit:
    """Errors of a fitted projection, group by group; from :func:`fairpca.audit`.

    Attributes
    ----------
    model : str
        The projection, as code.
    n_components, n_features : int
        Of the projection, and of the rows as they arrive at it.
    groups : list
        Labels, sorted.
    group_sizes : list of int
    errors : Errors
        ``group_errors``, ``overall`` and ``disparity``, the largest error minus the smallest; in
        the units of the rows as they arrive at the projection.
    group_distances : ndarray of shape (k,)
        Average squared distances from the mean of the projection: errors of keeping nothing.
    standard_errors : ndarray of shape (k,)
        Of the group errors, for rows drawn at random; of a group of one row, the spread of rows.
    disparity_interval : tuple of float
        For the largest difference between two groups, at ``level``, at least 0. It is made of
        normal intervals for all differences that hold together, so it is no narrower for the choice
        of the two groups that are furthest apart.
    level : float
    harmed_group, privileged_group : label
        With the largest and the smallest error.
    on_rows_fitted_to : bool
        Whether the scores vary exactly as they did in the fit, so that these are its rows. They
        flatter the model. False may also mean that this cannot be told.
    separation : dict of str to float
        How far apart the groups' scores are, as in :class:`GivenAway`; empty unless ``probes`` or
        ``y`` was passed.
    probes : list of Probe
        Classifiers that guess the group from the scores; empty likewise.
    outcomes : list of Outcomes or None
        Rates by group of a classifier on the scores, on those of PCA and on all features; None
        without ``y``.
    """

    model: str
    n_components: int
    n_features: int
    groups: list[Any]
    group_sizes: list[int]
    errors: Errors
    group_distances: Array
    standard_errors: Array
    disparity_interval: tuple[float, float]
    level: float
    harmed_group: Any
    privileged_group: Any
    on_rows_fitted_to: bool = False
    separation: Mapping[str, float] = field(default_factory=dict)
    probes: list[Probe] = field(default_factory=list)
    outcomes: list[Outcomes] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain lists, numbers, strings and None, ready for ``json.dump``."""
        plain: dict[str, Any] = plain_json(self)
        return plain

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Write the page of ``fairpca report --model``; needs ``pip install "fairpca[cli]"``.

        Without a path the page is returned as text.
        """
        from fairpca.report import render

        return write_page(render(self), path)

    def _repr_html_(self) -> str:
        from fairpca.report._model import model_as_html

        return model_as_html(self)

    def __repr__(self) -> str:
        head = f"{self.model}, rank {self.n_components}"
        lines = self._about_errors()
        if self.loses_nothing:
            lines = [self.about_nothing_lost, NO_PROOF]
        return "\n".join([head, *lines, *self.about_scores])

    def _about_errors(self) -> list[str]:
        low, high = self.disparity_interval
        found = zip(self.groups, self.group_sizes, self.errors.group_errors, strict=True)
        return [
            *(f"{label}: error {error:.4g} ({n} rows)" for label, n, error in found),
            f"disparity {self.errors.disparity:.4g} ({low:.4g} to {high:.4g})",
            self.about_rows,
        ]

    @property
    def loses_nothing(self) -> bool:
        """Whether all errors are rounding, so that nothing was compressed."""
        return lose_nothing(self.errors.group_errors, float(self.group_distances.max()))

    @property
    def about_nothing_lost(self) -> str:
        """Why there are no errors, in a sentence."""
        r, d = self.n_components, self.n_features
        if r < d:
            return f"Nothing is lost: the {d} columns vary in no more than {r} directions."
        return f"Nothing was compressed: there are as many components as columns, {r}."

    @property
    def about_rows(self) -> str:
        """How far the rows can be trusted, in a sentence."""
        if self.on_rows_fitted_to:
            return "These are the rows that the model was fitted to. They flatter it."
        return FLATTERY

    @property
    def about_scores(self) -> list[str]:
        """What the scores give away and what a classifier makes of them, in lines of text."""
        lines = [*map(guess_line, self.probes), *outcomes_lines(self.outcomes or ())]
        if self.outcomes is not None and self.on_rows_fitted_to:
            lines.append(
                "the model was fitted to these rows; if it was made for the target, as FairPLS is, "
                "classifiers on its scores do worse on others"
            )
        return lines


def lose_nothing(errors: Array, unit: float) -> bool:
    """Whether errors are rounding beside ``unit``, the largest error of keeping nothing."""
    return bool(errors.max() <= _ROUNDING * unit)


def is_fitted_projection(model: Any) -> bool:
    """Whether a projection, or one inside a pipeline, has been fitted."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    return any(hasattr(step, "components_") for step in steps)


def audit_model(
    model: Any, X: Any, sensitive_features: Any, sample_weight: Any, level: float
) -> ModelAudit:
    """Judge a fitted model by rows in memory."""
    projection, seen = seen_by_projection(model, X)
    components, mean = projection_of(projection)
    nothing = SimpleNamespace(components_=components[:0], mean_=mean)
    squares, distances = (row_reconstruction_errors(p, seen) for p in (projection, nothing))
    codes, labels = encode_groups(sensitive_features, len(squares))
    given = check_sample_weight(sample_weight, len(squares))
    weights = np.ones(len(squares)) if given is None else given
    groups = labels.tolist()
    check_several_groups(groups, len(squares))
    totals = np.bincount(codes, weights, minlength=len(groups))
    check_group_weights(labels, totals)
    errors = np.bincount(codes, weights * squares, minlength=len(groups)) / totals
    spread = np.bincount(codes, (weights * (squares - errors[codes])) ** 2, minlength=len(groups))
    sizes = np.bincount(codes[weights > 0], minlength=len(groups))
    typical = np.sqrt(np.average((squares - errors[codes]) ** 2, weights=weights))
    standard_errors = np.where(sizes > 1, np.sqrt(spread) / totals, typical)
    worst, best = int(errors.argmax()), int(errors.argmin())
    quantile = spread_quantile(level, len(groups), np.inf)
    widths = quantile * np.hypot(standard_errors[:, None], standard_errors)
    return ModelAudit(
        model=" ".join(repr(model).split()),
        n_components=len(components),
        n_features=len(mean),
        groups=groups,
        group_sizes=sizes.tolist(),
        errors=Errors(errors, float(np.average(squares, weights=weights)), float(np.ptp(errors))),
        group_distances=np.bincount(codes, weights * distances, minlength=len(groups)) / totals,
        standard_errors=standard_errors,
        disparity_interval=ends_of_spread(errors, widths),
        level=level,
        harmed_group=groups[worst],
        privileged_group=groups[best],
        on_rows_fitted_to=given is None and _fitted_to(projection, distances - squares),
    )


def _fitted_to(projection: Any, kept: Array) -> bool:
    """Whether the scores, whose squares rows keep, have the variance that they had in the fit."""
    known, (r, d) = getattr(projection, "explained_variance_", None), projection.components_.shape
    if known is None or r == d:  # all standardised rows vary alike if nothing is lost
        return False
    return bool(abs(kept.sum() / max(len(kept) - 1, 1) - np.sum(known)) <= _SAME * np.sum(known))


def errors_from_moments(
    settled: SettledGroups, components: Array, mean: Array, scale: Any, relative: bool
) -> tuple[Array, float, Array]:
    """Group errors of a projection of ``rows / scale``, overall, and those of keeping nothing.

    About its own ``mean``, ``R_g = tr (I - P) (V_g + d_g d_g') (I - P)``, with the covariance
    ``V_g`` of the group and ``d_g`` from ``mean`` to the group's mean.
    """
    moments = settled.moments
    assert isinstance(moments, GroupMoments)
    operand, scale = moments.operand("group"), np.broadcast_to(scale, mean.shape)
    V = (components / scale).T
    d = moments.means / scale - mean
    distances = operand.diagonals @ scale**-2.0 + (d**2).sum(axis=1)
    kept = np.einsum("jr,kjr->k", V, operand.products(V)) + ((d @ components.T) ** 2).sum(axis=1)
    errors, shares = np.maximum(distances - kept, 0.0), operand.shares
    overall = float(shares @ errors)
    if not relative:
        return errors, overall, distances
    units = np.where(distances > 0, distances, 1.0)
    return errors / units, overall / float(shares @ units), distances / units
