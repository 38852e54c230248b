"""Variation and selection: how trees change, which become parents, and which live on.

Nodes mutate and trees exchange subtrees after GEA-ODT, to the letter where `published` says so;
`mut_terms` changes the features of a split. Parents are selected in proportion to their fitness, or
by NSGA-II, which sorts individuals into fronts of quality against complexity and prefers those with
room beside them. In its fronts equal individuals stand behind each other, so that copies do not
crowd out others.

References
----------
Deb K., Pratap A., Agarwal S., Meyarivan T. (2002). A fast and elitist multiobjective genetic
algorithm: NSGA-II. IEEE Transactions on Evolutionary Computation 6, 182-197.
Fortin F.-A., Parizeau M. (2013). Revisiting the NSGA-II crowding-distance computation. GECCO,
623-630.
"""

from collections.abc import Callable, Sequence
from itertools import compress

import numpy as np
from deap import tools

from evotree._jit import kernel, part_kernel
from evotree.dataset import Dataset
from evotree.fitness.base import linear_scaling
from evotree.fitness.node import (
    Node,
    centre_margin,
    is_uniform,
    project_rows,
    sort_rows,
)
from evotree.operators.pruning import prune
from evotree.operators.refinement import SPARSE_ROWS, Hyperplane, refit_nodes
from evotree.operators.splitters.dipole import (
    dipolar_change,
    dipole_hyperplane,
    gaussian_change,
)
from evotree.operators.splitters.linear import (
    fit_on,
    nonzero_features,
    start_at,
    strengths,
)
from evotree.operators.structure.splice import (
    Nodes,
    Rows,
    copy_nodes,
    copy_split,
    emit,
    emit_below,
    emit_leaf,
    emit_same_leaf,
    emit_split,
    finish_nodes,
    make_nodes,
    make_scratch,
    push,
)
from evotree.rng import as_generator, below, failures, shuffle, uniform
from evotree.tree import Individual


@part_kernel
def emit_dipole_split(
    rows, times, out, m, lo, hi, scratch, stream, min_rows, max_width
):
    """Write a leaf, or a dipole split with two leaves where it makes sense; return the next one."""
    after = emit_leaf(rows, out, m, lo, hi)
    n_rows = 0
    # No row counts less than once: the first `min_rows` are enough.
    for i in range(lo, min(hi, lo + min_rows)):
        n_rows += max(times[out.order[i]], 1)
    if n_rows < min_rows or is_uniform(rows.y, out.order, lo, hi):
        return after
    out.thresholds[m] = dipole_hyperplane(
        rows.X, rows.y, out.order, lo, hi, stream, out.weights[m], max_width
    )
    mid = emit_split(rows, out, m, lo, hi, scratch, True)
    if mid == lo or mid == hi:  # the two rows of the dipole coincide
        emit_leaf(rows, out, m, lo, hi)
        return after
    return emit_leaf(rows, out, emit_leaf(rows, out, after, lo, mid), mid, hi)


@part_kernel
def change_split(rows, spread, out, m, lo, hi, stream, dipolar_probability, is_sparse):
    """Change the split at position `m`, by the dipolar operator or standard mutation."""
    if uniform(stream) < dipolar_probability and dipolar_change(
        rows.X,
        rows.y,
        out.order,
        lo,
        hi,
        stream,
        out.weights[m],
        out.thresholds[m],
        is_sparse,
    ):
        return
    out.thresholds[m] = gaussian_change(
        stream, out.weights[m], out.thresholds[m], spread, is_sparse
    )


