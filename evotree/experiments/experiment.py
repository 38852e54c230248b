"""Experiments: methods on data sets, folds and seeds, defined in Python or in a TOML file."""

from __future__ import annotations

import inspect
import json
import pickle
import re
import tomllib
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats.distributions import rv_frozen
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import GridSearchCV, ParameterGrid, RandomizedSearchCV
from sklearn.model_selection._search import BaseSearchCV

from evotree.engine.history import to_frame
from evotree.experiments.measures import innermost
from evotree.experiments.messages import short
from evotree.experiments.method_tables import make_method
from evotree.experiments.protocols import Protocol, Task
from evotree.experiments.store import KEY

MAX_FITS = 1_000_000
"""Of an experiment: they are listed before the first one begins."""
MAX_SEED = 2**32 - 1
"""The largest that NumPy's legacy generators take, which scikit-learn uses."""
MAX_BYTES = 2**20
"""Of the file of a definition."""
SIZES = ("leaves", "nodes", "depth", "terms", "complexity")
"""Measures of a fitted tree, missing for other models."""
_ADDRESS = re.compile(" at 0x[0-9a-f]+")


def learning_curve(model: Any) -> pd.DataFrame | None:
    """Return the learning curve of a fitted model that has a ``history_``, or holds one that has.

    Of a search it is the run of the best setting on all rows.
    """
    history = getattr(innermost(model), "history_", None)
    return None if history is None else to_frame(history)


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
        Classifiers or regressors of scikit-learn's interface, by names. Their random states are set
        by the seed and the fold of a task.
    protocol : Protocol, default=Protocol()
        How rows are parted.
    seeds : sequence of int, at least 0 and below 2**32, default=(0,)
        Each is a repetition of all.
    metrics : sequence of str, default=("accuracy",)
        Names of scikit-learn's scorers, measured on the rows not fitted; ``"train_"`` before a name
        measures it on the others. None are needed where there are `scorers`.
    scorers : mapping of str to callable, optional
        More metrics by name: ``scorer(model, X, y) -> float`` on the rows not fitted. Functions of
        a module, so that workers find them.
    plan : sequence of Task, optional
        The fits, where they are not all combinations of data sets, methods, folds and seeds.
    measures : mapping of str to callable, optional
        More columns by name: ``measure(model) -> float`` of a fitted method; None where it has no
        such figure. Functions of a module, so that workers find them.
    curve : callable, optional
        ``curve(model) -> DataFrame or None``: the learning curve that is kept of a fitted method;
        by default what `learning_curve` finds. None keeps none.
    warm_up : bool, default=False
        Whether a worker fits a method to two small problems before its first fit, so that
        compilation is not in its seconds.

    Raises
    ------
    ValueError
        If something is not as described; the message names it.
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
    warm_up: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"name={short(self.name)}: allowed are strings that are not empty.")
        for what, kind in (("datasets", str), ("methods", str), ("seeds", int), ("metrics", str)):
            value = getattr(self, what)
            is_needed = what != "metrics" or not self.scorers
            is_list = isinstance(value, Sequence | Mapping) and not isinstance(value, str)
            if not is_list or (is_needed and not value):
                raise ValueError(f"{what}={short(value)}: at least one is needed, in a list.")
            for item in value:
                if not isinstance(item, kind):
                    allowed = "integers" if kind is int else "strings"
                    raise ValueError(f"{what} has {short(item)}: allowed are {allowed}.")
            if len(set(value)) < len(value):
                raise ValueError(f"{what}={short(list(value))}: each is allowed once.")
        if not isinstance(self.methods, Mapping):
            raise ValueError(f"methods={short(self.methods)}: allowed is a mapping of names.")
        for seed in self.seeds:
            if not _is_whole(seed, 0, MAX_SEED):
                raise ValueError(
                    f"seeds has {short(seed)}: allowed are integers of at least 0, below 2**32."
                )
        for task in self.plan or ():
            if task.dataset not in self.datasets or task.method not in self.methods:
                raise ValueError(f"plan has {task}: it has no such data set or no such method.")
        repeats = len(self.protocol.folds()) * len(self.seeds)
        if self.plan is None and len(self.datasets) * len(self.methods) * repeats > MAX_FITS:
            raise ValueError(
                f"n_folds={self.protocol.n_folds}: with these data sets, methods and seeds that "
                f"are more than {MAX_FITS:,} fits."
            )
        for metric in self.metrics:
            if metric.removeprefix("train_") not in get_scorer_names():
                allowed = ", ".join(get_scorer_names())
                raise ValueError(
                    f"metrics has {short(metric)}: allowed are scikit-learn's scorers, with or "
                    f"without 'train_' before them: {allowed}."
                )
        if not isinstance(self.warm_up, bool):
            raise ValueError(f"warm_up={short(self.warm_up)}: allowed are true and false.")
        for name, method in self.methods.items():
            known = hasattr(method, "get_params") and hasattr(method, "__sklearn_tags__")
            if not known or not (is_classifier(method) or is_regressor(method)):
                raise ValueError(
                    f"methods[{short(name)}]={short(method)}: allowed are classifiers and "
                    "regressors of scikit-learn's interface."
                )
            try:
                pickle.dumps(method)
            except Exception as error:
                raise ValueError(
                    f"methods[{name!r}]={method!r} cannot be sent to a worker: {error}"
                ) from error

    def tasks(self) -> list[Task]:
        """Return the fits: seed by seed, so that an experiment that is stopped is balanced."""
        if self.plan is not None:
            return list(self.plan)
        return [
            Task(dataset, method, fold, seed)
            for seed in self.seeds
            for fold in self.protocol.folds()
            for dataset in self.datasets
            for method in self.methods
        ]

    def definition(self) -> dict[str, Any]:
        """Return what tells this experiment from others, for `Store`."""
        return {
            "name": self.name,
            "protocol": {"kind": type(self.protocol).__name__, **asdict(self.protocol)},
            # Lists may grow: what is only shown is not compared.
            "shown": [
                f"Protocol: {self.protocol}.",
                *(f"{name}: `{as_code(method)}`" for name, method in self.methods.items()),
                *(
                    f"{name}: {text}"
                    for name, method in self.methods.items()
                    for text in searches(method)
                ),
            ],
            "metrics": {metric: True for metric in self.metrics},
            "datasets": list(self.datasets),
            "seeds": list(self.seeds),
            "methods": {name: describe(method) for name, method in self.methods.items()},
        }

    def columns(self) -> tuple[str, ...]:
        """Return the columns of a row."""
        ours = ("seconds", "score_seconds", "peak_memory_mb")
        notes = ("error", "settings", "versions", "revision", "finished")
        scores = (*self.metrics, *self.scorers)
        return (*KEY, "status", *scores, *SIZES, *self.measures, *ours, *notes)


