"""Experiments: methods on data sets, folds and seeds, defined in Python or in a TOML file.

A method in a file is a table. It has an ``estimator``, the import path of a class such as
``"sklearn.tree.DecisionTreeClassifier"``, a ``preset``, the name of a published algorithm, or
``steps``, the tables of a pipeline; all else are parameters, also those inside others, such as
``evolution__population_size``. The table ``of`` is what a search or an ensemble is made of, its
parameter ``estimator``. What is wrong is a ValueError that begins with its place.
"""

import importlib
import inspect
import re
import reprlib
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd
from scipy.stats.distributions import rv_frozen
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.metrics import get_scorer_names
from sklearn.pipeline import make_pipeline

from evotree.configuration import check_parameters
from evotree.engine.evolution import to_frame
from evotree.estimators import GREEDY_PRESETS, EvoTreeClassifier, ObliqueTreeClassifier
from evotree.estimators.evolved import EVOLUTION_PRESETS
from evotree.experiments.protocols import KEY, Protocol, Task
from evotree.tree import ObliqueTree

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# Measures of a fitted tree, missing for other models.
SIZES = ("leaves", "nodes", "depth", "terms", "complexity")
_IN_PYTHON_ALONE = {"scorers", "plan", "measures", "curve"}
_Made = TypeVar("_Made", bound="DataclassInstance")
_ADDRESS = re.compile(" at 0x[0-9a-f]+")
_LONGEST_CODE = 10_000  # characters of a method as a report shows it


def learning_curve(model: Any) -> pd.DataFrame | None:
    """Return the history of a fitted model, of a search that of its best setting; None without."""
    history = getattr(innermost(model), "history_", None)
    return None if history is None else to_frame(history)


def innermost(model: Any) -> Any:
    """Return the fitted estimator inside searches and pipelines."""
    if hasattr(model, "best_estimator_"):
        return innermost(model.best_estimator_)
    return innermost(model.steps[-1][1]) if hasattr(model, "steps") else model


def tree_sizes(model: Any) -> dict[str, int]:
    """Return the sizes of a fitted tree, or of all trees of a forest together, if there are any.

    A model that is no tree of ours or of scikit-learn may hold its own as `sizes_`.
    """
    model = getattr(model, "regressor_", model)
    if hasattr(model, "sizes_"):
        sizes = model.sizes_
        return {"complexity": sizes["leaves"] + sizes["terms"], **sizes}
    model = innermost(model)
    members = [model] if hasattr(model, "tree_") else getattr(model, "estimators_", [])
    trees = [getattr(one, "tree_", None) for one in np.ravel(members).tolist()]
    if not trees or None in trees:
        return {}
    sizes = pd.DataFrame(map(_sizes_of_tree, trees), columns=SIZES)
    return {**sizes.sum().to_dict(), "depth": int(sizes["depth"].max())}


def _sizes_of_tree(tree: Any) -> tuple[int, ...]:
    """Return the sizes of a tree of ours or of scikit-learn, as `SIZES` names them."""
    n_leaves = int(tree.n_leaves)
    if isinstance(tree, ObliqueTree):
        return n_leaves, tree.n_nodes, tree.depth, tree.n_terms, tree.complexity
    n_splits = n_leaves - 1  # each has one feature
    return n_leaves, tree.node_count, tree.max_depth, n_splits, tree.node_count


def _check_list(name: str, value: Any, kind: type) -> None:
    """Raise a ValueError for what is not a list, or the keys of a table, of distinct items."""
    is_list = isinstance(value, Sequence | Mapping) and not isinstance(value, str)
    # Truth values are integers to Python.
    if (
        not is_list
        or not value
        or not all(type(one) is kind for one in value)
        or len(set(value)) < len(value)
    ):
        raise ValueError(
            f"{name}={abbreviate(value)}: allowed is a list of "
            f"{'integers' if kind is int else 'strings'}, at least one, each once."
        )


