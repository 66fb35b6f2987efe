"""Fair principal component analysis: exact, certified, at the price of plain PCA."""

__version__ = "0.1.0"

__all__ = ["__version__"]