@part_kernel
def emit_mutated(
    rows, times, spread, source, k, marks, out, m, lo, hi, scratch, stream, rules
):
    """Route rows down the subtree of `source` at `k` as `emit` does, mutating the marked nodes."""
    dipolar_probability, min_rows, max_width, leaf_share = rules
    pending = np.empty((source.subtree_size[k], 3), dtype=np.int64)
    n_pending = push(pending, 0, k, lo, hi)
    while n_pending > 0:
        n_pending -= 1
        k, lo, hi = pending[n_pending, 0], pending[n_pending, 1], pending[n_pending, 2]
        while True:
            changes = marks[k]
            if source.subtree_size[k] == 1 and not changes:
                m = emit_same_leaf(rows, source, k, out, m, lo, hi)
                break
            if source.subtree_size[k] == 1:
                m = emit_dipole_split(
                    rows, times, out, m, lo, hi, scratch, stream, min_rows, max_width
                )
                break
            right = k + 1 + source.subtree_size[k + 1]
            role = uniform(stream) if changes else 1.0
            if role < 0.5 * leaf_share:
                m = emit_leaf(rows, out, m, lo, hi)
                break
            if role < 0.5:
                k = k + 1 if role < 0.25 + 0.25 * leaf_share else right
                continue
            copy_split(source, k, out, m)
            if changes:
                change_split(
                    rows,
                    spread,
                    out,
                    m,
                    lo,
                    hi,
                    stream,
                    dipolar_probability,
                    max_width > 0,
                )
            mid = emit_split(rows, out, m, lo, hi, scratch, changes)
            k += 1
            if mid == lo:
                k = right
            elif mid < hi:
                n_pending = push(pending, n_pending, right, mid, hi)
                m += 1
                hi = mid
    return m


@kernel
def mutate_nodes(
    X,
    y,
    sample_weight,
    times,
    spread,
    weights,
    thresholds,
    subtree_size,
    order,
    start,
    end,
    counts,
    answers,
    first,
    stream,
    probability,
    dipolar_probability,
    min_rows,
    max_width,
    leaf_share,
):
    """Mutate node `first` and each later node with a probability; return the arrays of the result.

    The first three arguments are `Rows`; ``times (n_rows,)`` says how many given rows each one is,
    ``spread (n_features,)`` is that of the features; the next eight are the individual's `Nodes`.
    A leaf of fewer than `min_rows` rows is not split; `max_width` is the greatest number of terms
    of a new split, 0 for any; `leaf_share` how many of the internal nodes that change their role
    become leaves, where the others make room for a child.
    """
    # Arrays one by one: a call of a kernel takes longer for arrays in tuples.
    rows = Rows(X, y, sample_weight)
    source = Nodes(
        weights, thresholds, subtree_size, order, start, end, counts, answers
    )
    rules = dipolar_probability, min_rows, max_width, leaf_share
    n_nodes = subtree_size.shape[0]
    marks = np.zeros(n_nodes, dtype=np.bool_)
    capacity, k = n_nodes, first
    while k < n_nodes:
        marks[k] = True
        capacity += 2
        k += 1 + failures(stream, probability)
    out = make_nodes(capacity, source, source.order.copy())
    scratch = make_scratch(rows.X.shape[0])
    m = copied = 0
    for k in range(first, n_nodes):
        if k < copied or not marks[k]:
            continue
        m = copy_nodes(source, copied, k, out, m)
        lo, hi = source.start[k], source.end[k]
        if source.subtree_size[k] > 1:
            sort_rows(out.order, lo, hi)
        m = emit_mutated(
            rows,
            times,
            spread,
            source,
            k,
            marks,
            out,
            m,
            lo,
            hi,
            scratch,
            stream,
            rules,
        )
        copied = k + source.subtree_size[k]
    m = copy_nodes(source, copied, n_nodes, out, m)
    return finish_nodes(out, m)


def mut_nodes(
    individual: Individual,
    dataset: Dataset,
    probability: float = 0.1,
    dipolar_probability: float = 0.5,
    min_rows: int = 5,
    max_width: int = 0,
    published: bool = False,
) -> tuple[Individual]:
    """Mutate each node of an individual with a probability (MutateNode)."""
    # An internal node changes, with equal probability, its split (by the dipolar operator or by
    # standard mutation) or its role: as published it becomes a leaf, else half of the times the
    # subtree of one of its children takes its place. A leaf becomes a dipole split with two leaves,
    # unless it is pure or small. Margins of changed splits are centred, and parts that no row
    # reaches are dropped.
    first = failures(individual.stream, probability)
    if first < len(individual):
        mutated = mutate_nodes(
            dataset.split_X,
            dataset.y,
            dataset.sample_weight,
            dataset.multiplicity,
            dataset.spread,
            *individual.nodes(),
            first,
            individual.stream,
            probability,
            dipolar_probability,
            min_rows,
            max_width,
            1.0 if published else 0.5,
        )
        individual.replace(mutated)
    return (individual,)


