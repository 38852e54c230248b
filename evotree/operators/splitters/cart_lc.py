"""CART-LC: oblique splits of CART, linear combinations found by coordinate descent.

Breiman, Friedman, Olshen and Stone (1984), "Classification and regression trees", section 5.2.2, as
Murthy, Kasif and Salzberg (1994), section 2.3, report it.
"""

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated

import numpy as np

from evotree._jit import inner_kernel, kernel
from evotree.configuration import Configuration, Interval, StrOptions
from evotree.fitness.node import (
    Node,
    line_search,
    make_split_scratch,
    score_distances,
    undivided_score,
)
from evotree.operators.splitters.base import Axis, Split
from evotree.operators.splitters.oc1 import (
    SAME,
    centred_split,
    columns_to_perturb,
    combine,
    draw_start,
    last_sum,
    lowest_score,
    move_along_line,
    score_unit,
)

STARTS = ("axis", "random")
"""Names of the hyperplanes to start from: those of CART-LC and of CART-LCr."""

_OFFSETS = (-0.25, 0.0, 0.25)  # gamma in the paper


def standardize(
    Z: np.ndarray, weight: np.ndarray, usable: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Give the usable columns but the last the mean 0 and the deviation 1; return what they had.

    ``Z (d + 3, n)`` and `usable` are those of `columns_to_perturb`; the means and the deviations
    are of shape (d,), 0 and 1 for columns that are left as they are.
    """
    mean, scale = np.zeros(len(Z) - 3), np.ones(len(Z) - 3)
    share = weight / last_sum(weight)
    for m in usable[:-1]:
        mean[m] = last_sum(share * Z[m])
        Z[m] -= mean[m]
        variance = last_sum(share * Z[m] * Z[m])
        if variance > 0.0:
            scale[m] = math.sqrt(variance)
            Z[m] /= scale[m]
    return mean, scale


@inner_kernel
def aim(Z, r, m, offset):
    """Write the line of ``v - delta (z_m + offset) <= c``, delta running, into `r` and `Z`."""
    last = r.shape[0] - 1
    r[:] = 0.0
    r[m] = -1.0
    r[last] -= offset
    for i in range(Z.shape[1]):
        Z[last + 2, i] = -(Z[m, i] + offset)


@inner_kernel
def improve(node, Z, usable, b, r, m, current, same, scratch):
    """Take the best step for a coefficient, or for the threshold, the last; return the score."""
    last = b.shape[0] - 1
    score, best_delta, best_offset = np.inf, 0.0, 0.0
    for offset in _OFFSETS:
        if m < last or offset == 0.0:
            aim(Z, r, m, offset)
            lower, delta = line_search(node, Z[last + 1], Z[last + 2], scratch)
            if lower < score - same:
                score, best_delta, best_offset = lower, delta, offset
    if score > current + same:
        return current
    aim(Z, r, m, best_offset)
    move_along_line(Z, b, usable, last + 2, best_delta, r)
    return min(score, current)


@inner_kernel
def eliminate(node, Z, usable, b, limit, scratch):
    """Set coefficients to 0, the least missed one each time, while the score is below `limit`."""
    last = b.shape[0] - 1
    n_left = 0
    for u in range(usable.shape[0] - 1):
        n_left += b[usable[u]] != 0.0
    while n_left > 1:
        score, best_m, best_cut = limit, -1, 0.0
        for u in range(usable.shape[0] - 1):
            m = usable[u]
            if b[m] != 0.0:
                for i in range(Z.shape[1]):
                    Z[last + 2, i] = Z[last + 1, i] - b[m] * Z[m, i]
                lower, cut = line_search(node, Z[last + 2], Z[last], scratch)
                if lower < score:
                    score, best_m, best_cut = lower, m, cut
        if best_m < 0:
            return
        for i in range(Z.shape[1]):
            Z[last + 1, i] += best_cut - b[best_m] * Z[best_m, i]
        b[best_m] = 0.0
        b[last] += best_cut
        n_left -= 1


@kernel
def search_columns(
    node,
    Z,
    usable,
    mean,
    scale,
    floor,
    max_cycles,
    tol,
    elimination,
    weights,
    threshold,
    stream,
):
    """Search for the linear combination of a node, from ``weights (d,)`` on, which are overwritten.

    ``Z (d + 3, n)`` and `usable` are those of `columns_to_perturb`, standardized; ``mean (d,)`` and
    ``scale (d,)`` are what the columns had. The search ends when the score is as low as `floor`.
    """
    d = node.X.shape[1]
    scratch = make_split_scratch(node)
    b, r = np.zeros(d + 1), np.empty(d + 1)
    undivided = undivided_score(node, scratch)
    unit = score_unit(floor, undivided)
    same = SAME * unit
    b[d] = -threshold
    for m in range(d):
        b[m] = weights[m] * scale[m]
        b[d] += weights[m] * mean[m]
    starts_at_random = draw_start(b, usable, stream)
    combine(Z, b, usable, d + 1)
    current = score_distances(node, Z[d + 1], scratch)
    if starts_at_random:
        current = improve(node, Z, usable, b, r, d, current, same, scratch)
    for _ in range(max_cycles):
        before = current
        combine(Z, b, usable, d + 1)  # again, so that rounding does not add up
        for u in range(usable.shape[0]):
            if current > floor + same:
                current = improve(
                    node, Z, usable, b, r, usable[u], current, same, scratch
                )
        if not before - current > tol * unit:
            break
    limit = undivided - (1.0 - elimination) * (undivided - current)
    if elimination > 0.0 and current < np.inf:
        eliminate(node, Z, usable, b, limit, scratch)
    for m in range(d):
        weights[m] = b[m] / scale[m]


def search_cart_lc(
    node: Node,
    max_cycles: int,
    tol: float,
    elimination: float,
    standardized: bool,
    weights: np.ndarray,
    threshold: float,
    stream: np.ndarray,
) -> None:
    """Search for the linear combination of a node, from its weights on, which are overwritten."""
    node, Z, usable = columns_to_perturb(node)
    scaled = usable if standardized else usable[-1:]
    mean, scale = standardize(Z, node.sample_weight, scaled)
    search_columns(
        node,
        Z,
        usable,
        mean,
        scale,
        floor=lowest_score(node),
        max_cycles=max_cycles,
        tol=tol,
        elimination=elimination,
        weights=weights,
        threshold=threshold,
        stream=stream,
    )


@dataclass(frozen=True, repr=False)
class CartLC(Configuration):
    """The linear combination of CART, or the best axis-parallel split where that is better.

    One feature after the other gets the coefficient, exactly found, that makes
    ``v - delta (x_m + gamma) <= c`` the best split, with gamma -0.25, 0 or 0.25; after each cycle
    the threshold is sought alone. In the end coefficients that matter little are set to 0
    (Breiman et al. 1984, section 5.2.2).

    Parameters
    ----------
    start : {"axis", "random"}, default="axis"
        Where the search begins: at the best axis-parallel split, or at a hyperplane of coefficients
        uniform in [-1, 1] (CART-LCr); that one is returned even if the axis-parallel split is
        better.
    max_cycles : int, at least 0, default=100
        Cycles over the features; the original has no bound.
    tol : float, at least 0, default=0.001
        The cycles end when one lowers the criterion by no more than this, in units of the
        criterion of the undivided node (of 1 for twoing and the gain ratio).
    elimination : float in [0, 1), default=0.1
        Features are left out, the one whose loss costs least first, as long as all of them together
        cost less than this share of the gain, that is of what the split lowers the criterion by. 0
        leaves none out.
    standardized : bool, default=True
        Whether features are standardized within the node, as Breiman et al. have it; if not, gamma
        is in the units of the data.
    """

    start: Annotated[str, StrOptions(set(STARTS))] = "axis"
    max_cycles: Annotated[int, Interval(Integral, 0, None, closed="left")] = 100
    tol: Annotated[float, Interval(Real, 0.0, None, closed="left")] = 0.001
    elimination: Annotated[float, Interval(Real, 0.0, 1.0, closed="left")] = 0.1
    standardized: Annotated[bool, "boolean"] = True

    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Find the split (see `evotree.operators.splitters.base.Splitter`)."""
        axis = Axis()(node, stream)
        weights, threshold = np.zeros(node.X.shape[1]), 0.0
        start = axis if self.start == "axis" else None
        if start is not None:
            weights, threshold = start.weights.copy(), start.threshold
        search_cart_lc(
            node,
            max_cycles=int(self.max_cycles),
            tol=float(self.tol),
            elimination=float(self.elimination),
            standardized=self.standardized,
            weights=weights,
            threshold=threshold,
            stream=stream,
        )
        oblique = centred_split(node, weights)
        if oblique is None or (start is not None and start.score <= oblique.score):
            return axis
        return oblique
