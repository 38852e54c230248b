"""OC1: oblique splits by perturbing one coefficient at a time.

Murthy, Kasif and Salzberg (1994), "A system for induction of oblique decision trees", Journal of
Artificial Intelligence Research 2, section 3. A hyperplane ``sum_m a_m x_m + a_{d+1} <= 0`` goes
downhill: each move changes one coefficient to the value of the best split, found exactly along the
line of all its values; at a local minimum it jumps along random lines, and the search starts again
from random hyperplanes.
"""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated

import numpy as np

from evotree._jit import inner_kernel, kernel, read_only
from evotree.configuration import Configuration, Interval, StrOptions
from evotree.fitness.node import (
    Criterion,
    Node,
    is_own,
    line_search,
    make_split_scratch,
    score_distances,
    undivided_score,
)
from evotree.operators.splitters.base import Axis, Split, best_split_along
from evotree.rng import below, uniform

ORDERS = ("sequential", "best", "random")
"""Names of the orders in which coefficients are perturbed."""

_BEST = ORDERS.index("best")
_RANDOM = ORDERS.index("random")

SAME = 1e-12  # scores that differ by less, in units of the node's, are equal but for rounding
_LARGE = 1e6


def columns_to_perturb(node: Node) -> tuple[Node, np.ndarray, np.ndarray]:
    """Return a node for a search, the columns of ``(X, 1)``, and which can be perturbed.

    The columns ``Z (d + 3, n)`` are the features, the ones, and room for two rows of distances.
    """
    # Classes that occur are numbered again: what a search does for each class it then does only for
    # those; but a user's function gets the classes as they are numbered. Squares of centred targets
    # are added up without loss. Constant columns cannot be perturbed: what they would add belongs
    # to the intercept, the last one.
    n, d = node.X.shape
    if node.n_classes == 0:
        mean = last_sum(node.sample_weight * node.y) / last_sum(node.sample_weight)
        node = node._replace(y=read_only(node.y - mean))
    elif not is_own(node.criterion):
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
    if is_own(node.criterion):
        return -np.inf
    if node.criterion not in (Criterion.TWOING, Criterion.GAIN_RATIO):
        return 0.0
    if node.criterion == Criterion.GAIN_RATIO or node.n_classes != 2:
        return -1.0
    share = last_sum(node.sample_weight * (node.y == 0)) / last_sum(node.sample_weight)
    return -4.0 * share * (1.0 - share)


@inner_kernel
def score_unit(floor, undivided):
    """Return the unit of scores: that of the undivided node, or 1 where that has no meaning."""
    if floor == -np.inf:  # a user's function
        return abs(undivided) if undivided != 0.0 else 1.0
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
    if abs(alpha) > _LARGE:
        largest = 0.0
        for k in range(d + 1):
            largest = max(largest, abs(a[k]))
        for k in range(d + 1):
            a[k] /= largest
        for i in range(Z.shape[1]):
            Z[d + 1, i] /= largest


@inner_kernel
def descend(
    node, Z, usable, a, r, current, floor, same, moves, stagnation_step, stream, scratch
):
    """Go downhill from a hyperplane to a local minimum that no jump leaves; return its score."""
    # Perturbations (section 3.1), each coefficient's along the line of its values, until none is
    # accepted; then jumps along random lines (section 3.2), until one lowers the score and the
    # perturbations begin again.
    n_jumps, order, n_random = moves
    d, n_usable = a.shape[0] - 1, usable.shape[0]
    patience = 1 if order == _BEST else n_usable
    s = Z[d + 1]
    idle = turn = n_lateral = n_jumped = 0
    while current > floor:
        is_jump = turn >= n_random if order == _RANDOM else idle >= patience
        first, n_lines = turn % n_usable, 1
        if current == np.inf:
            first = n_usable - 1
        elif is_jump:
            if n_jumped == n_jumps:
                break
            n_jumped += 1
            for u in range(n_usable):
                r[usable[u]] = 2.0 * uniform(stream) - 1.0
            combine(Z, r, usable, d + 2)
        elif order == _BEST:
            first, n_lines = 0, n_usable
        elif order == _RANDOM:
            first = below(stream, n_usable)
        score, alpha, m = np.inf, 0.0, 0
        for u in range(first, first + n_lines):
            tried = d + 2 if is_jump else usable[u]
            lower, shift = line_search(node, s, Z[tried], scratch)
            if lower < score:
                score, alpha, m = lower, shift, tried
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
    moves,
    stagnation_step,
    start,
    goal,
    stream,
    best,
):
    """Search for an oblique split of a node whose score is below `goal`; write it into `best`.

    `start` and `best` are hyperplanes ``(weights, -threshold)``, of shape (d + 1,); all 0 stand for
    a random start, and for none. `moves` is ``(n_jumps, order, n_random)``. The search ends when
    the score is as low as `floor`.
    """
    d = node.X.shape[1]
    scratch = make_split_scratch(node)
    same = SAME * score_unit(floor, undivided_score(node, scratch))
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
            moves,
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
    order : {"sequential", "best", "random"}, default="sequential"
        Which coefficient is perturbed next: each in turn until none changes, the one whose change
        lowers the criterion most, or `n_random` random ones (Seq, Best and R-k in the paper).
    n_random : int, at least 1, default=50
        Perturbations up to a local minimum if `order` is ``"random"``.
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
    order: Annotated[str, StrOptions(set(ORDERS))] = "sequential"
    n_random: Annotated[int, Interval(Integral, 1, None, closed="left")] = 50
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
            moves=(int(self.n_jumps), ORDERS.index(self.order), int(self.n_random)),
            stagnation_step=float(self.stagnation_step),
            start=start,
            goal=float(goal),
            stream=stream,
            best=best,
        )
        oblique = centred_split(node, best[:d])
        return oblique if oblique is not None and oblique.score < goal else axis