# ---- the middle of margins -----------------------------------------------------------------------


@kernel
def centred_thresholds(X, y, weights, thresholds, subtree_size, order, start, end):
    """Return the thresholds of a tree, each in the middle of its margin (GEA-ODT, eq. 5)."""
    centred = thresholds.copy()
    projection = np.empty(X.shape[0])
    for k in range(subtree_size.shape[0]):
        if subtree_size[k] > 1:
            lo, hi = np.int64(start[k]), np.int64(end[k])
            project_rows(weights, k, X, order, lo, hi, projection)
            centred[k] = centre_margin(projection, order, lo, hi, y, thresholds[k])
    return centred


def centre_splits(individual: Individual, dataset: Dataset) -> tuple[Individual]:
    """Put every split whose nearest rows are a mixed dipole into the middle between them."""
    # No row changes sides, so the partition stays. A tree whose fitness is known is as it was left.
    if not individual.fitness.valid:
        centred = centred_thresholds(dataset.X, dataset.y, *individual.nodes()[:6])
        if not np.array_equal(centred, individual.thresholds):
            moved = individual.clone()
            moved.thresholds = centred
            individual.replace_by(moved)
    return (individual,)


# ---- other features for a split ------------------------------------------------------------------


CHANGES = ("drop", "add", "swap", "halve")
"""What happens to the features of a split."""


