"""Searches that move a hyperplane one coefficient at a time: OC1, CART-LC and annealing.

A hyperplane is ``sum_m a_m x_m + a_{d+1} <= 0``. **OC1** goes downhill: each move changes one
coefficient to the value of the best split, found exactly along the line of all its values; at a
local minimum it jumps along random lines, and the search starts again from random hyperplanes
(Murthy et al. 1994, section 3). **CART-LC** finds the linear combinations of CART by coordinate
descent (Breiman et al. 1984, section 5.2.2, as Murthy et al., section 2.3, report it). **SADT**
takes random moves by simulated annealing (Heath et al. 1993).

References
----------
Breiman L., Friedman J., Olshen R., Stone C. (1984). Classification and regression trees.
Heath D., Kasif S., Salzberg S. (1993). Induction of oblique decision trees. Proceedings of the 13th
International Joint Conference on Artificial Intelligence.
Murthy S. K., Kasif S., Salzberg S. (1994). A system for induction of oblique decision trees.
Journal of Artificial Intelligence Research 2.
"""

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated

import numpy as np

from evotree._jit import inner_kernel, kernel, read_only
from evotree.configuration import Configuration, Interval, StrOptions
from evotree.fitness.node import (
    Criterion,
    Node,
    line_search,
    make_split_scratch,
    score_distances,
    undivided_score,
)
from evotree.operators.splitters.base import Axis, Split, best_split_along
from evotree.rng import below, uniform

_SAME = 1e-12  # scores that differ by less, in units of the node's, are equal but for rounding


def columns_to_perturb(node: Node) -> tuple[Node, np.ndarray, np.ndarray]:
    """Return a node for a search, the columns of ``(X, 1)``, and which can be perturbed.

    The columns ``Z (d + 3, n)`` are the features, the ones, and room for two rows of distances.
    """
    # Classes that occur are numbered again: what a search does for each class it then does only for
    # those. Squares of centred targets are added up without loss. Constant columns cannot be
    # perturbed: what they would add belongs to the intercept, the last one.
    n, d = node.X.shape
    if node.n_classes == 0:
        mean = last_sum(node.sample_weight * node.y) / last_sum(node.sample_weight)
        node = node._replace(y=read_only(node.y - mean))
    else:
        present, codes = np.unique(node.y, return_inverse=True)
        node = node._replace(
            y=read_only(codes.astype(np.int32)), n_classes=len(present)
        )
    Z = np.ones((d + 3, n))
    Z[:d] = node.X.T
    return node, Z, np.append(np.flatnonzero((node.X[0] != node.X).any(axis=0)), d)


def last_sum(values: np.ndarray) -> float:
    """Return the sum of values that are added up one after the other."""
    return float(np.cumsum(values)[-1])


def lowest_score(node: Node) -> float:
    """Return a score that no split of a node of two classes or more can fall below."""
    if node.criterion != Criterion.TWOING:
        return 0.0
    if node.n_classes != 2:
        return -1.0
    share = last_sum(node.sample_weight * (node.y == 0)) / last_sum(node.sample_weight)
    return -4.0 * share * (1.0 - share)


@inner_kernel
def score_unit(floor, undivided):
    """Return the unit of scores: that of the undivided node, or 1 where that has no meaning."""
    return 1.0 if floor < 0.0 else undivided


@inner_kernel
def combine(Z, r, usable, out):
    """Write ``sum_m r_m Z[m]`` over the usable m into ``Z[out]``."""
    Z[out, :] = 0.0
    for u in range(usable.shape[0]):
        m = usable[u]
        for i in range(Z.shape[1]):
            Z[out, i] += r[m] * Z[m, i]


@inner_kernel
def draw_start(a, usable, stream):
    """Draw the coefficients of a hyperplane that has none; return whether it had none."""
    for m in range(a.shape[0]):
        if a[m] != 0.0:
            return False
    for u in range(usable.shape[0] - 1):
        a[usable[u]] = 2.0 * uniform(stream) - 1.0
    return True


