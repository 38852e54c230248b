"""Parameters of the evolved estimators: their groups, copies, searches, texts and errors."""

import copy
import inspect
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evotree import (
    Checkpoint,
    EvoTreeClassifier,
    EvoTreeRegressor,
    Islands,
    Refinement,
    Regularization,
    Variation,
)
from evotree.configuration import Configuration, constraints_of
from evotree.engine.config import CONFIGURATIONS, SearchConfig, configuration
from evotree.estimators import EVOLUTION_PRESETS
from tests.quick_models import BRIEF, brief, every_evolved

KINDS = [EvoTreeClassifier, EvoTreeRegressor]
NAMES = {kind.__name__: kind for kind in (*KINDS, *CONFIGURATIONS.values(), LogisticRegression)}
GROUPS = [
    Variation(0.3, selection_pressure=3.0, algorithm="nsga2"),
    Regularization((0.3, 3.0), "l1", noise=0.0),
    Regularization(teacher=LogisticRegression(C=2.0)),
    Islands(4, every=3, topology="complete"),
    Checkpoint("run.npz", every=2, resume=True),
    Refinement({"tao": 0.5, "prune": 0.5}, probability=0.3, max_evaluations=9),
]
every_kind = pytest.mark.parametrize("kind", KINDS)
every_group = pytest.mark.parametrize("group", GROUPS, ids=repr)


def documented(kind, section="Parameters"):
    """Return the names in a section of the docstring of a class."""
    section = inspect.getdoc(kind).split(f"{section}\n----------\n")[1]
    section = re.split(r"\n\n?\w+\n-----*\n", section)[0]
    return re.findall(r"^(\w+) : ", section, re.MULTILINE)


# ---- what there is -------------------------------------------------------------------------------


@every_kind
def test_there_are_few_parameters_and_all_are_documented(kind):
    names = list(inspect.signature(kind).parameters)
    assert len(names) <= 35
    assert sorted(names) == sorted(kind().get_params(deep=False))
    assert documented(kind) == names


@pytest.mark.parametrize("kind", CONFIGURATIONS.values(), ids=lambda kind: kind.__name__)
def test_the_parameters_of_groups_are_documented(kind):
    names = list(inspect.signature(kind).parameters)
    assert documented(kind) == names == [one.name for one in fields(kind)]


@pytest.mark.parametrize("kind", [*KINDS, SearchConfig], ids=lambda kind: kind.__name__)
def test_all_parameters_are_checked(kind):
    assert set(kind().get_params(deep=False)) <= set(constraints_of(kind))


@pytest.mark.parametrize("kind", [*KINDS, *CONFIGURATIONS.values()], ids=lambda kind: kind.__name__)
def test_signatures_show_plain_types(kind):
    assert "Annotated" not in str(inspect.signature(kind))
    for base in kind.__mro__:
        assert "Annotated" not in str(base.__dict__.get("__annotations__", ""))


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
    assert kind(**parameters) == group == group.set_params() == kind().set_params(**parameters)
    assert clone(group) is group
    name = next(iter(parameters))
    with pytest.raises(FrozenInstanceError):
        setattr(group, name, parameters[name])
    with pytest.raises(ValueError, match=f"{kind.__name__} has no parameter 'size_'.*{name}"):
        group.set_params(size_=3)


@every_group
def test_a_group_is_left_as_it_is_by_set_params(group):
    before = group.get_params()
    other = group.set_params(**type(group)().get_params())
    assert other == type(group)() != group
    assert group.get_params() == before


@every_group
def test_texts_of_groups_can_be_pasted(group):
    assert repr(eval(repr(group), NAMES)) == repr(group)
    assert eval(repr(type(group)()), NAMES) == type(group)()
    assert repr(type(group)()) == f"{type(group).__name__}()"


@pytest.mark.parametrize("group", [g for g in GROUPS if "Logistic" not in repr(g)], ids=repr)
def test_texts_and_copies_are_equal(group):
    for twin in (eval(repr(group), NAMES), copy.deepcopy(group), pickle.loads(pickle.dumps(group))):
        assert twin == group and type(twin) is type(group)


shares = st.floats(0.0, 1.0)
variations = st.builds(
    Variation,
    mutation_probability=shares,
    crossover_probability=shares,
    dipolar_probability=shares,
    split_crossover_probability=shares,
    selection_pressure=st.floats(1.0, 10.0, exclude_min=True),
    max_origin_share=st.floats(0.0, 1.0, exclude_min=True),
    keep_duplicates=st.booleans(),
    algorithm=st.sampled_from(("penalized", "nsga2")),
)


@given(variations)
def test_any_allowed_variation_can_be_pasted(variation):
    assert eval(repr(variation), NAMES) == variation


