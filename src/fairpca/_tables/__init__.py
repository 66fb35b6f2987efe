"""Tables that stay in files or on a cluster."""