@inner_kernel
def move_along_line(Z, a, usable, m, alpha, r):
    """Move a hyperplane by alpha along line m, and its distances with it."""
    # Line m changes coefficient m, the last one all by multiples of r.
    d = a.shape[0] - 1
    if m <= d:
        a[m] += alpha
    else:
        for u in range(usable.shape[0]):
            a[usable[u]] += alpha * r[usable[u]]
    for i in range(Z.shape[1]):
        Z[d + 1, i] += alpha * Z[m, i]
    if abs(alpha) > 1e6:
        largest = 0.0
        for k in range(d + 1):
            largest = max(largest, abs(a[k]))
        for k in range(d + 1):
            a[k] /= largest
        for i in range(Z.shape[1]):
            Z[d + 1, i] /= largest


@inner_kernel
def descend(
    node,
    Z,
    usable,
    a,
    r,
    current,
    floor,
    same,
    n_jumps,
    stagnation_step,
    stream,
    scratch,
):
    """Go downhill from a hyperplane to a local minimum that no jump leaves; return its score."""
    # Perturbations (section 3.1), each coefficient's in turn along the line of its values, until
    # none is accepted; then jumps along random lines (section 3.2), until one lowers the score and
    # the perturbations begin again.
    d, n_usable = a.shape[0] - 1, usable.shape[0]
    s = Z[d + 1]
    idle = turn = n_lateral = n_jumped = 0
    while current > floor:
        is_jump = idle >= n_usable
        m = usable[turn % n_usable]
        if current == np.inf:
            m = d
        elif is_jump:
            if n_jumped == n_jumps:
                break
            n_jumped += 1
            for u in range(n_usable):
                r[usable[u]] = 2.0 * uniform(stream) - 1.0
            m = d + 2
            combine(Z, r, usable, m)
        score, alpha = line_search(node, s, Z[m], scratch)
        turn += 1
        idle += 1
        if score < current - same:
            n_lateral = n_jumped = 0
            turn = 0 if is_jump else turn
        elif is_jump or score > current + same:
            if current == np.inf:
                break
            continue
        elif uniform(stream) < 1.0 - stagnation_step * n_lateral:
            n_lateral += 1
        else:
            continue
        idle = 0
        current = min(current, score)
        move_along_line(Z, a, usable, m, alpha, r)
    return current


@kernel
def search_oc1(
    node,
    Z,
    usable,
    floor,
    n_restarts,
    n_jumps,
    stagnation_step,
    start,
    goal,
    stream,
    best,
):
    """Search for an oblique split of a node whose score is below `goal`; write it into `best`.

    `start` and `best` are hyperplanes ``(weights, -threshold)``, of shape (d + 1,); all 0 stand for
    a random start, and for none. The search ends when the score is as low as `floor`.
    """
    d = node.X.shape[1]
    scratch = make_split_scratch(node)
    same = _SAME * score_unit(floor, undivided_score(node, scratch))
    if usable.shape[0] < 3:
        return
    a, r = np.zeros(d + 1), np.empty(d + 1)
    for k in range(n_restarts):
        for m in range(d + 1):
            a[m] = start[m] if k == 0 else 0.0
        starts_at_random = draw_start(a, usable, stream)
        combine(Z, a, usable, d + 1)
        current = np.inf
        if not starts_at_random:
            current = score_distances(node, Z[d + 1], scratch)
        current = descend(
            node,
            Z,
            usable,
            a,
            r,
            current,
            floor + same,
            same,
            n_jumps,
            stagnation_step,
            stream,
            scratch,
        )
        if current < goal - same:
            combine(Z, a, usable, d + 1)
            current = score_distances(node, Z[d + 1], scratch)
        if current < goal - same:
            goal = current
            best[:] = a
        if goal <= floor + same:
            break


def centred_split(node: Node, normal: np.ndarray) -> Split | None:
    """Return the best split at right angles to a direction; None where there is none."""
    largest = np.abs(normal).max()
    return best_split_along(node, normal / largest) if 0.0 < largest < np.inf else None


