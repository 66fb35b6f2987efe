"""Fair principal component analysis: exact, certified, at the price of plain PCA."""

from fairpca._fair_pca import FairPCA
from fairpca._minmax_pca import MinMaxPCA
from fairpca._moments import GroupMoments
from fairpca._subset_pca import SubsetFairPCA
from fairpca.exceptions import DualityGapWarning, ParityInfeasibleWarning
from fairpca.path import TradeoffPath, tradeoff_path

__version__ = "0.1.0"

__all__ = [
    "DualityGapWarning",
    "FairPCA",
    "GroupMoments",
    "MinMaxPCA",
    "ParityInfeasibleWarning",
    "SubsetFairPCA",
    "TradeoffPath",
    "__version__",
    "tradeoff_path",
]
