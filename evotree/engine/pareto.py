"""The Pareto front of quality against size: the best tree of each size that one run meets.

A charge for nodes picks one tree of this front; the rules of `select` pick one by rows held out, by
a bound on the size, or by a charge chosen afterwards.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from copy import deepcopy
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from deap import tools

from evotree.fitness.objectives import FitnessQualitySize, PenalizedAccuracy
from evotree.operators.pruning.held_out import choose_tree, critical_alphas, node_losses
from evotree.operators.pruning.penalized import node_risk, prune_marked, weakest_links

if TYPE_CHECKING:
    from evotree.dataset import Dataset
    from evotree.individual import Individual

HELD_OUT_RULES = ("validation", "1se")
"""Names of the rules that look at rows held out."""

_ALLOWED = "'validation', '1se', 'fitness', 'size<=k' (nodes) and 'leaves<=k', such as 'size<=9'"


class ParetoFront(tools.ParetoFront):
    """The trees that no tree met so far is better than, or as good with fewer nodes.

    There is at most one of each size, the first of equals, and a larger one is always better than
    the smaller ones. Members are clones with a fitness of two values, `FitnessQualitySize`,
    whatever the objective of the run; they stand by rising size. The rest is as in DEAP's class, so
    that a front can be the hall of fame of a run.
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
        super().remove(index)
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
            risk = node_risk(member.counts, dataset.n_classes)
            collapse_at = weakest_links(risk, member.subtree_size)
            for alpha in critical_alphas(collapse_at, member.subtree_size):
                self.update(prune_marked(member.clone(), dataset, collapse_at <= alpha))

    def to_frame(self, held_out: Dataset | None = None) -> pd.DataFrame:
        """Return the front as a table.

        Parameters
        ----------
        held_out : Dataset, optional
            Rows that the trees were not made on, in the same units.

        Returns
        -------
        pandas.DataFrame
            One row a member: ``nodes``, ``leaves``, ``depth``, ``quality``, with `held_out` also
            ``held_out_quality`` and its standard error ``held_out_se``, and ``origin``.
        """
        table = pd.DataFrame(
            {
                "nodes": [member.n_nodes for member in self.items],
                "leaves": [member.n_leaves for member in self.items],
                "depth": [member.depth for member in self.items],
                "quality": [member.quality for member in self.items],
                "origin": [member.origin for member in self.items],
            }
        )
        if held_out is not None:
            quality, standard_error = held_out_quality(self, held_out)
            table.insert(4, "held_out_quality", quality)
            table.insert(5, "held_out_se", standard_error)
        return table


def held_out_losses(front: ParetoFront, held_out: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Return what the members of a front lose on rows held out.

    Parameters
    ----------
    front : ParetoFront
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


def held_out_quality(front: ParetoFront, held_out: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Return the accuracy of the members of a front on rows held out, or R² for targets.

    Parameters
    ----------
    front : ParetoFront
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
    front: ParetoFront,
    rule: str,
    *,
    held_out: Dataset | None = None,
    size_penalty: float | None = None,
    weight_penalty: float = 0.0,
) -> Individual:
    """Choose a member of a front.

    Parameters
    ----------
    front : ParetoFront
        At least one member.
    rule : str
        ``"validation"``: the best quality on rows held out, the smallest of equals. ``"1se"``: the
        smallest that is at most one standard error of the mean loss worse than that one (Breiman et
        al. 1984, section 3.4.3). ``"size<=9"``: the best of at most so many nodes; ``"leaves<=5"``
        says the same in leaves. ``"fitness"``: the best after a charge for each node
        (`PenalizedAccuracy`), the smallest of equals.
    held_out : Dataset, optional
        The rows held out, in the units of the trees; what two of the rules need.
    size_penalty : float, optional
        The charge for one node, what ``"fitness"`` needs.
    weight_penalty : float, at least 0, default=0.0
        Its charge for a test on all features.

    Returns
    -------
    Individual
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
        if len(front[0]) > max_size:
            raise ValueError(
                f"rule={rule!r}: the smallest member of the front has {len(front[0])} nodes; "
                "add_prunings makes smaller ones."
            )
        return [member for member in front if len(member) <= max_size][-1]
    if held_out is None:
        raise ValueError(f"held_out=None: rule={rule!r} needs a Dataset of rows held out.")
    losses, square_losses = held_out_losses(front, held_out)
    standard_errors = 1.0 if kind == "1se" else 0.0
    # The rule of pruning takes the trees from the largest to the smallest.
    chosen = choose_tree(losses[::-1], square_losses[::-1], held_out.total_weight, standard_errors)
    return front[len(front) - 1 - chosen]
