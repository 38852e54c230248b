"""Parameters of the evolved estimators: their groups, copies, searches, texts and errors."""

import copy
import inspect
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evotree import (
    Checkpoint,
    Cost,
    Evolution,
    EvoTreeClassifier,
    EvoTreeRegressor,
    Islands,
    LinearLeaves,
    Quantile,
    Refinement,
    Regularization,
    Variation,
)
from evotree.configuration import Configuration, constraints_of
from evotree.engine.config import SearchConfig
from evotree.estimators import EVOLUTION_PRESETS
from tests.quick_models import brief, every_evolved

KINDS = [EvoTreeClassifier, EvoTreeRegressor]
GROUPS = [
    Evolution(32, patience=None, init={"tao": 0.1}, variation=Variation(0.3), islands=3),
    Variation(0.3, selection_pressure=3.0, algorithm="nsga2"),
    Regularization((0.3, 3.0), "l1", noise=0.0),
    Regularization(teacher=LogisticRegression(C=2.0)),
    Islands(4, every=3, topology="complete"),
    Checkpoint("run.npz", every=2, resume=True),
    Refinement({"tao": 0.5, "prune": 0.5}, probability=0.3, max_evaluations=9),
    Quantile(0.9),
]
CONFIGURATIONS = list(dict.fromkeys([*map(type, GROUPS), Cost, LinearLeaves]))
NAMES = {kind.__name__: kind for kind in (*KINDS, *CONFIGURATIONS, LogisticRegression)}
MUTATION = "evolution__variation__mutation_probability"
every_kind = pytest.mark.parametrize("kind", KINDS)
every_group = pytest.mark.parametrize("group", GROUPS, ids=repr)


def documented(kind, section="Parameters"):
    """Return the names in a section of the docstring of a class."""
    section = inspect.getdoc(kind).split(f"{section}\n----------\n")[1]
    section = re.split(r"\n\n?\w+\n-----*\n", section)[0]
    return re.findall(r"^(\w+) : ", section, re.MULTILINE)


# ---- what there is -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [*KINDS, SearchConfig, *CONFIGURATIONS], ids=lambda kind: kind.__name__
)
def test_parameters_are_few_documented_checked_and_of_plain_types(kind):
    names = list(inspect.signature(kind).parameters)
    assert len(names) <= 24
    assert sorted(names) == sorted(kind().get_params(deep=False))
    assert set(names) <= set(constraints_of(kind))
    if kind is not SearchConfig:
        assert sorted(documented(kind)) == sorted(names)
    assert "Annotated" not in str(inspect.signature(kind))
    for base in kind.__mro__:
        assert "Annotated" not in str(base.__dict__.get("__annotations__", ""))


@every_kind
def test_the_face_is_that_of_the_search(kind):
    first, *others = inspect.signature(kind).parameters.values()
    assert first.name == "objective" and first.kind is first.POSITIONAL_OR_KEYWORD
    assert all(one.kind is one.KEYWORD_ONLY for one in others)
    assert {one.name for one in fields(SearchConfig)} <= {first.name, *(p.name for p in others)}


def test_constraints_that_only_type_checkers_know_fail_with_the_class():
    body = {"__annotations__": {"x": "Annotated[float, Unknown]"}}
    body["__module__"] = SearchConfig.__module__
    with pytest.raises(NameError, match="Unknown"):
        type("Group", (Configuration,), body)


@every_kind
def test_attributes_that_are_documented_are_there(kind):
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = brief(kind).fit(X, y)
    section = re.split(
        r"\n\n\w+\n-----*\n", inspect.getdoc(kind).split("Attributes\n----------\n")[1]
    )
    names = re.findall(r"^(\w+_) : ", section[0], re.MULTILINE)
    assert len(names) >= 10
    properties = {name for name, _ in inspect.getmembers(kind, lambda one: type(one) is property)}
    fitted = vars(model).keys() | properties
    assert sorted(names) == sorted(n for n in fitted if n.endswith("_") and n[0] != "_")


# ---- groups --------------------------------------------------------------------------------------


@every_group
def test_groups_are_values(group):
    kind = type(group)
    parameters = group.get_params()
    assert kind(**group.get_params(deep=False)) == group == group.set_params()
    assert kind().set_params(**parameters) == group and group.get_params() == parameters
    assert group.set_params(**kind().get_params()) == kind() != group
    assert clone(group) is group
    name = next(iter(parameters))
    with pytest.raises(FrozenInstanceError):
        setattr(group, name, parameters[name])
    with pytest.raises(ValueError, match=f"{kind.__name__} has no parameter 'size_'.*{name}"):
        group.set_params(size_=3)
    assert repr(eval(repr(group), NAMES)) == repr(group) and repr(kind()) == f"{kind.__name__}()"
    if "Logistic" not in repr(group):
        for twin in (eval(repr(group), NAMES), copy.deepcopy(group)):
            assert twin == group and type(twin) is kind
        assert pickle.loads(pickle.dumps(group)) == group


