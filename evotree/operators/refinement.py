"""Local refinement: what polishes a tree where it is, which individuals, when, and what came of it.

An evolution that refines some of its members is a memetic algorithm (Moscato 1989, "On evolution,
search, optimization, genetic algorithms and martial arts: towards memetic algorithms"). A *refiner*
is a function of an individual and its data set that changes the individual in place, as DEAP's
operators do, and returns a tuple of it. Every splitter makes one, by the reduced problem of a node.

**The reduced problem** of a node says where each of its rows should go, the other nodes held fixed.
Given all other nodes, the best split of an internal node is that of a problem of two classes
(Carreira-Perpiñán and Tavallali 2018, "Alternating optimization of decision trees, with application
to learning sparse oblique trees", NeurIPS, section 3). A row that the subtrees of both children
predict equally well does not matter. Any other, a *care row*, belongs to the child that predicts it
better, and costs the difference of the two losses on the other side. The loss is that of the
objective: by default 1 for a wrong class, and the squared error (Zharmagambetov and
Carreira-Perpiñán 2020).

**Tree alternating optimization** fits every node of a whole tree again, by its reduced problem,
which any splitter solves. Nodes of one level do not influence each other, so a sweep goes from the
deepest level to the root, the nodes of a level side by side. Leaves predict the majority class, or
the mean, of their rows at any time.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from numbers import Real
from typing import Annotated, Any, TypeAlias

import numpy as np
from deap import base

from evotree._jit import compile_seconds, inner_kernel, kernel
from evotree.configuration import (
    Configuration,
    HasMethods,
    Interval,
    RisingPair,
    StrOptions,
)
from evotree.dataset import Dataset
from evotree.fitness.base import (
    PenalizedAccuracy,
    leaf_table,
    loss_at,
    loss_of_targets,
    loss_unit,
)
from evotree.fitness.node import ERROR, Node
from evotree.operators.pruning import prune
from evotree.operators.splitters.base import Splitter
from evotree.operators.splitters.linear import LOSSES, PENALTIES, Linear, Sparse
from evotree.operators.splitters.registry import (
    GREEDY_PRESETS,
    SPLITTERS,
    bounded,
    splitter_of,
)
from evotree.operators.structure.splice import (
    part_rows,
    partition_tree,
)
from evotree.rng import as_generator, below, make_streams, next_uint64, uniform
from evotree.tree import (
    NO_ANSWERS,
    Individual,
    Outcome,
    node_depths,
    project,
    set_fitness,
)

Hyperplane: TypeAlias = tuple[np.ndarray, float]
"""Normal vector and threshold of a split."""

Splits: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Weights, thresholds and `subtree_size` of a tree, as `ObliqueTree.splits` has them."""

SPARSE_ROWS = 4_096  # most that the features of a split are chosen by


@inner_kernel
def leaf_from(X, i, k, tree):
    """Return the leaf of the subtree at node `k` that row `i` reaches."""
    weights, thresholds, subtree_size = tree
    while subtree_size[k] > 1:
        if project(weights[k], X, i) <= thresholds[k]:
            k += 1
        else:
            k += 1 + subtree_size[k + 1]
    return k


@kernel
def care_rows(X, y, sample_weight, rows, k, tree, table, loss, level, origin):
    """Return the care rows of node `k`, where they belong, and what they cost on the other side.

    `rows` are the positions of the rows that reach the node, ``tree`` its ``(weights, thresholds,
    subtree_size)`` and `table` what rows lose at each node (`leaf_table`). Of m care rows the three
    arrays are ``X (m, d)``, ``goes_right (m,) int32``, 1 for those of the right child, and
    ``cost (m,)``, the weight of a row times the difference of its two losses.
    """
    n, d = rows.shape[0], X.shape[1]
    chosen = np.empty(n, dtype=np.int32)
    goes_right = np.empty(n, dtype=np.int32)
    cost = np.empty(n)
    m = 0
    left = k + 1
    right = left + tree[2][left]
    for t in range(n):
        i = rows[t]
        on_left = leaf_from(X, i, left, tree)
        on_right = leaf_from(X, i, right, tree)
        excess = loss_at(table, on_left, X, y, i, loss, level, origin)
        excess -= loss_at(table, on_right, X, y, i, loss, level, origin)
        if excess != 0.0:
            chosen[m] = i
            goes_right[m] = excess > 0.0
            cost[m] = sample_weight[i] * abs(excess)
            m += 1
    care = np.empty((m, d))
    for t in range(m):
        for j in range(d):
            care[t, j] = X[chosen[t], j]
    return care, goes_right[:m].copy(), cost[:m].copy()


