"""The evolution: its parts, its loop, what is kept of it, and the choice of hyperparameters."""
