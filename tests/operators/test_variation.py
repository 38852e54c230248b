"""Mutation, crossover, selection: what holds of every operator, and what keeps trees different."""

import operator
from types import SimpleNamespace

import numpy as np
import pytest
from deap import tools
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.datasets import load_wine

from evotree.dataset import Dataset
from evotree.engine.config import Variation
from evotree.engine.toolbox import make_toolbox
from evotree.fitness.base import (
    FitnessQualityComplexity,
    PenalizedAccuracy,
    leaf_table,
    linear_scaling,
    quality_and_complexity,
)
from evotree.operators.initialization.growth import init_dipolar
from evotree.operators.refinement import reduced_problem
from evotree.operators.structure.splice import checked_arrays, make_individual
from evotree.operators.variation import (
    cx_trees,
    distinct,
    draw_exchange,
    mut_terms,
    mutate_nodes,
    replace_best,
    replace_duplicates,
    replace_nsga2,
    sel_crowded,
    standing_of,
    universal_sampling,
)
from evotree.rng import make_streams, uniform
from evotree.tree import FitnessMax, set_fitness
from tests.reference import naive, sparse
from tests.strategies import (
    any_datasets,
    any_populations,
    apply_operator,
    assert_sound,
    seeds,
    stream_of,
    tasks,
)


@given(tasks(max_size=8), seeds)
def test_any_sequence_keeps_trees_sound(drawn, seed):
    dataset, individuals, names = drawn
    for generation, name in enumerate(names):
        stream = make_streams(seed, generation, 1)[0]
        children = apply_operator(name, *individuals[:2], dataset, stream)
        for child in children:
            assert_sound(child, dataset)
        individuals = [*children, *individuals][:3]


@given(tasks(), seeds)
def test_a_child_is_routed_repeatable_and_its_parents_untouched(drawn, seed):
    dataset, individuals, (name,) = drawn
    parents = individuals[:2]
    for individual in parents:
        individual.fitness.values = (1.0,)
    before = [[array.copy() for array in parent.nodes()] for parent in parents]
    children, again = (
        apply_operator(name, *parents, dataset, make_streams(seed, 1, 1)[0])
        for _ in range(2)
    )
    assert all(map(operator.eq, children, again))
    for parent, arrays in zip(parents, before, strict=True):
        assert parent.fitness.values == (1.0,)
        assert all(map(np.array_equal, parent.nodes(), arrays))
    for child, parent in zip(children, parents, strict=False):
        same = all(a is b for a, b in zip(child.nodes(), parent.nodes(), strict=True))
        assert child.fitness.valid == same
    child = children[0]
    for k in np.flatnonzero(child.subtree_size == 1):
        for row in naive.rows_of(k, child):
            distance = child.weights @ dataset.X[row] - child.thresholds
            if np.abs(distance[child.subtree_size > 1]).min(initial=np.inf) > 1e-9:
                assert naive.leaf_of(dataset.X[row], child) == k
    assert child.quality == pytest.approx(naive.quality(dataset, child), abs=1e-12)
    assert (child.end > child.start).all()


def everywhere_centred(individual, dataset):
    internal = np.flatnonzero(individual.subtree_size > 1)
    return all(naive.is_centred(dataset, individual, k) for k in internal)


PUBLISHED = Variation(published_operators=True, term_mutation_probability=0.0)


@given(any_datasets, st.sampled_from((None, "tao", "axis")), seeds)
def test_whatever_changes_a_published_tree_leaves_every_split_centred(
    dataset, refiner, seed
):
    toolbox = make_toolbox(
        dataset,
        size_penalty=0.0,
        variation=PUBLISHED,
        init=None if refiner is None else {refiner: 0.3},
        refinement=refiner,
        random_state=seed,
    )
    trees = toolbox.population(n=6)
    for generation in (1, 2):
        children = [tree.clone() for tree in trees]
        for child, stream in zip(children, toolbox.streams(generation, 6), strict=True):
            child.stream = stream
        children = [toolbox.mutate(child)[0] for child in children]
        for a, b in zip(children[::2], children[1::2], strict=True):
            toolbox.mate(a, b)
        if refiner is not None:
            for child in children:
                set_fitness(child, toolbox.evaluate(child))
                toolbox.refine(child)
        for tree in trees + children:
            assert_sound(tree, dataset)
            assert everywhere_centred(tree, dataset)
        trees = children


@pytest.mark.parametrize(("published", "share"), [(True, 0.5), (False, 0.25)])
def test_a_root_that_mutates_becomes_a_leaf(iris, published, share):
    """In half of the draws as published, else in a quarter: children take the other quarter."""
    grown = (init_dipolar(iris, 0.0, stream_of(seed)) for seed in range(100))
    parent = next(
        tree for tree in grown if min(tree.subtree_size[[1, tree.right(0)]]) > 1
    )
    n_leaves = 0
    for stream in make_streams(8, 0, 2000):
        child = parent.clone()
        child.stream = stream
        mutated = mutate_nodes(
            *iris.rows[:3],
            iris.multiplicity,
            iris.spread,
            *parent.nodes(),
            0,
            stream,
            1e-9,
            0.5,
            5,
            0,
            1.0 if published else 0.5,
        )
        n_leaves += len(mutated[2]) == 1
    assert n_leaves / 2000 == pytest.approx(share, abs=0.05)


