"""The regularization path of tree alternating optimization: errors and sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from evotree.plotting.style import PALETTE, axes_or_new, check_option, legend_below, number_plainly

if TYPE_CHECKING:
    from evotree.estimators.sparse_path import TAOPath

Abscissa: TypeAlias = Literal["C", "weights", "cost"]

LABELS = {"C": "C", "weights": "weights that are not 0", "cost": "multiplications a row, mean"}


def plot_tao_path(path: TAOPath, *, x: Abscissa = "C", ax: Axes | None = None) -> Axes:
    """Draw the error and the sizes of the trees of a path.

    Errors have the left axis, leaves and weights the right one, which is logarithmic.

    Parameters
    ----------
    path : TAOPath
        From `evotree.tao_path`.
    x : {"C", "weights", "cost"}, default="C"
        What runs along the logarithmic axis: the parameter, the number of weights that are not 0,
        or the mean number of multiplications that a row takes.
    ax : matplotlib Axes, optional
        Where to draw; new ones by default.
    """
    table = getattr(path, "table", None)
    if table is None or "train_score" not in table:
        raise TypeError(f"path is a {type(path).__name__}: allowed is what tao_path returns.")
    check_option("x", x, LABELS)
    table = table[table[x] > 0.0]  # a tree of one leaf has no place on a logarithmic axis
    ax = axes_or_new(ax, (7.0, 4.5))
    right = ax.twinx()
    marks: dict[str, Any] = {"markersize": 4.0, "linewidth": 1.6}
    for column, style, color in (("train", "o--", PALETTE[5]), ("test", "o-", PALETTE[0])):
        if f"{column}_score" in table:
            error = 1.0 - table[f"{column}_score"]
            ax.plot(table[x], error, style, color=color, label=f"{column} error", **marks)
    for column, style, color in (("leaves", "s:", PALETTE[3]), ("weights", "^:", PALETTE[2])):
        if column != x:
            sizes = table[column].where(table[column] > 0)
            label = f"{LABELS.get(column, column)} (right)"
            right.plot(table[x], sizes, style, color=color, label=label, **marks)
    ax.set(xscale="log", xlabel=LABELS[x], ylabel="error")
    ax.set_ylim(bottom=0.0)
    ax.yaxis.set_major_locator(MaxNLocator(6))
    right.set(yscale="log", ylabel="leaves" if x == "weights" else "leaves, weights")
    number_plainly(ax.xaxis, (1.0,) if x == "C" else (1.0, 2.0, 5.0))
    number_plainly(right.yaxis, (1.0, 2.0, 5.0))
    ax.set_zorder(right.get_zorder() + 1)  # errors above sizes
    ax.patch.set_visible(False)
    ax.grid(alpha=0.25)
    legend_below(ax, n_columns=2, others=[right])
    return ax
