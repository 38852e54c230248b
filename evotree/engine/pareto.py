"""The Pareto front of quality against size: the best tree of each size that one run meets.

A penalty for nodes picks one tree of this front; the rules of `select` pick one by held-out rows,
by a bound on the size, or by a penalty chosen afterwards. Where the fitness has several objectives
of the user's own, the front holds the trees that are not dominated in these.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from deap import tools

from evotree.fitness.objectives import FitnessQualitySize, PenalizedAccuracy
from evotree.operators.pruning.held_out import choose_tree, critical_alphas, node_losses
from evotree.operators.pruning.penalized import node_risk, prune_marked, weakest_links
from evotree.tree import ObliqueTree

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.individual import Individual

HELD_OUT_RULES = ("validation", "1se")
"""Names of the rules that look at held-out rows."""

_ALLOWED = "'validation', '1se', 'fitness', 'size<=k' (nodes) and 'leaves<=k', such as 'size<=9'"


class ParetoFront(tools.ParetoFront):
    """The trees that no tree met so far dominates.

    Where the fitness has one value, or is `FitnessQualitySize`, the objectives are quality and
    size: there is at most one tree of each size, the first of equals, and larger ones are better.
    Members are then clones with a fitness of these two values, by rising size. A fitness of several
    values of another kind is followed as it is, by DEAP's own rules.
    """

    def __init__(self) -> None:
        super().__init__()
        self._best_until = [-np.inf]  # quality of the best member with at most so many nodes

    def update(self, population: Iterable[Individual]) -> None:
        """Let in the individuals that are better than all members of at most their size.

        Parameters
        ----------
        population : iterable of Individual
            Read only; they need not be evaluated.
        """
        population = list(population)
        if any(_has_own_objectives(individual) for individual in population):
            super().update(population)
            return
        best = self._best_until
        for individual in population:
            size = individual.subtree_size.shape[0]
            if size >= len(best):
                best.extend([best[-1]] * (size + 1 - len(best)))
            if individual.quality > best[size]:
                self.insert(individual)

    def insert(self, item: Individual) -> None:
        """Put a clone of an individual in its place, and drop the members that it dominates.

        Parameters
        ----------
        item : Individual
            Better than all members of at most its size, as `update` sees to.
        """
        if _has_own_objectives(item):
            super().insert(item)
            return
        member = deepcopy(item)  # users' own kinds need not have Individual's method
        member.stream = None
        member.fitness = FitnessQualitySize((item.quality, len(item)))
        first = last = bisect_left(self.items, len(member), key=len)
        while last < len(self.items) and self.items[last].quality <= member.quality:
            last += 1
        self.items[first:last] = [member]
        self._index()

    def restore(self, members: Iterable[Individual]) -> None:
        """Take the members of an earlier front, by rising size, as they are."""
        self.items[:] = list(members)
        sizes = [len(member) for member in self.items]
        qualities = [member.quality for member in self.items]
        if sizes != sorted(set(sizes)) or qualities != sorted(set(qualities)):
            raise ValueError(f"members of the sizes {sizes} are no front.")
        self._index()

    def remove(self, index: int) -> None:
        """Remove a member; a worse tree of its size may then take its place.

        Parameters
        ----------
        index : int
            Its position.
        """
        own = _has_own_objectives(self.items[index])
        super().remove(index)
        if not own:
            self._index()

    def clear(self) -> None:
        """Remove all members."""
        super().clear()
        self._index()

    def _index(self) -> None:
        """Make DEAP's keys, and the bounds that newcomers must pass, of the members."""
        self.keys[:] = [member.fitness for member in reversed(self.items)]
        best = [-np.inf]
        for member in self.items:
            best += [best[-1]] * (len(member) - len(best)) + [member.quality]
        self._best_until[:] = best

    def add_prunings(self, dataset: Dataset) -> None:
        """Let the prunings of all members compete, down to a single leaf.

        Minimal cost-complexity pruning has a best subtree for each of some sizes (Breiman et al.
        1984, chapter 3). Afterwards there is a member for every bound on the size.

        Parameters
        ----------
        dataset : Dataset
            The rows that the members were made on.
        """
        for member in list(self.items):
            if _has_own_objectives(member):
                continue
            risk = node_risk(member.counts, dataset.n_classes)
            collapse_at = weakest_links(risk, member.subtree_size)
            for alpha in critical_alphas(collapse_at, member.subtree_size):
                self.update(prune_marked(member.clone(), dataset, collapse_at <= alpha))

    def to_frame(self, held_out: Dataset | None = None) -> pd.DataFrame:
        """Return the front as a table; see `front_table`."""
        return front_table(self.items, held_out)


