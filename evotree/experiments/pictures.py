"""A picture of methods compared over data sets: scores against sizes."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from evotree.experiments.comparison import complete_datasets, done_runs, mean_scores
from evotree.plotting import style


def plot_accuracy_against_size(
    runs: pd.DataFrame,
    size: str = "leaves",
    *,
    metric: str = "accuracy",
    ax: Axes | None = None,
) -> Axes:
    """Draw each method at its mean size and its mean score, over the data sets that all have."""
    runs = done_runs(runs, size, metric)
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
    use_log_scale(ax, x)
    style.draw_grid(ax)
    ax.set_axisbelow(True)
    ax.margins(0.12)
    style.take_as_written(style.legend_below(ax, min(4, len(x))))
    n_datasets = len(datasets) + len(left_out)
    ax.set(
        xlabel=f"{size} (mean of {len(datasets)} of {n_datasets} data sets)",
        ylabel=f"mean {metric}",
    )
    return ax


def use_log_scale(ax: Axes, values: pd.Series) -> None:
    """Make the x axis logarithmic, with the more plain numbers the fewer decades it has."""
    if (smallest := values.min()) <= 0.0:
        raise ValueError(
            f"{smallest:g} has no place on a logarithmic axis: allowed are positive numbers."
        )
    ax.set_xscale("log")
    decades = np.log10(values.max() / smallest)
    subs = range(1, 10) if decades < 0.7 else (1, 2, 5) if decades < 2.5 else (1,)
    ax.xaxis.set_major_locator(LogLocator(subs=subs))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())
