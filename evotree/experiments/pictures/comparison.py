"""Pictures of methods compared over data sets: ranks, scores against sizes, times.

In: tables of runs, one row a fit, as `evotree.experiments.method_runs` describes them, or the ranks
that `evotree.experiments.comparison` finds in them. Out: the Axes that were drawn on.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.path import Path
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter
from matplotlib.transforms import Bbox
from scikit_posthocs import critical_difference_diagram

from evotree.experiments.method_runs import (
    complete_datasets,
    done_runs,
    mean_scores,
)
from evotree.experiments.rank_tests import FriedmanTest
from evotree.plotting.style import INK, PALETTE, axes_or_new, check_axes, legend_below, point_style

MARKER_POINTS = 7.0
# Where the label of a point may stand, from the best place on: points away from it, and degrees.
LABEL_DISTANCES = (7.5, 11.0, 15.0, 20.0, 30.0, 40.0, 55.0, 70.0, 90.0, 120.0)
LABEL_ANGLES = (0, 45, -45, 180, 135, 225, 90, 270, 22, -22, 158, 202)


def plot_critical_differences(
    test: FriedmanTest, *, level: float = 0.05, ax: Axes | None = None
) -> Axes:
    """Draw the mean ranks of methods; a bar joins those that cannot be told apart.

    Parameters
    ----------
    test : FriedmanTest
        What `evotree.experiments.comparison.friedman` returned. After Nemenyi's test the label of
        the axis tells the critical difference.
    level : float in (0, 1), default=0.05
        Pairs with a p-value below it differ.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes
        The axes.

    References
    ----------
    Demšar J. (2006). Statistical comparisons of classifiers over multiple data sets. Journal of
    Machine Learning Research 7, 1-30.
    """
    means = test.mean_ranks
    pairs = test.adjusted.loc[means.index, means.index]
    distance = test.critical_difference(level) if test.post_hoc == "nemenyi" else None
    n_rows = (len(means) + 1) // 2
    ax = axes_or_new(ax, (7.0, 1.3 + 0.3 * n_rows))
    critical_difference_diagram(
        means,
        pairs,
        alpha=level,
        ax=ax,
        label_fmt_left="{label} ({rank:.2f})",
        label_fmt_right="({rank:.2f}) {label}",
        label_props={"parse_math": False},
        elbow_props={"color": INK, "linewidth": 0.9},
        marker_props={"s": 16},
        crossbar_props={"color": PALETTE[0], "linewidth": 3.0},
        text_h_margin=0.03 * (means.max() - means.min() + 1.0),
    )
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.xaxis.set_label_position("top")
    ax.set_xlabel(f"mean rank (critical difference {distance:.2f})" if distance else "mean rank")
    return ax


def plot_accuracy_against_size(
    runs: pd.DataFrame,
    size: str = "leaves",
    *,
    metric: str = "accuracy",
    ax: Axes | None = None,
) -> Axes:
    """Draw each method at its mean size and its mean score, over the data sets that all have.

    Parameters
    ----------
    runs : DataFrame
        Runs, one row a fit.
    size : str, default="leaves"
        Column of positive numbers along the axis, which is logarithmic.
    metric : str, default="accuracy"
        Column of the scores.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default. The labels fit the size that the axes have now.

    Returns
    -------
    matplotlib Axes
        The axes.

    Raises
    ------
    TypeError, ValueError
        If `runs` cannot be compared, a size is not positive, or no data set has runs of all
        methods.
    """
    check_axes(ax)
    runs = done_runs(runs, size, metric)
    _check_positive(runs, size)
    datasets, left_out = complete_datasets(runs)
    if not datasets:
        raise ValueError(f"runs has no data set with {size} and {metric} of all methods.")
    y = mean_scores(runs, metric).loc[datasets].mean()
    x = mean_scores(runs, size).loc[datasets].mean()

    ax = axes_or_new(ax, (6.5, 4.5))
    use_log_scale(ax, x)
    for i, method in enumerate(x.index):
        ax.plot(x[method], y[method], ms=MARKER_POINTS, **point_style(i))
    ax.margins(0.12)
    of = f"mean of {len(datasets)} of {len(datasets) + len(left_out)} data sets"
    ax.set_xlabel(f"{size} ({of})")
    ax.set_ylabel(f"mean {metric}")
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
    # The layout must be settled before labels are told apart in it.
    root: Any = ax.figure.figure  # the whole, where the axes lie in a subfigure
    root.draw_without_rendering()
    _label_points(ax, x, y)
    return ax


def plot_times(runs: pd.DataFrame, seconds: str = "seconds", *, ax: Axes | None = None) -> Axes:
    """Draw the mean time of a fit for each data set and method, the fastest data set at the top.

    Parameters
    ----------
    runs : DataFrame
        Runs, one row a fit.
    seconds : str, default="seconds"
        Column of positive times along the axis, which is logarithmic.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes
        The axes.

    Raises
    ------
    TypeError, ValueError
        If `runs` cannot be compared, or a time is not positive.

    References
    ----------
    Yang B.-B., Shen S.-Q., Gao W. (2019). Weighted oblique decision trees. Proceedings of the AAAI
    Conference on Artificial Intelligence 33, 5621-5627. Figure 1.
    """
    check_axes(ax)
    runs = done_runs(runs, seconds)
    _check_positive(runs, seconds)
    times = mean_scores(runs, seconds)
    times = times.loc[times.median(axis=1).sort_values(kind="stable").index]

    ax = axes_or_new(ax, (6.5, 1.6 + 0.24 * len(times)))
    rows = np.arange(len(times))
    ax.hlines(rows, times.min(axis=1), times.max(axis=1), color=INK, lw=0.6, alpha=0.4, zorder=1)
    for i, method in enumerate(times):
        ax.plot(times[method], rows, ms=6, label=method, **point_style(i))
    use_log_scale(ax, pd.Series(times.to_numpy().ravel()))
    ax.set_yticks(rows, times.index, parse_math=False)
    ax.set_ylim(len(times) - 0.4, -0.6)
    ax.set_xlabel(f"{seconds} a fit")
    ax.grid(axis="x", alpha=0.25, linewidth=0.6)
    legend_below(ax, n_columns=min(4, times.shape[1]))
    legend = ax.get_legend()
    for text in legend.get_texts() if legend else ():
        text.set_parse_math(False)
    return ax


def _check_positive(runs: pd.DataFrame, column: str) -> None:
    if (smallest := runs[column].min()) <= 0.0:
        raise ValueError(f"runs has {smallest:g} as {column}: allowed are positive numbers.")


def _label_points(ax: Axes, x: pd.Series, y: pd.Series) -> None:
    """Write the name of each point where it hides no other name and no point."""
    points = ax.transData.transform(np.column_stack([x, y]))
    pixels = ax.figure.dpi / 72.0
    radius = 0.5 * MARKER_POINTS * pixels
    boxes = [Bbox.from_extents(*(point - radius), *(point + radius)) for point in points]
    lines: list[Path] = []
    names: list[Bbox] = []
    frame = ax.get_window_extent()
    for name, point in zip(x.index, points, strict=True):
        at: dict[str, Any] = {"xy": (x[name], y[name]), "textcoords": "offset points"}
        for distance, angle in product(LABEL_DISTANCES, LABEL_ANGLES):
            right, up = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
            at["xytext"] = distance * right, distance * up
            label = ax.annotate(
                name,
                **at,
                ha="center" if abs(right) < 0.3 else "left" if right > 0.0 else "right",
                va="center" if abs(up) < 0.3 else "bottom" if up > 0.0 else "top",
                color=INK,
                fontsize="small",
                parse_math=False,
            )
            box = label.get_window_extent()
            line = Path([point, point + pixels * np.array(at["xytext"])])
            if (
                frame.containsx(box.x0)
                and frame.containsx(box.x1)
                and frame.containsy(box.y0)
                and frame.containsy(box.y1)
                and not any(box.overlaps(other) for other in (*boxes, *names))
                and not any(other.intersects_bbox(box) for other in lines)
                and not any(line.intersects_bbox(other) for other in names)
            ):
                break
            label.remove()
        else:  # there is no room: the axes are too small for so many names
            label = ax.annotate(name, **at, color=INK, fontsize="small", parse_math=False)
            box = label.get_window_extent()
        names.append(box)
        if distance > LABEL_DISTANCES[0]:
            lines.append(line)
            ax.annotate("", **at, arrowprops={"arrowstyle": "-", "color": INK, "lw": 0.5})


def use_log_scale(ax: Axes, values: pd.Series) -> None:
    """Make the x axis logarithmic, with the more plain numbers the fewer decades it has."""
    ax.set_xscale("log")
    decades = np.log10(values.max() / values.min())
    digits = range(1, 10) if decades < 0.7 else (1, 2, 5) if decades < 2.5 else (1,)
    ax.xaxis.set_major_locator(LogLocator(subs=digits))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())