def describe(method: BaseEstimator) -> dict[str, str]:
    """Return class and parameters of an estimator as texts, by name."""
    parameters = {name: _as_text(value) for name, value in sorted(method.get_params().items())}
    kind = type(method)
    return {"estimator": f"{kind.__module__}.{kind.__qualname__}", **parameters}


def _as_text(value: Any) -> str:
    """Return what is printed of a value, without addresses, which differ between processes."""
    text = repr(value)
    # The text of a distribution is its address alone.
    return as_code(value) if "_frozen object at 0x" in text else _ADDRESS.sub("", text)


def as_code(value: Any) -> str:
    """Return a value as code on one line; an estimator with what differs from its defaults.

    Parameters
    ----------
    value : object
        An estimator, a distribution of scipy, a list, tuple or dictionary of these, or anything
        else, of which it is what Python prints.

    Returns
    -------
    str
        Nothing is left out, however long it is.
    """
    if isinstance(value, dict):
        return f"{{{', '.join(f'{as_code(k)}: {as_code(v)}' for k, v in value.items())}}}"
    if type(value) in (list, tuple):
        text = ", ".join(map(as_code, value))
        if isinstance(value, list):
            return f"[{text}]"
        return f"({text},)" if len(value) == 1 else f"({text})"
    if isinstance(value, rv_frozen):
        arguments = [*map(as_code, value.args)]
        arguments += [f"{name}={as_code(one)}" for name, one in value.kwds.items()]
        return f"{value.dist.name}({', '.join(arguments)})"
    if isinstance(value, BaseEstimator):
        defaults = inspect.signature(type(value)).parameters
        parameters = {name: as_code(one) for name, one in value.get_params(deep=False).items()}
        changed = [
            f"{name}={text}"
            for name, text in parameters.items()
            if name not in defaults or text != as_code(defaults[name].default)
        ]
        return f"{type(value).__name__}({', '.join(changed)})"
    return _ADDRESS.sub("", " ".join(repr(value).split()))


