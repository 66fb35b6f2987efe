"""Figures of fitted projections, as display objects in scikit-learn's manner.

Each display holds the numbers it draws. Make one with ``from_estimator`` or ``from_data``, draw it
with ``plot(ax=...)``. matplotlib is imported when something is drawn, not before
(``pip install "fairpca[plot]"``).
"""

from fairpca.plotting.frontier import TradeoffDisplay
from fairpca.plotting.loadings import LoadingsDisplay
from fairpca.plotting.ranks import GroupErrorDisplay, GroupScreeDisplay
from fairpca.plotting.scores import BiplotDisplay, ScoresDisplay

__all__ = [
    "BiplotDisplay",
    "GroupErrorDisplay",
    "GroupScreeDisplay",
    "LoadingsDisplay",
    "ScoresDisplay",
    "TradeoffDisplay",
]
