"""The scikit-learn face of the engine: translation only."""

from evotree.estimators.evolved import EvoTreeClassifier, EvoTreeRegressor
from evotree.estimators.greedy import ObliqueTreeClassifier, ObliqueTreeRegressor
from evotree.estimators.presets import EVOLUTION_PRESETS, GREEDY_PRESETS

__all__ = [
    "EVOLUTION_PRESETS",
    "GREEDY_PRESETS",
    "EvoTreeClassifier",
    "EvoTreeRegressor",
    "ObliqueTreeClassifier",
    "ObliqueTreeRegressor",
]
