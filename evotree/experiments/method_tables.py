"""Methods from the tables of a TOML file: estimators, presets, pipelines and searches, nested.

A table has an ``estimator``, the import path of a class such as
``"sklearn.tree.DecisionTreeClassifier"``, a ``preset``, the name of a published algorithm, or
``steps``, the tables of a pipeline; all else are parameters. A parameter may itself be such a
table, or a list of them: these are pairs of a name and an estimator, as pipelines, votes and stacks
take them. The table ``of`` is what a search or an ensemble is made of, its parameter ``estimator``.
In the space of a search, ``{distribution = "loguniform", a = 0.01, b = 10}`` is a distribution of
`scipy.stats`.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import math
import sys
from collections import Counter
from typing import Any

from scipy import stats
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV, ParameterGrid, RandomizedSearchCV
from sklearn.pipeline import Pipeline

from evotree.configuration import check_parameters
from evotree.estimators import GREEDY_PRESETS, EvoTreeClassifier, ObliqueTreeClassifier
from evotree.estimators.presets import EVOLUTION_PRESETS
from evotree.experiments.messages import short

KINDS = ("estimator", "preset", "steps")
"""Keys that make an estimator of a table."""
MAX_DEPTH = 16
"""Of tables within tables."""
MAX_SETTINGS = 100_000
"""Of the space of a search."""
DISTRIBUTIONS = (
    "beta",
    "expon",
    "gamma",
    "geom",
    "lognorm",
    "loguniform",
    "norm",
    "poisson",
    "randint",
    "uniform",
)
"""Of `scipy.stats`, for the space of a search at random."""

_INTERFACE = ("fit", "get_params", "set_params", "__sklearn_tags__")
_SPACES = ("param_grid", "param_distributions")


def make_method(table: Any, path: str, depth: int = 0) -> BaseEstimator:
    """Make an estimator from its table in a TOML file.

    Parameters
    ----------
    table : dict
        One of `KINDS`, and parameters.
    path : str
        The keys that lead to the table; begins the messages of errors.
    depth : int, default=0
        In how many tables it lies.

    Returns
    -------
    BaseEstimator
        Not fitted; its parameters are checked as a fit would do it.

    Raises
    ------
    ValueError
        If there is no such class, preset or parameter, or a value is not allowed.
    """
    _check_depth(path, depth)
    kinds = [name for name in KINDS if isinstance(table, dict) and name in table]
    if not kinds or {"estimator", "preset"} <= set(kinds) or kinds == ["preset", "steps"]:
        raise ValueError(
            f"[{path}] needs an 'estimator', a 'preset' or 'steps', one of them; it is "
            f"{short(table)}."
        )
    steps = table.get("steps", [{}])
    if not isinstance(steps, list) or not steps or not all(isinstance(one, dict) for one in steps):
        raise ValueError(f"[{path}.steps] is {short(steps)}: a list of tables is needed.")
    parameters = {
        name: _parameter(name, value, f"{path}.{name}", depth + 1)
        for name, value in table.items()
        if name not in ("estimator", "preset")
    }
    try:
        if "preset" in table:
            method = _from_preset(table["preset"], parameters)
        else:
            kind = _estimator_class(table["estimator"]) if "estimator" in table else Pipeline
            method = _construct(kind, parameters)
        _check_parameters(method)
    # A class of another package may raise anything.
    except Exception as error:
        raise ValueError(f"[{path}]: {str(error)[:500]}") from error
    if isinstance(method, Pipeline):
        _check_steps(method, path)
    if isinstance(method, GridSearchCV | RandomizedSearchCV):
        _check_search(method, path)
    return method


def _check_depth(path: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ValueError(f"[{path[:200]}] lies in {depth} tables: allowed are at most {MAX_DEPTH}.")


def _is_estimator(value: Any) -> bool:
    """Tell tables of estimators from others, such as a grid of the parameter ``estimator``."""
    if not isinstance(value, dict):
        return False
    return "steps" in value or any(isinstance(value.get(k), str) for k in ("estimator", "preset"))


def _parameter(name: str, value: Any, path: str, depth: int) -> Any:
    """Return a parameter of a table: a list of tables names its estimators."""
    if name == "of":
        return make_method(value, path, depth)
    if name == "steps" or (isinstance(value, list) and any(map(_is_estimator, value))):
        return _named_estimators(value, path, depth)
    return _value(value, path, depth)


def _value(value: Any, path: str, depth: int) -> Any:
    """Return what a value of the file means: tables of estimators and distributions are made."""
    _check_depth(path, depth)
    if isinstance(value, list):
        return [_value(one, f"{path}[{i}]", depth + 1) for i, one in enumerate(value)]
    if _is_estimator(value):
        return make_method(value, path, depth)
    if isinstance(value, dict) and "distribution" in value:
        return _distribution(value, path)
    if isinstance(value, dict):
        return {name: _value(one, f"{path}.{name}", depth + 1) for name, one in value.items()}
    return value


def _named_estimators(tables: list[Any], path: str, depth: int) -> list[tuple[str, BaseEstimator]]:
    """Return pairs of names and estimators; the name of a class in small letters by default."""
    pairs = []
    for i, table in enumerate(tables):
        here = f"{path}[{i}]"
        if not isinstance(table, dict):
            raise ValueError(f"[{here}] is {short(table)}: a table is needed.")
        made = make_method({k: v for k, v in table.items() if k != "name"}, here, depth)
        name = table.get("name", type(made).__name__.lower())
        if not isinstance(name, str) or not name or "__" in name:
            raise ValueError(
                f"[{here}]: name={short(name)}: allowed are strings that are not empty, without "
                "two underscores."
            )
        pairs.append((name, made))
    ((most, count),) = Counter(name for name, _ in pairs).most_common(1)
    if count > 1:
        raise ValueError(
            f"[{path}]: {count} have the name {most!r}: each needs a 'name' of its own."
        )
    return pairs


def _distribution(table: dict[str, Any], path: str) -> Any:
    name, parameters = (
        table["distribution"],
        {k: v for k, v in table.items() if k != "distribution"},
    )
    if name not in DISTRIBUTIONS:
        raise ValueError(
            f"[{path}]: distribution={short(name)}: allowed are {', '.join(DISTRIBUTIONS)}."
        )
    family = getattr(stats, name)
    allowed = [*(family.shapes.split(", ") if family.shapes else []), "loc", "scale"]
    if isinstance(family, stats.rv_discrete):
        allowed.remove("scale")
    for key, value in parameters.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if key not in allowed or not is_number or not math.isfinite(value):
            raise ValueError(
                f"[{path}]: {key}={short(value)}: allowed are finite numbers as "
                f"{', '.join(allowed)}."
            )
    try:
        made = family(**parameters)
        made.rvs(random_state=0)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"[{path}]: {name} with {short(parameters)}: {str(error)[:200]}; its parameters are "
            f"{', '.join(allowed)}."
        ) from error
    return made


def _construct(kind: type, parameters: dict[str, Any]) -> BaseEstimator:
    """Make an estimator: what its class needs is given to it, all else is set."""
    known = inspect.signature(kind).parameters
    if "of" in parameters and "of" not in known:
        if "estimator" not in known:
            raise ValueError(
                f"of: {kind.__name__} is made of no other estimator; its parameters are "
                f"{', '.join(known)}."
            )
        parameters = {"estimator": parameters["of"]} | parameters
        del parameters["of"]
    needed = [
        name
        for name, one in known.items()
        if one.default is one.empty and one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    ]
    for name in needed:
        if name not in parameters:
            called = "the table 'of', its estimator" if name == "estimator" else repr(name)
            raise ValueError(f"{kind.__name__} needs {called}.")
    made: BaseEstimator = kind(**{name: parameters[name] for name in needed})
    rest = {name: value for name, value in parameters.items() if name not in needed}
    return made.set_params(**rest)


def _check_parameters(method: Any) -> None:
    """Check values as a fit would, where the class of the method tells what is allowed."""
    if type(method).__module__.split(".")[0] == "evotree":
        check_parameters(method)
    elif hasattr(method, "_parameter_constraints"):
        method._validate_params()


def _check_steps(method: Pipeline, path: str) -> None:
    for i, (name, step) in enumerate(method.steps[:-1]):
        if not hasattr(step, "transform"):
            raise ValueError(
                f"[{path}.steps[{i}]]: {name} is a {type(step).__name__}, which transforms "
                "nothing: allowed are transformers, but for the last step."
            )


def _check_search(search: GridSearchCV | RandomizedSearchCV, path: str) -> None:
    """Check folds and space of a search: names, values, and how many settings there are."""
    if search.cv is not None and (not isinstance(search.cv, int) or isinstance(search.cv, bool)):
        raise ValueError(f"[{path}]: cv={short(search.cv)}: allowed are integers of at least 2.")
    key = next(name for name in _SPACES if hasattr(search, name))
    space = getattr(search, key)
    grids = {f"{path}.{key}": space}
    if isinstance(space, list):
        grids = {f"{path}.{key}[{i}]": one for i, one in enumerate(space)}
    n_settings = 0 if key == "param_grid" else search.n_iter
    for here, grid in grids.items():
        if not isinstance(grid, dict) or not grid:
            raise ValueError(
                f"[{here}] is {short(grid)}: a table of parameters is needed, with lists of values."
            )
        estimator = _with_first_estimators(search.estimator, grid)
        for name, values in grid.items():
            _check_candidates(estimator, name, values, here, key == "param_distributions")
        n_settings += len(ParameterGrid(grid)) if key == "param_grid" else 0
    if n_settings > MAX_SETTINGS:
        raise ValueError(
            f"[{path}]: the search has {n_settings:,} settings: allowed are at most "
            f"{MAX_SETTINGS:,}."
        )


def _with_first_estimators(estimator: BaseEstimator, grid: dict[str, Any]) -> BaseEstimator:
    """Return what is searched with the estimators of a grid, whose parameters it may name, too."""
    firsts = {k: v[0] for k, v in grid.items() if isinstance(v, list) and v}
    parts = {k: v for k, v in firsts.items() if isinstance(v, BaseEstimator)}
    known = estimator.get_params()
    return clone(estimator).set_params(**{k: v for k, v in parts.items() if k in known})


def _check_candidates(
    estimator: BaseEstimator, name: str, values: Any, path: str, is_random: bool
) -> None:
    """Check the values that a search gives to one parameter."""
    known = estimator.get_params()
    if name not in known:
        near = difflib.get_close_matches(name, known, cutoff=0.8)
        meant = f" Did you mean {' or '.join(near)}?" if near else ""
        raise ValueError(
            f"[{path}]: {type(estimator).__name__} has no parameter {short(name)}.{meant} Allowed "
            f"are {', '.join(known)[:500]}."
        )
    if hasattr(values, "rvs") and is_random:
        values = [values.rvs(random_state=0)]
    if not isinstance(values, list) or not values:
        kinds = "lists of values and distributions" if is_random else "lists of values"
        raise ValueError(f"[{path}]: {name}={short(values)}: allowed are {kinds}.")
    owner = known.get(name.rpartition("__")[0], estimator) if "__" in name else estimator
    for value in values:
        try:
            _check_parameters(clone(owner).set_params(**{name.rpartition("__")[2]: value}))
        except Exception as error:
            raise ValueError(f"[{path}]: {name}={short(value)}: {str(error)[:500]}") from error


def _estimator_class(address: Any) -> type:
    """Return the class of an import path; nothing of a module is called before it is known."""
    home, _, name = str(address).rpartition(".")
    parts = home.split(".")
    is_path = home and all(part.isidentifier() for part in (*parts, name))
    # Some modules do something when they are imported, those that a command starts with above all.
    if not is_path or parts[0] in sys.stdlib_module_names or "__main__" in parts:
        raise ValueError(
            f"estimator={short(address)}: allowed are import paths such as "
            "'sklearn.tree.DecisionTreeClassifier'."
        )
    kind = getattr(importlib.import_module(home), name)
    if not isinstance(kind, type) or not all(hasattr(kind, part) for part in _INTERFACE):
        raise ValueError(f"estimator={short(address)}: it is not a scikit-learn estimator class.")
    return kind


def _from_preset(name: Any, parameters: dict[str, Any]) -> BaseEstimator:
    if name in EVOLUTION_PRESETS:
        return EvoTreeClassifier.from_preset(name, **parameters)
    if name in GREEDY_PRESETS:
        return ObliqueTreeClassifier.from_preset(name, **parameters)
    allowed = ", ".join([*EVOLUTION_PRESETS, *GREEDY_PRESETS])
    raise ValueError(f"preset={short(name)}: allowed are {allowed}.")
