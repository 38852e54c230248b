"""Selection: scaling and sampling, NSGA-II against DEAP's own, and what keeps trees different."""

from types import SimpleNamespace

import numpy as np
import pytest
from deap import tools
from hypothesis import given
from hypothesis import strategies as st

from evotree.fitness.base import (
    FitnessQualityComplexity,
    PenalizedAccuracy,
    linear_scaling,
    quality_and_complexity,
)
from evotree.operators.variation import (
    distinct,
    replace_best,
    replace_duplicates,
    replace_nsga2,
    sel_crowded,
    standing_of,
    universal_sampling,
)
from evotree.rng import make_streams
from evotree.tree import FitnessMax
from tests.reference import naive
from tests.strategies import apply_operator, seeds, stream_of, tasks

fitness_values = st.lists(
    st.floats(-5, 1).map(lambda v: round(v, 6)), min_size=2, max_size=30
)


@given(fitness_values, st.floats(1.1, 3.0))
def test_scaling_agrees_with_its_naive_twin(fitness, pressure):
    scaled = linear_scaling(np.array(fitness), pressure)
    np.testing.assert_allclose(
        scaled, naive.linear_scaling(fitness, pressure), atol=1e-6
    )
    assert scaled.min() >= 0.0
    assert scaled.mean() == pytest.approx(1.0, abs=1e-6)
    assert scaled.max() <= pressure + 1e-6


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
    assert len(survivors) == n and len({id(one) for one in survivors}) == n
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