def changed_support(
    support: np.ndarray,
    node: Node,
    weights: np.ndarray,
    max_width: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return the features of a split after one leaves, one comes, both, or half of them leave."""
    # A feature that comes is drawn evenly half of the times, or in proportion to its strength; of
    # halves the one of more influence stays.
    d, width = weights.shape[0], support.size
    change = CHANGES[rng.integers(len(CHANGES))]
    if change == "halve" and width > 2:
        influence = np.abs(weights[support]) * node.X[:, support].std(axis=0)
        support = support[np.argsort(-influence, kind="stable")[: (width + 1) // 2]]
        return np.sort(support)
    leaves = change in ("drop", "swap") and (width > 1 or change == "swap")
    comes = change in ("add", "swap", "halve") and width < d
    others = np.delete(np.arange(d), support)
    if leaves and (comes or width > 1):
        support = np.delete(support, rng.integers(width))
    if comes and support.size < max_width:
        chances = None
        if rng.uniform() < 0.5:
            strength = strengths(node)[others]
            chances = strength / strength.sum() if strength.sum() > 0.0 else None
        support = np.append(support, rng.choice(others, p=chances))
    return np.sort(support) if support.size else np.array([rng.integers(d)])


def mut_terms(
    individual: Individual,
    dataset: Dataset,
    size_penalty: float = 0.0,
    term_penalty: float = 0.0,
    max_features: int | None = None,
    C: tuple[float, float] = (0.1, 10.0),
) -> tuple[Individual]:
    """Change which features one split uses, fit it again, and prune the tree."""
    # The weights on the features that the split then has are those of a linear classifier of the
    # reduced problem, the threshold is the one that costs least there.
    internal = np.flatnonzero(individual.subtree_size > 1)
    if internal.size == 0:
        return (individual,)
    rng = as_generator(individual.stream)
    d = dataset.X.shape[1]
    max_width = d if max_features is None else min(max_features, d)

    def fit(node: Node, present: Hyperplane, stream: np.ndarray) -> Hyperplane | None:
        if (node.y == node.y[0]).all():
            return None
        weights, threshold = present
        support = changed_support(
            np.flatnonzero(weights), node, weights, max_width, rng
        )
        theta = start_at(node.X, weights, threshold)
        if not fit_on(node, theta, support, C[0] * (C[1] / C[0]) ** rng.uniform()):
            return None
        return theta[:-1], -theta[-1]

    is_changed = refit_nodes(
        individual,
        dataset,
        [int(internal[rng.integers(internal.size)])],
        fit=fit,
        stream=individual.stream,
        max_rows=SPARSE_ROWS,
    )
    if is_changed:
        prune(individual, dataset, size_penalty, term_penalty)
    return (individual,)


def mut_either(
    individual: Individual,
    first: Callable[[Individual], tuple[Individual]],
    second: Callable[[Individual], tuple[Individual]],
    probability: float,
) -> tuple[Individual]:
    """Mutate an individual by one of two operators."""
    if probability > 0.0 and uniform(individual.stream) < probability:
        return second(individual)
    return first(individual)


# ---- crossover -----------------------------------------------------------------------------------


@kernel
def draw_exchange(stream, size_a, size_b, n_features, split_probability):
    """Draw one node of each parent, and where their splits are crossed; 0 for whole subtrees."""
    a = below(stream, size_a.shape[0])
    b = below(stream, size_b.shape[0])
    crosses_splits = uniform(stream) < split_probability
    cut = 1 + below(stream, n_features)
    if crosses_splits and size_a[a] > 1 and size_b[b] > 1:
        return a, b, cut
    return a, b, np.int64(0)


@part_kernel
def emit_crossed(
    rows, target, a, source, b, cut, max_width, moves_subtrees, out, m, scratch
):
    """Write node `a` of `target`, its rows sorted, its split crossed with node `b` of `source`."""
    lo, hi = np.int64(target.start[a]), np.int64(target.end[a])
    copy_split(target, a, out, m)
    for j in range(cut, source.weights.shape[1]):
        out.weights[m, j] = source.weights[b, j]
    # The mixture may be too wide; the split of `source` is not.
    if nonzero_features(out.weights[m]).shape[0] > max_width:
        copy_split(source, b, out, m)
    out.thresholds[m] = source.thresholds[b]
    if moves_subtrees:
        return emit_below(rows, source, b, out, m, lo, hi, scratch, True)
    return emit_below(rows, target, a, out, m, lo, hi, scratch, True)


@kernel
def graft(
    X,
    y,
    sample_weight,
    weights,
    thresholds,
    subtree_size,
    order,
    start,
    end,
    counts,
    answers,
    weights_b,
    thresholds_b,
    subtree_size_b,
    answers_b,
    a,
    b,
    cut,
    max_width,
    moves_subtrees,
):
    """Return a copy of an individual whose node `a` has become what node `b` of a tree is.

    The first three arguments are `Rows`, the next eight the individual's `Nodes`, the next four
    the splits and answers of the tree that node `b` is of. Where `cut` is above 0 the splits are
    crossed: the weights from `cut` on and the threshold are those of `b`. What is below `b`
    replaces what is below `a` where `moves_subtrees` is true, as it is without a cut.
    """
    # Arrays one by one: a call of a kernel takes longer for arrays in tuples.
    rows = Rows(X, y, sample_weight)
    target = Nodes(
        weights, thresholds, subtree_size, order, start, end, counts, answers
    )
    source = Nodes(
        weights_b, thresholds_b, subtree_size_b, order, start, end, counts, answers_b
    )
    n_nodes, size = subtree_size.shape[0], subtree_size
    after = a + size[a]
    lo, hi = np.int64(target.start[a]), np.int64(target.end[a])
    capacity = n_nodes
    if moves_subtrees:
        capacity += source.subtree_size[b] - size[a]
    out = make_nodes(capacity, target, target.order.copy())
    scratch = make_scratch(hi - lo)
    m = copy_nodes(target, 0, a, out, 0)
    sort_rows(out.order, lo, hi)
    if cut > 0:
        m = emit_crossed(
            rows,
            target,
            a,
            source,
            b,
            cut,
            max_width,
            moves_subtrees,
            out,
            m,
            scratch,
        )
    else:
        m = emit(rows, source, b, out, m, lo, hi, scratch)
    m = copy_nodes(target, after, n_nodes, out, m)
    return finish_nodes(out, m)


def node_alone(tree: Individual, k: int) -> tuple[np.ndarray, ...]:
    """Return splits and answers of one node of a tree, with two leaves below a split."""
    weights, thresholds = tree.weights[k : k + 1], tree.thresholds[k : k + 1]
    answers = tree.answers[k : k + 1]
    if tree.subtree_size[k] == 1:
        return weights, thresholds, np.ones(1, dtype=np.int32), answers
    return (
        np.vstack([weights, np.zeros((2, weights.shape[1]))]),
        np.append(thresholds, np.zeros(2)),
        np.array([3, 1, 1], dtype=np.int32),
        answers.repeat(3, axis=0),  # a split answers nothing, nor do the new leaves
    )


def cx_trees(
    first: Individual,
    second: Individual,
    dataset: Dataset,
    test_probability: float = 0.5,
    max_features: int | None = None,
    published: bool = False,
) -> tuple[Individual, Individual]:
    """Exchange splits or subtrees between two individuals (CrossoverTrees)."""
    # One node is drawn uniformly in each. With `test_probability` their splits are crossed at one
    # point of the vector (w, threshold), if both are internal, or their subtrees change places.
    # As published, two splits are crossed in any case, other nodes change places, and what is below
    # them stays with `test_probability`: a leaf that becomes a split then gets two leaves.
    n_features = dataset.X.shape[1]
    a, b, cut = draw_exchange(
        first.stream,
        first.subtree_size,
        second.subtree_size,
        n_features,
        1.0 if published else test_probability,
    )
    moves_subtrees = cut == 0
    source_a: tuple[np.ndarray, ...] = (*first.splits, first.answers)
    source_b: tuple[np.ndarray, ...] = (*second.splits, second.answers)
    at_a, at_b = a, b
    if published:
        moves_subtrees = uniform(first.stream) >= test_probability
        if cut == 0 and not moves_subtrees:
            source_a, source_b = node_alone(first, a), node_alone(second, b)
            at_a = at_b = 0
            moves_subtrees = True
    # A tree whose root is exchanged descends from the other parent.
    first.origin, second.origin = (
        second.origin if moves_subtrees and a == 0 else first.origin,
        first.origin if moves_subtrees and b == 0 else second.origin,
    )
    how = cut, n_features if max_features is None else max_features, moves_subtrees
    first.replace(graft(*dataset.rows, *first.nodes(), *source_b, a, at_b, *how))
    second.replace(graft(*dataset.rows, *second.nodes(), *source_a, b, at_a, *how))
    return first, second


# ---- selection and replacement -------------------------------------------------------------------

# Levels of parsimony pressure, how many times the penalties of nodes and terms, and the share of
# the population that is chosen at each.
_PARSIMONY = ((1.0, 0.5), (3.0, 0.2), (10.0, 0.15), (30.0, 0.15))


def universal_sampling(share: np.ndarray, k: int, stream: np.ndarray) -> list[int]:
    """Draw `k` positions with chances proportional to `share`, in random order."""
    # Stochastic universal sampling (Baker 1987): one turn of a wheel with k equidistant pointers,
    # so that each position is drawn its expected number of times, rounded up or down.
    passed = np.cumsum(share)
    pointers = (np.arange(k) + uniform(stream)) * passed[-1] / k
    places = np.minimum(np.searchsorted(passed, pointers, side="right"), len(share) - 1)
    shuffle(stream, places)
    return places.tolist()


def sel_proportional(
    individuals: Sequence[Individual], k: int, pressure: float = 2.0
) -> list[Individual]:
    """Select parents in proportion to their linearly scaled fitness."""
    fitness = np.array([individual.fitness.wvalues[0] for individual in individuals])
    share = linear_scaling(fitness, pressure)
    return [individuals[i] for i in universal_sampling(share, k, individuals[0].stream)]


def distinct(individuals: Sequence[Individual]) -> list[bool]:
    """Tell which individuals are trees that no earlier one is."""
    seen: dict[bytes, list[Individual]] = {}
    is_first = []
    for individual in individuals:
        # The thresholds alone tell nearly all; the comparison of trees knows clones at a glance.
        alike = seen.setdefault(individual.thresholds.tobytes(), [])
        is_first.append(individual not in alike)
        if is_first[-1]:
            alike.append(individual)
    return is_first


def separate_duplicates(
    individuals: Sequence[Individual],
) -> tuple[list[Individual], list[Individual]]:
    """Return the first individual of each tree, and its later copies, both in their order."""
    is_first = distinct(individuals)
    is_copy = [not first for first in is_first]
    return list(compress(individuals, is_first)), list(compress(individuals, is_copy))


def replace_duplicates(
    parents: Sequence[Individual], offspring: Sequence[Individual]
) -> list[Individual]:
    """Let parents take the places of offspring that are equal to others."""
    # Most children of small trees are copies of their parents: few of their nodes mutate.
    survivors, copies = separate_duplicates([*offspring, *parents])
    missing = max(0, len(offspring) - len(survivors))
    return survivors[: len(offspring)] + [copy.clone() for copy in copies[:missing]]


def replace_best(
    parents: Sequence[Individual],
    offspring: Sequence[Individual],
    size_penalty: float = 0.0,
    term_penalty: float = 0.0,
) -> list[Individual]:
    """Let the best of parents and offspring live on, each tree once: truncation selection."""
    # Half of the places go to the fittest, the others in turn to those that would be the fittest of
    # the rest if nodes and terms were penalized 3, 10 and 30 times as much. So trees of less
    # complexity live on beside the fittest, and become parents of better ones.
    n = len(offspring)
    survivors: list[Individual] = []
    candidates, copies = separate_duplicates([*offspring, *parents])
    for pressure, share in _PARSIMONY:

        def fitness(tree: Individual, pressure: float = pressure) -> tuple[float, ...]:
            penalty = size_penalty * len(tree) + term_penalty * (
                tree.n_terms - len(tree) // 2
            )
            first, *others = tree.fitness.wvalues
            return first - (pressure - 1.0) * penalty, *others

        candidates.sort(key=fitness, reverse=True)
        n_places = min(max(1, round(share * n)), n - len(survivors))
        survivors += candidates[:n_places]
        candidates = candidates[n_places:]
    survivors += candidates[: n - len(survivors)]
    survivors.sort(key=lambda tree: tree.fitness.wvalues, reverse=True)
    return survivors + [copy.clone() for copy in copies[: n - len(survivors)]]


def standing_of(
    individuals: Sequence[Individual],
) -> tuple[np.ndarray, np.ndarray]:
    """Sort individuals into fronts, and measure the room that they have there.

    The fronts ``(n,)`` are 0 for the non-dominated, and one more for each equal one before. The
    room ``(n,)`` is the crowding distance within the front, infinite at its ends.
    """
    n = len(individuals)
    places: dict[tuple[float, ...], list[int]] = {}
    for i, individual in enumerate(individuals):
        places.setdefault(individual.fitness.wvalues, []).append(i)
    if min(map(len, places)) < 2:
        raise ValueError(
            "NSGA-II takes two objectives: evaluate with quality_and_complexity."
        )
    fronts, crowding = np.empty(n, dtype=np.int64), np.empty(n)
    points = [individuals[same[0]] for same in places.values()]
    for number, front in enumerate(tools.sortLogNondominated(points, len(points))):
        tools.emo.assignCrowdingDist(front)
        for individual in front:
            same = places[individual.fitness.wvalues]
            fronts[same] = number + np.arange(len(same))
            crowding[same] = individual.fitness.crowding_dist
    return fronts, crowding


def sel_crowded(individuals: Sequence[Individual], k: int) -> list[Individual]:
    """Select parents by binary tournaments with the crowded comparison."""
    front, crowding = standing_of(individuals)
    n, stream = len(individuals), individuals[0].stream
    winners = []
    for _ in range(k):
        a, b = below(stream, n), below(stream, n)
        winners.append(b if (front[b], -crowding[b]) < (front[a], -crowding[a]) else a)
    return [individuals[i] for i in winners]


def replace_nsga2(
    parents: Sequence[Individual], offspring: Sequence[Individual]
) -> list[Individual]:
    """Select the next generation from parents and offspring: by fronts, in the last one by room."""
    # Of equal trees one competes; others return only where there are too few different ones. An
    # offspring is preferred to a parent with the same objectives, so that a population drifts.
    candidates, copies = separate_duplicates([*offspring, *parents])
    fronts, crowding = standing_of(candidates)
    best = np.lexsort((-crowding, fronts))[: len(parents)]
    missing = len(parents) - len(best)
    survivors = [candidates[i] for i in best]
    return survivors + [copy.clone() for copy in copies[:missing]]
