"""Experiments: methods on data sets, folds and seeds, defined in Python or in a TOML file."""

import inspect
import pickle
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats.distributions import rv_frozen
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.metrics import get_scorer_names

from evotree.engine.history import to_frame
from evotree.experiments.measures import innermost
from evotree.experiments.method_tables import make_method, short
from evotree.experiments.protocols import Protocol, Task
from evotree.experiments.store import KEY

# Measures of a fitted tree, missing for other models.
SIZES = ("leaves", "nodes", "depth", "terms", "complexity")
_ADDRESS = re.compile(" at 0x[0-9a-f]+")


def learning_curve(model: Any) -> pd.DataFrame | None:
    """Return the history of a fitted model, of a search that of its best setting; None without."""
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
    warm_up : bool, default=False
        Whether a worker fits a method to two small problems before its first fit, so that
        compilation is not in its seconds.
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
        for what, kind in (("datasets", str), ("methods", str), ("seeds", int), ("metrics", str)):
            value = getattr(self, what)
            is_list = isinstance(value, Sequence | Mapping) and not isinstance(value, str)
            if not is_list or not (value or (what == "metrics" and self.scorers)):
                raise ValueError(f"{what}={short(value)}: at least one is needed, in a list.")
            wrong = [item for item in value if not isinstance(item, kind) or isinstance(item, bool)]
            if wrong or len(set(value)) < len(value):
                names = "integers" if kind is int else "strings"
                raise ValueError(f"{what}={short(list(value))}: allowed are {names}, each once.")
        allowed = [*get_scorer_names(), *(f"train_{name}" for name in get_scorer_names())]
        for what, is_wrong, message in (
            ("name", not isinstance(self.name, str) or not self.name, "a text that is not empty"),
            ("seeds", not 0 <= min(self.seeds) <= max(self.seeds) < 2**32, "0 to 2**32 - 1"),
            ("metrics", not set(self.metrics) <= set(allowed), ", ".join(allowed)),
        ):
            if is_wrong:
                raise ValueError(f"{what}={short(getattr(self, what))}: allowed are {message}.")
        for task in self.plan or ():
            if task.dataset not in self.datasets or task.method not in self.methods:
                raise ValueError(f"plan has {task}: it has no such data set or no such method.")
        for name, method in self.methods.items():
            is_known = hasattr(method, "get_params") and hasattr(method, "__sklearn_tags__")
            if not is_known or not (is_classifier(method) or is_regressor(method)):
                kinds = "classifiers and regressors of scikit-learn's interface"
                raise ValueError(f"methods[{short(name)}]={short(method)}: allowed are {kinds}.")
            try:
                pickle.dumps(method)
            except Exception as error:
                what = f"methods[{name!r}]={method!r}"
                raise ValueError(f"{what} cannot be sent to a worker: {error}") from error

    def tasks(self) -> list[Task]:
        """Return the fits: seed by seed, so that an experiment that is stopped is balanced."""
        if self.plan is not None:
            return list(self.plan)
        runs = product(self.seeds, self.protocol.folds(), self.datasets, self.methods)
        return [Task(dataset, method, fold, seed) for seed, fold, dataset, method in runs]

    def definition(self) -> dict[str, Any]:
        """Return what tells this experiment from others, for `Store`."""
        return {
            "name": self.name,
            "protocol": {"kind": type(self.protocol).__name__, **asdict(self.protocol)},
            # Lists may grow: what is only shown is not compared.
            "shown": [
                f"Protocol: {self.protocol}.",
                *(f"{name}: `{as_code(method)}`" for name, method in self.methods.items()),
            ],
            "metrics": dict.fromkeys(self.metrics, True),
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
    kind, parameters = type(method), {}
    for name, value in sorted(method.get_params().items()):
        # The text of a distribution is its address alone; addresses differ between processes.
        is_frozen = "_frozen object at 0x" in repr(value)
        parameters[name] = as_code(value) if is_frozen else _ADDRESS.sub("", repr(value))
    return {"estimator": f"{kind.__module__}.{kind.__qualname__}", **parameters}


def as_code(value: Any) -> str:
    """Return a value as code on one line, whole; an estimator with what is not its default."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{as_code(k)}: {as_code(v)}' for k, v in value.items())}}}"
    if type(value) is list:
        return f"[{', '.join(map(as_code, value))}]"
    if type(value) is tuple:
        return f"({', '.join(map(as_code, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, rv_frozen):
        named = [f"{name}={as_code(item)}" for name, item in value.kwds.items()]
        return f"{value.dist.name}({', '.join([*map(as_code, value.args), *named])})"
    if isinstance(value, BaseEstimator):
        defaults = inspect.signature(type(value)).parameters
        texts = {name: as_code(item) for name, item in value.get_params(deep=False).items()}
        usual = {name: as_code(parameter.default) for name, parameter in defaults.items()}
        changed = [f"{name}={text}" for name, text in texts.items() if text != usual.get(name)]
        return f"{type(value).__name__}({', '.join(changed)})"
    return _ADDRESS.sub("", " ".join(repr(value).split()))


def read_experiment(path: Path) -> Experiment:
    """Read an experiment from a TOML file.

    It has ``name``, ``datasets``, a table ``[methods.NAME]`` for each method, and may have
    ``seeds``, ``metrics``, ``warm_up`` and a table ``[protocol]``. The file is data but for the
    import paths of classes, whose modules are imported: of installed packages, not the standard
    library. What is wrong in it is a ValueError that names its place.
    """
    try:
        content = tomllib.loads(path.read_bytes().decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a TOML file: {str(error)[:200]}.") from error
    known = {"name", "datasets", "methods", "protocol", "seeds", "metrics", "warm_up"}
    _check_keys(content, known, {"name", "datasets", "methods"}, str(path))
    protocol, methods = content.get("protocol", {}), content["methods"]
    _check_keys(protocol, {"n_folds", "official"}, set(), f"{path}: [protocol]")
    _check_keys(methods, {*methods} if isinstance(methods, dict) else set(), set(), "[methods]")
    try:
        made = {name: make_method(table, f"methods.{name}") for name, table in methods.items()}
        return Experiment(**content | {"protocol": Protocol(**protocol), "methods": made})
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from error


def _check_keys(table: Any, known: set[str], needed: set[str], where: str) -> None:
    """Raise a ValueError for a table that has other keys or lacks some."""
    if not isinstance(table, dict):
        raise ValueError(f"{where} is {short(table)}: a table is needed.")
    for name in sorted(table.keys() - known):
        raise ValueError(f"{where} has {short(name)}: allowed are {', '.join(sorted(known))}.")
    for name in sorted(needed - table.keys()):
        raise ValueError(f"{where} has no {name!r}, which is needed.")
