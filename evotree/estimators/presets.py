"""Settings of published algorithms, by name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from evotree.engine.config import Evolution, Regularization, Variation
from evotree.operators.splitters.annealing import Annealing
from evotree.operators.splitters.axis import C45, Axis
from evotree.operators.splitters.cart_lc import CartLC
from evotree.operators.splitters.co2 import CO2
from evotree.operators.splitters.cross_entropy import CrossEntropy
from evotree.operators.splitters.linear import LinearMachine
from evotree.operators.splitters.oc1 import OC1
from evotree.operators.splitters.wodt import WODT

# Twoing, nodes of at least 4 rows, cost-complexity pruning by a tenth of the rows, 0-SE
# (Murthy et al. 1994).
_OC1: Mapping[str, Any] = {
    "criterion": "twoing",
    "min_samples_split": 4,
    "pruning": "cost_complexity",
    "validation_fraction": 0.1,
    "standard_errors": 0.0,
}

# All rows, the paper's number of candidates, and the threshold as drawn.
_CEDT = CrossEntropy(max_samples=None, max_rows=None, refine_threshold=False)

GREEDY_PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "APDT": {"splitter": Axis(), "criterion": "entropy", "scaling": "minmax"},
        "C4.5": {
            "splitter": C45(),
            "criterion": "gain_ratio",
            "pruning": "pessimistic",
        },
        "CART-LC": {"splitter": CartLC(start="axis"), **_OC1},
        "CART-LCr": {"splitter": CartLC(start="random"), **_OC1},
        "CEDT": {"splitter": _CEDT, **_OC1, "criterion": "gini"},
        "CO2": {
            "splitter": CO2(start="axis"),
            "criterion": "entropy",
            "scaling": "minmax",
        },
        "CO2r": {
            "splitter": CO2(start="random"),
            "criterion": "entropy",
            "scaling": "minmax",
        },
        "DT": {"splitter": Axis(), **_OC1, "criterion": "gini"},
        "LMDT": {
            "splitter": LinearMachine(),
            "criterion": "entropy",
            "pruning": "reduced_error",
        },
        "OC1": {"splitter": OC1(), **_OC1},
        "OC1-AP": {"splitter": Axis(), **_OC1},
        "OC1r": {"splitter": OC1(random_start=True), **_OC1},
        "SADT": {"splitter": Annealing(), **_OC1, "criterion": "sum_minority"},
        # The features are scaled once.
        "WODT": {
            "splitter": WODT(rescale=False),
            "criterion": "entropy",
            "scaling": "minmax",
        },
    }
)
"""Parameters of `evotree.ObliqueTreeClassifier.from_preset`."""

EVOLUTION_PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "gea_odt": {
            "size_penalty": 0.005,
            "term_penalty": 0.0,
            "precision": None,
            "max_generations": 10_000,
            "evolution": Evolution(
                population_size=64,
                patience=1_000,
                init=None,
                scaling="common",
                variation=Variation(
                    term_mutation_probability=0.0,
                    sparse_dipoles=False,
                    survival="generational",
                    keep_duplicates=True,
                ),
                refinement=None,
                regularization=Regularization(C=1.0, noise=0.0),
            ),
        }
    }
)
"""Parameters of `evotree.EvoTreeClassifier.from_preset`."""
