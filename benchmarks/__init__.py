"""What evotree costs: ``python -m benchmarks`` prints one table for each question."""