def _has_own_objectives(individual: Any) -> bool:
    """Return whether a fitness has several objectives other than quality and size."""
    fitness = individual.fitness
    return len(fitness.weights) > 1 and not isinstance(fitness, FitnessQualitySize)


class FrontTree(ObliqueTree):
    """A member of the front of a fitted estimator: a tree over raw features.

    Attributes
    ----------
    quality : float
        Accuracy on the rows that the fitness was measured on, or R².
    origin : str
        What made the first individual that it descends from.
    """

    quality: float
    origin: str

    @classmethod
    def of(cls, tree: ObliqueTree, quality: float, origin: str) -> Self:
        """Return a tree as a member of a front; the arrays are shared."""
        member = cls.__new__(cls)
        member.__setstate__((tree.__getstate__(), quality, origin))
        return member

    def __getstate__(self) -> Any:
        return super().__getstate__(), self.quality, self.origin

    def __setstate__(self, state: Any) -> None:
        tree, self.quality, self.origin = state
        super().__setstate__(tree)


class FittedFront(Sequence[FrontTree]):
    """The front of a fitted estimator: trees over raw features, and no rows.

    Parameters
    ----------
    members : iterable of FrontTree
        By rising size.
    is_regression : bool
        Whether the qualities are R², not accuracies.
    """

    def __init__(self, members: Iterable[FrontTree], is_regression: bool) -> None:
        self.items = list(members)
        self.is_regression = is_regression

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]

    def __repr__(self) -> str:
        return repr(self.to_frame())

    def to_frame(self, held_out: Dataset | None = None) -> pd.DataFrame:
        """Return the front as a table; see `front_table`."""
        return front_table(self.items, held_out)


def front_table(members: Sequence[Any], held_out: Dataset | None = None) -> pd.DataFrame:
    """Return the members of a front as a table.

    Parameters
    ----------
    members : sequence of Individual or FrontTree
        The front.
    held_out : Dataset, optional
        Rows that the trees were not made on, in the same units.

    Returns
    -------
    pandas.DataFrame
        One row for each member: ``nodes``, ``leaves``, ``depth``, ``quality``, with `held_out` also
        ``held_out_quality`` and its standard error ``held_out_se``, and ``origin``; for objectives
        of the user's own also their values.
    """
    table = pd.DataFrame(
        {
            "nodes": [len(member) for member in members],
            "leaves": [member.n_leaves for member in members],
            "depth": [member.depth for member in members],
            "quality": [member.quality for member in members],
            "origin": [member.origin for member in members],
        }
    )
    if held_out is not None:
        quality, standard_error = held_out_quality(members, held_out)
        table.insert(4, "held_out_quality", quality)
        table.insert(5, "held_out_se", standard_error)
    if members and hasattr(members[0], "fitness") and _has_own_objectives(members[0]):
        for at, values in enumerate(zip(*(one.fitness.values for one in members), strict=True)):
            table[f"objective_{at}"] = values
    return table


