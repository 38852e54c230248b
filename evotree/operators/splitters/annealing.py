"""Oblique splits by simulated annealing of decision trees, SADT.

Heath, Kasif and Salzberg (1993), "Induction of oblique decision trees", Proceedings of the 13th
International Joint Conference on Artificial Intelligence.
"""

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated

import numpy as np

from evotree._jit import inner_kernel, kernel
from evotree.configuration import Configuration, Interval
from evotree.fitness.node import (
    Node,
    count_row,
    fill_sides,
    make_split_scratch,
    score_sides,
    undivided_score,
)
from evotree.operators.splitters.base import Axis, Split
from evotree.operators.splitters.cart_lc import standardize
from evotree.operators.splitters.oc1 import (
    SAME,
    centred_split,
    columns_to_perturb,
    combine,
    lowest_score,
    score_unit,
)
from evotree.rng import below, uniform


@inner_kernel
def change_sides(node, s, t, scratch):
    """Move the rows whose sides differ between distances `s` and `t`; return by how many more."""
    more = 0
    for i in range(s.shape[0]):
        if (s[i] > 0.0) != (t[i] > 0.0):
            sign = 1 if s[i] > 0.0 else -1
            w = sign * node.sample_weight[i]
            count_row(node, i, False, w, scratch)
            count_row(node, i, True, -w, scratch)
            more += sign
    return more


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
    n_left = fill_sides(node, s, scratch)
    current = (
        score_sides(node, scratch)
        if min(n_left, n - n_left) >= node.min_rows
        else np.inf
    )
    best, temperature, idle = np.inf, temperature * unit, 0
    for k in range(max_moves + 1):
        if current < best - SAME * unit:
            best, idle = current, 0
            for m in range(d):
                weights[m] = a[m] / scale[m]
        if k == max_moves or idle == patience or best <= floor + SAME * unit:
            break
        m, delta = usable[below(stream, usable.shape[0])], uniform(stream) - 0.5
        for i in range(n):
            t[i] = s[i] + delta * Z[m, i]
        more = change_sides(node, s, t, scratch)
        score = np.inf
        if min(n_left + more, n - n_left - more) >= node.min_rows:
            score = score_sides(node, scratch)
        rise = score - current
        if score <= current or (
            temperature > 0.0 and uniform(stream) < math.exp(-rise / temperature)
        ):
            s, t, current = t, s, score
            n_left += more
            a[m] += delta
        else:
            change_sides(node, t, s, scratch)
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
