"""Labels, weights and rows that a user may pass, of every library."""
