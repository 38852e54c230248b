"""The Pareto front of a run: which trees it holds, which one is chosen, its table."""

import pickle

import numpy as np
import pytest
from deap import base, tools
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer

from evotree import Dataset, evolve, make_toolbox
from evotree.engine.evolution import ParetoFront
from evotree.fitness.base import FitnessQualityComplexity, PenalizedAccuracy
from evotree.front import (
    MAX_MEMBERS,
    FittedFront,
    FrontTree,
    held_out_quality,
    select,
)
from evotree.operators.pruning import prune_marked
from evotree.rng import make_streams
from evotree.tree import FitnessMax, ObliqueTree
from tests.random_trees import random_tree
from tests.reference import pruning as naive
from tests.strategies import (
    any_populations,
    apply_operator,
    seeds,
    tasks,
    with_random_zeros,
)


@pytest.fixture(scope="module")
def split():
    X, y = load_breast_cancer(return_X_y=True)
    dataset = Dataset.from_arrays(
        X, y, np.random.default_rng(0).choice([1.0, 2.0], len(y))
    )
    is_held_out = np.random.default_rng(1).random(dataset.X.shape[0]) < 0.3
    return dataset.take(~is_held_out), dataset.take(is_held_out)


@pytest.fixture(scope="module")
def front(split):
    toolbox = make_toolbox(split[0], size_penalty=0.0005, random_state=0)
    front = ParetoFront()
    evolve(toolbox.population(n=24), toolbox, max_generations=30, hall_of_fame=front)
    return front


def complexity_of(tree):
    """Count leaves and weights other than 0 one by one."""
    return sum(tree.is_leaf) + sum(w != 0.0 for row in tree.weights for w in row)


def naive_front(individuals):
    """Return the first of the best trees of each complexity that beats all simpler ones."""
    front = []
    for complexity in sorted({complexity_of(individual) for individual in individuals}):
        rivals = (a for a in individuals if complexity_of(a) == complexity)
        best = max(rivals, key=lambda a: a.quality)
        if not front or best.quality > front[-1].quality:
            front.append(best)
    return front


@given(tasks(max_size=5), seeds)
def test_front_is_that_of_all_trees_ever_met(drawn, seed):
    dataset, population, names = drawn
    met = list(population)
    front = ParetoFront()
    front.update(population)
    for name, stream in zip(names, make_streams(seed, 0, len(names)), strict=True):
        children = apply_operator(name, met[-1], met[0], dataset, stream)
        met += children
        front.update(children)
    assert list(front) == naive_front(met)
    for member, key in zip(front, reversed(front.keys), strict=True):
        assert member.fitness is key and type(key) is FitnessQualityComplexity
        assert key.values == (member.quality, complexity_of(member))
        assert all(member is not individual for individual in met)


@given(any_populations, seeds, st.sampled_from((0.0, 0.003, 0.05)))
def test_prunings_are_the_best_for_their_complexity(drawn, seed, price):
    """No pruning of a member is worth more, whatever a leaf or a term costs."""
    dataset, (individual, *_) = drawn
    individual = with_random_zeros(individual, dataset, seed)
    full = ParetoFront()
    full.update([individual])
    full.add_prunings(dataset)
    size = individual.subtree_size
    best = max(one.quality - price * one.complexity for one in full)
    if individual.n_leaves <= 8:
        for leaves in naive.prunings(size):
            marks = np.isin(np.arange(len(size)), leaves) & (size > 1)
            (other,) = prune_marked(individual.clone(), dataset, marks)
            assert other.quality - price * complexity_of(other) <= best + 1e-9
    assert len(full[0]) == 1
    assert select(full, "size<=1") is select(full, "terms<=0") is full[0]


class Point:
    """As much of an individual as a front looks at."""

    def __init__(self, quality, complexity):
        self.quality, self.complexity, self.fitness = quality, complexity, FitnessMax()


def test_a_front_of_a_long_row_of_trees_is_bounded():
    """In any order, whose ends are those of all."""
    points = [Point(k / 1000, k) for k in range(1, 501)]
    for order in (points, points[::-1], points[::2] + points[1::2]):
        front = ParetoFront()
        front.update(order)
        assert len(front) == len(front.keys) == MAX_MEMBERS == 100
        assert (front[0].complexity, front[-1].complexity) == (1, 500)


UNKNOWN = [
    "best",
    "size<9",
    "size<=0",
    "size<=-1",
    "size<=2.5",
    "depth<=3",
    "n_terms<=3",
    9,
    None,
]


@pytest.mark.parametrize("rule", UNKNOWN)
def test_unknown_rules_are_named(rule, front):
    with pytest.raises(
        ValueError, match="rule=.*: allowed are 'chosen', 'accurate', 'tree', "
    ):
        select(front, rule)


def test_what_a_rule_lacks_is_named(front, split):
    with pytest.raises(ValueError, match="rule='simplest' needs X and y"):
        select(front, "simplest")
    for rule in ("accurate", "tree", "simplest", "leaves<=9"):
        with pytest.raises(ValueError, match="X has no rows"):
            select(front, rule, held_out=split[1].take(np.arange(0)))
    leaf = ObliqueTree(
        weights=np.zeros((1, front[0].n_features)),
        thresholds=np.zeros(1),
        subtree_size=np.ones(1, dtype=np.int32),
        values=front[0].to_tree().values[:1],
    )
    with pytest.raises(ValueError, match="no tree of the front has a split"):
        select([FrontTree.of(leaf, 0.5, "")], "tree")
    with pytest.raises(ValueError, match="front has no members"):
        select(ParetoFront(), "size<=3")


