"""The same projections by the other reading: shares of variance lost, or absolute errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairpca._audit.figures import Errors, Reading
from fairpca._audit.fits import Fits
from fairpca._audit.new_rows import FAIR, PCA, NewRows


def other_reading(fits: Fits, new: NewRows | None) -> Reading:
    """Errors on held-out rows if there are any, otherwise on the rows fitted to.

    As everywhere, PCA on the rows fitted to decides which group is called harmed.
    """
    before, after = (_on_fitted_rows(fits, method) for method in (PCA, FAIR))
    compared, labels = np.flatnonzero(fits.settled.compared), fits.settled.moments.groups.tolist()
    errors = before.group_errors[compared]
    fits = replace(
        fits,
        privileged=int(compared[errors.argmin()]),
        harmed=int(compared[errors.argmax()]),
    )
    if new is None:
        before, after = (fits.errors(e.group_errors, e.overall) for e in (before, after))
    else:
        other = NewRows(fits, new.held_out, not new.relative)
        before, after = other.errors(PCA), other.errors(FAIR)
    return Reading(before, after, labels[fits.privileged], labels[fits.harmed])


def _on_fitted_rows(fits: Fits, method: int) -> Errors:
    fair, operand = fits.fair, fits.settled.operand
    measured = fair.group_errors_ if method == FAIR else fair.pca_group_errors_
    absolute, variances = measured * fits.divisors, np.where(operand.traces > 0, operand.traces, 1)
    overall, total = float(operand.shares @ absolute), float(operand.shares @ variances)
    if fair.normalize:
        return fits.errors(absolute, overall)
    return fits.errors(absolute / variances, overall / total)