def test_an_executor_is_not_pickled_and_all_else_is():
    with ThreadPoolExecutor(1) as executor:
        islands = Islands(3, 5, 1, "complete", executor)
        assert pickle.loads(pickle.dumps(islands)) == Islands(3, 5, 1, "complete")
        model = pickle.loads(pickle.dumps(brief(islands=islands)))
        assert model.islands == Islands(3, 5, 1, "complete")
        assert clone(brief(islands=islands)).islands is islands


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (Variation, "mutation_probability", 1.5),
        (Variation, "mutation_probability", np.nan),
        (Variation, "mutation_probability", "often"),
        (Variation, "crossover_probability", -1),
        (Variation, "dipolar_probability", "half"),
        (Variation, "split_crossover_probability", 2),
        (Variation, "selection_pressure", 1.0),
        (Variation, "max_origin_share", 0.0),
        (Variation, "keep_duplicates", "no"),
        (Variation, "algorithm", "nsga3"),
        (Regularization, "C", "high"),
        (Regularization, "C", 0.0),
        (Regularization, "C", np.inf),
        (Regularization, "C", (1.0,)),
        (Regularization, "C", (2.0, 1.0)),
        (Regularization, "C", (1.0, np.inf)),
        (Regularization, "C", ("a", "b")),
        (Regularization, "penalty", "l0"),
        (Regularization, "noise", -0.1),
        (Regularization, "noise", np.inf),
        (Regularization, "noise", "much"),
        (Regularization, "teacher", "oracle"),
        (Regularization, "teacher", 3),
        (Islands, "n", 0),
        (Islands, "n", 2.5),
        (Islands, "every", 0),
        (Islands, "size", -1),
        (Islands, "topology", "star"),
        (Islands, "executor", 3),
        (Checkpoint, "path", 3),
        (Checkpoint, "every", 0),
        (Checkpoint, "resume", "yes"),
        (Refinement, "probability", 1.5),
        (Refinement, "target", "worst"),
        (Refinement, "every", 0),
        (Refinement, "max_seconds", 0.0),
        (Refinement, "max_evaluations", -1),
        (Refinement, "C", (2.0, 1.0)),
        (Refinement, "penalty", "l0"),
    ],
)
def test_values_that_are_not_allowed_are_named(kind, name, value):
    """By the name of the group, of the parameter and of the value."""
    given = {"path": "file"} if kind is Checkpoint else {}
    with pytest.raises(ValueError, match=name) as raised:
        kind(**{**given, name: value})
    assert repr(value) in str(raised.value) or str(value) in str(raised.value)
    assert kind.__name__ in str(raised.value)


def test_what_a_plain_value_stands_for():
    assert configuration("islands", 4) == Islands(4)
    assert configuration("islands", None) == Islands(1)
    assert configuration("checkpoint", "a.npz") == Checkpoint("a.npz")
    assert configuration("checkpoint", None) is configuration("refinement", None) is None
    assert configuration("refinement", "tao") == Refinement("tao")
    assert configuration("variation", None) == Variation()
    assert configuration("regularization", None) == Regularization()
    for name, kind in CONFIGURATIONS.items():
        group = kind()
        assert configuration(name, group) is group


# ---- of estimators -------------------------------------------------------------------------------


@every_kind
def test_parameters_of_groups_are_reached_by_name(kind):
    model = brief(kind)
    nested = {
        "variation__mutation_probability": 0.3,  # of None
        "islands__n": 3,
        "islands__every": 5,
        "checkpoint__path": "run.npz",
        "refinement__probability": 0.4,  # of a plain value
        "regularization__noise": 0.0,  # of a group
    }
    other = clone(model).set_params(**nested)
    assert {name: other.get_params()[name] for name in nested} == nested
    assert other.variation == Variation(mutation_probability=0.3)
    assert other.islands == Islands(3, every=5)
    assert other.checkpoint == Checkpoint("run.npz")
    assert other.refinement == Refinement("sparse", probability=0.4)
    assert other.regularization == BRIEF["regularization"].set_params(noise=0.0)
    assert model.get_params() == brief(kind).get_params()  # what the two shared is as it was
    assert other.set_params(islands=2, islands__every=7).islands == Islands(2, every=7)
    assert other.set_params(refinement=None, refinement__every=2).refinement == Refinement(every=2)
    assert not [
        n for n in brief(kind, refinement=None).get_params() if n.startswith("refinement__")
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("variation__mutation", "Variation has no parameter 'mutation': .*mutation_probability"),
        ("islands__m", "Islands has no parameter 'm'"),
        ("mutation_probability", "Invalid parameter 'mutation_probability'"),
    ],
)
def test_parameters_that_are_none_are_named(name, message):
    with pytest.raises(ValueError, match=message):
        brief().set_params(**{name: 1})


