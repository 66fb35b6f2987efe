"""One pass over the data: counts, means and second moments of each group."""
