"""Methods from the tables of a TOML file: estimators, presets, pipelines and searches, nested.

A table has an ``estimator``, the import path of a class such as
``"sklearn.tree.DecisionTreeClassifier"``, a ``preset``, the name of a published algorithm, or
``steps``, the tables of a pipeline; all else are parameters. A parameter may itself be such a
table, or a list of them: these are pairs of a name and an estimator, as pipelines, votes and stacks
take them. The table ``of`` is what a search or an ensemble is made of, its parameter ``estimator``.
In the space of a search, ``{distribution = "loguniform", a = 0.01, b = 10}`` is a distribution of
`scipy.stats`. What is wrong is a ValueError that begins with its place.
"""

import importlib
import inspect
import reprlib
import sys
from itertools import islice
from typing import Any

from scipy import stats
from sklearn import model_selection
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

from evotree.configuration import check_parameters
from evotree.estimators import GREEDY_PRESETS, EvoTreeClassifier, ObliqueTreeClassifier
from evotree.estimators.presets import EVOLUTION_PRESETS

KINDS = ("estimator", "preset", "steps")  # keys that make an estimator of a table
MAX_CHECKED = 200  # settings of a search that are tried before it runs


def short(value: Any) -> str:
    """Return a value as messages show it, whatever its length."""
    return reprlib.repr(value) if isinstance(value, int | list | dict) else repr(value)[:200]


def make_method(table: Any, path: str) -> BaseEstimator:
    """Make an estimator from its table; its parameters are checked as a fit would do it."""
    kinds = [name for name in KINDS if isinstance(table, dict) and name in table]
    if not kinds or ("preset" in kinds and len(kinds) > 1):
        needed = "an 'estimator', a 'preset' or 'steps', one of them"
        raise ValueError(f"[{path}] needs {needed}; it is {short(table)}.")
    given = {name: value for name, value in table.items() if name not in KINDS[:2]}
    parameters = {name: _parameter(name, v, f"{path}.{name}") for name, v in given.items()}
    try:
        if "preset" in table:
            name, known = table["preset"], (*EVOLUTION_PRESETS, *GREEDY_PRESETS)
            if name not in known:
                raise ValueError(f"preset={short(name)}: allowed are {', '.join(known)}.")
            is_evolved = name in EVOLUTION_PRESETS
            home: Any = EvoTreeClassifier if is_evolved else ObliqueTreeClassifier
            method = home.from_preset(name, **parameters)
        else:
            kind = _estimator_class(table["estimator"]) if "estimator" in table else Pipeline
            method = _construct(kind, parameters)
        _check_parameters(method)
        if isinstance(method, model_selection.GridSearchCV | model_selection.RandomizedSearchCV):
            _check_space(method)
    # A class of another package may raise anything.
    except Exception as error:
        raise ValueError(f"[{path}]: {str(error)[:500]}") from error
    return method


def _is_estimator(value: Any) -> bool:
    """Tell tables of estimators from others, such as a grid of the parameter ``estimator``."""
    if not isinstance(value, dict):
        return False
    return "steps" in value or any(isinstance(value.get(k), str) for k in ("estimator", "preset"))


def _parameter(name: str, value: Any, path: str) -> Any:
    """Return a parameter of a table: a list of tables names its estimators."""
    if name == "of":
        return make_method(value, path)
    if name != "steps" and not (isinstance(value, list) and any(map(_is_estimator, value))):
        return _value(value, path)
    if not value or not isinstance(value, list) or not all(isinstance(t, dict) for t in value):
        raise ValueError(f"[{path}] is {short(value)}: a list of tables is needed.")
    pairs: list[tuple[str, BaseEstimator]] = []
    for i, table in enumerate(value):
        method = make_method({k: v for k, v in table.items() if k != "name"}, f"{path}[{i}]")
        step = table.get("name", type(method).__name__.lower())
        if not isinstance(step, str) or not step or "__" in step or step in dict(pairs):
            allowed = "strings that are not empty, without two underscores, each once"
            raise ValueError(f"[{path}[{i}]]: name={short(step)}: allowed are {allowed}.")
        pairs.append((step, method))
    return pairs


def _value(value: Any, path: str) -> Any:
    """Return what a value of the file means: tables of estimators and distributions are made."""
    if isinstance(value, list):
        return [_value(item, f"{path}[{i}]") for i, item in enumerate(value)]
    if _is_estimator(value):
        return make_method(value, path)
    if not isinstance(value, dict):
        return value
    if "distribution" not in value:
        return {name: _value(item, f"{path}.{name}") for name, item in value.items()}
    family = getattr(stats, str(value["distribution"]), None)
    if not isinstance(family, stats.rv_continuous | stats.rv_discrete):
        raise ValueError(f"[{path}]: scipy.stats has no {short(value['distribution'])}.")
    try:
        distribution = family(**{k: v for k, v in value.items() if k != "distribution"})
        distribution.rvs(random_state=0)
    except (TypeError, ValueError, OverflowError) as error:
        names = ", ".join(filter(None, [family.shapes, "loc", "scale"]))
        raise ValueError(f"[{path}]: {error}; its parameters are {names}.") from error
    return distribution


def _construct(kind: type, parameters: dict[str, Any]) -> BaseEstimator:
    """Make an estimator: what its class needs is given to it, all else is set."""
    known = inspect.signature(kind).parameters
    if "of" in parameters and "estimator" in known:
        parameters = {"estimator": parameters.pop("of")} | parameters
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    needed = [name for name, p in known.items() if p.default is p.empty and p.kind in kinds]
    if missing := [name for name in needed if name not in parameters]:
        raise ValueError(f"{kind.__name__} needs {', '.join(missing)}; 'of' is its estimator.")
    method: BaseEstimator = kind(**{name: parameters.pop(name) for name in needed})
    return method.set_params(**parameters)


def _check_parameters(method: Any) -> None:
    """Check values as a fit would, where the class of the method tells what is allowed."""
    if type(method).__module__.split(".")[0] == "evotree":
        check_parameters(method)
    elif hasattr(method, "_parameter_constraints"):
        method._validate_params()


def _check_space(search: model_selection.GridSearchCV | model_selection.RandomizedSearchCV) -> None:
    """Check the first settings of a search, names and values."""
    if isinstance(search, model_selection.GridSearchCV):
        settings = iter(model_selection.ParameterGrid(search.param_grid))
    else:
        drawn = search.param_distributions, search.n_iter
        settings = iter(model_selection.ParameterSampler(*drawn, random_state=0))
    for setting in islice(settings, MAX_CHECKED):
        method = clone(search.estimator).set_params(**clone(setting, safe=False))
        for part in (method, *method.get_params().values()):
            if isinstance(part, BaseEstimator):
                _check_parameters(part)


def _estimator_class(address: Any) -> type:
    """Return the class of an import path; nothing of a module is called before it is known."""
    home, _, name = str(address).rpartition(".")
    parts = home.split(".")
    is_path = home and all(part.isidentifier() for part in (*parts, name))
    # Some modules do something when they are imported, those that a command starts with above all.
    if not is_path or parts[0] in sys.stdlib_module_names or "__main__" in parts:
        such = "import paths such as 'sklearn.tree.DecisionTreeClassifier'"
        raise ValueError(f"estimator={short(address)}: allowed are {such}.")
    kind = getattr(importlib.import_module(home), name)
    interface = ("fit", "get_params", "set_params", "__sklearn_tags__")
    if not isinstance(kind, type) or not all(hasattr(kind, part) for part in interface):
        raise ValueError(f"estimator={short(address)}: it is not a scikit-learn estimator class.")
    return kind
