"""Which columns of a table are used, and for what."""
