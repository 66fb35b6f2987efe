"""Benchmarks: every figure is a ratio measured against the real competitor in the same run."""
