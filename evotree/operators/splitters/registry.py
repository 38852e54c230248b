"""The splitters by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from evotree.operators.splitters.annealing import Annealing
from evotree.operators.splitters.axis import Axis
from evotree.operators.splitters.base import Splitter
from evotree.operators.splitters.cart_lc import CartLC
from evotree.operators.splitters.co2 import CO2
from evotree.operators.splitters.cross_entropy import CrossEntropy
from evotree.operators.splitters.dipole import Dipole
from evotree.operators.splitters.linear import Linear
from evotree.operators.splitters.oc1 import OC1
from evotree.operators.splitters.wodt import WODT

SPLITTERS: Mapping[str, Callable[[], Splitter]] = MappingProxyType(
    {
        "annealing": Annealing,
        "axis": Axis,
        "cart_lc": CartLC,
        "co2": CO2,
        "cross_entropy": CrossEntropy,
        "dipole": Dipole,
        "linear": Linear,
        "oc1": OC1,
        "wodt": WODT,
    }
)
"""The splitters with their default settings, by the names that are values of parameters."""


def as_splitter(splitter: str | Splitter) -> Splitter:
    """Return the splitter of a name, or the one given."""
    if isinstance(splitter, str):
        if splitter not in SPLITTERS:
            raise ValueError(f"splitter={splitter!r}: allowed are {sorted(SPLITTERS)}.")
        return SPLITTERS[splitter]()
    if not callable(splitter) or isinstance(splitter, type):
        raise ValueError(
            f"splitter={splitter!r}: allowed are {sorted(SPLITTERS)}, or an object that is called "
            "with a node and a random stream."
        )
    return splitter
