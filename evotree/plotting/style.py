"""What the pictures share: colours, axes, legends, and the reading of names."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.legend import Legend
from matplotlib.ticker import LogLocator, NullFormatter
from matplotlib.transforms import ScaledTranslation

from evotree.files import write_whole
from evotree.words import check_kind

# Okabe and Ito's colours, which all common kinds of colour vision tell apart.
PALETTE = (
    *("#0072B2", "#E69F00", "#009E73", "#D55E00"),
    *("#CC79A7", "#56B4E9", "#F0E442", "#000000"),
)
INK = "#222222"
MARKERS = "osD^vPX*"
# By whether a term is above 0.
TERM_COLORS = {False: "#4393C3", True: "#D6604D"}
NAME_LENGTH = 28


def class_colors(n_classes: int) -> list[str]:
    """Return the colour of each class, the same in every picture with as many classes.

    They are hexadecimal: a palette safe for colour-blind readers up to eight classes, an even
    sample of matplotlib's viridis beyond.
    """
    if n_classes <= len(PALETTE):
        return list(PALETTE[:n_classes])
    return [
        to_hex(color)
        for color in colormaps["viridis"](np.linspace(0.0, 1.0, n_classes))
    ]


def tint(color: str) -> np.ndarray:
    """Return a light shade of a colour, of shape (3,), for areas."""
    return 1.0 - 0.27 * (1.0 - np.array(to_rgb(color)))


def axes_or_new(ax: Axes | None, figsize: tuple[float, float]) -> Axes:
    """Return `ax`, or those of a new figure of a size in inches."""
    check_kind("ax", ax, isinstance(ax, Axes | None), "are a matplotlib Axes and None.")
    return plt.subplots(figsize=figsize, layout="constrained")[1] if ax is None else ax


def draw_grid(ax: Axes) -> None:
    """Draw a light grid, below all else."""
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)


def use_log_scale(ax: Axes, values: pd.Series) -> None:
    """Make the x axis logarithmic, with the more plain numbers the fewer decades it has."""
    ax.set_xscale("log")
    decades = np.log10(values.max() / values.min())
    subs = range(1, 10) if decades < 0.7 else (1, 2, 5) if decades < 2.5 else (1,)
    ax.xaxis.set_major_locator(LogLocator(subs=subs))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())


def save_picture(ax: Axes, path: Path, dpi: int = 150) -> Path:
    """Write the figure that axes stand on to a PNG or PDF file, and close it."""
    figure: Any = ax.figure.figure  # the whole, where the axes lie in a subfigure
    form = path.suffix.removeprefix(".") or "png"
    write_whole(
        path,
        lambda file: figure.savefig(file, format=form, dpi=dpi, bbox_inches="tight"),
    )
    plt.close(figure)
    return path


def legend_below(ax: Axes, n_columns: int, others: Sequence[Axes] = ()) -> Legend:
    """Put the legend of some axes below the label of the x axis, where it hides nothing."""
    below_label = ScaledTranslation(0.0, -32.0 / 72.0, ax.figure.dpi_scale_trans)
    legend = ax.legend(
        handles=[
            handle
            for side in (ax, *others)
            for handle in side.get_legend_handles_labels()[0]
        ],
        ncols=n_columns,
        frameon=False,
        fontsize="small",
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=ax.transAxes + below_label,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)  # names may have dollars
    return legend


def short_name(name: Any) -> str:
    """Return a name, or a class of any type, on one line; a long one without its middle."""
    name = " ".join(str(name).split())
    return (
        name if len(name) <= NAME_LENGTH else f"{name[: NAME_LENGTH - 9]}…{name[-8:]}"
    )


def point_style(i: int) -> dict[str, Any]:
    """Return the look of the i-th method's points; the 64 first ones differ."""
    return {
        "color": PALETTE[i % len(PALETTE)],
        "marker": MARKERS[(i + i // len(PALETTE)) % len(MARKERS)],
        "ls": "none",
        "mec": INK,
        "mew": 0.4,
    }
