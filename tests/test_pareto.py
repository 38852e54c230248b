"""The Pareto front of a run: which trees it holds, which one is chosen, its table."""

import copy
import pickle

import numpy as np
import pytest
from deap import base, tools
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import accuracy_score, r2_score

from evotree import Dataset, evolve, make_toolbox
from evotree.engine.pareto import ParetoFront, check_rule, held_out_quality, select
from evotree.fitness.objectives import FitnessQualitySize
from evotree.operators.pruning.penalized import prune
from evotree.rng import make_streams
from tests.strategies import any_populations, apply_operator, seeds, tasks


@pytest.fixture(scope="module")
def split():
    X, y = load_breast_cancer(return_X_y=True)
    dataset = Dataset.from_arrays(X, y, np.random.default_rng(0).choice([1.0, 2.0], len(y)))
    is_held_out = np.random.default_rng(1).random(dataset.X.shape[0]) < 0.3
    return dataset.take(~is_held_out), dataset.take(is_held_out)


@pytest.fixture(scope="module")
def front(split):
    return front_of_run(split[0])


def front_of_run(dataset):
    toolbox = make_toolbox(dataset, size_penalty=0.0005, random_state=0)
    front = ParetoFront()
    evolve(toolbox.population(n=32), toolbox, max_generations=60, hall_of_fame=front)
    return front


def naive_front(individuals):
    """Return the first of the best trees of each size that is better than all smaller ones."""
    front = []
    for size in sorted({len(individual) for individual in individuals}):
        best = max((a for a in individuals if len(a) == size), key=lambda a: a.quality)
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
    sizes = [len(member) for member in front]
    qualities = [member.quality for member in front]
    assert sizes == sorted(set(sizes)) and qualities == sorted(set(qualities))
    for member, key in zip(front, reversed(front.keys), strict=True):
        assert member.fitness is key and type(key) is FitnessQualitySize
        assert key.values == (member.quality, len(member))
        assert all(member is not individual for individual in met)


@given(any_populations)
def test_front_holds_what_deaps_own_holds(drawn):
    front, deaps = ParetoFront(), tools.ParetoFront()
    front.update(drawn[1])
    for individual in drawn[1]:
        individual.fitness = FitnessQualitySize((individual.quality, len(individual)))
    deaps.update(drawn[1])
    assert {m.fitness.values for m in front} == {m.fitness.values for m in deaps}


def test_a_front_is_a_hall_of_fame(front):
    assert isinstance(front, tools.ParetoFront)
    assert len(front) > 3 and front[0] is next(iter(front)) and front[-1] is next(reversed(front))
    before = list(front)
    front.update(before)
    assert list(front) == before


def test_members_are_removed_and_come_back(front):
    other = ParetoFront()
    other.update(front)
    dropped = other[1]
    other.remove(1)
    assert len(other) == len(front) - 1 and dropped not in list(other)
    other.update([dropped])
    assert list(other) == list(front)
    other.clear()
    assert len(other) == 0
    other.update(reversed(list(front)))
    assert list(other) == list(front)


def test_fronts_copy_and_pickle(front):
    for twin in (pickle.loads(pickle.dumps(front)), copy.deepcopy(front)):
        assert list(twin) == list(front)
        assert [m.fitness.values for m in twin] == [m.fitness.values for m in front]
        twin.update(front)
        assert len(twin) == len(front)
        twin.clear()
    assert len(front) > 3


def test_prunings_fill_the_front(front, split):
    full = ParetoFront()
    full.update(front[-2:])
    full.add_prunings(split[0])
    assert len(full) > 2 and len(full[0]) == 1
    for member in full:
        assert full[-1].quality >= member.quality
    for alpha in (0.001, 0.01, 0.1):
        pruned = prune(front[-1].clone(), split[0], alpha)[0]
        best = select(full, f"size<={len(pruned)}")
        assert best.quality >= pruned.quality
    assert select(full, "size<=1") is full[0]


@pytest.mark.parametrize(
    ("rule", "kind", "max_size"),
    [
        ("validation", "validation", 0),
        ("1se", "1se", 0),
        ("fitness", "fitness", 0),
        ("size<=9", "size", 9),
        (" size <= 10 ", "size", 10),
        ("leaves<=5", "size", 9),
        ("leaves<=1", "size", 1),
    ],
)
def test_rules_are_read(rule, kind, max_size):
    assert check_rule(rule) == (kind, max_size)


@pytest.mark.parametrize("rule", ["best", "size<9", "size<=0", "size<=-1", "size<=2.5", 9, None])
def test_unknown_rules_are_named(rule, front):
    with pytest.raises(ValueError, match="rule=.*: allowed are 'validation', '1se'"):
        select(front, rule)


@pytest.mark.parametrize("bound", [1, 2, 3, 4, 5, 9, 10, 1000])
def test_size_rule(front, bound):
    full = ParetoFront()
    full.update(front)
    if len(full[0]) > bound:
        with pytest.raises(ValueError, match="smallest member .* add_prunings"):
            select(full, f"size<={bound}")
        return
    fitting = [member for member in full if len(member) <= bound]
    assert select(full, f"size<={bound}") is max(fitting, key=lambda m: m.quality)


@given(penalty=st.floats(0.0, 0.05), weight_penalty=st.sampled_from((0.0, 0.001, 0.02)))
def test_fitness_rule(front, penalty, weight_penalty):
    worth = []
    for member in front:
        n_used = np.count_nonzero(member.weights[~member.is_leaf])
        charge = penalty * len(member) + weight_penalty * n_used / member.n_features
        worth.append(member.quality - charge)
    chosen = select(front, "fitness", size_penalty=penalty, weight_penalty=weight_penalty)
    assert worth[front.items.index(chosen)] == pytest.approx(max(worth), abs=1e-12)