def held_out_losses(front: Sequence[Any], held_out: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Return what the members of a front lose on held-out rows.

    Parameters
    ----------
    front : ParetoFront, FittedFront or sequence of their members
        The members.
    held_out : Dataset
        Rows in the units of the trees, at least one.

    Returns
    -------
    losses, square_losses : ndarray of shape (n_members,)
        Weighted sums of the rows' losses, 0 or 1 for classes and squared errors for targets, and of
        their squares.

    Raises
    ------
    ValueError
        If there are no rows.
    """
    if held_out.X.shape[0] == 0:
        raise ValueError("held_out has no rows: at least one is needed.")
    sums = np.zeros((2, len(front)))
    for i, member in enumerate(front):
        is_leaf = member.is_leaf
        for j, losses in enumerate(node_losses(member, held_out)):
            sums[j, i] = losses[is_leaf].sum()
    return sums[0], sums[1]


def held_out_quality(front: Sequence[Any], held_out: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Return the accuracy of the members of a front on held-out rows, or R² for targets.

    Parameters
    ----------
    front : ParetoFront, FittedFront or sequence of their members
        The members.
    held_out : Dataset
        Rows in the units of the trees, at least one.

    Returns
    -------
    quality : ndarray of shape (n_members,)
        At most 1; R² may be negative.
    standard_error : ndarray of shape (n_members,)
        Standard error of the mean loss, in the same unit: ``sqrt(a (1 - a) / n)`` for an accuracy
        a; a row of weight 2 counts as two.
    """
    losses, square_losses = held_out_losses(front, held_out)
    weight = whole = held_out.total_weight
    variance = np.maximum(0.0, square_losses / weight - (losses / weight) ** 2)
    if held_out.n_classes == 0:
        mean = np.average(held_out.y, weights=held_out.sample_weight)
        whole = float(held_out.sample_weight @ (held_out.y - mean) ** 2)
    if whole == 0.0:  # equal targets
        return np.where(losses == 0.0, 1.0, 0.0), np.zeros(len(front))
    return 1.0 - losses / whole, np.sqrt(variance * weight) / whole


def check_rule(rule: str) -> tuple[str, int]:
    """Split the name of a rule of `select` into its kind and its bound on the number of nodes.

    Parameters
    ----------
    rule : str
        See `select`.

    Returns
    -------
    kind : str
        ``"validation"``, ``"1se"``, ``"fitness"`` or ``"size"``.
    max_size : int
        The bound on the number of nodes; 0 where the rule has none.

    Raises
    ------
    ValueError
        If there is no such rule.
    """
    if rule in (*HELD_OUT_RULES, "fitness"):
        return rule, 0
    found = (
        re.fullmatch(r"\s*(size|leaves)\s*<=\s*(\d+)\s*", rule) if isinstance(rule, str) else None
    )
    if found is None or int(found[2]) < 1:
        raise ValueError(f"rule={rule!r}: allowed are {_ALLOWED}, k being at least 1.")
    bound = int(found[2])
    return "size", bound if found[1] == "size" else 2 * bound - 1


def select(
    front: Any,
    rule: str,
    *,
    held_out: Dataset | None = None,
    size_penalty: float | None = None,
    weight_penalty: float = 0.0,
) -> Any:
    """Choose a member of a front.

    Parameters
    ----------
    front : ParetoFront or FittedFront
        At least one member.
    rule : str
        ``"validation"``: the best quality on held-out rows, the smallest of equals. ``"1se"``: the
        smallest that is at most one standard error of the mean loss worse than that one (Breiman et
        al. 1984, section 3.4.3). ``"size<=9"``: the best of at most so many nodes; ``"leaves<=5"``
        says the same in leaves. ``"fitness"``: the best after a penalty for each node
        (`PenalizedAccuracy`), the smallest of equals.
    held_out : Dataset, optional
        The held-out rows, in the units of the trees; what two of the rules need.
    size_penalty : float, optional
        The penalty for one node, which ``"fitness"`` needs.
    weight_penalty : float, at least 0, default=0.0
        Its penalty for a split on all features.

    Returns
    -------
    Individual or FrontTree
        The member itself.

    Raises
    ------
    ValueError
        If there is no such rule, it lacks what it needs, or the front has no member that fits.
    """
    kind, max_size = check_rule(rule)
    if len(front) == 0:
        raise ValueError("front has no members: update it with a population first.")
    if kind == "fitness":
        if size_penalty is None:
            raise ValueError(f"size_penalty=None: rule={rule!r} needs a number of at least 0.")
        return max(front, key=PenalizedAccuracy(size_penalty, weight_penalty))
    if kind == "size":
        if min(map(len, front)) > max_size:
            raise ValueError(
                f"rule={rule!r}: the smallest member of the front has "
                f"{min(map(len, front))} nodes; add_prunings makes smaller ones."
            )
        fitting = [member for member in front if len(member) <= max_size]
        return max(fitting, key=lambda member: member.quality)
    if held_out is None:
        raise ValueError(f"held_out=None: rule={rule!r} needs a Dataset of held-out rows.")
    losses, square_losses = held_out_losses(front, held_out)
    standard_errors = 1.0 if kind == "1se" else 0.0
    # The rule of pruning takes the trees from the largest to the smallest.
    chosen = choose_tree(losses[::-1], square_losses[::-1], held_out.total_weight, standard_errors)
    return front[len(front) - 1 - chosen]