def searches(method: BaseEstimator) -> list[str]:
    """Return what the searches within a method try, and how they choose, in words."""
    found = []
    for search in (method, *method.get_params().values()):
        if not isinstance(search, BaseSearchCV):
            continue
        tried = "settings of its space"
        if isinstance(search, GridSearchCV):
            tried = f"all {len(ParameterGrid(search.param_grid)):,} settings of its grid"
        elif isinstance(search, RandomizedSearchCV):
            tried = f"{search.n_iter:,} settings at random"
        folds = "5 folds" if search.cv is None else f"{as_code(search.cv)} folds"
        if not isinstance(search.cv, int | None):
            folds = as_code(search.cv)
        score = "its own score" if search.scoring is None else as_code(search.scoring)
        found.append(
            f"nested search by {type(search).__name__}: {tried}, compared by {score} over {folds} "
            "of the training rows alone; the best is fitted to all training rows."
        )
    return found


def checksum(description: Mapping[str, str]) -> str:
    """Return a short text that is equal for equal descriptions of methods."""
    return f"{zlib.crc32(json.dumps(description, sort_keys=True).encode()):08x}"


def _is_whole(value: Any, least: int, most: int) -> bool:
    """Tell integers of a range from all else, truth values included."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


# ---- definition in a file ------------------------------------------------------------------------


def read_experiment(path: Path) -> Experiment:
    """Read an experiment from a TOML file.

    Parameters
    ----------
    path : Path
        Has ``name``, ``datasets``, a table ``[methods.NAME]`` for each method, and may have
        ``seeds``, ``metrics``, ``warm_up`` and a table ``[protocol]``. What the tables of
        methods may have, nested pipelines and searches too, is told by
        `evotree.experiments.method_tables`. The file is data but for the import paths of classes,
        whose modules are imported: of installed packages, not the standard library.

    Returns
    -------
    Experiment
        What the file defines.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is no TOML, with the line, or it says something that is not as described.
    """
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise ValueError(f"it is larger than {MAX_BYTES >> 20} MiB")
        content = tomllib.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a TOML file: {str(error)[:200]}.") from error
    known = {"name", "datasets", "methods", "protocol", "seeds", "metrics", "warm_up"}
    _check_keys(content, known, {"name", "datasets", "methods"}, str(path))
    methods = content["methods"]
    if not isinstance(methods, dict):
        raise ValueError(
            f"{path}: methods={short(methods)}: a table [methods.NAME] is needed for each."
        )
    protocol = content.get("protocol", {})
    _check_keys(protocol, {"n_folds", "official"}, set(), f"{path}: [protocol]")
    try:
        content["methods"] = {
            name: make_method(table, f"methods.{name}") for name, table in methods.items()
        }
        return Experiment(**content | {"protocol": Protocol(**protocol)})
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _check_keys(table: Any, known: set[str], needed: set[str], where: str) -> None:
    if not isinstance(table, dict):
        raise ValueError(f"{where} is {short(table)}: a table is needed.")
    for name in sorted(table.keys() - known):
        raise ValueError(f"{where} has {short(name)}: allowed are {', '.join(sorted(known))}.")
    for name in sorted(needed - table.keys()):
        raise ValueError(f"{where} has no {name!r}, which is needed.")