@kernel
def misrouted(X, goes_right, cost, w, threshold):
    """Return the cost of the rows that a split sends to the wrong side."""
    total = 0.0
    for i in range(X.shape[0]):
        if (project(w, X, i) > threshold) != (goes_right[i] == 1):
            total += cost[i]
    return total


def reduced_problem(
    individual: Individual,
    dataset: Dataset,
    k: int,
    weights: np.ndarray,
    thresholds: np.ndarray,
    table: np.ndarray,
    stream: np.ndarray,
    max_rows: int | None = None,
) -> Node | None:
    """Return the reduced problem of an internal node: its care rows, of the classes 0 and 1.

    `weights` and `thresholds` are those of the tree as it is being changed. Of a node with more
    rows `max_rows` are drawn, and weigh as much as those they stand for. None where no row matters.
    """
    rows = individual.order[individual.start[k] : individual.end[k]]
    step = 1.0
    if max_rows is not None:
        # Copies with noise tell no more than the rows that they are of.
        max_rows = min(max_rows, max(1024, dataset.n_rows))
        if rows.size > max_rows:
            step = rows.size / max_rows  # rows for which each of the drawn ones stands
            drawn = (np.arange(max_rows) + uniform(stream)) * step
            rows = rows[drawn.astype(np.int64)]
    care, goes_right, cost = care_rows(
        dataset.X,
        dataset.targets,
        dataset.sample_weight,
        rows,
        k,
        (weights, thresholds, individual.subtree_size),
        table,
        *loss_of_targets(dataset),
    )
    if dataset.is_split_on is not None:
        care[:, ~dataset.is_split_on] = 0.0
    if cost.size == 0:
        return None
    return Node.of(
        care, goes_right, step * cost, n_classes=2, criterion=ERROR, min_rows=1
    )


def fitted_splits(
    individual: Individual,
    dataset: Dataset,
    levels: Iterable[Iterable[int]],
    fit: Callable[[Node, Hyperplane, np.ndarray], Hyperplane | None],
    table: np.ndarray,
    streams: Sequence[np.ndarray],
    *,
    max_rows: int | None = None,
    splits: tuple[np.ndarray, np.ndarray] | None = None,
    end: float = math.inf,
    map: Callable[..., Iterable[Any]] = map,
) -> Splits | None:
    """Return a tree whose splits are fitted again, level by level; None where none changes.

    `fit` takes the reduced problem of a node, its present split and the node's stream. With
    `splits`, weights and thresholds of all nodes, the tree has these before; leaves lose `table`.
    """
    weights, thresholds = (part.copy() for part in splits or individual.splits[:2])

    def fit_node(k: int) -> Hyperplane | None:
        if time.perf_counter() >= end:
            return None
        stream = streams[k]
        node = reduced_problem(
            individual, dataset, k, weights, thresholds, table, stream, max_rows
        )
        present = weights[k].copy(), float(thresholds[k])
        return None if node is None else fit(node, present, stream)

    is_changed = False
    for nodes in levels:
        for k, split in zip(nodes, map(fit_node, nodes), strict=True):
            if split is not None:
                weights[k], thresholds[k] = split
                is_changed = True
    if not is_changed:
        return None
    return dataset.allowed(weights), thresholds, individual.subtree_size


def refit_nodes(
    individual: Individual,
    dataset: Dataset,
    nodes: Iterable[int],
    fit: Callable[[Node, Hyperplane, np.ndarray], Hyperplane | None],
    stream: np.ndarray,
    max_rows: int,
    splits: tuple[np.ndarray, np.ndarray] | None = None,
) -> bool:
    """Fit the splits of nodes again in place, one after the other; return whether any has changed.

    With `splits`, weights and thresholds of all nodes, the individual has these before.
    """
    fitted = fitted_splits(
        individual,
        dataset,
        [[k] for k in nodes],
        fit,
        leaf_table(individual, dataset.n_classes),
        [stream] * len(individual),
        max_rows=max_rows,
        splits=splits,
    )
    if fitted is not None:
        splits = fitted[:2]
    if splits is not None:
        replace_splits(individual, dataset, *splits)
    return fitted is not None


