"""The splitters by name, alone and as published, and with a bound on the terms of their splits."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from evotree.fitness.node import Node
from evotree.operators.splitters.base import Axis, Split, Splitter, best_split_along
from evotree.operators.splitters.cross_entropy import CrossEntropy
from evotree.operators.splitters.dipole import Dipole
from evotree.operators.splitters.linear import Linear, Sparse
from evotree.operators.splitters.perturbation import OC1, Annealing, CartLC
from evotree.operators.splitters.wodt import WODT

SPLITTERS: Mapping[str, Callable[[], Splitter]] = MappingProxyType(
    {
        "annealing": Annealing,
        "axis": Axis,
        "cart_lc": CartLC,
        "cross_entropy": CrossEntropy,
        "dipole": Dipole,
        "linear": Linear,
        "oc1": OC1,
        "wodt": WODT,
    }
)
"""The splitters with their default settings, by the names that are values of parameters."""


KINDS_OF_SPLITTERS: tuple[Any, ...] = (*SPLITTERS.values(), Sparse)
"""All classes of splitters."""


# Twoing, nodes of at least 4 rows, cost-complexity pruning by a tenth of the rows, 0-SE
# (Murthy et al. 1994).
_OC1: Mapping[str, Any] = {
    "criterion": "twoing",
    "min_samples_split": 4,
    "pruning": "cost_complexity",
    "validation_fraction": 0.1,
    "standard_errors": 0.0,
}

GREEDY_PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "APDT": {"splitter": Axis(), "criterion": "entropy", "scaling": "minmax"},
        "CART-LC": {"splitter": CartLC(start="axis"), **_OC1},
        "CART-LCr": {"splitter": CartLC(start="random"), **_OC1},
        # All rows, the paper's number of candidates, and the threshold as drawn; but the paper
        # names a smoothing of .8, by which the search ends too early.
        "CEDT": {
            "splitter": CrossEntropy(
                max_samples=None, max_rows=None, refine_threshold=False
            ),
            **_OC1,
            "criterion": "gini",
        },
        "DT": {"splitter": Axis(), **_OC1, "criterion": "gini"},
        "OC1": {"splitter": OC1(), **_OC1},
        "OC1-AP": {"splitter": Axis(), **_OC1},
        "OC1r": {"splitter": OC1(random_start=True), **_OC1},
        "SADT": {"splitter": Annealing(), **_OC1, "criterion": "sum_minority"},
        # Features are scaled once; the tolerance is that of SciPy's L-BFGS on the sum over rows.
        "WODT": {
            "splitter": WODT(rescale=False, tol=2e-9),
            "criterion": "entropy",
            "scaling": "minmax",
        },
        # Ours: trees of fewer leaves.
        "WODT-groups": {
            "splitter": WODT(start="groups", rescale=False),
            "criterion": "entropy",
            "scaling": "minmax",
        },
    }
)
"""Parameters of `evotree.ObliqueTreeClassifier.from_preset`."""


def as_splitter(splitter: str | Splitter) -> Splitter:
    """Return the splitter of a name, or the one given."""
    if isinstance(splitter, str) and splitter in SPLITTERS:
        return SPLITTERS[splitter]()
    if callable(splitter) and not isinstance(splitter, type):
        return splitter
    raise ValueError(
        f"splitter={splitter!r}: allowed are {sorted(SPLITTERS)} and callables."
    )


def splitter_of(one: Any) -> Splitter | None:
    """Return a splitter as it is, and that of a name or greedy estimator; None of others."""
    if isinstance(one, KINDS_OF_SPLITTERS):
        return one
    if isinstance(one, str):
        named = SPLITTERS.get(one)
        return GREEDY_PRESETS.get(one, {}).get("splitter") if named is None else named()
    own: Any = getattr(one, "splitter", None)
    is_known = callable(own) or (isinstance(own, str) and own in SPLITTERS)
    return as_splitter(own) if hasattr(one, "fit") and is_known else None


def criterion_of(one: Any, n_classes: int) -> str:
    """Return the criterion of a preset or greedy estimator, or the usual one, and of targets."""
    if n_classes == 0:
        return "squared_error"
    preset: Mapping[str, Any] = (
        GREEDY_PRESETS.get(one, {}) if isinstance(one, str) else {}
    )
    criterion = preset.get("criterion", getattr(one, "criterion", ""))
    return "entropy" if criterion in ("", "squared_error") else criterion


def bounded(splitter: Splitter, max_features: int | None) -> Splitter:
    """Return a splitter whose splits keep a bound on their number of terms."""
    if max_features is None:
        return splitter
    return partial(split_by_few, splitter=splitter, max_features=max_features)


def split_by_few(
    node: Node, stream: np.ndarray, *, splitter: Splitter, max_features: int
) -> Split | None:
    """Return a splitter's split with its strongest terms, at the best threshold for these.

    The strongest terms have the most |weight| times spread at the node.
    """
    split = splitter(node, stream)
    if split is None or np.count_nonzero(split.weights) <= max_features:
        return split
    influence = np.abs(split.weights) * node.X.std(axis=0)
    kept = np.argsort(-influence, kind="stable")[:max_features]
    weights = np.zeros_like(split.weights)
    weights[kept] = split.weights[kept]
    return best_split_along(node, weights)