@given(any_populations, seeds, st.booleans())
def test_crossover_exchanges_splits_or_subtrees(drawn, seed, published):
    """As the paper says, what is below exchanged nodes may stay; else it goes with leaves alone."""
    dataset, (first, second, *_) = drawn
    n_features = dataset.X.shape[1]
    for stream in make_streams(seed, 1, 4):
        children = first.clone(), second.clone()
        children[0].stream = stream.copy()
        sizes = first.subtree_size, second.subtree_size
        a, b, cut = draw_exchange(stream, *sizes, n_features, 1.0 if published else 0.5)
        moves_subtrees = uniform(stream) >= 0.5 if published else cut == 0
        cx_trees(*children, dataset, published=published)
        parts = (first, a, second, b), (second, b, first, a)
        for child, (mine, i, other, j) in zip(children, parts, strict=True):
            node = naive.crossed(mine.splits, i, other.splits, j, cut, moves_subtrees)
            tree = naive.flat(naive.with_node(mine.splits, i, node), n_features)
            wanted = make_individual(dataset, *checked_arrays(*tree))
            assert_sound(child, dataset)
            # Thresholds are centred, by the one or the other of equally near rows.
            for part in ("weights", "subtree_size", "order"):
                one, other = getattr(child, part), getattr(wanted, part)
                np.testing.assert_array_equal(one, other)


@pytest.fixture(scope="module")
def wine():
    return Dataset.from_arrays(*load_wine(return_X_y=True))


@given(seeds)
def test_the_threshold_costs_least(wine, seed):
    parent = init_dipolar(wine, 0.0, stream_of(seed), max_depth=2)
    child = parent.clone()
    child.stream = make_streams(seed, 1, 1)[0]
    (child,) = mut_terms(child, wine)
    assume(len(child) == len(parent))
    changed = np.flatnonzero((child.weights != parent.weights).any(axis=1))
    assume(changed.size == 1)
    (k,) = changed
    table, stream = leaf_table(parent, wine.n_classes), stream_of()
    node = reduced_problem(parent, wine, k, *parent.splits[:2], table, stream)
    s, goes_right = node.X @ child.weights[k], node.y == 1
    cost = sparse.misrouted(s, goes_right, node.sample_weight, child.thresholds[k])
    assert cost == pytest.approx(
        sparse.least_cost(s, goes_right, node.sample_weight), abs=1e-9
    )


# ---- selection -----------------------------------------------------------------------------------


fitness_values = st.lists(
    st.floats(-5, 1).map(lambda v: round(v, 6)), min_size=2, max_size=30
)


@given(fitness_values, st.floats(1.1, 3.0))
def test_scaling_agrees_with_its_naive_twin(fitness, pressure):
    scaled = linear_scaling(np.array(fitness), pressure)
    np.testing.assert_allclose(
        scaled, naive.linear_scaling(fitness, pressure), atol=1e-6
    )


@given(
    st.lists(st.floats(0, 10), min_size=1, max_size=20).filter(lambda s: sum(s) > 0.1),
    st.integers(1, 50),
    seeds,
)
def test_universal_sampling_draws_expected_numbers_rounded(share, k, seed):
    share = np.array(share)
    drawn = universal_sampling(share, k, stream_of(seed))
    times = np.bincount(drawn, minlength=len(share))
    expected = k * share / share.sum()
    assert (times >= np.floor(expected - 1e-9)).all()
    assert (times <= np.ceil(expected + 1e-9)).all()


@st.composite
def generations(draw):
    """Draw parents and as many offspring, some of them copies, with two objectives."""
    dataset, parents, names = draw(tasks(max_size=5))
    offspring = []
    for name, stream in zip(
        names, make_streams(draw(seeds), 0, len(names)), strict=True
    ):
        offspring += apply_operator(name, *parents[:2], dataset, stream)
    offspring = [*offspring, *(one.clone() for one in parents)][: len(parents)]
    for one in [*parents, *offspring]:
        one.fitness = FitnessQualityComplexity(quality_and_complexity(one))
    return parents, offspring


@given(generations())
def test_distinct_tells_the_first_of_each_tree(drawn):
    trees = [*drawn[1], *drawn[0]]
    copies = [one.clone() for one in trees]
    for one in copies:
        one.replace([array.copy() for array in one.nodes()])
    naive = [one not in trees[:i] for i, one in enumerate(trees)]
    assert distinct([*trees, *copies]) == naive + [False] * len(copies)


