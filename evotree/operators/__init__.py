"""Everything that makes or changes a tree; splitters can be imported from here by their names."""

from importlib import import_module
from typing import Any

_SPLITTERS = {
    "Annealing": "perturbation",
    "Axis": "base",
    "CartLC": "perturbation",
    "CrossEntropy": "cross_entropy",
    "Dipole": "dipole",
    "Linear": "linear",
    "OC1": "perturbation",
    "WODT": "wodt",
}


def __getattr__(name: str) -> Any:
    """Return a splitter, whose module is imported on first use."""
    if name not in _SPLITTERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.splitters.{_SPLITTERS[name]}"), name)