def replace_splits(
    individual: Individual,
    dataset: Dataset,
    weights: np.ndarray,
    thresholds: np.ndarray,
    subtree_size: np.ndarray | None = None,
) -> None:
    """Give an individual other splits, and drop the parts that no row reaches."""
    individual.replace(
        partition_tree(
            dataset.rows,
            dataset.allowed(weights),
            thresholds,
            individual.subtree_size if subtree_size is None else subtree_size,
            individual.answers if subtree_size is None else NO_ANSWERS,
            dataset.n_statistics,
        )
    )


# ---- sweeps --------------------------------------------------------------------------------------


def cost_of(node: Node, split: Hyperplane, term_cost: float) -> float:
    """Return what a split costs: the rows on the wrong sides, and the terms after the first."""
    weights, threshold = split
    wrong = misrouted(node.X, node.y, node.sample_weight, weights, threshold)
    return wrong + term_cost * max(0, int(np.count_nonzero(weights)) - 1)


def solve(
    node: Node,
    present: Hyperplane,
    stream: np.ndarray,
    splitter: Splitter,
    term_cost: float = 0.0,
) -> Hyperplane | None:
    """Return a split of a reduced problem: the splitter's, its inverse, or one that parts none."""
    nowhere = np.zeros(node.X.shape[1])
    all_left = nowhere, 0.0
    all_right = nowhere, -1.0
    if (node.y == node.y[0]).all():
        return all_right if node.y[0] else all_left
    refit = getattr(splitter, "refit", None)
    split = splitter(node, stream) if refit is None else refit(node, *present)
    if split is None:
        return None
    candidates = (
        (split.weights, float(split.threshold)),
        (-split.weights, float(np.nextafter(-split.threshold, -np.inf))),
        all_left,
        all_right,
    )
    return min(candidates, key=lambda candidate: cost_of(node, candidate, term_cost))


def tao_sweep(
    individual: Individual,
    dataset: Dataset,
    splitter: Splitter,
    *,
    monotone: bool = True,
    term_penalty: float = 0.0,
    max_rows: int | None = None,
    max_nodes: int | None = None,
    end: float = math.inf,
    map: Callable[..., Iterable[Any]] = map,
) -> tuple[Individual]:
    """Fit every internal node of an individual again, from the deepest level to the root.

    Parameters
    ----------
    individual : Individual
        Changed in place; its stream is drawn from.
    dataset : Dataset
        Training rows.
    splitter : Splitter
        Finds the split of a reduced problem; one with ``refit`` starts from the present split.
    monotone : bool, default=True
        Whether a split stays where a new one costs more, and the tree where it would be worse.
    term_penalty : float, default=0.0
        Penalty for each term after a split's first, a share of the whole loss.
    max_rows : int, optional
        Most rows that a node is fitted by; None for all.
    max_nodes : int, optional
        Of a tree with more splits so many are drawn and fitted; None for all.
    end : float, default=inf
        When it is over, by `time.perf_counter`, the nodes that are left stay as they are.
    map : callable
        Maps over the nodes of a level, as the built-in one, maybe by several threads.
    """
    splits = swept_splits(
        individual,
        dataset,
        splitter,
        leaf_table(individual, dataset.n_classes),
        monotone=monotone,
        term_cost=term_penalty * loss_unit(dataset),
        max_rows=max_rows,
        max_nodes=max_nodes,
        end=end,
        map=map,
    )
    if splits is not None:
        take_splits(individual, dataset, splits, term_penalty if monotone else None)
    return (individual,)


def swept_splits(
    individual: Individual,
    dataset: Dataset,
    splitter: Splitter,
    table: np.ndarray,
    *,
    monotone: bool,
    term_cost: float = 0.0,
    max_rows: int | None = None,
    max_nodes: int | None = None,
    end: float = math.inf,
    map: Callable[..., Iterable[Any]] = map,
) -> Splits | None:
    """Return the splits of a sweep over a tree, whose leaves lose `table`; None for its own."""
    size = individual.subtree_size
    streams = make_streams(int(next_uint64(individual.stream)), 0, len(individual))

    def fit(node: Node, present: Hyperplane, stream: np.ndarray) -> Hyperplane | None:
        split = solve(node, present, stream, splitter, term_cost)
        if split is None or not monotone:
            return split
        is_worse = cost_of(node, split, term_cost) > cost_of(node, present, term_cost)
        return None if is_worse else split

    depths = np.where(size == 1, -1, node_depths(size))
    if max_nodes is not None and len(size) // 2 > max_nodes:
        drawn = as_generator(individual.stream).permutation(np.flatnonzero(size > 1))
        depths[drawn[max_nodes:]] = -1
    return fitted_splits(
        individual,
        dataset,
        [np.flatnonzero(depths == depth) for depth in range(depths.max(), -1, -1)],
        fit,
        table,
        streams,
        max_rows=max_rows,
        end=end,
        map=map,
    )


