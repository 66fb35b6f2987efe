"""Labels, weights and rows as users pass them, from any library."""
