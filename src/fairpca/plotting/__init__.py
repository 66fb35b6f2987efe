"""Figures of fitted projections, as display objects in scikit-learn's manner.

``from_estimator``, ``from_data`` and ``from_audit`` draw on the axes ``ax``, or on a new figure,
and return a display that holds the numbers drawn and the axes (``ax_``); ``plot`` draws it again.
matplotlib is imported when something is drawn, not before (``pip install "fairpca[plot]"``).

Examples
--------
>>> from fairpca import FairPCA
>>> from fairpca.datasets import load_checkup
>>> from fairpca.plotting import LoadingsDisplay, TradeoffDisplay
>>> people = load_checkup()
>>> fair = FairPCA(5, standardize=True)
>>> fair = fair.fit(people.data, sensitive_features=people.sensitive_features)
>>> TradeoffDisplay.from_estimator(fair)  # doctest: +SKIP
>>> LoadingsDisplay.from_estimator(fair, feature_names=people.feature_names)  # doctest: +SKIP
"""

from fairpca.plotting.components import LoadingsDisplay, ScoresDisplay
from fairpca.plotting.frontier import TradeoffDisplay
from fairpca.plotting.groups import ChangesDisplay, GroupErrorDisplay, GroupScreeDisplay

__all__ = [
    "ChangesDisplay",
    "GroupErrorDisplay",
    "GroupScreeDisplay",
    "LoadingsDisplay",
    "ScoresDisplay",
    "TradeoffDisplay",
]
