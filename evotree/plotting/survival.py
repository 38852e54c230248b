"""Curves of the leaves of a survival tree."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from evotree.plotting.style import axes_or_new, class_colors, draw_grid
from evotree.survival import Times, survival
from evotree.words import check_kind

# Rows at risk are counted at 0, and at so many times more.
_MAX_COUNTED_TIMES = 6


def plot_survival(model: Any, X: Any, y: Any, ax: Axes | None = None) -> Axes:
    """Draw the survival of the rows of each leaf, with the numbers at risk below.

    Parameters
    ----------
    model : fitted EvoTreeSurvival
        Its leaves part the rows.
    X : array-like of shape (n_samples, n_features)
        Rows, such as those of the fit, or held-out ones.
    y : structured array, frame or array
        Their times to an event, as for `EvoTreeSurvival.fit`.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.

    Returns
    -------
    matplotlib Axes
        The estimates of Kaplan and Meier; a cross is where a row was censored.
    """
    is_survival = hasattr(model, "cum_baseline_hazard_")
    check_kind("model", model, is_survival, "is a fitted EvoTreeSurvival.")
    times, reached = Times.read(y, X), model.apply(X)
    leaves = np.unique(reached).tolist()
    ax = axes_or_new(ax, (7.0, 4.0 + 0.2 * len(leaves)))
    places = np.array(
        MaxNLocator(_MAX_COUNTED_TIMES).tick_values(0.0, float(times.time.max()))
    )
    counts, colors = [], class_colors(len(leaves))
    for k, color in zip(leaves, colors, strict=True):
        own = times.take(reached == k)
        curve = survival(own, np.ones(len(own.time)))
        label = f"leaf {k}: risk {model.predict(X)[reached == k].mean():.3g}"
        ax.step(curve.x, curve.y, where="post", color=color, label=label)
        ends = own.time[~own.event]
        ax.plot(ends, curve(ends), "+", color=color, markersize=5)
        is_seen = own.time >= places[:, np.newaxis]
        counts.append((is_seen & (own.entry <= places[:, np.newaxis])).sum(axis=1))
    ax.set(ylim=(0.0, 1.02), ylabel="share without event, rows at risk below")
    draw_grid(ax)
    ax.legend(fontsize="small")
    # The cells of the table stand below their times.
    half = (places[1] - places[0]) / 2
    ax.set_xlim(places[0] - half, places[-1] + half)
    ax.set_xticks(places, [""] * len(places))
    ax.tick_params(axis="x", length=0)
    ax.table(
        [list(map(str, of_leaf)) for of_leaf in counts],
        rowLabels=[f"leaf {k}" for k in leaves],
        colLabels=[f"time {places[0]:g}", *(f"{place:g}" for place in places[1:])],
        cellLoc="center",
        edges="open",
        loc="bottom",
    )
    return ax
