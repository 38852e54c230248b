"""A picture of methods compared over data sets: scores against sizes."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from evotree.experiments.comparison import complete_datasets, mean_scores
from evotree.plotting import style


def plot_accuracy_against_size(
    runs: pd.DataFrame,
    size: str = "leaves",
    *,
    metric: str = "accuracy",
    ax: Axes | None = None,
) -> Axes:
    """Draw each method at its mean size and its mean score, over the data sets that all have.

    Runs without a number for either are left out.
    """
    runs = runs[np.isfinite(runs[[size, metric]].astype(float)).all(axis=1)]
    datasets, left_out = complete_datasets(runs)
    if not datasets:
        raise ValueError(
            f"runs has no data set with {size} and {metric} of all methods."
        )
    x, y = (mean_scores(runs, name).loc[datasets].mean() for name in (size, metric))
    ax = style.axes_or_new(ax, (6.5, 4.5))
    for k, method in enumerate(x.index):
        look = style.point_style(k)
        ax.plot(x[method], y[method], ms=7.0, label=method, **look)
    style.use_log_scale(ax, x)
    style.draw_grid(ax)
    ax.set_axisbelow(True)
    ax.margins(0.12)
    style.legend_below(ax, min(4, len(x)))
    n_datasets = len(datasets) + len(left_out)
    ax.set(
        xlabel=f"{size} (mean of {len(datasets)} of {n_datasets} data sets)",
        ylabel=f"mean {metric}",
    )
    return ax
