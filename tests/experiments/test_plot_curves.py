"""Pictures of learning curves: their panels, medians, quartiles and colours."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from evotree.experiments.pictures.curves import plot_curves_of_datasets
from evotree.plotting.style import PALETTE


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def curves_of(datasets, methods, n_fits=5):
    """Return random curves of growing length."""
    rng = np.random.default_rng(0)
    return {
        (dataset, method, fold, 0): pd.DataFrame(
            {
                "gen": np.arange(4 + fold),
                "quality_best": rng.random(4 + fold),
                "complexity_best": rng.integers(2, 30, 4 + fold),
            }
        )
        for dataset in datasets
        for method in methods
        for fold in range(n_fits)
    }


def test_each_data_set_has_two_panels_with_medians_and_quartiles():
    curves = curves_of(["a", "b$_"], ["x", "y"])
    figure = plot_curves_of_datasets(curves, ["a", "b$_"], ["x", "y"])
    assert [ax.get_title() for ax in figure.axes] == ["a", "", "b$_", ""]
    for upper, dataset in ((0, "a"), (2, "b$_")):
        for ax, chapter in zip(
            figure.axes[upper : upper + 2], ("quality", "complexity"), strict=True
        ):
            for i, method in enumerate(("x", "y")):
                # A run that ended early keeps its last value.
                values = np.array(
                    [
                        np.pad(
                            curves[dataset, method, fold, 0][f"{chapter}_best"],
                            (0, 4 - fold),
                            "edge",
                        )
                        for fold in range(5)
                    ]
                )
                line, band = ax.get_lines()[i], ax.collections[i]
                np.testing.assert_array_equal(line.get_xdata(), np.arange(8))
                np.testing.assert_allclose(line.get_ydata(), np.median(values, axis=0))
                low, high = np.quantile(values, (0.25, 0.75), axis=0)
                y = band.get_paths()[0].vertices[:, 1]
                assert y.min() == pytest.approx(low.min())
                assert y.max() == pytest.approx(high.max())
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["x", "y"]
    figure.savefig("/dev/null", format="png")


def test_a_method_keeps_its_colour_where_another_has_no_curves():
    curves = curves_of(["a"], ["x", "y"]) | curves_of(["b"], ["y"])
    figure = plot_curves_of_datasets(curves, ["b", "c", "a"], ["none", "x", "y"])
    assert [ax.get_title() for ax in figure.axes[::2]] == ["b", "a"]
    for ax in figure.axes:
        drawn = [line for line in ax.get_lines() if len(line.get_xdata())]
        assert drawn[-1].get_color() == PALETTE[2]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["x", "y"]


def test_a_flat_curve_does_not_look_like_a_change():
    flat = pd.DataFrame({"gen": [0, 1], "quality_best": [1.0, 1.0], "complexity_best": [5, 5]})
    upper, lower = plot_curves_of_datasets({("a", "x", 0, 0): flat}, ["a"], ["x"]).axes
    assert np.ptp(upper.get_ylim()) == pytest.approx(0.02)
    assert np.ptp(lower.get_ylim()) == pytest.approx(2.0)


def test_other_records_are_left_out():
    foreign = pd.DataFrame({"gen": [0], "loss": [1.0]})
    assert plot_curves_of_datasets({}, ["a"], ["x"]) is None
    assert plot_curves_of_datasets({("a", "x", 0, 0): foreign}, ["a"], ["x"]) is None
    assert plot_curves_of_datasets(curves_of(["a"], ["x"]), ["a"], ["y"]) is None
    lacking = {key: one.drop(columns="complexity_best") for key, one in curves_of("a", "x").items()}
    upper, lower = plot_curves_of_datasets(lacking | {("a", "x", 9, 0): foreign}, ["a"], ["x"]).axes
    assert upper.get_lines()[0].get_xdata().size and not lower.get_lines()[0].get_xdata().size
