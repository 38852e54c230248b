"""Folds, samples that grow, and copies with noise."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evotree import Variation, evolve, make_toolbox
from evotree.dataset import SCALINGS, Dataset, jitter, make_folds, split_folds
from evotree.engine.populations import (
    GROWTH,
    GrowingSample,
    move_to_rows,
    sample_sizes,
    stratified_order,
)
from evotree.operators.structure.splice import make_individual
from evotree.rng import make_streams
from tests.strategies import any_datasets, assert_sound, datasets, seeds, stream_of


@given(any_datasets, st.integers(2, 12), seeds)
def test_folds_are_balanced_and_part_all_rows(dataset, n_folds, seed):
    folds = make_folds(dataset, n_folds, stream_of(seed))
    assert len(folds) == dataset.multiplicity.sum()
    assert np.ptp(np.bincount(folds, minlength=n_folds)) <= 1
    y = np.repeat(dataset.y, dataset.multiplicity)
    for c in range(dataset.n_classes):
        assert np.ptp(np.bincount(folds[y == c], minlength=n_folds)) <= 1
    np.testing.assert_array_equal(folds, make_folds(dataset, n_folds, stream_of(seed)))
    parts = [split_folds(dataset, folds, fold) for fold in range(n_folds)]
    for others, inside in parts:
        assert others.n_rows + inside.n_rows == dataset.n_rows
        total = others.total_weight + inside.total_weight
        np.testing.assert_allclose(total, dataset.total_weight, rtol=1e-12)
    rows = np.concatenate([inside.unmerged().X for _, inside in parts])
    whole = dataset.unmerged().X
    np.testing.assert_array_equal(rows[np.lexsort(rows.T)], whole[np.lexsort(whole.T)])


@given(
    st.integers(1, 10_000),
    st.integers(1, 20_000) | st.floats(1e-4, 1.0),
    st.integers(2, 9),
)
def test_sizes_rise_by_equal_factors_to_all_rows(n_rows, max_samples, least):
    sizes = sample_sizes(n_rows, max_samples, least)
    first = max_samples if isinstance(max_samples, int) else int(max_samples * n_rows)
    assert sizes[0] == min(max(first, least), n_rows) and sizes[-1] == n_rows
    factor = (n_rows / sizes[0]) ** (1.0 / max(1, len(sizes) - 1))
    assert (1.0 < factor <= GROWTH) if len(sizes) > 1 else sizes == [n_rows]
    assert len(sizes) < 3 or factor**2 > GROWTH  # one sample less would grow faster
    for i, size in enumerate(sizes):
        assert size == pytest.approx(sizes[0] * factor**i, abs=0.5 + 1e-6)
    assert sizes == sorted(set(sizes)) and sample_sizes(n_rows, None) == [n_rows]


@given(st.lists(st.integers(1, 200), min_size=1, max_size=6), seeds)
def test_every_beginning_has_a_share_of_each_stratum(counts, seed):
    strata = np.random.default_rng(seed).permutation(
        np.repeat(np.arange(len(counts)), counts)
    )
    order = stratified_order(strata, make_streams(seed, 0, 1)[0])
    assert sorted(order) == list(range(len(strata)))
    so_far = np.cumsum(strata[order][:, None] == np.arange(len(counts)), axis=0)
    share = np.arange(1, len(strata) + 1)[:, None] * np.array(counts) / len(strata)
    assert np.abs(so_far - share).max() <= len(counts)
    assert (so_far[len(counts) - 1] == 1).all()


@given(datasets(), st.sampled_from((2, 5, 0.1, 0.5, None)), seeds)
def test_samples_are_nested_parts_of_the_rows(dataset, max_samples, seed):
    sample = GrowingSample(dataset, max_samples, make_streams(seed, 0, 1)[0])
    assert len(sample) == len(sample.sizes) and sample[len(sample) - 1] is dataset
    kept = Counter()
    for at, size in enumerate(sample.sizes):
        part = sample[at]
        columns = zip(part.X, part.y, part.multiplicity, strict=True)
        rows = Counter({(*x, y): n for x, y, n in columns})
        assert part.n_rows == size == rows.total() and kept <= rows
        assert np.unique(part.y).size == np.unique(dataset.y).size
        np.testing.assert_array_equal(part.mean, dataset.mean)
        order = np.lexsort((part.y, *part.raw.T[::-1]))
        np.testing.assert_array_equal(order, np.arange(len(part.y)))
        kept = rows


def rows_of(n):
    """Return rows of three classes, two of them parted by an oblique split."""
    X = np.random.default_rng(0).normal(size=(n, 3))
    return Dataset.from_arrays(
        X, (X @ [1.0, 2.0, 0.0] > 0.3) + (X[:, 2] > 1.0).astype(int)
    )


@pytest.mark.parametrize("algorithm", ["penalized", "nsga2"])
def test_a_run_that_moves_is_evaluated_on_the_other_rows(algorithm):
    whole, variation = rows_of(400), Variation(algorithm=algorithm)
    before, after = (
        make_toolbox(rows, random_state=1, variation=variation)
        for rows in (whole.take(np.arange(0, 400, 5)), whole)
    )
    run = evolve(before.population(n=20), before, max_generations=8)
    expected = {
        make_individual(whole, *one.splits).weights.tobytes() for one in run.population
    }
    origins = sorted(one.origin for one in run.population)
    complexity = max(one.complexity for one in run.pareto_front)
    move_to_rows(run, whole, after)
    for one in (*run.population, *run.hall_of_fame, *run.pareto_front):
        assert_sound(one, whole)
    for one in (*run.population, *run.hall_of_fame):
        assert one.fitness.values == pytest.approx(after.evaluate(one))
    assert {one.weights.tobytes() for one in run.population} == expected
    assert sorted(one.origin for one in run.population) == origins
    assert run.best.fitness.wvalues == max(
        one.fitness.wvalues for one in run.population
    )
    assert run.best_fitness == run.best.fitness.wvalues and run.last_improvement == 8
    complexities = [one.complexity for one in run.pareto_front]
    qualities = [one.quality for one in run.pareto_front]
    for rising in (complexities, qualities):
        assert rising == sorted(set(rising))
    assert max(complexities) <= complexity
    assert evolve(run, after, max_generations=12).generation == 12


# ---- copies with noise ---------------------------------------------------------------------------


@pytest.mark.parametrize("scaling", SCALINGS)
def test_noise_is_in_units_of_the_features(scaling):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4)) * [1.0, 100.0, 1e-3, 0.0]
    dataset = Dataset.from_arrays(X, rng.integers(0, 2, 200), scaling=scaling)
    noise = jitter(dataset, 0.5, 20, stream_of()).X[200:] - np.tile(dataset.X, (20, 1))
    deviation = (noise * dataset.scale).std(axis=0)
    np.testing.assert_allclose(deviation, 0.5 * X.std(axis=0), rtol=0.05)
    assert (noise[:, 3] == 0.0).all()  # a constant column stays constant


@given(any_datasets, st.integers(0, 4), st.sampled_from((0.0, 0.1, 2.0)), seeds)
def test_blurred_copies_share_weights_and_targets(dataset, n_copies, noise, seed):
    """Without copies noise takes the place of the rows."""
    jittered = jitter(dataset, noise, n_copies, stream_of(seed))
    assert jittered.classes is dataset.classes and jittered.scale is dataset.scale
    assert not jittered.X.flags.writeable and jittered.y.dtype == dataset.y.dtype
    rows, n = dataset.unmerged(), len(dataset.y) if n_copies else 0
    times, share = max(n_copies, 1), 1.0 / (n_copies + 1)
    copies = np.tile(rows.X, (times, 1))
    assert jittered.X.shape == (n + len(copies), rows.X.shape[1])
    np.testing.assert_array_equal(jittered.X[:n], dataset.X[:n])
    np.testing.assert_array_equal(jittered.y, [*dataset.y[:n], *np.tile(rows.y, times)])
    np.testing.assert_allclose(
        jittered.sample_weight[:n], share * dataset.sample_weight[:n]
    )
    weights = jittered.sample_weight[n:].reshape(times, -1)
    np.testing.assert_allclose(weights[0], share * rows.sample_weight)
    np.testing.assert_array_equal(weights, np.tile(weights[0], (times, 1)))
    if noise == 0.0:
        np.testing.assert_array_equal(jittered.X[n:], copies)
    assert jittered.multiplicity.sum() == dataset.multiplicity.sum()
