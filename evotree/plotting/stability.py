"""How often refits to other rows use the columns, and how often they dispute a row."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from evotree.description.words import check_whole
from evotree.plotting.explanation import BAR, LINE_HEIGHT, WIDTH
from evotree.plotting.style import PALETTE, axes_or_new, short_name


def plot_stability(
    stability: Any, *, max_columns: int = 20, ax: Axes | None = None
) -> Axes:
    """Draw the share of refits that use each column, as `evotree.inspection.stability` found it.

    Parameters
    ----------
    stability : Stability
        What that function returns.
    max_columns : int, at least 1, default=20
        How many columns to show, at most.
    ax : matplotlib Axes, optional
        Where to draw; new ones of a fitting height by default.
    """
    check_whole("max_columns", max_columns, 1)
    if not hasattr(stability, "disagreement"):
        kind = type(stability).__name__
        raise TypeError(
            f"stability is a {kind}: allowed is what inspection.stability returns."
        )
    shares = stability.columns.head(max_columns)
    found = stability.summary
    ax = axes_or_new(ax, (WIDTH, LINE_HEIGHT * max(1, len(shares)) + 1.2))
    places = np.arange(len(shares))
    ax.barh(places, shares.to_numpy(dtype=np.float64), height=BAR, color=PALETTE[0])
    ax.set_yticks(places, [short_name(name) for name in shares.index], parse_math=False)
    ax.set(
        xlim=(0.0, 1.0),
        ylim=(len(shares) - 0.4, -0.6),
        xlabel="share of the refits that use it",
    )
    told = f"agreement {found.agreement:.3f}, |cosine| of roots {found.root:.2f}"
    ax.set_title(
        f"{told}, score {found.score:.3f} [{found.lower:.3f}, {found.upper:.3f}]",
        size=9,
    )
    return ax