def take_splits(
    individual: Individual,
    dataset: Dataset,
    splits: Splits,
    term_penalty: float | None = None,
) -> bool:
    """Give an individual the parts of a tree that rows reach; return whether it was done.

    With a penalty for terms it is not where the tree would be worse.
    """
    swept = individual.clone()
    replace_splits(swept, dataset, *splits)
    if term_penalty is not None:
        # A row on a hyperplane may fall to the other side than its projection above had it.
        fitness = PenalizedAccuracy(size_penalty=0.0, term_penalty=term_penalty)
        if fitness(swept) < fitness(individual):
            return False
    individual.replace_by(swept)
    return True


def tao_sweeps(
    individual: Individual,
    dataset: Dataset,
    splitter: Splitter,
    *,
    max_sweeps: int = 14,
    tol: float = 0.005,
    monotone: bool = True,
    map: Callable[..., Iterable[Any]] = map,
) -> Iterator[int]:
    """Sweep over an individual until its training loss falls no further; yield after each sweep.

    It ends where a sweep lowers the loss by no more than the share `tol`. What `monotone` is false
    for is the first sweep alone; ``map`` is that of `tao_sweep`. As published, the sweeps go on
    over the parts that no row reaches, which may fill again; the individual is without them.
    """
    whole, table = individual, leaf_table(individual, dataset.n_classes)
    for n_sweeps in range(1, max_sweeps + 1):
        loss = 1.0 - individual.quality
        keeps = monotone or n_sweeps > 1
        splits = swept_splits(whole, dataset, splitter, table, monotone=keeps, map=map)
        if splits is not None and take_splits(
            individual, dataset, splits, 0.0 if keeps else None
        ):
            whole = with_all_nodes(individual, dataset, splits)
            # A leaf without rows says what it said when it last had some.
            is_reached = whole.is_leaf & (whole.end > whole.start)
            reached = leaf_table(individual, dataset.n_classes)[individual.is_leaf]
            table = table.copy()
            table[is_reached] = reached
        yield n_sweeps
        if n_sweeps > 1 and loss - (1.0 - individual.quality) <= tol * loss:
            break


def with_all_nodes(
    individual: Individual, dataset: Dataset, splits: Splits
) -> Individual:
    """Return an individual of the whole of a tree, also of what no row reaches, without counts."""
    weights, thresholds, size = splits
    n_rows = dataset.n_distinct
    order = np.arange(n_rows, dtype=np.int32)
    start = np.zeros(len(size), dtype=np.int32)
    end = np.full(len(size), n_rows, dtype=np.int32)
    for k in np.flatnonzero(size > 1).tolist():
        lo, hi, left = int(start[k]), int(end[k]), k + 1
        right = left + size[left]
        middle = part_rows(dataset.X, order, lo, hi, weights[k], float(thresholds[k]))
        start[left], end[left] = lo, middle
        start[right], end[right] = middle, hi
    counts = np.zeros((len(size), dataset.n_statistics))
    whole = Individual((*splits, order, start, end, counts, NO_ANSWERS))
    whole.stream = individual.stream
    return whole


# ---- refiners ------------------------------------------------------------------------------------


# A fit that stops early goes on where it stopped when the node is refined again.
_NEWTON_STEPS, _TOLERANCE = 5, 1e-2

NODE_ROWS = 32_768
"""Most rows that a node is refined by; so many tell a hyperplane from its neighbours."""

Refiner = Callable[["Individual", "Dataset"], tuple["Individual"]]
"""Changes an individual in place and returns a tuple of it."""


