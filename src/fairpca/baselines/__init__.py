"""Published methods, here to be compared with; nothing else in fairpca uses them.

* :class:`SubsetFairPCA`, MOFPCA: which of PCA's own components to keep. ``FairPCA(r,
  constraint="parity", max_disparity=...)`` reaches every point of its front at no more error.
* :class:`MultiplicativeWeightsPCA`: the FairPCA of Samadi et al. by the iteration that they
  published. :class:`fairpca.MinMaxPCA` solves the same problem exactly.
* :class:`RobustFairPCA`: distributionally robust fair PCA, with the optimum proven. To be fair to
  people to come, use :class:`fairpca.FairPCACV`.

They are estimators like the others: ``fit``, ``transform``, ``save``, ``audit`` and plots work.
"""

from fairpca.baselines._multiplicative_weights import MultiplicativeWeightsPCA
from fairpca.baselines._robust_fair_pca import RobustFairPCA
from fairpca.baselines._subset_fair_pca import SubsetFairPCA

__all__ = ["MultiplicativeWeightsPCA", "RobustFairPCA", "SubsetFairPCA"]
