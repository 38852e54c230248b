"""What makes first trees and what refines: names, models, rules, and paths of widths."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_wine
from sklearn.linear_model import LogisticRegression
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
from evotree.configuration import Cost
from evotree.dataset import Dataset
from evotree.estimators import GREEDY_PRESETS
from evotree.fitness.base import PenalizedAccuracy
from evotree.fitness.objectives import as_objective
from evotree.operators.constraints import widest
from evotree.operators.initialization.population import (
    axis_trees,
    best_of_paths,
    init_from_tree,
    linear_trees,
    path_trees,
    seeding_shares,
    sparsity_path,
    split_init,
)
from evotree.operators.pruning import prune
from evotree.operators.splitters.perturbation import OC1
from evotree.operators.splitters.registry import SPLITTERS
from evotree.operators.structure.splice import make_individual
from evotree.operators.variation import distinct
from evotree.texts import export_text
from tests.quick_models import evolved
from tests.strategies import assert_sound, stream_of

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


def test_shares_are_those_given():
    plain, other = OC1(), OC1(n_restarts=7)
    shares = split_init([{plain: 0.25}, other, "wodt"])[0]
    assert shares == {
        plain: 0.25,
        other: 0.2,
        "wodt": 0.2,
        "dipole": pytest.approx(0.35),
    }
    assert split_init(plain)[0] == seeding_shares([plain])


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


# ---- paths of widths -----------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["wine", "diabetes"])
def dataset(request):
    load = load_diabetes if request.param == "diabetes" else load_wine
    X, y = load(return_X_y=True)
    task = "regression" if request.param == "diabetes" else "classification"
    return Dataset.from_arrays(X, y, task=task)


def test_a_path_goes_from_the_dense_tree_down_to_one_feature(dataset):
    path = sparsity_path(dataset, 0.002, stream_of(), term_penalty=0.001)
    widths = [widest(tree) for tree in path]
    assert widths[0] == dataset.X.shape[1] and widths[-1] <= 1
    assert widths == sorted(widths, reverse=True)
    for tree in path:
        assert_sound(tree, dataset)


def test_a_path_that_has_no_time_returns_one_tree(dataset):
    path = sparsity_path(dataset, 0.002, stream_of(), max_features=2, seconds=0.0)
    assert len(path) == 1 and widest(path[0]) <= 2


def test_axis_trees_look_at_one_feature_and_fit_well(dataset):
    trees = axis_trees(dataset, stream_of())
    assert all(widest(tree) == 1 for tree in trees)
    assert max(tree.quality for tree in trees) > (0.85 if dataset.n_classes else 0.7)
    assert path_trees(dataset, 0.0, 1, stream_of()) == trees


def test_linear_trees_begin_with_logistic_regressions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) * (1.0, 2.0, 5.0, 0.1)
    rows = Dataset.from_arrays(
        X, X @ (1.0, -1.0, 0.2, 3.0) + rng.normal(size=300) > 0.5
    )
    costs = 0.01, 3.0
    trees = linear_trees(rows, stream_of(), costs)
    for tree, cost in zip(trees, costs, strict=True):
        assert_sound(tree, rows)
        logistic = LogisticRegression(C=cost, tol=1e-8, max_iter=1000).fit(
            rows.X, 1 - rows.y
        )
        expected = np.append(logistic.coef_[0], -logistic.intercept_)
        found = np.append(tree.weights[0], tree.thresholds[0])
        length = np.linalg.norm(expected[:-1]) / np.linalg.norm(found[:-1])
        np.testing.assert_allclose(
            length * found, expected, atol=1e-2 * abs(expected).max()
        )
    assert path_trees(rows, 0.0, 2, stream_of(), C=costs) == trees


@pytest.mark.parametrize("number", range(3))
def test_where_features_cost_a_path_is_followed_again_without_the_dearest(number):
    X, y = load_wine(return_X_y=True)
    free = Dataset.from_arrays(X, y)
    price = np.where(np.arange(X.shape[1]) < 9, 0.001, 0.01)
    priced = free.evolved_for(as_objective(Cost(features=price), free))
    stream = stream_of(number)
    trees = path_trees(priced, 0.002, number, stream)
    for tree in trees:
        assert_sound(tree, priced)
    is_cheap = np.array([not tree.weights[:, 9:].any() for tree in trees])
    assert is_cheap.any() and not is_cheap.all()


def test_the_best_of_paths_are_the_fittest_and_those_that_nothing_dominates(dataset):
    trees = [
        prune(tree, dataset, 0.001, 0.0005)[0]
        for number in range(4)
        for tree in path_trees(dataset, 0.002, number, stream_of(number))
    ]
    worth = PenalizedAccuracy(0.001, 0.0005)
    n = 8
    found = best_of_paths(trees, n, worth)
    assert len(found) == n and all(distinct(found))
    ranked = [tree for tree, new in zip(trees, distinct(trees), strict=True) if new]
    ranked.sort(key=worth, reverse=True)
    assert [worth(one) for one in found[: n // 2]] == [
        worth(one) for one in ranked[: n // 2]
    ]

    def is_dominated(tree):
        others = [one for one in ranked if one != tree]
        return any(
            a.quality >= tree.quality and a.complexity <= tree.complexity
            for a in others
        )

    if any(is_dominated(tree) for tree in found[n // 2 :]):
        assert all(is_dominated(tree) for tree in ranked if tree not in found)


def test_found_trees_join_the_population_pruned_for_its_rows(dataset):
    half = dataset.take(np.arange(0, dataset.X.shape[0], 2))
    found = path_trees(half, 0.002, 0, stream_of(5))
    parameters = {"size_penalty": 0.001, "term_penalty": 0.0003, "init": "widths"}
    toolbox = make_toolbox(dataset, found=found, random_state=0, **parameters)
    toolbox.unregister("path")  # those that are found come of paths
    population = toolbox.population(n=40)
    for one in population:
        assert_sound(one, dataset)
    routed = [make_individual(dataset, *one.splits) for one in found]
    pruned = [prune(one, dataset, 0.001, 0.0003)[0] for one in routed]
    assert sum(one in population for one in pruned) >= 2
    assert {one.origin for one in population} == {"widths", "dipole"}