def draw_linear(C: tuple[float, float], penalty: str, stream: Any) -> Linear:
    """Return a linear classifier of a loss and a C that are drawn, the C log-uniformly."""
    low, high = C
    cost = low * (high / low) ** uniform(stream)
    return Linear(
        loss=LOSSES[below(stream, len(LOSSES))],
        penalty=penalty,
        C=cost,
        max_iter=_NEWTON_STEPS,
        tol=_TOLERANCE,
    )


def draw_sparse(C: tuple[float, float], stream: Any, **options: Any) -> Sparse:
    """Return a sparse splitter of a loss and a C that are drawn, as `draw_linear` does."""
    drawn = draw_linear(C, PENALTIES[0], stream)
    return Sparse(loss=drawn.loss, C=drawn.C, **options)


def refine_linear(
    individual: Individual,
    dataset: Dataset,
    *,
    C: tuple[float, float],
    is_sparse: bool = False,
    penalty: str = "l2",
    term_penalty: float = 0.0,
    max_features: int | None = None,
) -> tuple[Individual]:
    """Sweep over all nodes of an individual by linear classifiers, sparse or dense ones."""
    # Every refinement draws its loss and its C: the fitness shows what the data need. A sweep that
    # chooses the features of each split takes 256 splits at most, drawn among those of a larger
    # tree. A quarter of these sweeps choose among splits of all widths at each node, the others fit
    # the splits again on the features that they have; the best split on one feature competes in
    # both.
    stream = individual.stream
    if not is_sparse and max_features is None:
        dense = draw_linear(C, penalty, stream)
        return tao_sweep(individual, dataset, dense, max_rows=NODE_ROWS)
    splitter = draw_sparse(
        C,
        stream,
        widths="any" if uniform(stream) < 0.25 else "same",
        max_features=max_features,
        term_cost=term_penalty * loss_unit(dataset),
    )
    return tao_sweep(
        individual,
        dataset,
        splitter,
        term_penalty=term_penalty,
        max_rows=SPARSE_ROWS,
        max_nodes=256,
    )


def refine_split(
    individual: Individual, dataset: Dataset, *, splitter: Splitter
) -> tuple[Individual]:
    """Give one internal node, drawn uniformly, a splitter's split of its reduced problem."""
    internal = np.flatnonzero(~individual.is_leaf)
    if internal.size > 0:
        stream = individual.stream
        refit_nodes(
            individual,
            dataset,
            [int(internal[below(stream, internal.size)])],
            fit=partial(solve, splitter=splitter),
            stream=stream,
            max_rows=NODE_ROWS,
        )
    return (individual,)


REFINERS = ("tao", "sparse", *SPLITTERS)
"""Names of the refiners."""


def make_refiner(
    name: str | Refiner,
    C: tuple[float, float],
    penalty: str = "l2",
    term_penalty: float = 0.0,
    max_features: int | None = None,
) -> Refiner:
    """Return the refiner of a name or a splitter, or the one that is given."""
    if isinstance(name, str) and name in ("tao", "sparse"):
        return partial(
            refine_linear,
            C=C,
            is_sparse=name == "sparse",
            penalty=penalty,
            term_penalty=term_penalty,
            max_features=max_features,
        )
    splitter = splitter_of(name)
    if splitter is not None:
        return partial(refine_split, splitter=bounded(splitter, max_features))
    if callable(name) and not isinstance(name, type):
        return name
    raise ValueError(
        f"refinement names {name!r}: allowed are {sorted(REFINERS)}, presets "
        f"({', '.join(sorted(GREEDY_PRESETS))}), splitters such as OC1(), "
        "greedy estimators, and callables of an individual and a data set."
    )