@dataclass(frozen=True)
class Experiment:
    """Which methods are run on which data sets, how often, and what is measured.

    Parameters
    ----------
    name : str
        Heads the results.
    datasets : sequence of str
        Names that `evotree.experiments.datasets.load` knows.
    methods : mapping of str to estimator
        Classifiers or regressors by names. Their random states are set by seed and fold.
    protocol : Protocol, default=Protocol()
        How rows are parted.
    seeds : sequence of int, at least 0 and below 2**32, default=(0,)
        Each is a repetition of all.
    metrics : sequence of str, default=("accuracy",)
        Names of scikit-learn's scorers, measured on the rows not fitted; ``"train_"`` before a name
        measures it on the others. None are needed where there are `scorers`.
    scorers : mapping of str to callable, optional
        More metrics: ``scorer(model, X, y) -> float``. Functions of a module, as workers need them.
    plan : sequence of Task, optional
        The fits, where they are not all combinations of data sets, methods, folds and seeds.
    measures : mapping of str to callable, optional
        More columns: ``measure(model) -> float`` of a fitted method, or None.
    curve : callable, optional
        ``curve(model) -> DataFrame or None``: the learning curve that is kept of a fitted method;
        by default what `learning_curve` finds. None keeps none.
    """

    name: str
    datasets: Sequence[str]
    methods: Mapping[str, BaseEstimator]
    protocol: Protocol = field(default_factory=Protocol)
    seeds: Sequence[int] = (0,)
    metrics: Sequence[str] = ("accuracy",)
    scorers: Mapping[str, Callable[[Any, np.ndarray, np.ndarray], float]] = field(
        default_factory=dict
    )
    plan: Sequence[Task] | None = None
    measures: Mapping[str, Callable[[Any], float | None]] = field(default_factory=dict)
    curve: Callable[[Any], pd.DataFrame | None] | None = learning_curve

    def __post_init__(self) -> None:
        _check_list("datasets", self.datasets, str)
        _check_list("methods", self.methods, str)
        _check_list("seeds", self.seeds, int)
        if self.metrics or not self.scorers:
            _check_list("metrics", self.metrics, str)
        for name in self.metrics:
            if name.removeprefix("train_") not in get_scorer_names():
                raise ValueError(
                    f"metrics={abbreviate(self.metrics)}: {name!r} is none of scikit-learn's "
                    "scorers, as sklearn.metrics.get_scorer_names lists them, with or without "
                    "'train_' before it."
                )
        for name, method in self.methods.items():
            if not hasattr(method, "__sklearn_tags__") or not (
                is_classifier(method) or is_regressor(method)
            ):
                raise ValueError(
                    f"methods[{abbreviate(name)}]={abbreviate(method)}: allowed are "
                    "classifiers and regressors of scikit-learn's interface."
                )

    def tasks(self) -> list[Task]:
        """Return the fits: seed by seed, so that an experiment that is stopped is balanced."""
        if self.plan is not None:
            return list(self.plan)
        runs = product(self.seeds, self.protocol.folds(), self.datasets, self.methods)
        return [
            Task(dataset, method, fold, seed) for seed, fold, dataset, method in runs
        ]

    def definition(self) -> dict[str, Any]:
        """Return what tells this experiment from others, for `Store`."""
        return {
            "name": self.name,
            "protocol": {"kind": type(self.protocol).__name__, **asdict(self.protocol)},
            # Lists may grow: what is only shown is not compared.
            "shown": [
                f"Protocol: {self.protocol}.",
                *(f"{name}: `{as_code(m)}`" for name, m in self.methods.items()),
            ],
            "metrics": dict.fromkeys(self.metrics, True),
            "datasets": list(self.datasets),
            "seeds": list(self.seeds),
            "methods": {
                name: describe_method(method) for name, method in self.methods.items()
            },
        }

    def columns(self) -> tuple[str, ...]:
        """Return the columns of a row."""
        return (
            *KEY,
            "status",
            *self.metrics,
            *self.scorers,
            *SIZES,
            *self.measures,
            *("seconds", "score_seconds", "peak_memory_mb"),
            *("error", "settings", "versions", "revision", "finished"),
        )


def describe_method(method: BaseEstimator) -> dict[str, str]:
    """Return class and parameters of an estimator as texts, by name."""
    kind = type(method)
    # By its public name, where the package has it: the same wherever its module is moved to.
    package = kind.__module__.partition(".")[0]
    is_public = getattr(sys.modules[package], kind.__name__, None) is kind
    name = f"{package if is_public else kind.__module__}.{kind.__qualname__}"
    if package == "sklearn":  # each version has other parameters and names of defaults
        return {"estimator": name, "parameters": _text(method)}
    parameters = sorted(method.get_params().items())
    return {"estimator": name, **{key: _text(value) for key, value in parameters}}


def _text(value: Any) -> str:
    """Return a value as a text that is the same in all processes, unlike addresses."""
    if isinstance(value, rv_frozen):  # its own text is its address alone
        return f"{value.dist.name}{(value.args, value.kwds)}"
    if isinstance(value, dict):
        items = [f"{_text(key)}: {_text(item)}" for key, item in value.items()]
        return f"{{{', '.join(items)}}}"
    if type(value) is list:
        return f"[{', '.join(map(_text, value))}]"
    if type(value) is tuple:
        return f"({', '.join(map(_text, value))}{',' * (len(value) == 1)})"
    if isinstance(value, BaseEstimator) and type(value).__module__[:7] == "sklearn":
        given = inspect.signature(type(value)).parameters
        changed = {
            name: item
            for name, item in sorted(value.get_params(deep=False).items())
            if name not in given or _text(item) != _text(given[name].default)
        }
        return f"{type(value).__name__}{_text(changed)}"
    return _ADDRESS.sub("", repr(value))


