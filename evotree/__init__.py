"""Evolution of oblique decision trees.

The names below are imported on first use, so that ``import evotree`` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.engine.config import (
        Checkpoint,
        Evolution,
        Islands,
        Regularization,
        SearchConfig,
        Variation,
    )
    from evotree.engine.evolution import Run, evolve, keep_best_trees
    from evotree.engine.history import make_statistics, to_frame
    from evotree.engine.pareto import ParetoFront
    from evotree.engine.scored import ScoredProblem, ScoredResult, search_scores
    from evotree.engine.search import search
    from evotree.engine.toolbox import make_toolbox
    from evotree.estimators import (
        EvoTreeClassifier,
        EvoTreeRegressor,
        ObliqueForestClassifier,
        ObliqueForestRegressor,
        ObliqueTreeClassifier,
        ObliqueTreeRegressor,
        TAOClassifier,
        TAOPath,
        TAORegressor,
        tao_path,
    )
    from evotree.estimators.warmup import warmup
    from evotree.fitness.penalties import PenalizedAccuracy
    from evotree.individual import Individual
    from evotree.model_file import load_model, save_model
    from evotree.objectives import Cost, LinearLeaves, Quantile
    from evotree.operators.refinement.policy import Refinement
    from evotree.operators.structure.rebuild import with_tree
    from evotree.operators.structure.rounding import round_tree
    from evotree.tree import ObliqueTree

from evotree._version import __version__

_NAMES = {
    "dataset": "Dataset",
    "engine.config": "Checkpoint Evolution Islands Regularization SearchConfig Variation",
    "engine.evolution": "Run evolve keep_best_trees",
    "engine.history": "make_statistics to_frame",
    "engine.pareto": "ParetoFront",
    "engine.scored": "ScoredProblem ScoredResult search_scores",
    "engine.search": "search",
    "engine.toolbox": "make_toolbox",
    "estimators": "EvoTreeClassifier EvoTreeRegressor ObliqueForestClassifier "
    "ObliqueForestRegressor ObliqueTreeClassifier ObliqueTreeRegressor TAOClassifier TAOPath "
    "TAORegressor tao_path",
    "estimators.warmup": "warmup",
    "fitness.penalties": "PenalizedAccuracy",
    "individual": "Individual",
    "model_file": "load_model save_model",
    "objectives": "Cost LinearLeaves Quantile",
    "operators.refinement.policy": "Refinement",
    "operators.structure.rebuild": "with_tree",
    "operators.structure.rounding": "round_tree",
    "tree": "ObliqueTree",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = list(_HOMES)

_ROOMS = (
    "export",
    "inspection",
    "operators",
    "plotting",
    "policy",
    "report",
)  # modules, not names


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"evotree.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'evotree' has no attribute {name!r}")
    value = getattr(import_module(f"evotree.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])