@dataclass(frozen=True, repr=False)
class OC1(Configuration):
    """The oblique split of OC1, or the best axis-parallel one.

    Downhill searches begin at the best axis-parallel split and at random hyperplanes; the best
    split of all wins, unless the axis-parallel one is as good (Murthy et al. 1994, figure 4).
    Coefficients of features that are constant in the node are 0.

    Parameters
    ----------
    n_restarts : int, at least 0, default=20
        Searches at a node: one from the axis-parallel split, the others from random hyperplanes,
        their coefficients uniform in [-1, 1] and their threshold the best. 0 leaves the
        axis-parallel split.
    n_jumps : int, at least 0, default=5
        Random lines tried at a local minimum.
    stagnation_step : float in (0, 1], default=0.1
        A perturbation that leaves the criterion as it is is accepted with a probability that falls
        by so much with each one accepted, from 1 on, and is 1 again when the criterion falls.
    random_start : bool, default=False
        Whether the first search begins at a random hyperplane, too.
    min_rows_per_feature : float, at least 0, default=2.0
        Nodes with fewer rows for each feature get the axis-parallel split: an oblique one would be
        underdetermined (section 2.2).
    """

    n_restarts: Annotated[int, Interval(Integral, 0, None, closed="left")] = 20
    n_jumps: Annotated[int, Interval(Integral, 0, None, closed="left")] = 5
    stagnation_step: Annotated[float, Interval(Real, 0.0, 1.0, closed="right")] = 0.1
    random_start: Annotated[bool, "boolean"] = False
    min_rows_per_feature: Annotated[float, Interval(Real, 0.0, None, closed="left")] = (
        2.0
    )

    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Find the split (see `evotree.operators.splitters.base.Splitter`)."""
        n, d = node.X.shape
        axis = Axis()(node, stream)
        if n < self.min_rows_per_feature * d:
            return axis
        start, goal, best = np.zeros(d + 1), np.inf, np.zeros(d + 1)
        if axis is not None:
            goal = axis.score
            if not self.random_start:
                start[:d] = axis.weights
                start[d] = -axis.threshold
        searched, Z, usable = columns_to_perturb(node)
        search_oc1(
            searched,
            Z,
            usable,
            floor=lowest_score(searched),
            n_restarts=int(self.n_restarts),
            n_jumps=int(self.n_jumps),
            stagnation_step=float(self.stagnation_step),
            start=start,
            goal=float(goal),
            stream=stream,
            best=best,
        )
        oblique = centred_split(node, best[:d])
        return oblique if oblique is not None and oblique.score < goal else axis


# ---- the linear combinations of CART -------------------------------------------------------------


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
    for offset in (-0.25, 0.0, 0.25):  # gamma in the paper
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
    same = _SAME * unit
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
        criterion of the undivided node (of 1 for twoing).
    elimination : float in [0, 1), default=0.1
        Features are left out, the one whose loss costs least first, as long as all of them together
        cost less than this share of the gain, that is of what the split lowers the criterion by. 0
        leaves none out.
    standardized : bool, default=True
        Whether features are standardized within the node, as Breiman et al. have it; if not, gamma
        is in the units of the data.
    """

    start: Annotated[str, StrOptions({"axis", "random"})] = "axis"
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
        self.search(node, weights, threshold, stream)
        oblique = centred_split(node, weights)
        if oblique is None or (start is not None and start.score <= oblique.score):
            return axis
        return oblique

    def search(
        self, node: Node, weights: np.ndarray, threshold: float, stream: np.ndarray
    ) -> None:
        """Search for a linear combination, from some weights on, which are overwritten."""
        node, Z, usable = columns_to_perturb(node)
        scaled = usable if self.standardized else usable[-1:]
        mean, scale = standardize(Z, node.sample_weight, scaled)
        search_columns(
            node,
            Z,
            usable,
            mean,
            scale,
            floor=lowest_score(node),
            max_cycles=int(self.max_cycles),
            tol=float(self.tol),
            elimination=float(self.elimination),
            weights=weights,
            threshold=threshold,
            stream=stream,
        )


