"""The scikit-learn face of the engine: translation only."""

from evotree.estimators.evolved import (
    EVOLUTION_PRESETS,
    EvoTreeClassifier,
    EvoTreeRegressor,
)
from evotree.estimators.local import (
    ObliqueTreeClassifier,
    ObliqueTreeRegressor,
    TAOClassifier,
    TAOPath,
    TAORegressor,
    tao_path,
)
from evotree.operators.splitters.registry import GREEDY_PRESETS

__all__ = [
    "EVOLUTION_PRESETS",
    "GREEDY_PRESETS",
    "EvoTreeClassifier",
    "EvoTreeRegressor",
    "ObliqueTreeClassifier",
    "ObliqueTreeRegressor",
    "TAOClassifier",
    "TAOPath",
    "TAORegressor",
    "tao_path",
]
