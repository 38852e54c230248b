"""Pictures of the papers' figures: sampling, the size penalty, the depth, budgets."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from evotree.operators.splitters.cross_entropy import SamplingStep, sample_directions
from experiments.pictures import plot_accuracy_against_depth, plot_sampling, plot_size_penalty


def test_the_steps_at_which_a_search_closes_in_are_drawn():
    generator, target, trace = np.random.default_rng(0), np.array([0.6, 0.0, 0.8]), []
    for kappa in (0.0, 0.5, 3.0, 5.0, 40.0, 900.0):
        mu = target if kappa > 0.0 else np.zeros(3)
        directions = sample_directions(generator, mu, kappa, 30)
        scores = 1.0 - directions @ target
        scores[0] = np.inf  # parts no rows
        is_elite = scores <= np.partition(scores, 4)[4]
        trace.append(SamplingStep(mu, kappa, directions, scores, is_elite))
    figure = plot_sampling(trace).figure
    titles = [ax.get_title() for ax in figure.axes if ax.name == "3d"]
    assert titles == ["iteration 0, uniform", "iteration 2, κ = 3.0", "iteration 4, κ = 40.0"]
    figure.draw_without_rendering()


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 999),
    n_runs=st.integers(1, 4),
    optimal=st.integers(1, 99),
    n=st.integers(1, 30),
)
def test_quality_is_above_size_and_both_are_means(seed, n_runs, optimal, n):
    rng = np.random.default_rng(seed)
    penalties = 10.0 ** -rng.uniform(0.0, 4.0, n)
    runs = pd.DataFrame({"size_penalty": np.repeat(penalties, n_runs)})
    runs["accuracy"], runs["nodes"] = rng.random(len(runs)), rng.integers(1, 40, len(runs))
    ax = plot_size_penalty(runs, optimal)
    (right,) = (other for other in ax.figure.axes if other is not ax)
    groups = runs.groupby("size_penalty")
    for side, column in ((ax, "accuracy"), (right, "nodes")):
        (container,) = side.containers
        line, _, (bars,) = container
        means, spreads = groups[column].mean(), groups[column].std().fillna(0.0)
        np.testing.assert_allclose(line.get_xydata(), np.column_stack([means.index, means]))
        ends = np.array(bars.get_segments())[:, :, 1]
        np.testing.assert_allclose(ends, np.column_stack([means - spreads, means + spreads]))
        low, high = side.get_ylim()
        shares = (ends - low) / (high - low)
        assert (shares >= 0.5 - 1e-9).all() if side is ax else (shares <= 0.5 + 1e-9).all()
    assert right.get_lines()[-1].get_ydata()[0] == optimal < np.mean(right.get_ylim())
    assert len(ax.get_legend().get_texts()) == 3 and len(ax.get_xticks()) <= 10
    plt.close(ax.figure)


def test_lines_are_means_and_bands_deviations_over_folds():
    rng = np.random.default_rng(0)
    cells = [(name, d, f) for name in ("P", "Q") for d in (5, 1, 2) for f in range(3)]
    runs = pd.DataFrame(cells, columns=["method", "max_depth", "fold"])
    runs["accuracy"] = rng.uniform(0.5, 1.0, len(runs))
    ax = plot_accuracy_against_depth({"iris": runs, "wine": runs, "glass": runs})
    assert [one.get_title() for one in ax.figure.axes] == ["iris", "wine", "glass"]
    groups = runs.groupby(["method", "max_depth"])["accuracy"]
    means, spreads = groups.mean(), groups.std()
    for line, band in zip(ax.get_lines(), ax.collections, strict=True):
        of = line.get_label()
        np.testing.assert_allclose(line.get_xydata(), list(means[of].items()))
        ends = {tuple(point) for point in band.get_paths()[0].vertices.round(9)}
        for sign in (-1.0, 1.0):
            edge = (means[of] + sign * spreads[of]).round(9)
            assert set(edge.items()) <= ends
    assert [line.get_label() for line in ax.get_lines()] == ["P", "Q"]