def test_an_executor_is_not_pickled_and_all_else_is():
    with ThreadPoolExecutor(1) as executor:
        evolution = Evolution(8, islands=Islands(3, 5, 1, "complete", executor))
        expected = Evolution(8, islands=Islands(3, 5, 1, "complete"))
        assert pickle.loads(pickle.dumps(evolution)) == expected
        model = pickle.loads(pickle.dumps(EvoTreeClassifier(evolution=evolution)))
        assert model.evolution == expected
        assert clone(EvoTreeClassifier(evolution=evolution)).evolution is evolution


@pytest.mark.parametrize(
    ("kind", "name", "values"),
    [
        (Evolution, "population_size", [1, 2.5]),
        (Evolution, "patience", [0]),
        (Evolution, "scaling", ["none"]),
        (Evolution, "max_samples", [0, -1, 0.0, 1.5, "half"]),
        (Evolution, "variation", [0.3, Islands()]),
        (Evolution, "refinement", [3]),
        (Evolution, "regularization", ["l2"]),
        (Evolution, "islands", [0, 2.5]),
        (Variation, "mutation_probability", [1.5, np.nan, "often"]),
        (Variation, "crossover_probability", [-1]),
        (Variation, "dipolar_probability", ["half"]),
        (Variation, "split_crossover_probability", [2]),
        (Variation, "selection_pressure", [1.0]),
        (Variation, "keep_duplicates", ["no"]),
        (Variation, "algorithm", ["nsga3"]),
        (Regularization, "C", ["high", 0.0, np.inf, (1.0,), (2.0, 1.0), (1.0, np.inf), ("a", "b")]),
        (Regularization, "penalty", ["l0"]),
        (Regularization, "noise", [-0.1, np.inf, "much"]),
        (Regularization, "teacher", ["oracle", 3]),
        (Islands, "n", [0, 2.5]),
        (Islands, "every", [0]),
        (Islands, "size", [-1]),
        (Islands, "topology", ["star"]),
        (Islands, "executor", [3]),
        (Checkpoint, "path", [3]),
        (Checkpoint, "every", [0]),
        (Checkpoint, "resume", ["yes"]),
        (Refinement, "probability", [1.5]),
        (Refinement, "target", ["worst"]),
        (Refinement, "every", [0]),
        (Refinement, "max_seconds", [0.0]),
        (Refinement, "max_evaluations", [-1]),
        (Refinement, "C", [(2.0, 1.0)]),
        (Refinement, "penalty", ["l0"]),
        (Quantile, "level", [0.0, 1.0, "median"]),
        (Cost, "matrix", [3]),
        (Cost, "features", [3]),
        (LinearLeaves, "features", [3]),
        (LinearLeaves, "split_features", [3]),
    ],
)
def test_values_that_are_not_allowed_are_named(kind, name, values):
    """By the name of the group, of the parameter and of the value."""
    for value in values:
        with pytest.raises(ValueError, match=f"'{name}' parameter of {kind.__name__}") as raised:
            kind(**{name: value})
        assert repr(value) in str(raised.value) or str(value) in str(raised.value)


def test_what_a_plain_value_stands_for():
    plain = Evolution(variation=None, refinement="tao", regularization=None, islands=4)
    assert plain == Evolution(refinement=Refinement("tao"), islands=Islands(4))
    assert Evolution(refinement=None).refinement is None
    assert Evolution(islands=None) == Evolution()


# ---- of estimators -------------------------------------------------------------------------------