@pytest.mark.parametrize("bound", [1, 3, 10, 1000])
@pytest.mark.parametrize(
    ("name", "measure"),
    [
        ("size", len),
        ("leaves", lambda tree: tree.n_leaves),
        ("terms", lambda tree: complexity_of(tree) - tree.n_leaves),
        ("complexity", complexity_of),
    ],
)
def test_rules_of_bounds(front, name, measure, bound):
    fitting = [member for member in front if measure(member) <= bound]
    if not fitting:
        with pytest.raises(
            ValueError, match=f"the least {name} of a member .* add_prunings"
        ):
            select(front, f"{name}<={bound}")
        return
    chosen = select(front, f" {name} <= {bound} ")
    assert chosen is max(fitting, key=lambda m: (m.quality, -complexity_of(m)))


@given(penalty=st.floats(0.0, 0.05), term_penalty=st.sampled_from((0.0, 0.0001, 0.002)))
def test_the_rule_tree_takes_the_fittest_with_a_split(front, penalty, term_penalty):
    penalties = penalty, term_penalty
    chosen = select(front, "tree", penalties=penalties)
    worth = PenalizedAccuracy(*penalties)
    with_split = [member for member in front if member.n_leaves > 1]
    assert chosen in with_split and worth(chosen) == max(map(worth, with_split))
    assert select(front, "accurate").quality == max(one.quality for one in front)


def test_rules_of_rows_held_out(front, split):
    held_out, weight = split[1], split[1].sample_weight
    right = [
        held_out.y == one.predict_value(held_out.X).argmax(axis=1) for one in front
    ]
    accuracy = np.array(right) @ weight / weight.sum()
    quality, standard_error = held_out_quality(front, held_out)
    np.testing.assert_allclose(quality, accuracy)
    np.testing.assert_allclose(
        standard_error, np.sqrt(accuracy * (1 - accuracy) / weight.sum())
    )
    best = int(np.argmax(accuracy))  # the first, so the smallest
    assert select(front, "accurate", held_out=held_out) is front[best]
    within = np.flatnonzero(accuracy >= accuracy[best] - standard_error[best])
    chosen = select(front, "simplest", held_out=held_out)
    assert (
        chosen is front[int(within[0])] and chosen.complexity <= front[best].complexity
    )
    table = front.to_frame()
    names = ["complexity", "terms", "leaves", "nodes", "depth", "quality"]
    assert list(table) == [*names, "origin"]
    assert (table["nodes"] == 2 * table["leaves"] - 1).all()
    assert (table["complexity"] == table["leaves"] + table["terms"]).all()
    assert (
        table["quality"].is_monotonic_increasing and (table["origin"] == "dipole").all()
    )
    table = front.to_frame(held_out)
    assert list(table) == [*names, "held_out_quality", "held_out_se", "origin"]
    np.testing.assert_array_equal(table["held_out_quality"], quality)
    np.testing.assert_array_equal(table["held_out_se"], standard_error)
    assert len(ParetoFront().to_frame()) == 0


def test_trees_are_judged_by_what_they_predict_for_each_row():
    # Their leaves have labels by hand, of which shares of classes say nothing.
    random = np.random.default_rng(0)
    trees = []
    for _ in range(8):
        tree = random_tree(random, 3)
        trees.append(tree.labelled(random.integers(0, 3, len(tree))))
    X = random.uniform(0.0, 4.0, (200, 3))
    y = random.integers(0, tree.values.shape[1], len(X))
    held_out = Dataset.in_raw_units(X, y, np.unique(y))
    accuracy = [np.mean(tree.predict_label(X) == y) for tree in trees]
    np.testing.assert_allclose(held_out_quality(trees, held_out)[0], accuracy)


def test_a_fitted_front_prints_itself_with_an_arrow(front):
    members = [FrontTree.of(one.to_tree(), one.quality, one.origin) for one in front]
    plain, at = FittedFront(members, is_regression=False), len(members) // 2
    assert plain.chosen is None and "->" not in repr(plain)
    chosen = plain.choosing(pickle.loads(pickle.dumps(members[at])))
    _, *lines = repr(chosen).splitlines()
    assert [line.lstrip().startswith("->") for line in lines].index(True) == at
    assert repr(chosen).count("->") == chosen._repr_html_().count("-&gt;") == 1
    for line, one in zip(lines, members, strict=True):
        assert line.split()[-5:-3] == [f"{one.quality:.4f}", str(one.complexity)]
    stranger = members[at].replaced(thresholds=members[at].thresholds + 1.0)
    assert chosen.choosing(stranger).chosen is None


class ThreeObjectives(base.Fitness):
    """Quality and mean |weight| up or down, number of nodes down."""

    weights = (1.0, -1.0, -1.0)


def test_the_run_follows_objectives_of_ones_own(split):
    toolbox = make_toolbox(split[0], size_penalty=0.001, random_state=0)
    make, seen = toolbox.individual, []

    def individual(stream):
        one = make(stream)
        one.fitness = ThreeObjectives()
        return one

    toolbox.register("individual", individual)
    toolbox.register(
        "evaluate",
        lambda one: (
            one.quality,
            float(len(one)),
            float(np.count_nonzero(one.weights)),
        ),
    )
    look = [lambda run: seen.extend(one.clone() for one in run.population)]
    run = evolve(toolbox.population(n=12), toolbox, max_generations=6, callbacks=look)
    (first,) = tools.sortNondominated(seen, len(seen), first_front_only=True)
    expected = {one.fitness.values for one in first}
    assert {one.fitness.values for one in run.pareto_front} == expected
    sizes = [float(len(one)) for one in run.pareto_front]
    assert list(run.pareto_front.to_frame()["objective_1"]) == sizes
    assert len(expected) > 1 and {type(one.fitness) for one in run.pareto_front} == {
        ThreeObjectives
    }