@given(
    generations(), st.sampled_from((replace_duplicates, replace_nsga2, replace_best))
)
def test_survivors_are_as_different_as_can_be(drawn, replace):
    parents, offspring = drawn
    survivors, everyone = replace(*drawn), [*parents, *offspring]
    assert len({id(one) for one in survivors}) == len(survivors) == len(parents)
    assert all(one in everyone for one in survivors)
    assert sum(distinct(survivors)) == min(len(parents), sum(distinct(everyone)))
    if replace is replace_duplicates:
        assert all(child in survivors for child in offspring)
    if replace is replace_nsga2:
        assert max(a.fitness for a in survivors) == max(a.fitness for a in everyone)
        for one in everyone:
            assert not all(one.fitness.dominates(kept.fitness) for kept in survivors)


class Measured:
    """What survival sees of a tree: all that is different is another tree."""

    def __init__(self, quality, n_splits, n_extra_terms):
        self.quality, self.n_splits = quality, n_splits
        self.n_terms = n_splits + n_extra_terms
        self.thresholds = np.array([quality, n_splits, n_extra_terms])
        self.fitness = FitnessMax()

    def __len__(self):
        return 2 * self.n_splits + 1

    def __eq__(self, other):
        return self.thresholds.tolist() == other.thresholds.tolist()

    def clone(self):
        copy = Measured(*self.thresholds.tolist())
        copy.fitness.values = self.fitness.values
        return copy


measured = st.builds(
    Measured,
    st.integers(0, 100).map(lambda percent: percent / 100),
    st.integers(0, 12),
    st.integers(0, 12),
)


@given(
    st.lists(measured, min_size=2, max_size=80),
    st.sampled_from((0.0, 0.001, 0.01)),
    st.sampled_from((0.0, 0.001, 0.01)),
)
def test_trees_of_less_complexity_live_on_beside_the_fittest(
    trees, size_penalty, term_penalty
):
    evaluate = PenalizedAccuracy(size_penalty, term_penalty)
    for one in trees:
        one.fitness.values = evaluate(one)
    n = len(trees) // 2
    everyone = trees[: 2 * n]
    survivors = replace_best(trees[:n], trees[n : 2 * n], size_penalty, term_penalty)
    n_different = sum(distinct(everyone))
    assert sum(distinct(survivors)) == min(n, n_different)
    if n_different <= n:
        return
    fitness = [one.fitness for one in survivors]
    assert fitness == sorted(fitness, reverse=True)
    # Half of the places are the fittest trees'.
    different = {one.thresholds.tobytes(): one.fitness for one in everyone}
    fittest = sorted(different.values(), reverse=True)
    assert fitness[: n // 2] == fittest[: n // 2]
    # The best at each multiple of the penalties has one of the others, as far as there are any.
    for factor in (3.0, 10.0, 30.0)[: n - 1 - (n > 2)]:
        dear = PenalizedAccuracy(factor * size_penalty, factor * term_penalty)
        best = max(dear(one) for one in everyone)
        assert max(dear(one) for one in survivors)[0] == pytest.approx(best[0])


def points(objectives):
    """Return what selection sees of individuals: two objectives each."""
    return [
        SimpleNamespace(fitness=FitnessQualityComplexity(pair)) for pair in objectives
    ]


pairs = st.tuples(st.integers(0, 12).map(lambda q: q / 8), st.integers(1, 12))
few_pairs = st.lists(pairs, min_size=1, max_size=40)


@given(st.lists(pairs, min_size=1, max_size=40, unique=True))
def test_fronts_and_room_are_those_of_deap(objectives):
    individuals = points(objectives)
    standing, crowding = standing_of(individuals)
    fronts = tools.sortNondominated(individuals, len(individuals))
    for number, front in enumerate(fronts):
        tools.emo.assignCrowdingDist(front)
        members = {id(individual) for individual in front}
        found = [
            i for i, individual in enumerate(individuals) if id(individual) in members
        ]
        assert (standing[found] == number).all()
        for i in found:
            distance = individuals[i].fitness.crowding_dist
            assert crowding[i] == pytest.approx(distance)
    assert standing.max() == len(fronts) - 1
    individuals[0].stream = stream_of(len(fronts))
    drawn = [individuals.index(one) for one in sel_crowded(individuals, 200)]
    if len(individuals) > 20:
        assert standing[drawn].mean() <= standing.mean() + 0.35 * standing.std()


@given(few_pairs)
def test_copies_stand_one_front_lower_each(objectives):
    standing, crowding = standing_of(points(objectives))
    unique = list(dict.fromkeys(objectives))
    alone, room = standing_of(points(unique))
    seen = dict.fromkeys(unique, 0)
    for i, pair in enumerate(objectives):
        assert standing[i] == alone[unique.index(pair)] + seen[pair]
        assert crowding[i] == room[unique.index(pair)]
        seen[pair] += 1


def test_one_objective_is_not_enough():
    one = SimpleNamespace(fitness=FitnessMax((0.5,)))
    with pytest.raises(ValueError, match="quality_and_complexity"):
        standing_of([one, one])
