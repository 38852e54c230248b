"""The scikit-learn face of the engine: translation only."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_NAMES = {
    "evolved": "EVOLUTION_PRESETS EvoTreeClassifier EvoTreeRegressor",
    "local": "GREEDY_PRESETS ObliqueTreeClassifier ObliqueTreeRegressor "
    "TAOClassifier TAOPath TAORegressor tao_path",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
