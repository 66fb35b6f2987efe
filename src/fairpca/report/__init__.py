"""An audit as one self-contained HTML page.

The audit's numbers become a plain dict (:mod:`fairpca.report._view`) and Vega-Lite charts
(:mod:`fairpca.report._charts`); an autoescaped template puts them on a page
(:mod:`fairpca.report._page`). The same numbers become a model card (:mod:`fairpca.report._card`,
:mod:`fairpca.report._cyclonedx`).
"""

from __future__ import annotations

from fairpca._audit.model import ModelAudit
from fairpca._audit.result import Audit
from fairpca.report._card import model_card
from fairpca.report._cyclonedx import cyclonedx_card
from fairpca.report._provenance import Provenance
from fairpca.report._reading import read_table

__all__ = ["Provenance", "cyclonedx_card", "model_card", "read_table", "render"]


def render(audit: Audit | ModelAudit, provenance: Provenance | None = None) -> str:
    """The page about an audit; needs ``pip install "fairpca[cli]"``.

    Parameters
    ----------
    audit : Audit or ModelAudit
    provenance : Provenance, optional
        Where the data come from and how to repeat the analysis.

    Returns
    -------
    str
        HTML; write it with ``encoding="utf-8"``.

    Examples
    --------
    >>> from fairpca import audit
    >>> from fairpca.datasets import make_two_groups
    >>> from fairpca.report import render
    >>> made = make_two_groups(random_state=0)
    >>> render(audit(made.data, made.sensitive_features)).splitlines()[0]
    '<!doctype html>'
    """
    try:
        from fairpca.report._page import model_page, page
    except ImportError as error:
        raise ImportError(
            f'the page needs {error.name}; install it with pip install "fairpca[cli]".'
        ) from error
    provenance = provenance or Provenance()
    if isinstance(audit, ModelAudit):
        return model_page(audit, provenance)
    return page(audit, provenance)
