"""Experiments: problems, data sets, protocols, statistics and the studies of the papers."""

from typing import Any


def __getattr__(name: str) -> Any:
    # Imported on first use: the other modules need no models beside ours.
    if name == "compare":
        from evotree.experiments.rivals import compare

        return compare
    raise AttributeError(f"module 'evotree.experiments' has no attribute {name!r}")
