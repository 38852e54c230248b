"""What makes first trees and what refines: names, splitters, estimators, models and rules."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.tree import DecisionTreeClassifier

from evotree import (
    Evolution,
    EvoTreeClassifier,
    ObliqueTreeClassifier,
    Refinement,
    TAOClassifier,
    evolve,
    load_model,
    make_toolbox,
    save_model,
)
from evotree.dataset import Dataset
from evotree.estimators import GREEDY_PRESETS
from evotree.operators.initialization.population import (
    init_from_tree,
    seeding_shares,
    split_init,
)
from evotree.operators.splitters.perturbation import OC1
from evotree.operators.splitters.registry import SPLITTERS, criterion_of
from evotree.texts import export_text
from tests.quick_models import evolved
from tests.strategies import assert_sound

X, y = load_wine(return_X_y=True, as_frame=True)
X = X.iloc[:, :4]
WINE = Dataset.from_arrays(X, y)
NAMED = [name for name in SPLITTERS if name != "dipole"]  # the random trees
OBJECTS = [make() for make in SPLITTERS.values()]
PRESETS = [ObliqueTreeClassifier.from_preset(name) for name in GREEDY_PRESETS]
KINDS = [*NAMED, *OBJECTS, *PRESETS, *GREEDY_PRESETS]
NAMES = [
    *NAMED,
    *(f"{type(one).__name__}()" for one in OBJECTS),
    *(f"preset {name}" for name in GREEDY_PRESETS),
    *(f"name of preset {name}" for name in GREEDY_PRESETS),
]


@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
def test_every_splitter_and_preset_makes_first_trees_and_refines(kind):
    toolbox = make_toolbox(
        WINE,
        init=[{kind: 0.5}],
        refinement=Refinement({kind: 1}, probability=0.5),
        random_state=0,
    )
    population = toolbox.population(n=8)
    (made,) = {one.origin for one in population} - {"dipole"}
    assert sum(one.origin == made for one in population) == 4
    run = evolve(population, toolbox, max_generations=1)
    for one in run.population:
        assert_sound(one, WINE)
    (tried,) = (
        value
        for name, value in run.logbook.chapters["refinement"][-1].items()
        if name.endswith("_tried")
    )
    assert tried > 0


def test_settings_and_criteria_are_those_given():
    plain, other = OC1(), OC1(n_restarts=7)
    shares = split_init([{plain: 0.25}, other, "wodt"])[0]
    assert shares == {
        plain: 0.25,
        other: 0.2,
        "wodt": 0.2,
        "dipole": pytest.approx(0.35),
    }
    assert split_init(plain)[0] == seeding_shares([plain])
    trees = [
        make_toolbox(WINE, init={kind: 1.0}, random_state=0).population(n=6)
        for kind in (
            ObliqueTreeClassifier("axis", criterion="gini"),
            ObliqueTreeClassifier("axis", criterion="twoing"),
        )
    ]
    assert trees[0] != trees[1]


@pytest.mark.parametrize("name", ["APDT", "SADT"])
def test_a_preset_is_the_same_by_its_name(name):
    by_name, itself = (
        make_toolbox(WINE, init={one: 1.0}, random_state=0).population(n=4)
        for one in (name, ObliqueTreeClassifier.from_preset(name))
    )
    assert by_name == itself
    starts = (name, GREEDY_PRESETS[name]["splitter"])
    by_name, splitter_alone = (
        TAOClassifier(one, max_iter=1, random_state=0).fit(X, y).tree_ for one in starts
    )
    # The criterion of SADT is not the entropy, by which splitters grow trees.
    assert (by_name == splitter_alone) is (name == "APDT")


@pytest.mark.parametrize("one", [len, OC1(), ObliqueTreeClassifier("oc1"), "OC1"])
def test_criteria_are_those_of_what_is_to_be_predicted(one):
    own = "twoing" if one == "OC1" else getattr(one, "criterion", "entropy")
    assert criterion_of(one, n_classes=3) == own
    assert criterion_of(one, n_classes=0) == "squared_error"


def forms_of(tree, path):
    """Return a fitted tree in all forms that a first population takes."""
    save_model(path / "tree.json", tree)
    return [tree, load_model(path / "tree.json"), export_text(tree, decimals=17)]


@pytest.mark.parametrize("form", [0, 1, 2])
def test_trees_are_taken_by_the_names_of_their_columns(form, tmp_path):
    tree = ObliqueTreeClassifier("oc1", max_depth=2, random_state=0).fit(X, y)
    turned = ObliqueTreeClassifier("oc1", max_depth=2, random_state=0).fit(
        X[X.columns[::-1]], y
    )
    for model, rows in ((tree, X), (turned, X[X.columns[::-1]])):
        given = forms_of(model, tmp_path)[form]
        individual = init_from_tree(WINE, 0.0, given)
        found = WINE.to_raw(individual.to_tree()).predict_label(X.to_numpy())
        np.testing.assert_array_equal(found, model.predict(rows))


@pytest.mark.parametrize("kind", [ObliqueTreeClassifier, DecisionTreeClassifier])
def test_trees_of_other_columns_are_refused(kind):
    other = kind(max_depth=1).fit(X.set_axis([*"abcd"], axis=1), y)
    with pytest.raises(ValueError, match="init splits on '.*: allowed are the col"):
        evolved(EvoTreeClassifier, init=["oc1", other]).fit(X, y)


def test_a_mixture_of_all_forms_makes_a_population(tmp_path):
    tree = ObliqueTreeClassifier("axis", max_depth=2).fit(X, y)
    mixture = [
        {"wodt": 0.2, OC1(): 0.2},
        PRESETS[0],
        *forms_of(tree, tmp_path),
        TAOClassifier(max_iter=1).fit(X, y),
    ]
    population = make_toolbox(WINE, init=mixture, random_state=0).population(n=24)
    origins = pd.Series([one.origin for one in population]).value_counts()
    assert origins.to_dict() == {
        "initial": 4,
        "wodt": 4,
        "OC1": 4,
        "Axis": 4,
        "dipole": 8,
    }


@pytest.mark.parametrize(
    "wrong",
    [
        OC1,
        len,
        lambda node: node,
        "forest",
        3,
        DecisionTreeClassifier(),
        {"oc1": "many"},
        {"oc1": -1},
    ],
)
def test_what_cannot_refine_is_refused_where_it_is_named(wrong):
    wrong = wrong if isinstance(wrong, dict) else {wrong: 1}
    for make in (Refinement, lambda given: Evolution(refinement=given)):
        with pytest.raises(ValueError, match=r"refinement .*: allowed are "):
            make(wrong)