# ---- annealing -----------------------------------------------------------------------------------


@kernel
def search_annealing(
    node,
    Z,
    usable,
    scale,
    floor,
    temperature,
    cooling,
    max_moves,
    patience,
    stream,
    weights,
):
    """Anneal a hyperplane of a node, and write its normal vector into ``weights (d,)``.

    ``Z (d + 3, n)`` and `usable` are those of `columns_to_perturb`, standardized; ``scale (d,)`` is
    what the columns were divided by. The search ends when the score is as low as `floor`.
    """
    n, d = node.X.shape
    scratch, a = make_split_scratch(node), np.zeros(d + 1)
    unit = score_unit(floor, undivided_score(node, scratch))
    for u in range(usable.shape[0] - 1):
        a[usable[u]] = 1.0
    combine(Z, a, usable, d + 1)
    s, t = Z[d + 1], Z[d + 2]
    current = score_distances(node, s, scratch)
    best, temperature, idle = np.inf, temperature * unit, 0
    for k in range(max_moves + 1):
        if current < best - _SAME * unit:
            best, idle = current, 0
            for m in range(d):
                weights[m] = a[m] / scale[m]
        if k == max_moves or idle == patience or best <= floor + _SAME * unit:
            break
        m, delta = usable[below(stream, usable.shape[0])], uniform(stream) - 0.5
        for i in range(n):
            t[i] = s[i] + delta * Z[m, i]
        score = score_distances(node, t, scratch)
        rise = score - current
        if score <= current or (
            temperature > 0.0 and uniform(stream) < math.exp(-rise / temperature)
        ):
            s, t, current = t, s, score
            a[m] += delta
        temperature *= cooling
        idle += 1


@dataclass(frozen=True, repr=False)
class Annealing(Configuration):
    """The best of the hyperplanes that simulated annealing visits, as in SADT (Heath et al. 1993).

    The search begins at the hyperplane of equal coefficients through the centre of the node, its
    features standardized. A move adds a number uniform in [-0.5, 0.5] to one coefficient, or to the
    threshold, drawn at random; it is accepted if the criterion does not rise, and with probability
    ``exp(-rise / temperature)`` otherwise. The temperature falls by a factor with each move. Of the
    best hyperplane ever visited the threshold is then sought exactly.

    Parameters
    ----------
    temperature : float, at least 0, default=0.01
        Initial temperature, in units of the criterion of the undivided node (of 1 for twoing and
        the gain ratio).
    cooling : float in (0, 1], default=0.9995
        Factor of the temperature for each move.
    max_moves : int, at least 0, default=30000
        Most moves.
    patience : int, at least 1, default=3000
        Moves after which the search ends if none of them led to a new best hyperplane.
    """

    temperature: Annotated[float, Interval(Real, 0.0, None, closed="left")] = 0.01
    cooling: Annotated[float, Interval(Real, 0.0, 1.0, closed="right")] = 0.9995
    max_moves: Annotated[int, Interval(Integral, 0, None, closed="left")] = 30_000
    patience: Annotated[int, Interval(Integral, 1, None, closed="left")] = 3000

    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Find the split (see `evotree.operators.splitters.base.Splitter`)."""
        weights = np.zeros(node.X.shape[1])
        searched, Z, usable = columns_to_perturb(node)
        _, scale = standardize(Z, node.sample_weight, usable)
        search_annealing(
            searched,
            Z,
            usable,
            scale,
            floor=lowest_score(searched),
            temperature=float(self.temperature),
            cooling=float(self.cooling),
            max_moves=int(self.max_moves),
            patience=int(self.patience),
            stream=stream,
            weights=weights,
        )
        oblique = centred_split(node, weights)
        return oblique if oblique is not None else Axis()(node, stream)
