"""Pictures written to files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes


def save_picture(ax: Axes, path: Path, dpi: int = 150) -> Path:
    """Write the figure that axes stand on to a file, and close it.

    Parameters
    ----------
    ax : matplotlib Axes
        Any axes of the figure.
    path : Path
        The file; its ending says in which format, ``.png`` or ``.pdf``.
    dpi : int, default=150
        Pixels an inch.

    Returns
    -------
    Path
        The file.
    """
    figure: Any = ax.figure.figure  # the whole, where the axes lie in a subfigure
    figure.savefig(path, dpi=dpi, bbox_inches="tight")
    plt.close(figure)
    return path
