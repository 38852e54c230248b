"""The Pareto front of quality against complexity: the best trees that one run meets.

The complexity of a tree is the number of its leaves and terms. Where the fitness has several
objectives of the user's own, the front holds the trees that are not dominated in these.
"""

import math
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from copy import deepcopy
from operator import attrgetter

import pandas as pd
from deap import tools

from evotree.dataset import Dataset
from evotree.fitness.penalties import FitnessQualityComplexity
from evotree.inspection.front import (
    MAX_MEMBERS,
    front_table,
    has_own_objectives,
    least_gain,
)
from evotree.operators.pruning import (
    critical_alphas,
    kept_nodes,
    prune_marked,
    risk_of_leaves,
    split_prices,
    weakest_links,
)
from evotree.tree import Individual

_ROUNDING = 1e-12  # of a quality
_BOUNDED = attrgetter("complexity"), attrgetter("quality")


class ParetoFront(tools.ParetoFront):
    """The trees that no tree met so far dominates.

    Where the fitness has one value, or is `FitnessQualityComplexity`, the objectives are quality
    and complexity: there is at most one tree of each complexity, the first of equals, and more
    complex ones are better. Members are then clones with a fitness of these two values, by rising
    complexity. Of more than `MAX_MEMBERS` the one is dropped that gains least quality for what it
    adds to the complexity, but neither the first nor the last. What is kept depends on nothing but
    the order in which trees are met.

    A fitness of several values of another kind is followed as it is, by DEAP's own rules.
    """

    def __init__(self) -> None:
        super().__init__()
        self._index()

    def _index(self) -> None:
        """Make DEAP's keys, and the bounds that newcomers must pass, which rise both."""
        self.keys[:] = [member.fitness for member in reversed(self.items)]
        self._complexities, self._qualities = (
            list(map(of, self.items)) for of in _BOUNDED
        )

    def clear(self) -> None:
        """Remove all members."""
        super().clear()
        self._index()

    def update(self, population: Iterable[Individual]) -> None:
        """Let in the individuals that are better than all members of at most their complexity."""
        population = list(population)
        if any(has_own_objectives(individual) for individual in population):
            super().update(population)
            return
        for individual in population:
            if self._lets_in(individual.quality, individual.complexity):
                self.insert(individual)

    def _lets_in(self, quality: float, complexity: float) -> bool:
        """Return whether no member of at most a complexity has as high a quality."""
        at = bisect_right(self._complexities, complexity)
        return at == 0 or quality > self._qualities[at - 1]

    def insert(self, item: Individual) -> None:
        """Put a clone of an individual in its place, and drop the members that it dominates."""
        if has_own_objectives(item):
            super().insert(item)
            return
        member = deepcopy(item)  # users' own kinds need not have Individual's method
        member.stream = None
        member.fitness = FitnessQualityComplexity(
            (item.quality, float(item.complexity))
        )
        first = bisect_left(self._complexities, member.complexity)
        last = bisect_right(self._qualities, member.quality, lo=first)
        self.items[first:last] = [member]
        if len(self.items) > MAX_MEMBERS:
            del self.items[least_gain(self.items)]
        self._index()

    def restore(self, members: Iterable[Individual]) -> None:
        """Take the members of an earlier front, by rising complexity, as they are."""
        self.items[:] = list(members)
        self._index()
        both = self._complexities, self._qualities
        if len(self) > MAX_MEMBERS or any(
            values != sorted(set(values)) for values in both
        ):
            raise ValueError(f"members of the complexities {both[0]} are no front.")

    def add_prunings(self, dataset: Dataset, end: float = math.inf) -> None:
        """Let the prunings of all members compete, down to a single leaf (Breiman et al. 1984)."""
        for member in list(self.items):
            if has_own_objectives(member) or time.perf_counter() >= end:
                continue
            size, (risk, whole) = (
                member.subtree_size,
                risk_of_leaves(member, dataset.n_classes),
            )
            prices = split_prices(
                member, 2.0, 1.0
            )  # what a split adds: a leaf and its terms
            collapse_at = weakest_links(risk, size, prices)
            for alpha in critical_alphas(collapse_at, size):
                kept, kept_size = kept_nodes(size, collapse_at <= alpha)
                quality = 1.0 - risk[kept[kept_size == 1]].sum() / whole
                complexity = 1.0 + prices[kept[kept_size > 1]].sum()
                # Most prunings are no better than a member, and to make one takes all rows.
                # Where the objective is no sum of risks, this is no more than a guess.
                if member.objective is not None or self._lets_in(
                    quality - _ROUNDING, complexity
                ):
                    self.update(
                        prune_marked(member.clone(), dataset, collapse_at <= alpha)
                    )

    def to_frame(self, held_out: Dataset | None = None) -> pd.DataFrame:
        """Return the front as a table; see `front_table`."""
        return front_table(self.items, held_out)
