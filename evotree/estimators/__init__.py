"""The scikit-learn face of the engine: translation only."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evotree.estimators.evolved import EvoTreeClassifier, EvoTreeRegressor
    from evotree.estimators.forest import (
        ObliqueForestClassifier,
        ObliqueForestRegressor,
    )
    from evotree.estimators.greedy import ObliqueTreeClassifier, ObliqueTreeRegressor
    from evotree.estimators.presets import EVOLUTION_PRESETS, GREEDY_PRESETS
    from evotree.estimators.sparse_path import TAOPath, tao_path
    from evotree.estimators.tao import TAOClassifier, TAORegressor

_NAMES = {
    "evolved": "EvoTreeClassifier EvoTreeRegressor",
    "forest": "ObliqueForestClassifier ObliqueForestRegressor",
    "greedy": "ObliqueTreeClassifier ObliqueTreeRegressor",
    "presets": "EVOLUTION_PRESETS GREEDY_PRESETS",
    "sparse_path": "TAOPath tao_path",
    "tao": "TAOClassifier TAORegressor",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
