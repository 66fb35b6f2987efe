"""What a user may pass: labels, weights and rows, of every library."""
