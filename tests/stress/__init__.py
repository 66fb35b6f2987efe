"""Hostile problems against independent oracles; ``make stress`` runs them.

``generators.py`` makes the data, ``oracles.py`` says what the answer is, ``checks.py`` holds what
is true of every fit, and each test file is about one promise. The seed is ``FAIRPCA_STRESS_SEED``
and the number of problems of each kind ``FAIRPCA_STRESS_PROBLEMS``; the end of the run prints both,
with the worst discrepancy of each sort.
"""
