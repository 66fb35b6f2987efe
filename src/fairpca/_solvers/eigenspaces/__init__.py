"""Top-r eigenspaces of weighted sums of the groups' second moments."""
