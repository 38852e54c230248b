"""Parameters of the evolved estimators: their groups, copies, searches, texts and errors."""

import copy
import inspect
import pickle
import re
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from evotree import (
    Checkpoint,
    Cost,
    Evolution,
    EvoTreeClassifier,
    EvoTreeRegressor,
    Islands,
    LinearLeaves,
    ObliqueTreeClassifier,
    ObliqueTreeRegressor,
    Quantile,
    Refinement,
    Regularization,
    TAOClassifier,
    TAORegressor,
    Variation,
)
from evotree.configuration import check_parameters, constraints_of
from evotree.engine.config import SearchConfig
from evotree.estimators import EVOLUTION_PRESETS
from tests.quick_models import brief, every_evolved

KINDS = [EvoTreeClassifier, EvoTreeRegressor]
GROUPS = [
    Evolution(
        32, patience=None, init={"tao": 0.1}, variation=Variation(0.3), islands=3
    ),
    Variation(0.3, selection_pressure=3.0, algorithm="nsga2"),
    Regularization((0.3, 3.0), "l1", noise=0.0),
    Islands(4, every=3),
    Checkpoint("run.npz", every=2, resume=True),
    Refinement({"tao": 0.5, "axis": 0.5}, probability=0.3),
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
def test_attributes_that_are_documented_are_there(kind):
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = brief(kind).fit(X, y)
    section = re.split(
        r"\n\n\w+\n-----*\n", inspect.getdoc(kind).split("Attributes\n----------\n")[1]
    )
    names = re.findall(r"^(\w+_) : ", section[0], re.MULTILINE)
    assert len(names) >= 10
    properties = {
        name for name, _ in inspect.getmembers(kind, lambda one: type(one) is property)
    }
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
    with pytest.raises(
        ValueError, match=f"{kind.__name__} has no parameter 'size_'.*{name}"
    ):
        group.set_params(size_=3)
    assert (
        repr(eval(repr(group), NAMES)) == repr(group)
        and repr(kind()) == f"{kind.__name__}()"
    )
    if "Logistic" not in repr(group):
        copies = copy.deepcopy(group), pickle.loads(pickle.dumps(group))
        for twin in (eval(repr(group), NAMES), *copies):
            assert twin == group and type(twin) is kind


WRONG = [
    (
        Evolution,
        {"population_size": 1, "patience": 0, "max_samples": 1.5, "islands": 2.5},
    ),
    (
        Evolution,
        {"scaling": "none", "max_samples": 0, "variation": Islands(), "refinement": 3},
    ),
    (Variation, {"mutation_probability": 1.5, "crossover_probability": -1}),
    (Variation, {"mutation_probability": np.nan, "selection_pressure": 1.0}),
    (Regularization, {"C": 0.0, "noise": np.inf, "penalty": "l0"}),
    *(
        (Regularization, {"C": wrong})
        for wrong in (np.inf, (1.0,), (2.0, 1.0), (1.0, np.inf))
    ),
    (Islands, {"n": 0, "every": 0, "size": -1}),
    (Checkpoint, {"every": 0}),
    (Refinement, {"probability": 1.5, "C": 0.0}),
    (Quantile, {"level": 1.0}),
    (
        EvoTreeClassifier,
        {"size_penalty": np.nan, "term_penalty": -1e-9, "max_generations": 1.5},
    ),
    (EvoTreeClassifier, {"time_limit": 0.0, "n_jobs": 0, "max_split_terms": 1.5}),
    (
        EvoTreeClassifier,
        {"class_weight": "heavy", "probability": "hard", "max_depth": 2.0},
    ),
    (EvoTreeClassifier, {"max_depth": 0, "max_leaf_nodes": 1, "max_terms": -1}),
    *((EvoTreeClassifier, {"min_samples_leaf": wrong}) for wrong in (0, 0.6, None)),
    (
        ObliqueTreeClassifier,
        {"criterion": "squared_error", "pruning": "optimistic", "n_folds": 1},
    ),
    (
        ObliqueTreeClassifier,
        {"max_depth": -1, "min_samples_split": 1, "validation_fraction": 1.0},
    ),
    (ObliqueTreeRegressor, {"pruning": "other", "leaves": "auto"}),
    (TAORegressor, {"leaves": "auto"}),
    (
        TAOClassifier,
        {"init": "forest", "node": "linear", "loss": "hinge", "penalty": "l0"},
    ),
    (TAOClassifier, {"C": 0.0, "max_iter": 0, "depth": -1, "scaling": "robust"}),
]
CHECKED = [
    *KINDS,
    *CONFIGURATIONS,
    ObliqueTreeClassifier,
    ObliqueTreeRegressor,
    TAOClassifier,
]
CHECKED += [TAORegressor]
# `init` and `start` also take what only the search can tell.
STRANGE = [
    (k, dict.fromkeys(constraints_of(k).keys() - {"init", "start"}, Ellipsis))
    for k in CHECKED
]


@pytest.mark.parametrize(("kind", "values"), WRONG + STRANGE)
def test_values_that_are_not_allowed_are_named(kind, values):
    """By the name of the class, of the parameter and of the value."""
    for name, value in values.items():
        with pytest.raises(
            ValueError, match=f"'{name}' parameter of {kind.__name__}"
        ) as raised:
            check_parameters(kind(**{name: value}))
        assert repr(value) in str(raised.value) or str(value) in str(raised.value)


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
        20,
        variation=Variation(0.3),
        refinement=Refinement("sparse", 0.4),
        islands=Islands(every=5),
    )
    model = kind()
    assert MUTATION in model.get_params()
    other = clone(model).set_params(**nested)
    assert {name: other.get_params()[name] for name in nested} == nested
    assert (other.evolution, other.checkpoint) == (expected, Checkpoint("run.npz"))
    assert model.evolution is None and model.get_params() == kind().get_params()
    other.set_params(
        evolution__islands=2, evolution__islands__every=7, checkpoint="a.npz"
    )
    assert other.evolution.islands == Islands(2, every=7)
    assert other.set_params(checkpoint__every=3).checkpoint == Checkpoint("a.npz", 3)
    other.set_params(evolution__refinement=None, evolution__refinement__probability=0.5)
    assert other.evolution.refinement == Refinement(probability=0.5)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "evolution__variation__mutation",
            "Variation has no parameter 'mutation': .*mutation_pro",
        ),
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
def test_the_text_of_an_estimator_can_be_pasted(model):
    wild = clone(model).set_params(
        evolution=GROUPS[0], checkpoint=Checkpoint("run.npz")
    )
    for one in (model, wild):
        again = eval(repr(one), NAMES)
        assert again.get_params() == one.get_params() and type(again) is type(one)
        assert (
            type(model)().set_params(**one.get_params()).get_params()
            == one.get_params()
        )
    preset = type(model).from_preset(
        "gea_odt", size_penalty=0.1, evolution__patience=None
    )
    assert preset.size_penalty == 0.1
    known = EVOLUTION_PRESETS["gea_odt"]
    assert preset.evolution == known["evolution"].set_params(patience=None)
    assert preset.max_generations == known["max_generations"]
    with pytest.raises(ValueError, match="gea_odt"):
        type(model).from_preset("gea")
    for name in EVOLUTION_PRESETS:  # of each kind of model
        check_parameters(clone(type(model).from_preset(name)))


