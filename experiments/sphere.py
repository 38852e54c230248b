"""The search by cross-entropy over two features: directions on the sphere, step by step.

A hyperplane over two features is a direction in three dimensions: two weights and the intercept.
Opposite directions are the same hyperplane with its sides exchanged. The sphere is drawn as two
discs, the hemisphere around the mean direction at the end and the one behind, in Lambert's
azimuthal projection: equal areas are equal, so that uniform directions look uniform.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.patches import Circle

from evotree.operators.splitters.cross_entropy import SamplingStep
from evotree.plotting.style import INK, PALETTE, axes_or_new

SPACING = 2.16  # between the centres of discs, whose radius is 1
GREY, MEAN_COLOR = "#BBBBBB", PALETTE[3]
SHARE = 0.9
CONCENTRATIONS = (0.0, 2.0, 20.0)
"""Of the steps drawn: without a preference, with one, and nearly closed."""
ANGLES = np.linspace(0.0, 2.0 * np.pi, 361)


def plot_sampling_on_sphere(trace: Sequence[SamplingStep]) -> Axes:
    """Draw the directions of some steps of a search, and the distribution closing in.

    A column of two discs is one step: the hemisphere around the mean direction at the end above,
    the one behind below. Grey lines are where a weight or the intercept is 0. The dashed circle
    around the mean direction holds 90 % of the distribution; while that is nearly uniform, the
    circle closes behind.
    """
    reached = (
        next((k for k, step in enumerate(trace) if step.kappa >= kappa), len(trace) - 1)
        for kappa in CONCENTRATIONS
    )
    steps, frame = list(dict.fromkeys(reached)), _view(trace[-1])
    n = len(steps)
    ax = axes_or_new(None, (1.9 + 2.25 * n, 5.2 if n > 2 else 5.6))
    scores = np.concatenate([trace[k].scores for k in steps])
    norm = Normalize(*np.quantile(scores[np.isfinite(scores)], [0.0, 1.0]))
    points: Any = None
    for column, k in enumerate(steps):
        left, kappa = SPACING * column, trace[k].kappa
        _draw_grid(ax, frame, left)
        points = _draw_step(ax, trace[k], frame, left, norm)
        drawn = f"κ = {kappa:.{0 if kappa >= 100.0 else 1}f}" if kappa > 0.0 else "uniform"
        ax.text(left, 1.08, f"iteration {k}, {drawn}", ha="center", color=INK)
    for y, side in ((0.0, "around the last mean"), (-SPACING, "behind")):
        ax.text(-1.08, y, side, size="small", ha="right", va="center", rotation=90)
    ax.set(xlim=(-1.25, SPACING * (n - 1) + 1.05), ylim=(-SPACING - 1.05, 1.25), aspect="equal")
    ax.set_axis_off()
    ax.figure.colorbar(points, ax=ax, label="score (the lower the better)", shrink=0.6)
    for label, color, mark in (
        ("candidate", "#21918c", "o"),
        ("parts no rows", GREY, "x"),
        ("mean direction", MEAN_COLOR, "*"),
        (f"{100 * SHARE:g} % of the mass", MEAN_COLOR, "--"),
    ):
        ax.plot([], [], mark, color=color, label=label)
    ax.plot([], [], "o", mfc="none", mec=INK, label="elite")
    below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "frameon": False}
    ax.legend(ncols=5 if n > 2 else n + 1, fontsize="small", columnspacing=1.2, **below)
    return ax


def _view(last: SamplingStep) -> np.ndarray:
    """Return unit vectors to the right, upwards (the intercept rises) and towards the viewer."""
    centre = last.mu if last.mu.any() else last.directions[last.scores.argmin()]
    up = np.eye(3)[2] - centre[2] * centre
    if np.linalg.norm(up) < 1e-6:
        up = np.eye(3)[1] - centre[1] * centre
    up /= np.linalg.norm(up)
    return np.array([np.cross(up, centre), up, centre])


def project(directions: np.ndarray, frame: np.ndarray, left: float) -> np.ndarray:
    """Return where directions lie in the two discs of a column, the lower one seen from behind."""
    right, up, near = (directions @ frame.T).T
    is_near = near >= 0.0
    shrink = 1.0 / np.sqrt(1.0 + np.abs(near))
    x = np.where(is_near, right, -right) * shrink
    return np.column_stack([left + x, up * shrink - SPACING * ~is_near])


def mass_circle(mu: np.ndarray, kappa: float, share: float) -> np.ndarray:
    """Return points of the circle around the mean direction that holds a share of the mass."""
    # In three dimensions 1 - cos has an exponential distribution, cut off at 2.
    below = -np.log1p(share * np.expm1(-2.0 * kappa)) / kappa
    first = np.cross(mu, np.eye(3)[np.abs(mu).argmin()])
    first /= np.linalg.norm(first)
    around = np.outer(np.cos(ANGLES), first) + np.outer(np.sin(ANGLES), np.cross(mu, first))
    return (1.0 - below) * mu + np.sqrt(below * (2.0 - below)) * around


def _draw_curve(ax: Axes, curve: np.ndarray, frame: np.ndarray, left: float, **look: Any) -> None:
    """Draw a curve on the sphere in both discs, broken where it passes behind."""
    points, is_near = project(curve, frame, left), curve @ frame[2] >= 0.0
    for side in (is_near, ~is_near):
        ax.plot(*np.where(side[:, None], points, np.nan).T, **look)


def _draw_grid(ax: Axes, frame: np.ndarray, left: float) -> None:
    """Draw two empty discs with the circles where a coordinate is 0 and the ends of the axes."""
    for y in (0.0, -SPACING):
        ax.add_patch(Circle((left, y), 1.0, facecolor="#FAFAFA", edgecolor=INK, zorder=0))
    for i, name in enumerate(("x0", "x1", "intercept")):
        circle = np.insert(np.column_stack([np.cos(ANGLES), np.sin(ANGLES)]), i, 0.0, axis=1)
        _draw_curve(ax, circle, frame, left, color=GREY, linewidth=0.7, zorder=1)
        for sign, end in (("+", np.eye(3)[i]), ("−", -np.eye(3)[i])):
            ((x, y),) = project(end[None], frame, left)
            ax.plot(x, y, ".", color="#777777", markersize=3.5, zorder=2)
            is_at_top = y + SPACING * (y < -0.5 * SPACING) > 0.8
            look: Any = {
                "va": "top" if is_at_top else "bottom",
                "size": "x-small",
                "color": "#555555",
            }
            side = "right" if x - left > 0.7 else "left" if x - left < -0.7 else "center"
            ax.text(x, y, sign + name, ha=side, zorder=8, **look)


def _draw_step(
    ax: Axes, step: SamplingStep, frame: np.ndarray, left: float, norm: Normalize
) -> Any:
    """Draw the candidates, the elite among them, and the distribution; return the candidates."""
    x, y = project(step.directions, frame, left).T
    parts, elite = np.isfinite(step.scores), step.is_elite
    ax.scatter(x[~parts], y[~parts], s=12, marker="x", color=GREY, linewidths=0.8, zorder=3)
    order = np.flatnonzero(parts)[np.argsort(-step.scores[parts])]  # the best ones on top
    look: dict[str, Any] = {"c": step.scores[order], "norm": norm, "s": 16, "zorder": 4}
    points = ax.scatter(x[order], y[order], linewidths=0.0, **look)
    ax.scatter(x[elite], y[elite], s=34, facecolors="none", edgecolors=INK, zorder=5)
    if step.kappa > 0.0:
        circle = mass_circle(step.mu, step.kappa, SHARE)
        _draw_curve(ax, circle, frame, left, color=MEAN_COLOR, linewidth=1.3, ls="--", zorder=6)
        ((x_mean, y_mean),) = project(step.mu[None], frame, left)
        ax.plot(x_mean, y_mean, "*", color=MEAN_COLOR, mec="white", markersize=10.0, zorder=7)
    return points
