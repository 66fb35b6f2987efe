"""Figures of fitted projections, as display objects in scikit-learn's manner.

``from_estimator``, ``from_data`` and ``from_audit`` draw on the axes ``ax``, or on a new figure,
and return a display that holds the numbers drawn and the axes (``ax_``); ``plot`` draws it again.
matplotlib is imported when something is drawn, not before (``pip install matplotlib``).

Examples
--------
>>> from fairpca import FairPCA, audit, plotting
>>> from fairpca.datasets import load_checkup
>>> people = load_checkup()
>>> X, groups = people.data, people.sensitive_features
>>> fair = FairPCA(5, standardize=True).fit(X, sensitive_features=groups)
>>> plotting.TradeoffDisplay.from_estimator(fair)  # doctest: +SKIP
>>> plotting.ScoresDisplay.from_estimator(fair, X, groups)  # doctest: +SKIP
>>> plotting.LoadingsDisplay.from_estimator(fair, component=1)  # doctest: +SKIP
>>> plotting.GroupErrorDisplay.from_estimator(fair)  # doctest: +SKIP
>>> plotting.GroupScreeDisplay.from_data(X, groups, estimator=fair)  # doctest: +SKIP
>>> plotting.ChangesDisplay.from_audit(audit(FairPCA(5), X, groups))  # doctest: +SKIP
"""

from fairpca.plotting.components import LoadingsDisplay, ScoresDisplay
from fairpca.plotting.errors import (
    ChangesDisplay,
    GroupErrorDisplay,
    GroupScreeDisplay,
    TradeoffDisplay,
)

__all__ = [
    "ChangesDisplay",
    "GroupErrorDisplay",
    "GroupScreeDisplay",
    "LoadingsDisplay",
    "ScoresDisplay",
    "TradeoffDisplay",
]