def test_a_card_is_small_in_all_that_is_read():
    """Of classes, costs and numbers."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(400, 5)) * [1, 10, 1000, 3, 0.1], 3)
    value = X[:, 0] + X[:, 1] / 10 - X[:, 2] / 1000 + rng.normal(size=400)
    y = (value > 0.0).astype(int)
    for kind, target, more in (
        (EvoTreeClassifier, y, {}),
        (EvoTreeClassifier, y, {"objective": Cost([[0, 2], [1, 0]])}),
        (EvoTreeRegressor, value, {}),
    ):
        model = kind.from_preset("card", random_state=0, max_generations=5, **more)
        tree = model.fit(X, target).tree_
        assert 1 < tree.n_leaves <= 6 and np.count_nonzero(tree.weights, 1).max() <= 2
        assert np.bincount(tree.apply(X))[tree.is_leaf].min() >= 12
        numbers = np.append(tree.weights.ravel(), tree.thresholds)
        assert all(float(f"{number:.2g}") == number for number in numbers)


BAD = {
    "init": [3, "forest", "Wodt 2", {"tao": "a"}],
    "leaves": ["trees", 3],
    "n_jobs": [0, 0.5],
    "callbacks": [3, [3]],
}


@pytest.mark.parametrize(("name", "values"), BAD.items())
def test_bad_parameters_are_named(name, values):
    for value in values:
        model = brief(**{name: value})
        model.get_params()  # says nothing yet
        with pytest.raises(ValueError, match=name):
            model.fit(np.eye(4), [0, 1, 0, 1])
        assert not hasattr(model, "tree_")
