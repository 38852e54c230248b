"""The picture of methods compared over data sets: scores against sizes."""

import numpy as np
import pandas as pd
import pytest

from evotree.experiments import pictures


def test_points_are_means_over_complete_data_sets():
    rng = np.random.default_rng(0)
    names = [[f"d{i}" for i in range(6)], ["A", "B_1", "C$x$"], [0, 1]]
    index = pd.MultiIndex.from_product(names, names=["dataset", "method", "fold"])
    sizes = 10.0 ** rng.uniform(0.0, 3.0, len(index))
    runs = pd.DataFrame(index=index).reset_index().assign(leaves=sizes)
    runs["accuracy"] = rng.random(len(runs))
    runs = runs[~(runs.dataset.eq("d1") & runs.method.eq("B_1") & runs.fold.eq(1))]
    ax = pictures.plot_accuracy_against_size(runs)
    kept = runs[runs.dataset != "d1"].groupby("method")[["leaves", "accuracy"]].mean()
    points = {line.get_label(): line.get_xydata()[0] for line in ax.get_lines()}
    for method, point in points.items():
        np.testing.assert_allclose(point, kept.loc[method])
    assert ax.get_xscale() == "log" and "mean of 5 of 6 data sets" in ax.get_xlabel()
    some = (runs.method == "A") ^ (runs.dataset < "d3")
    with pytest.raises(ValueError, match="no data set with leaves and accuracy"):
        pictures.plot_accuracy_against_size(runs[some])
    with pytest.raises(ValueError, match="no place on a logarithmic axis"):
        pictures.plot_accuracy_against_size(runs.assign(leaves=0))
