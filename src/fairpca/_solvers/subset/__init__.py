"""Which of PCA's own components to keep."""
