"""How a problem is solved."""
