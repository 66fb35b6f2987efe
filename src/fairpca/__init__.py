"""Fair PCA: the smallest possible error for the group that is described worst, certified."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairpca._audit.judge import audit as audit
    from fairpca._audit.judge import audit_model as audit_model
    from fairpca._audit.record import Audit as Audit
    from fairpca._audit.record import ModelAudit as ModelAudit
    from fairpca._estimators.blind_pca import BlindPCA as BlindPCA
    from fairpca._estimators.fair_columns import FairColumns as FairColumns
    from fairpca._estimators.fair_pca import FairPCA as FairPCA
    from fairpca._estimators.fair_pca_cv import FairPCACV as FairPCACV
    from fairpca._estimators.fair_pls import FairPLS as FairPLS
    from fairpca._estimators.group_eraser import GroupEraser as GroupEraser
    from fairpca._estimators.minmax_pca import MinMaxPCA as MinMaxPCA
    from fairpca._estimators.welfare_pca import WelfarePCA as WelfarePCA
    from fairpca._models.safetensors import load_model as load_model
    from fairpca._moments.group_moments import GroupMoments as GroupMoments
    from fairpca.exceptions import DualityGapWarning as DualityGapWarning
    from fairpca.exceptions import LevellingDownWarning as LevellingDownWarning
    from fairpca.exceptions import ParityInfeasibleWarning as ParityInfeasibleWarning
    from fairpca.path import TradeoffPath as TradeoffPath
    from fairpca.path import tradeoff_path as tradeoff_path

__version__ = "0.1.0.dev0"

# Loaded when first used: `fairpca --help` must not wait a second for scikit-learn.
_HOMES = {
    "Audit": "_audit.record",
    "BlindPCA": "_estimators.blind_pca",
    "DualityGapWarning": "exceptions",
    "FairColumns": "_estimators.fair_columns",
    "FairPCA": "_estimators.fair_pca",
    "FairPCACV": "_estimators.fair_pca_cv",
    "FairPLS": "_estimators.fair_pls",
    "GroupEraser": "_estimators.group_eraser",
    "GroupMoments": "_moments.group_moments",
    "LevellingDownWarning": "exceptions",
    "MinMaxPCA": "_estimators.minmax_pca",
    "ModelAudit": "_audit.record",
    "ParityInfeasibleWarning": "exceptions",
    "TradeoffPath": "path",
    "WelfarePCA": "_estimators.welfare_pca",
    "audit": "_audit.judge",
    "audit_model": "_audit.judge",
    "load_model": "_models.safetensors",
    "tradeoff_path": "path",
}

#: The estimators of fairpca.baselines. They have no place among the names of this module, but
#: model files may hold them.
BASELINES = dict.fromkeys(
    ("MultiplicativeWeightsPCA", "RobustFairPCA", "SubsetFairPCA"), "fairpca.baselines"
)

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fairpca' has no attribute {name!r}")
    value = getattr(import_module(f"fairpca.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
