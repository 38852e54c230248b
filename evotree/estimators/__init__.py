"""The scikit-learn face of the engine: translation only."""

from evotree.estimators.evolved import EvoTreeClassifier, EvoTreeRegressor
from evotree.estimators.forest import ObliqueForestClassifier, ObliqueForestRegressor
from evotree.estimators.greedy import ObliqueTreeClassifier, ObliqueTreeRegressor
from evotree.estimators.presets import EVOLUTION_PRESETS, GREEDY_PRESETS
from evotree.estimators.sparse_path import TAOPath, tao_path
from evotree.estimators.tao import TAOClassifier, TAORegressor

__all__ = [
    "EVOLUTION_PRESETS",
    "GREEDY_PRESETS",
    "ObliqueForestClassifier",
    "ObliqueForestRegressor",
    "EvoTreeClassifier",
    "EvoTreeRegressor",
    "ObliqueTreeClassifier",
    "ObliqueTreeRegressor",
    "TAOClassifier",
    "TAOPath",
    "TAORegressor",
    "tao_path",
]