@dataclass(frozen=True, repr=False)
class Refinement(Configuration):
    """How many individuals are refined, and by what.

    Parameters
    ----------
    operators : str, iterable of str or mapping of str to float, default="tao"
        Names of refiners or of greedy presets, splitters such as ``OC1(n_restarts=5)``, whose
        splits take the place of one that is drawn, and callables of an individual and a data set
        (see `make_refiner`), for equal shares or with their shares of the refinements, which need
        not add up to 1.
    probability : float in [0, 1], default=0.05
        Share of a generation's offspring that is refined.
    C : float above 0, or tuple of two, default=(0.1, 10.0)
        Cost of a row's loss in the linear classifiers of ``"tao"`` and ``"sparse"``; of two
        numbers, each refinement draws one between them, log-uniformly.
    penalty : {"l2", "l1"}, default="l2"
        Their penalty; "l1" makes weights 0.
    """

    operators: Annotated[
        str | Iterable[str] | Mapping[str | Refiner, float], HasMethods(["__iter__"])
    ] = "tao"
    probability: Annotated[float, Interval(Real, 0.0, 1.0, closed="both")] = 0.05
    C: Annotated[
        float | tuple[float, float],
        Interval(Real, 0.0, None, closed="neither"),
        RisingPair(Real, 0.0, None, closed="neither"),
    ] = (0.1, 10.0)
    penalty: Annotated[str, StrOptions(set(PENALTIES))] = "l2"

    def __post_init__(self) -> None:
        super().__post_init__()
        for operator in self.shares():
            refiner = make_refiner(operator, self.bounds())
            try:
                signature(refiner).bind("individual", "dataset")
            except TypeError as error:
                raise ValueError(
                    f"refinement names {operator!r}: allowed are callables of an individual "
                    f"and a data set; {error}."
                ) from error

    def bounds(self) -> tuple[float, float]:
        """Return the bounds of C."""
        return self.C if isinstance(self.C, tuple) else (self.C, self.C)

    def shares(self) -> dict[str | Refiner, float]:
        """Return the share of each operator in the refinements; they add up to 1."""
        operators = (
            (self.operators,) if isinstance(self.operators, str) else self.operators
        )
        if not isinstance(operators, Mapping):
            operators = dict.fromkeys(operators, 1.0)
        values = list(operators.values())
        are_numbers = all(isinstance(share, Real) for share in values)
        total = math.fsum(values) if are_numbers else math.nan
        if not 0.0 < total < math.inf or min(values) < 0.0:
            raise ValueError(
                f"refinement has the shares {dict(operators)!r}: allowed are numbers above 0."
            )
        return {name: share / total for name, share in operators.items()}


def as_refinement(
    refinement: None | str | Iterable[str] | Mapping[Any, float] | Refinement,
) -> Refinement | None:
    """Return the refinement that a parameter describes: its operators, or all of it."""
    if refinement is None or isinstance(refinement, Refinement):
        return refinement
    return Refinement(refinement)


def make_refiners(
    refinement: Refinement, term_penalty: float = 0.0, max_features: int | None = None
) -> dict[str, tuple[float, Refiner]]:
    """Return share and refiner of each operator, by name."""
    refiners: dict[str, tuple[float, Refiner]] = {}
    for operator, share in refinement.shares().items():
        kind = operator
        if not isinstance(operator, str):
            kind = getattr(operator, "__name__", type(operator).__name__)
        name, n_alike = str(kind), 1
        while name in refiners:
            n_alike += 1
            name = f"{kind}{n_alike}"
        refiners[name] = (
            share,
            make_refiner(
                operator,
                refinement.bounds(),
                penalty=refinement.penalty,
                term_penalty=term_penalty,
                max_features=max_features,
            ),
        )
    return refiners


def refine(
    individual: Individual,
    toolbox: base.Toolbox,
    dataset: Dataset,
    refiners: Mapping[str, tuple[float, Refiner]],
    size_penalty: float,
    term_penalty: float = 0.0,
) -> tuple[Individual]:
    """Refine an individual by one of several operators, unless its fitness would fall."""
    begin = time.perf_counter() - compile_seconds()
    draw = uniform(individual.stream)
    for name, (share, refiner) in refiners.items():  # noqa: B007
        draw -= share
        if draw < 0.0:
            break
    trial = individual.clone()
    refiner(trial, dataset)
    prune(trial, dataset, size_penalty, term_penalty)
    if hasattr(toolbox, "repair"):  # pruning knows nothing of what is held
        toolbox.repair(trial)
    set_fitness(trial, toolbox.evaluate(trial))
    gain = trial.fitness.wvalues[0] - individual.fitness.wvalues[0]
    if trial.fitness >= individual.fitness:
        individual.replace_by(trial)
        individual.fitness.wvalues = trial.fitness.wvalues
    seconds = time.perf_counter() - compile_seconds() - begin
    individual.outcome = Outcome(name, max(gain, 0.0), max(seconds, 0.0))
    return (individual,)


def choose_for_refinement(
    individuals: Sequence[Individual], refinement: Refinement
) -> list[Individual]:
    """Return the individuals of a generation that are to be refined."""
    return [
        individual
        for individual in individuals
        if len(individual) > 1 and uniform(individual.stream) < refinement.probability
    ]
