"""Scoring: routing of rows, class counts, objectives and their scaling; kernels on flat arrays."""
