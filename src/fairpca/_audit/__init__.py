"""PCA against fair PCA, group by group, on rows that were not fitted to."""
