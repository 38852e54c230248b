"""Evolution of oblique decision trees.

The names below are imported on first use, so that ``import evotree`` costs next to nothing.
"""

import logging
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evotree.configuration import Cost, LinearLeaves, Quantile
    from evotree.dataset import Dataset
    from evotree.engine.config import (
        Checkpoint,
        Evolution,
        Islands,
        Regularization,
        SearchConfig,
        Variation,
    )
    from evotree.engine.evolution import (
        ParetoFront,
        Run,
        evolve,
        keep_best_trees,
        make_statistics,
        to_frame,
    )
    from evotree.engine.search import search
    from evotree.engine.toolbox import make_toolbox
    from evotree.estimators import (
        EvoTreeClassifier,
        EvoTreeRegressor,
        ObliqueTreeClassifier,
        ObliqueTreeRegressor,
        TAOClassifier,
        TAOPath,
        TAORegressor,
        tao_path,
    )
    from evotree.estimators.warmup import warmup
    from evotree.fitness.base import PenalizedAccuracy
    from evotree.forests import ObliqueForestClassifier, ObliqueForestRegressor
    from evotree.model_file import load_model, save_model
    from evotree.operators.refinement import Refinement
    from evotree.operators.structure.rounding import round_tree
    from evotree.operators.structure.splice import with_tree
    from evotree.simulators import ScoredProblem, ScoredResult, search_scores
    from evotree.survival.estimator import EvoTreeSurvival
    from evotree.tree import Individual, ObliqueTree

from evotree._version import DISTRIBUTION, __version__, namesakes

for _other in namesakes():
    warnings.warn(
        f"this is evotree of the distribution {DISTRIBUTION}; {_other}, another one, is installed "
        "in the same folder, where files of one name are either's. 'pip uninstall evotree' and "
        f"'pip install --force-reinstall --no-deps {DISTRIBUTION}' leave this one whole.",
        stacklevel=2,
    )

logging.getLogger("evotree").addHandler(logging.NullHandler())

_NAMES: dict[str, tuple[str, ...]] = {
    "evotree.dataset": ("Dataset",),
    "evotree.engine.config": (
        "Checkpoint",
        "Evolution",
        "Islands",
        "Regularization",
        "SearchConfig",
        "Variation",
    ),
    "evotree.engine.evolution": (
        "ParetoFront",
        "Run",
        "evolve",
        "keep_best_trees",
        "make_statistics",
        "to_frame",
    ),
    "evotree.engine.search": ("search",),
    "evotree.engine.toolbox": ("make_toolbox",),
    "evotree.estimators": (
        "EvoTreeClassifier",
        "EvoTreeRegressor",
        "ObliqueTreeClassifier",
        "ObliqueTreeRegressor",
        "TAOClassifier",
        "TAOPath",
        "TAORegressor",
        "tao_path",
    ),
    "evotree.estimators.warmup": ("warmup",),
    "evotree.fitness.base": ("PenalizedAccuracy",),
    "evotree.model_file": ("load_model", "save_model"),
    "evotree.configuration": ("Cost", "LinearLeaves", "Quantile"),
    "evotree.operators.refinement": ("Refinement",),
    "evotree.operators.structure.splice": ("with_tree",),
    "evotree.operators.structure.rounding": ("round_tree",),
    "evotree.forests": ("ObliqueForestClassifier", "ObliqueForestRegressor"),
    "evotree.simulators": ("ScoredProblem", "ScoredResult", "search_scores"),
    "evotree.survival.estimator": ("EvoTreeSurvival",),
    "evotree.tree": ("Individual", "ObliqueTree"),
}
"""The public names of each module: those that type checkers see imported above."""

_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}

__all__ = list(_MODULE_OF)

_MODULES = ("export", "inspection", "operators", "plotting", "report", "simulators")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"evotree.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'evotree' has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
