"""Pictures of a parameter's influence: the size penalty, the maximal depth."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evotree.experiments.pictures.parameters import plot_accuracy_against_depth, plot_size_penalty


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


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
    ax = plt.subplots()[1]
    assert plot_accuracy_against_depth(runs, ax) is ax
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