def as_code(method: BaseEstimator) -> str:
    """Return an estimator as code on one line, with what is not its default."""
    return " ".join(_ADDRESS.sub("", method.__repr__(_LONGEST_CODE)).split())


def read_experiment(path: Path) -> Experiment:
    """Read an experiment from a TOML file.

    It has ``name``, ``datasets``, a table ``[methods.NAME]`` for each method, and may have
    ``seeds``, ``metrics`` and a table ``[protocol]``. The file is data but for the
    import paths of classes, whose modules are imported: of installed packages, not the standard
    library. What is wrong in it is a ValueError that names its place.
    """
    try:
        content = tomllib.loads(path.read_bytes().decode("utf-8"))
        protocol = content.get("protocol", {})
        content["protocol"] = _made_of(Protocol, protocol, "[protocol]")
        methods = content.get("methods")
        if isinstance(methods, dict):
            content["methods"] = {
                name: make_method(table, f"methods.{name}")
                for name, table in methods.items()
            }
        return _made_of(Experiment, content, "the file")
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {str(error)[:1000]}") from error


def _made_of(kind: type[_Made], table: Any, place: str) -> _Made:
    """Return a dataclass of the values of a table."""
    if not isinstance(table, dict):
        raise ValueError(f"{place} is {abbreviate(table)}: a table is needed.")
    known = {one.name for one in fields(kind)} - _IN_PYTHON_ALONE
    if unknown := sorted(table.keys() - known):
        raise ValueError(
            f"{place} has {abbreviate(unknown[0])}: allowed are {', '.join(sorted(known))}."
        )
    return kind(**table)


def abbreviate(value: Any) -> str:
    """Return a value as messages show it, whatever its length."""
    return (
        reprlib.repr(value)
        if isinstance(value, int | list | dict)
        else repr(value)[:200]
    )


def make_method(table: Any, path: str) -> BaseEstimator:
    """Make an estimator from its table; its parameters are checked as a fit would do it."""
    if not isinstance(table, dict) or not {"estimator", "preset", "steps"} & {*table}:
        raise ValueError(
            f"[{path}] needs an 'estimator', a 'preset' or 'steps'; it is "
            f"{abbreviate(table)}."
        )
    parameters = dict(table)
    kind = parameters.pop("estimator", None)
    if "of" in parameters:
        parameters["estimator"] = make_method(parameters.pop("of"), f"{path}.of")
    try:
        if "steps" in parameters:
            steps = enumerate(parameters.pop("steps"))
            parts = [make_method(step, f"{path}.steps[{i}]") for i, step in steps]
            method: Any = make_pipeline(*parts).set_params(**parameters)
        elif "preset" in parameters:
            method = _of_preset(**parameters)
        else:
            # What a class does not take itself belongs to what is inside it.
            inner = {k: parameters.pop(k) for k in [*parameters] if "__" in k}
            method = _estimator_class(kind)(**parameters).set_params(**inner)
        # As a fit would, where the class of the method tells what is allowed.
        if type(method).__module__.split(".")[0] == "evotree":
            check_parameters(method)
        elif hasattr(method, "_validate_params"):
            method._validate_params()
    # A class of another package may raise anything.
    except Exception as error:
        raise ValueError(f"[{path}]: {str(error)[:500]}") from error
    return method


def _of_preset(preset: str, **parameters: Any) -> Any:
    """Return the estimator of a published algorithm."""
    if preset in EVOLUTION_PRESETS:
        return EvoTreeClassifier.from_preset(preset, **parameters)
    if preset in GREEDY_PRESETS:
        return ObliqueTreeClassifier.from_preset(preset, **parameters)
    names = ", ".join([*EVOLUTION_PRESETS, *GREEDY_PRESETS])
    raise ValueError(f"preset={abbreviate(preset)}: allowed are {names}.")


def _estimator_class(address: Any) -> type:
    """Return the class of an import path; nothing of a module is called before it is known."""
    home, _, name = str(address).rpartition(".")
    parts = home.split(".")
    is_path = home and all(part.isidentifier() for part in (*parts, name))
    # Some modules do something when they are imported, those that a command starts with above all.
    if not is_path or parts[0] in sys.stdlib_module_names or "__main__" in parts:
        raise ValueError(
            f"estimator={abbreviate(address)}: allowed are import paths such as "
            "'sklearn.tree.DecisionTreeClassifier'."
        )
    kind = getattr(importlib.import_module(home), name)
    interface = ("fit", "get_params", "set_params", "__sklearn_tags__")
    if not isinstance(kind, type) or not all(hasattr(kind, part) for part in interface):
        raise ValueError(
            f"estimator={abbreviate(address)}: it is not a scikit-learn estimator class."
        )
    return kind