@every_kind
def test_parameters_of_groups_are_reached_by_name(kind):
    nested = {
        "evolution__population_size": 20,
        MUTATION: 0.3,
        "evolution__islands__every": 5,
        "evolution__refinement__probability": 0.4,
        "checkpoint__path": "run.npz",  # of None
    }
    expected = Evolution(
        20, variation=Variation(0.3), refinement=Refinement("sparse", 0.4), islands=Islands(every=5)
    )
    model = kind()
    assert MUTATION in model.get_params()
    other = clone(model).set_params(**nested)
    assert {name: other.get_params()[name] for name in nested} == nested
    assert (other.evolution, other.checkpoint) == (expected, Checkpoint("run.npz"))
    assert model.evolution is None and model.get_params() == kind().get_params()
    other.set_params(evolution__islands=2, evolution__islands__every=7, checkpoint="a.npz")
    assert other.evolution.islands == Islands(2, every=7)
    assert other.set_params(checkpoint__every=3).checkpoint == Checkpoint("a.npz", 3)
    other.set_params(evolution__refinement=None, evolution__refinement__every=2)
    assert other.evolution.refinement == Refinement(every=2)
    other.set_params(evolution__refinement=None)
    assert not [name for name in other.get_params() if "refinement__" in name]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("evolution__variation__mutation", "Variation has no parameter 'mutation': .*mutation_pro"),
        ("evolution__mutation", "Evolution has no parameter 'mutation'"),
        ("evolution__patience__n", "Evolution has no group of parameters 'patience'"),
        ("size__penalty", "EvoTreeClassifier has no group of parameters 'size'"),
        ("mutation_probability", "Invalid parameter 'mutation_probability'"),
    ],
)
def test_parameters_that_are_none_are_named(name, message):
    with pytest.raises(ValueError, match=message):
        brief().set_params(**{name: 1})


@every_evolved
def test_deep_parameters_come_back(model):
    for one in (model, type(model)()):
        parameters = one.get_params()
        shallow = one.get_params(deep=False)
        assert {name: parameters[name] for name in shallow} == shallow
        assert type(model)().set_params(**parameters).get_params() == parameters


@pytest.mark.parametrize("start", [None, Evolution(8, islands=Islands(3, every=2))])
def test_searches_reach_into_groups_in_pipelines(start):
    X, y = load_iris(return_X_y=True)
    name = "evotreeclassifier__"
    grid = {f"{name}{MUTATION}": [0.1, 0.2], f"{name}evolution__islands__n": [1, 2]}
    model = brief(max_generations=1)
    if start is not None:
        model.set_params(evolution=start.set_params(regularization__noise=0.0))
    pipeline = make_pipeline(StandardScaler(), model)
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(X, y)
    best = search.best_estimator_
    assert len(search.cv_results_["params"]) == 4
    reached = best.get_params()
    assert {name: reached[name] for name in grid} == search.best_params_
    assert reached[f"{name}evolution__islands__every"] == (10 if start is None else 2)
    by_hand = clone(pipeline).set_params(**search.best_params_).fit(X, y)
    assert best[-1].tree_ == by_hand[-1].tree_


@every_evolved
def test_the_text_of_an_estimator_can_be_pasted(model):
    wild = clone(model).set_params(evolution=GROUPS[0], checkpoint=Checkpoint("run.npz"))
    for one in (model, wild):
        again = eval(repr(one), NAMES)
        assert again.get_params() == one.get_params() and type(again) is type(one)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("size_penalty", [-0.1, np.nan, "small"]),
        ("term_penalty", [-1e-9, "small"]),
        ("max_generations", [1.5, -1]),
        ("time_limit", [0.0]),
        ("evolution", [3, Islands(), "widths"]),
        ("init", [3, "forest"]),
        ("refinement", ["polish"]),
        ("leaves", ["trees", 3, "linear", LinearLeaves()]),
        ("checkpoint", [3]),
        ("warm_start", ["yes"]),
        ("random_state", ["seed"]),
        ("n_jobs", [0, 0.5]),
        ("verbose", ["loud"]),
        ("callbacks", [3, [3]]),
        ("class_weight", ["heavy"]),
        ("max_split_terms", [0, -1, 1.5, 0.0, "all"]),
        ("probability", ["hard"]),
    ],
)
def test_bad_parameters_are_named(name, values):
    for value in values:
        model = brief(**{name: value})
        model.get_params()  # says nothing yet
        with pytest.raises(ValueError, match=name):
            model.fit(np.eye(4), [0, 1, 0, 1])
        assert not hasattr(model, "tree_")
    with pytest.raises(ValueError, match="'n_jobs' parameter of EvoTreeRegressor .* Got 0"):
        brief(EvoTreeRegressor, n_jobs=0).fit(np.eye(4), [0, 1, 0, 1])


def test_presets():
    model = EvoTreeClassifier.from_preset("gea_odt", random_state=3)
    assert model.get_params() == clone(model).get_params()
    for name, value in EVOLUTION_PRESETS["gea_odt"].items():
        assert getattr(model, name) == value
    changed = EvoTreeClassifier.from_preset("gea_odt", size_penalty=0.1, evolution__patience=None)
    assert changed.size_penalty == 0.1
    assert changed.evolution == model.evolution.set_params(patience=None)
    with pytest.raises(ValueError, match="gea_odt"):
        EvoTreeClassifier.from_preset("gea")