def accuracies(front, held_out):
    """Return the accuracies of the members as scikit-learn has them."""
    return np.array(
        [
            accuracy_score(
                held_out.y,
                member.predict_value(held_out.X).argmax(axis=1),
                sample_weight=held_out.sample_weight,
            )
            for member in front
        ]
    )


def test_rules_of_rows_held_out(front, split):
    accuracy = accuracies(front, split[1])
    quality, standard_error = held_out_quality(front, split[1])
    np.testing.assert_allclose(quality, accuracy)
    n = split[1].total_weight
    np.testing.assert_allclose(standard_error, np.sqrt(accuracy * (1 - accuracy) / n))
    best = int(np.argmax(accuracy))  # the first, so the smallest
    assert select(front, "validation", held_out=split[1]) is front[best]
    within = np.flatnonzero(accuracy >= accuracy[best] - standard_error[best])
    chosen = select(front, "1se", held_out=split[1])
    assert chosen is front[int(within[0])]
    assert len(chosen) <= len(front[best])


def test_regression_is_judged_by_its_r2():
    dataset = Dataset.from_arrays(*load_diabetes(return_X_y=True), task="regression")
    is_held_out = np.arange(dataset.X.shape[0]) % 3 == 0
    held_out = dataset.take(is_held_out)
    front = front_of_run(dataset.take(~is_held_out))
    quality, standard_error = held_out_quality(front, held_out)
    for member, r2, error in zip(front, quality, standard_error, strict=True):
        prediction = member.predict_value(held_out.X)[:, 0]
        loss = (held_out.y - prediction) ** 2
        assert r2 == pytest.approx(r2_score(held_out.y, prediction))
        expected = loss.std() / np.sqrt(len(loss)) / held_out.y.var()
        assert error == pytest.approx(expected)
    chosen = select(front, "validation", held_out=held_out)
    assert chosen.fitness.values[0] == chosen.quality
    assert quality[list(front).index(chosen)] == quality.max()
    assert len(select(front, "1se", held_out=held_out)) <= len(chosen)
    equal = held_out.take(np.arange(1))
    assert set(held_out_quality(front, equal)[0]) <= {0.0, 1.0}


def test_what_a_rule_lacks_is_named(front, split):
    for rule in ("validation", "1se"):
        with pytest.raises(ValueError, match=f"held_out=None: rule='{rule}' needs"):
            select(front, rule)
        with pytest.raises(ValueError, match="held_out has no rows"):
            select(front, rule, held_out=split[1].take(np.arange(0)))
    with pytest.raises(ValueError, match="size_penalty=None: rule='fitness' needs"):
        select(front, "fitness")
    with pytest.raises(ValueError, match="front has no members"):
        select(ParetoFront(), "size<=3")


def test_table(front, split):
    table = front.to_frame()
    assert list(table) == ["nodes", "leaves", "depth", "quality", "origin"]
    assert (table["nodes"] == 2 * table["leaves"] - 1).all()
    assert table["quality"].is_monotonic_increasing and (table["origin"] == "dipole").all()
    table = front.to_frame(split[1])
    np.testing.assert_allclose(table["held_out_quality"], accuracies(front, split[1]))
    assert (table["held_out_se"] >= 0.0).all()
    assert len(ParetoFront().to_frame()) == 0


class ThreeObjectives(base.Fitness):
    """Quality and mean |weight| up or down, number of nodes down."""

    weights = (1.0, -1.0, -1.0)


@given(tasks(max_size=5), seeds)
def test_objectives_of_ones_own_are_followed(drawn, seed):
    """The front is the first front of all that was seen, in these objectives."""
    dataset, population, names = drawn
    met, front = [one.clone() for one in population], ParetoFront()
    for name, stream in zip(names, make_streams(seed, 0, len(names)), strict=True):
        met += apply_operator(name, met[-1].clone(), met[0].clone(), dataset, stream)
    for one in met:
        size = float(len(one))
        one.fitness = ThreeObjectives((one.quality, size, float(np.abs(one.weights).sum())))
    for one in met:
        front.update([one])
    (first,) = tools.sortNondominated(met, len(met), first_front_only=True)
    assert {one.fitness.values for one in front} == {one.fitness.values for one in first}
    assert all(any(one == other for other in first) for one in front)
    assert list(front.to_frame()["objective_1"]) == [float(len(one)) for one in front]


def test_the_run_follows_objectives_of_ones_own(split):
    toolbox = make_toolbox(split[0], size_penalty=0.001, random_state=0)
    make, seen = toolbox.individual, []

    def individual(stream):
        one = make(stream)
        one.fitness = ThreeObjectives()
        return one

    def evaluate(one):
        return one.quality, float(len(one)), float(np.count_nonzero(one.weights))

    toolbox.register("individual", individual)
    toolbox.register("evaluate", evaluate)
    look = [lambda run: seen.extend(one.clone() for one in run.population)]
    run = evolve(toolbox.population(n=12), toolbox, max_generations=6, callbacks=look)
    (first,) = tools.sortNondominated(seen, len(seen), first_front_only=True)
    expected = {one.fitness.values for one in first}
    assert {one.fitness.values for one in run.pareto_front} == expected
    assert len(expected) > 1 and {type(one.fitness) for one in run.pareto_front} == {
        ThreeObjectives
    }
