"""Trees of totals: shape, least squares, variances."""