@every_evolved
def test_deep_parameters_come_back(model):
    parameters = model.get_params()
    assert {name: parameters[name] for name in model.get_params(deep=False)} == model.get_params(
        deep=False
    )
    again = type(model)().set_params(**parameters)
    assert again.get_params() == parameters


@pytest.mark.parametrize(
    "start", [None, {"islands": 2}, {"islands": Islands(3, every=2), "variation": Variation(0.5)}]
)
def test_searches_reach_into_groups(start):
    X, y = load_iris(return_X_y=True)
    grid = {"variation__mutation_probability": [0.1, 0.2], "islands__n": [1, 2]}
    model = brief(**start or {}, max_generations=2)
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(X, y)
    best = search.best_estimator_
    assert len(search.cv_results_["params"]) == 4
    reached = best.get_params()
    assert {name: reached[name] for name in grid} == search.best_params_
    assert reached["islands__every"] == (2 if start and "variation" in start else 10)
    by_hand = clone(model).set_params(**search.best_params_).fit(X, y)
    assert best.tree_ == by_hand.tree_


def test_searches_reach_into_groups_in_pipelines():
    X, y = load_iris(return_X_y=True)
    name = "evotreeclassifier__regularization__noise"
    pipeline = make_pipeline(StandardScaler(), brief(max_generations=1))
    search = GridSearchCV(pipeline, {name: [0.0, 0.2]}, cv=2, error_score="raise").fit(X, y)
    assert search.best_estimator_[-1].regularization_.noise == search.best_params_[name]


def test_clones_share_groups_and_callbacks():
    callbacks = [print]
    model = brief(variation=Variation(0.3), islands=Islands(2), callbacks=callbacks)
    twin = clone(model)
    assert twin.callbacks is callbacks
    for name in ("variation", "islands", "regularization"):
        assert getattr(twin, name) is getattr(model, name)
    assert twin.set_params(variation__mutation_probability=0.9).variation != model.variation


@every_evolved
def test_the_text_of_an_estimator_can_be_pasted(model):
    wild = clone(model).set_params(
        variation=Variation(0.3, algorithm="nsga2"),
        islands=Islands(4, every=3),
        checkpoint=Checkpoint("run.npz"),
        refinement=Refinement({"tao": 1.0}, probability=0.2),
        init={"tao": 0.1, "axis": 0.2},
        patience=None,
    )
    for one in (model, wild):
        again = eval(repr(one), NAMES)
        assert again.get_params() == one.get_params() and type(again) is type(one)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("size_penalty", -0.1),
        ("size_penalty", np.nan),
        ("size_penalty", "small"),
        ("term_penalty", -1e-9),
        ("term_penalty", "small"),
        ("population_size", 1),
        ("max_generations", 1.5),
        ("max_generations", -1),
        ("patience", 0),
        ("time_limit", 0.0),
        ("n_jobs", 0),
        ("min_samples_split", 1),
        ("scaling", "none"),
        ("init", 3),
        ("init", "forest"),
        ("refinement", "polish"),
        ("refinement", 3),
        ("variation", 0.3),
        ("variation", Islands()),
        ("regularization", "l2"),
        ("max_samples", 1.5),
        ("islands", 0),
        ("islands", 2.5),
        ("checkpoint", 3),
        ("warm_start", "yes"),
        ("random_state", "seed"),
        ("n_jobs", 0.5),
        ("verbose", "loud"),
        ("callbacks", 3),
        ("callbacks", [3]),
        ("class_weight", "heavy"),
    ],
)
def test_bad_parameters_are_named(name, value):
    model = brief(**{name: value})
    model.get_params()  # says nothing yet
    with pytest.raises(ValueError, match=name):
        model.fit(np.eye(4), [0, 1, 0, 1])
    assert not hasattr(model, "tree_")


def test_bad_parameters_are_named_with_the_estimator():
    with pytest.raises(
        ValueError, match="'population_size' parameter of EvoTreeRegressor .* Got 1"
    ):
        brief(EvoTreeRegressor, population_size=1).fit(np.eye(4), [0, 1, 0, 1])


def test_presets():
    model = EvoTreeClassifier.from_preset("gea_odt", random_state=3)
    assert model.get_params() == clone(model).get_params()
    for name, value in EVOLUTION_PRESETS["gea_odt"].items():
        assert getattr(model, name) == value
    assert EvoTreeClassifier.from_preset("gea_odt", size_penalty=0.1).size_penalty == 0.1
    with pytest.raises(ValueError, match="gea_odt"):
        EvoTreeClassifier.from_preset("gea")
