"""Refinement: what refiners do to a tree; who is refined, when and how often, and the records."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_wine

from evotree import Variation, evolve, make_toolbox, to_frame
from evotree.dataset import Dataset
from evotree.fitness.base import (
    FitnessQualityComplexity,
    PenalizedAccuracy,
    quality_and_complexity,
)
from evotree.operators.initialization.growth import init_dipolar
from evotree.operators.pruning import prune
from evotree.operators.refinement import (
    Refinement,
    choose_for_refinement,
    make_refiner,
    make_refiners,
    refine,
)
from evotree.operators.splitters.perturbation import OC1
from evotree.rng import make_streams
from tests.strategies import (
    any_populations,
    apply_operator,
    assert_sound,
    seeds,
)


@pytest.fixture(scope="module")
def wine_trees():
    """Return a data set and some larger trees on it."""
    dataset = Dataset.from_arrays(*load_wine(return_X_y=True))
    return dataset, [
        init_dipolar(dataset, 0.0, stream) for stream in make_streams(3, 0, 6)
    ]


@pytest.mark.parametrize("name", ["linear", "axis", "oc1", "mutate terms"])
def test_a_resplit_changes_one_test(name, wine_trees):
    dataset, trees = wine_trees
    n_changed = 0
    for seed, tree in enumerate(3 * trees):
        (after,) = apply_operator(
            name, tree, tree, dataset, make_streams(seed, 1, 1)[0]
        )
        tests = {
            (w.tobytes(), t) for w, t in zip(tree.weights, tree.thresholds, strict=True)
        }
        new = [
            w
            for w, t in zip(after.weights, after.thresholds, strict=True)
            if (w.tobytes(), t) not in tests
        ]
        assert len(new) <= 1
        n_changed += len(new)
        if name == "axis":
            assert all((w != 0.0).sum() == 1 for w in new)
    assert n_changed >= 3


def test_refiners_of_one_name_are_told_apart_and_unknown_ones_named():
    own = OC1(), OC1(random_start=True), stay
    refiners = make_refiners(Refinement(dict.fromkeys((*own, "tao"), 3.0), C=2.0))
    assert list(refiners) == ["OC1", "OC12", "stay", "tao"]
    assert [share for share, _ in refiners.values()] == [0.25] * 4
    for name in ("polish", 3):
        with pytest.raises(ValueError, match=f"refinement names .*{name}.*: allowed"):
            make_refiner(name, (2.0, 2.0))


NAMES = ("tao", "sparse", "linear", "axis", "dipole")


def stay(individual, dataset):
    """Refine nothing."""
    return (individual,)


def run(dataset, refinement, n=20, max_generations=30, **options):
    toolbox = make_toolbox(dataset, refinement=refinement, random_state=1, **options)
    return evolve(toolbox.population(n=n), toolbox, max_generations=max_generations)


@given(any_populations, st.sampled_from(NAMES), seeds, st.booleans())
def test_fitness_never_falls(drawn, name, seed, two_objectives):
    dataset, individuals = drawn
    evaluate = quality_and_complexity if two_objectives else PenalizedAccuracy(0.01)
    for individual in individuals:
        if two_objectives:
            individual.fitness = FitnessQualityComplexity()
        individual.fitness.values = evaluate(individual)
        individual.stream = make_streams(seed, 1, 1)[0]
        parent = individual.clone()
        refiners = make_refiners(Refinement(name))
        toolbox = SimpleNamespace(evaluate=evaluate)
        (result,) = refine(individual, toolbox, dataset, refiners, 0.01)
        assert result is individual
        assert individual.fitness >= parent.fitness
        gain = individual.fitness.wvalues[0] - parent.fitness.wvalues[0]
        assert individual.outcome[:2] == (name, gain)
        assert individual.outcome.seconds > 0.0
        assert_sound(individual, dataset)
        assert individual.fitness.values == evaluate(individual)


@pytest.mark.parametrize(
    "operators",
    [(), {}, {"tao": 0.0}, {"tao": -1.0, "oc1": 2.0}, {"tao": np.nan}, {"tao": np.inf}],
)
def test_bad_shares_are_named(iris, operators):
    with pytest.raises(
        ValueError, match="refinement has the shares .* allowed are numbers"
    ):
        make_toolbox(iris, refinement=operators)


def test_splits_are_refined_with_the_probability(wine_trees):
    dataset, trees = wine_trees
    members = [*trees, prune(trees[0].clone(), dataset, 10.0)[0]]  # the last is a leaf
    times = np.zeros(len(members))
    for generation in range(300):
        streams = make_streams(7, generation, len(members))
        for one, stream in zip(members, streams, strict=True):
            one.stream = stream
        chosen = choose_for_refinement(members, Refinement(probability=0.3))
        times += [any(one is other for other in chosen) for one in members]
    np.testing.assert_allclose(times / 300, [0.3] * len(trees) + [0.0], atol=0.1)


@pytest.mark.parametrize("algorithm", ["penalized", "nsga2"])
def test_the_chapter_adds_up(iris, algorithm):
    """Also where offspring that were refined do not survive."""
    calls = []

    def counted(individual, dataset):
        calls.append(len(individual))
        return stay(individual, dataset)

    refinement = Refinement({counted: 1.0, "tao": 2.0}, probability=0.4)
    result = run(iris, refinement, variation=Variation(algorithm=algorithm))
    table = to_frame(result.logbook)
    tried = table["refinement_counted_tried"] + table["refinement_tao_tried"]
    assert table["refinement_counted_tried"].sum() == len(calls) > 10
    assert tried.sum() > 2 * len(calls) and tried[0] == 0
    for name in ("counted", "tao"):
        improved, gain = (
            table[f"refinement_{name}_improved"],
            table[f"refinement_{name}_gain"],
        )
        assert (improved <= table[f"refinement_{name}_tried"]).all()
        assert ((gain > 0.0) == (improved > 0)).all()
    assert "refinement" not in run(iris, None, max_generations=2).logbook.chapters
