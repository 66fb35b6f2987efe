"""Cross-validation: rows into folds, fits without a fold, held-out figures, and the stop."""
