"""Files, folders, databases and queries, read as tables."""
