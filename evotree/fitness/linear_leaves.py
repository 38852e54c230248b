"""Linear models in leaves: fitted from sums of products of their rows, with few terms.

A leaf of a regression tree predicts ``intercept + coefficients @ x``. All that a fit needs are the
sums of products of the leaf's features and targets, which those of two siblings add up to. Features
enter one by one while the squared error falls by more than a term costs. The model is pulled
towards the line of all rows, the more so the fewer rows the leaf has.

Trees of several outputs have one partition, in whose leaves each output has a mean or a line.
Outputs are standardized, and their squared errors are added, so that all have equal weight. The
quality is the mean over the outputs of the share of their variances that is explained. Trees grow
by the leading principal component of what is left to explain in a node; all else asks for all
outputs.

Trees of counts evolve with constant leaves; `LogLinearLeaves` makes models of the best of them, by
`evotree.fitness.probabilities.fit_scores`. A node starts at the model of its parent and is shrunk
towards it, the more so the fewer rows it has. Terms are halved, the weakest first, as long as the
loss of rows of cross-validation allows it.

References
----------
Quinlan J. R. (1992). Learning with continuous classes. Australian Joint Conference on Artificial
Intelligence, 343-348.
De'ath G. (2002). Multivariate regression trees: a new technique for modeling species-environment
relationships. Ecology 83, 1105-1117.
Landwehr N., Hall M., Frank E. (2005). Logistic model trees. Machine Learning 59, 161-205: models
that begin with those of their parents.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from evotree._jit import inner_kernel, kernel
from evotree.configuration import LinearLeaves
from evotree.dataset import Dataset, leading_component
from evotree.fitness.base import LINES, ORDER, OUTPUTS, TargetLoss, routed_rows
from evotree.fitness.leaves import isotonic_values
from evotree.fitness.probabilities import (
    ModelRows,
    Strength,
    finite_exp,
    fit_scores,
)
from evotree.leaf_models import LeafModels, LogModels, OutputModels
from evotree.schema import columns_asked
from evotree.tree import Individual, ObliqueTree

LOWEST, HIGHEST, ERROR, INTERCEPT, N_FIXED = range(5)
"""Columns of a fit, before the coefficients, and their number."""

LEAST_ROWS = 10
"""A leaf with fewer predicts by the model of all rows as trees evolve; in the end there is none."""

# Predictions may leave the range of a leaf's targets by this share of it, on each side.
_WIDENED_SHARE = 0.25
_MOST_FEATURES = 48  # that lines may use, unless the user names them
_ROUNDING = 1e-13  # share of its terms that a sum of them is none below


def node_keys(tree: Any, keys: np.ndarray) -> list[int]:
    """Return a key of the set of rows of each node: the sum of theirs (Zobrist 1970)."""
    before = np.zeros(len(tree.order) + 1, dtype=np.uint64)
    keys[tree.order].cumsum(out=before[1:])
    found: list[int] = (before[tree.end] - before[tree.start]).tolist()
    return found


@kernel
def sum_products(X, y, sample_weight, features, rows, grid, sums):
    """Write the weighted sums of products of some rows' ``(1, x, y)`` into ``sums (m + 2, m + 2)``.

    x are the m `features` of a row, `rows` its position; ``grid (m + 2, m + 2)`` is that of
    `rounding_grid`. Returned are the least and the greatest target.
    """
    # Each product is rounded to a multiple of a power of 2, so coarse that sums of them are exact.
    # They do not depend on the order of the rows then, and those of two sets add up to those of
    # both, bit for bit.
    m = features.shape[0]
    z = np.empty(m + 2)
    z[0] = 1.0
    low, high = np.inf, -np.inf
    sums[:, :] = 0.0
    for t in range(rows.shape[0]):
        i = rows[t]
        for j in range(m):
            z[j + 1] = X[i, features[j]]
        z[m + 1] = y[i]
        low, high = min(low, y[i]), max(high, y[i])
        for a in range(m + 2):
            weighted = sample_weight[i] * z[a]
            # Vector instructions do all of it sooner than the half.
            for b in range(m + 2):
                sums[a, b] += (weighted * z[b] + grid[a, b]) - grid[a, b]
    for a in range(m + 2):
        for b in range(a):
            sums[a, b] = sums[b, a]
    return low, high


def rounding_grid(squares: np.ndarray) -> np.ndarray:
    """Return the numbers that round products when they are added to them and taken off again."""
    largest = np.sqrt(np.outer(squares, squares))
    return 1.5 * np.exp2(np.ceil(np.log2(np.where(largest > 0.0, largest, 1.0))) + 2.0)


@kernel
def sweep(T, k):
    """Sweep a symmetric matrix on a pivot: feature k enters the regression, or leaves it."""
    n, pivot = T.shape[0], T[k, k]
    for i in range(n):
        if i != k:
            factor = T[i, k] / pivot
            for j in range(n):
                if j != k:
                    T[i, j] -= factor * T[k, j]
    for i in range(n):
        if i != k:
            T[i, k] /= abs(pivot)
            T[k, i] /= abs(pivot)
    T[k, k] = -1.0 / pivot


@kernel
def squared_error(sums, fit):
    """Return the squared error of a model, by the sums of products of the rows, at least 0."""
    m = sums.shape[0] - 2
    model = np.empty(m + 2)
    model[0], model[m + 1] = fit[3], -1.0
    for j in range(m):
        model[j + 1] = fit[4 + j]
    error = size = 0.0
    for a in range(m + 2):
        if model[a] != 0.0:
            for b in range(m + 2):
                term = model[a] * model[b] * sums[a, b]
                error += term
                size += abs(term)
    return error if error > _ROUNDING * size else 0.0


@inner_kernel
def drop_wrong_signs(T, is_in, is_barred, signs):
    """Let the features leave for good whose coefficients have another sign than they may."""
    n_dropped = 0
    while True:
        wrong = -1
        for j in range(signs.shape[0]):
            if is_in[j] and signs[j] * T[j, -1] < 0.0:
                wrong = j
        if wrong < 0:
            return n_dropped
        sweep(T, wrong)
        is_in[wrong] = False
        is_barred[wrong] = True
        n_dropped += 1


@kernel
def fit_model(sums, prior, shrinkage, n_rows, term_cost, max_terms, signs, fit):
    """Fit the linear model of one leaf, and write error, intercept and coefficients into `fit`.

    ``sums (m + 2, m + 2)`` are those of `sum_products`, of rows of the weight `n_rows`; the line is
    pulled towards that of all rows, whose centred products are ``prior (m + 1, m + 1)``, as if
    these were `shrinkage` rows. A term costs `term_cost`; ``signs (m,)`` are those that the
    coefficients have to have, 0 for any.
    """
    m = sums.shape[0] - 2
    weight = sums[0, 0]
    # Centred products of the features, and the target last.
    A = np.empty((m + 1, m + 1))
    for a in range(m + 1):
        for b in range(m + 1):
            A[a, b] = sums[a + 1, b + 1] - sums[0, a + 1] * sums[0, b + 1] / weight
    T = A + shrinkage * prior
    own = np.empty(m)
    for j in range(m):
        own[j] = max(T[j, j], 1e-300)
    is_in, is_barred = np.zeros(m, dtype=np.bool_), np.zeros(m, dtype=np.bool_)
    max_terms = min(max_terms, int(n_rows / 5.0))
    bic = np.log(max(n_rows, 2.0))
    n_in = 0
    while n_in < max_terms:
        best, gain = -1, 0.0
        for j in range(m):
            if is_in[j] or is_barred[j] or signs[j] * T[j, m] < 0.0:
                continue
            if T[j, j] > 1e-7 * own[j]:
                here = T[j, m] * T[j, m] / T[j, j]
                if here > gain:
                    best, gain = j, here
        noise = (T[m, m] - gain) / max(1.0, n_rows - n_in - 2.0)
        if best < 0 or gain <= max(term_cost, bic * noise):
            break
        sweep(T, best)
        is_in[best] = True
        n_in += 1 - drop_wrong_signs(T, is_in, is_barred, signs)
    for _ in range(n_in):  # what later ones made worthless leaves
        worst, loss = -1, np.inf
        for j in range(m):
            if is_in[j]:
                here = T[j, m] * T[j, m] / max(-T[j, j], 1e-300)
                if here < loss:
                    worst, loss = j, here
        noise = T[m, m] / max(1.0, n_rows - n_in - 1.0)
        if worst < 0 or loss > max(term_cost, bic * noise):
            break
        sweep(T, worst)
        is_in[worst] = False
        n_in -= 1 + drop_wrong_signs(T, is_in, is_barred, signs)
    fit[3] = sums[0, m + 1] / weight
    for j in range(m):
        fit[4 + j] = T[j, m] if is_in[j] else 0.0
        fit[3] -= fit[4 + j] * sums[0, j + 1] / weight
    fit[2] = squared_error(sums, fit)


class _RowSet(NamedTuple):
    """What is remembered of a set of rows: `sum_products`, bounds of targets, fits by the price."""

    sums: np.ndarray
    bounds: tuple[float, float]
    fits: dict[float, np.ndarray]


class _Memory:
    """What is remembered of sets of rows."""

    def __init__(self, n_rows: int, n_features: int, n_sharing: int = 1) -> None:
        rng = np.random.default_rng(0x5EED)
        self.keys = rng.integers(0, 2**64, n_rows, dtype=np.uint64)
        self.shape = n_rows, n_features, n_sharing
        bytes_of_sums = 8 * n_sharing * (n_features + 2) ** 2
        self.max_row_sets = max(256, 2**26 // bytes_of_sums)
        self.row_sets: dict[int, _RowSet] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _Memory, self.shape

    def put(self, key: int, row_set: _RowSet) -> None:
        """Remember one more set of rows, and forget all before where they are too many."""
        if len(self.row_sets) >= self.max_row_sets:
            self.row_sets.clear()
        self.row_sets[key] = row_set


@dataclass(frozen=True, eq=False)
class LinearLeafObjective(TargetLoss):
    """The squared error of linear models in the leaves."""

    # Under a monotonic constraint coefficients have the signs of the constraint, or are 0. Leaves
    # below a split whose sides have an order share their coefficients and bounds, so that the order
    # of their intercepts is that of their predictions, wherever a row is.

    goes_with = frozenset({LINES, OUTPUTS, ORDER})
    takes_noise = False
    least_rows = LEAST_ROWS

    shrinkage: float = 10.0  # how many rows the line of all rows counts as in each leaf
    term_penalty: float = 0.0
    # Features; None for those most correlated with y.
    used: tuple[int, ...] | None = None
    max_terms: int = 10  # of a leaf
    n_sharing: int = 1  # number of outputs that have such leaves, and share the memory
    constraint: Any = None
    rows: Any = None  # the data set that it is bound to, and what follows from that
    signs: Any = None  # that coefficients have to have; 0 for any
    memory: Any = None
    whole: Any = None
    prior: Any = None
    grid: Any = None
    unit: float = 1.0

    def bind(self, dataset: Dataset) -> Self:
        """Return the objective on the rows of a data set."""
        n, d = dataset.X.shape
        used = self.used
        if used is None:
            products = (dataset.sample_weight * dataset.y) @ dataset.X
            correlation = np.abs(products) / dataset.spread
            order = np.argsort(-correlation, kind="stable")[: min(d, _MOST_FEATURES)]
            used = tuple(np.sort(order).tolist())
        signs = np.zeros(d, dtype=np.int64)
        if self.constraint is not None:
            signs = self.constraint.array
        columns = np.column_stack([np.ones(n), dataset.X[:, list(used)], dataset.y])
        squares = np.einsum("i,ij,ij->j", dataset.sample_weight, columns, columns)
        bound = replace(
            self,
            used=used,
            rows=dataset,
            signs=signs[list(used)],
            memory=_Memory(n, len(used), self.n_sharing),
            grid=rounding_grid(squares),
        )
        if n == 0:  # as where none is held out: there is nothing to fit
            return bound
        whole = bound._sum_rows(np.arange(n, dtype=np.int32))
        mean = whole.sums[0, 1:] / whole.sums[0, 0]
        prior = whole.sums[1:, 1:] / whole.sums[0, 0] - np.outer(mean, mean)
        return replace(
            bound, whole=whole, prior=prior, unit=float(whole.sums[-1, -1]) or 1.0
        )

    def penalized(self, term_penalty: float) -> Self:
        """Return the objective where terms of leaves have another penalty."""
        is_same = term_penalty == self.term_penalty
        return self if is_same else replace(self, term_penalty=term_penalty)

    def forget(self) -> None:
        """Give the memory of fits free; what is needed again is fitted again."""
        self.memory.row_sets.clear()

    @property
    def _columns(self) -> list[int]:
        return list(self.used or ())

    def fits(self, tree: Any, *, splits: bool = False) -> np.ndarray:
        """Return the fits of the leaves of a tree, or of all nodes, (n_nodes, 4 + n_columns)."""
        fits = np.zeros((len(tree.start), N_FIXED + len(self._columns)))
        row_sets, above = self._row_sets(tree, splits), self.sharing(tree)
        for k, row_set in row_sets.items():
            if above is None or above[k] == k:
                fits[k] = self._fit_of(row_set)
        if above is not None:
            self._fit_in_order(tree, above, row_sets, fits)
        return fits

    def _row_sets(self, tree: Any, splits: bool) -> dict[int, _RowSet]:
        """Return the sets of rows of the leaves of a tree, or of all nodes, by the node."""
        size, memory = tree.subtree_size, self.memory
        keys = node_keys(tree, memory.keys)
        nodes = np.arange(len(size)) if splits else np.flatnonzero(size == 1)
        row_sets: dict[int, _RowSet] = {}
        for k in nodes[::-1].tolist():  # a split after its children
            key = keys[k]
            row_set = self.whole if k == 0 else memory.row_sets.get(key)
            if row_set is None:
                if size[k] == 1:
                    row_set = self._sum_rows(tree.order[tree.start[k] : tree.end[k]])
                else:
                    left, right = row_sets[k + 1], row_sets[k + 1 + size[k + 1]]
                    low, high = zip(left.bounds, right.bounds, strict=True)
                    # Sums are exact: these are those of the rows
                    bounds = min(low), max(high)
                    row_set = _RowSet(left.sums + right.sums, bounds, {})
                memory.put(key, row_set)
            row_sets[k] = row_set
        return row_sets

    def _sum_rows(self, rows: np.ndarray) -> _RowSet:
        """Return the sums of products of some rows."""
        sums = np.empty_like(self.grid)
        bounds = sum_products(
            self.rows.X,
            self.rows.y,
            self.rows.sample_weight,
            np.array(self.used, dtype=np.int64),
            rows,
            self.grid,
            sums,
        )
        return _RowSet(sums, bounds, {})

    def _fit_of(self, row_set: _RowSet) -> np.ndarray:
        """Return the fit of a leaf with a set of rows, remembered."""
        fit = row_set.fits.get(self.term_penalty)
        if fit is not None:
            return fit
        n_rows = round(float(row_set.sums[0, 0]), 9)
        if n_rows < LEAST_ROWS and row_set is not self.whole:
            fit = self._fit_of(self.whole).copy()
            fit[ERROR] = squared_error(row_set.sums, fit)
        else:
            fit = self._fit_sums(row_set.sums, n_rows, 1)
            fit[LOWEST], fit[HIGHEST] = row_set.bounds
        row_set.fits[self.term_penalty] = fit
        return fit

    def _fit_sums(self, sums: np.ndarray, n_rows: float, n_leaves: int) -> np.ndarray:
        """Return the line of some sums, which so many leaves have, but for its bounds."""
        fit = np.empty(len(sums) - 2 + N_FIXED)
        fit_model(
            sums,
            self.prior,
            self.shrinkage,
            n_rows,
            n_leaves * self.term_penalty * self.unit,
            self.max_terms,
            self.signs,
            fit,
        )
        return fit

    def sharing(self, tree: Any) -> np.ndarray | None:
        """Return the topmost split with an order above each node, or the node itself."""
        if self.constraint is None:
            return None
        orders, size = self.constraint.orders(tree), tree.subtree_size
        above = np.arange(len(orders))
        for k in np.flatnonzero(orders).tolist():
            if above[k] == k:
                above[k : k + size[k]] = k
        return above

    def _fit_in_order(
        self,
        tree: Any,
        above: np.ndarray,
        row_sets: dict[int, _RowSet],
        fits: np.ndarray,
    ) -> None:
        """Write the fits below each topmost split with an order, which share their coefficients."""
        # These are of least squares within the leaves. The intercepts are an isotonic regression of
        # what they leave of the means of the targets.
        orders, size = self.constraint.orders(tree), tree.subtree_size
        for root in np.unique(above[above != np.arange(len(size))]).tolist():
            part = slice(root, root + size[root])
            leaves = root + np.flatnonzero(size[part] == 1)
            sums = np.array([row_sets[k].sums for k in leaves.tolist()])
            weight, means = sums[:, 0, 0], sums[:, 0, :] / sums[:, 0, :1]
            between = np.einsum("l,li,lj->lij", weight, means, means)
            within = (sums - between).sum(axis=0)
            within[0, 0] = weight.sum()
            n_rows = round(float(within[0, 0]), 9)
            if n_rows < LEAST_ROWS:
                shared = self._fit_of(self.whole)
                intercepts = np.full(size[root], shared[INTERCEPT])
            else:
                shared = self._fit_sums(within, n_rows - len(leaves) + 1.0, len(leaves))
                bounds = np.array([row_sets[k].bounds for k in leaves.tolist()])
                shared[LOWEST] = bounds[:, 0].min()
                shared[HIGHEST] = bounds[:, 1].max()
                rests, weights = np.zeros((2, size[root]))
                rests[leaves - root] = means[:, -1] - means[:, 1:-1] @ shared[N_FIXED:]
                weights[leaves - root] = weight
                intercepts = isotonic_values(orders[part], size[part], rests, weights)
            for k in [k for k in row_sets if part.start < k < part.stop]:
                fits[k] = shared
                fits[k, INTERCEPT] = intercepts[k - root]
                fits[k, ERROR] = squared_error(row_sets[k].sums, fits[k])

    def whole_loss(self, dataset: Dataset) -> float:
        """Return the squared error of the mean."""
        return self.unit if dataset is self.rows else super().whole_loss(dataset)

    def residuals(self, rows: np.ndarray) -> np.ndarray:
        """Return what the model of some rows leaves of their targets."""
        fit = self._fit_of(self._sum_rows(rows))
        X = self.rows.X[rows][:, self._columns]
        return self.rows.y[rows] - fit[INTERCEPT] - X @ fit[N_FIXED:]

    def n_leaf_terms(self, tree: Any) -> int:
        """Return the number of coefficients of all leaves."""
        return int(np.count_nonzero(self.fits(tree)[:, N_FIXED:]))

    def n_terms_of_nodes(self, tree: Any) -> np.ndarray:
        """Return the number of coefficients that each node has as a leaf, of shape (n_nodes,)."""
        return np.count_nonzero(self.fits(tree, splits=True)[:, N_FIXED:], axis=1)

    def errors(self, tree: Any, *, splits: bool = False) -> np.ndarray:
        """Return the squared errors of leaves, or of all nodes as leaves, of shape (n_nodes,)."""
        return self.fits(tree, splits=splits)[:, ERROR]

    def models(self, tree: Any, *, splits: bool = False) -> LeafModels:
        """Return the models of leaves, or of all nodes as leaves, in the units of the data set."""
        fits = self.fits(tree, splits=splits)
        coefficients = np.zeros((len(fits), self.rows.X.shape[1]))
        coefficients[:, self._columns] = fits[:, N_FIXED:]
        low, high = fits[:, LOWEST], fits[:, HIGHEST]
        margin = _WIDENED_SHARE * (high - low)
        return LeafModels(
            fits[:, INTERCEPT].copy(), coefficients, low - margin, high + margin
        )

    def table(self, tree: Any) -> np.ndarray:
        """Return the models of the leaves: intercepts, bounds and coefficients."""
        return self.models(tree).table

    def held_out_table(self, tree: Any, reference: Any) -> np.ndarray:
        """Return the models of all nodes, each as if it were a leaf."""
        return self.models(tree, splits=True).table

    def finish(self, tree: ObliqueTree, dataset: Dataset) -> ObliqueTree:
        """Return a fitted tree, over raw features, with the models of its leaves."""
        bound = self if self.rows is dataset else self.bind(dataset)

        def fill(tree: ObliqueTree) -> ObliqueTree:
            tree = dataset.refill(tree)
            models = bound.raw_models(routed_rows(tree, dataset.raw), tree)
            if self.constraint is None:  # else leaves may share coefficients
                drop_constant_terms(
                    models.coefficients,
                    models.intercepts,
                    dataset.raw,
                    tree.apply(dataset.raw),
                )
            return tree.with_models(models)

        if self.constraint is None:
            return fill(tree)
        return self.constraint.finish_lines(tree, fill, self.sharing)

    def raw_models(self, routed: Any, tree: ObliqueTree) -> LeafModels:
        """Return the models of the leaves of a tree over raw features, whose values are means."""
        dataset, models = self.rows, self.models(routed)
        scale = dataset.target_scale
        coefficients = scale * models.coefficients / dataset.scale
        if self.constraint is None:
            at_mean = coefficients @ dataset.mean
        else:  # the same where coefficients are equal
            at_mean = (coefficients * dataset.mean).sum(axis=1)
        intercepts = dataset.target_mean + scale * models.intercepts - at_mean
        low = dataset.target_mean + scale * models.lowest
        high = dataset.target_mean + scale * models.highest
        for array in (intercepts, low, high):
            array[~tree.is_leaf] = tree.values[~tree.is_leaf, 0]
        return LeafModels(intercepts, coefficients, low, high)


def term_penalty_of_rows(n_rows: float) -> float:
    """Return the penalty for a term of a leaf where no cross-validation chooses it."""
    return 0.05 * float(np.log(n_rows + 1.0)) / n_rows


def features_asked(leaves: str | LinearLeaves, dataset: Dataset) -> np.ndarray | None:
    """Return a mask of the features that models of leaves may use; None for any."""
    features = leaves.features if isinstance(leaves, LinearLeaves) else None
    if features is None:
        return None
    columns = columns_asked(features, dataset.column_names, "features")
    return np.isin(dataset.column_of, list(columns))


def lines_asked(
    leaves: str | LinearLeaves, dataset: Dataset, max_terms: int | None = None
) -> LinearLeafObjective:
    """Return the objective of linear leaves, as users ask for them."""
    max_leaf_terms = LinearLeafObjective.max_terms
    is_used = features_asked(leaves, dataset)
    used = None if is_used is None else tuple(np.flatnonzero(is_used).tolist())
    if max_terms is not None:
        max_leaf_terms = min(max_leaf_terms, max_terms // dataset.n_outputs)
    return LinearLeafObjective(used=used, max_terms=max_leaf_terms)


# ---- several outputs -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MeansOfOutputs(TargetLoss):
    """The squared error of several outputs, whose means the leaves predict."""

    goes_with = frozenset({LINES, OUTPUTS})

    rows: Any = None

    def whole_loss(self, dataset: Dataset) -> float:
        """Return the squared error of the means."""
        squares = np.square(dataset.targets).sum(axis=1)
        return float(dataset.sample_weight @ squares) or 1.0

    def residuals(self, rows: np.ndarray) -> np.ndarray:
        """Return the leading component of the outputs of some rows."""
        return leading_component(self.rows.outputs[rows], self.rows.sample_weight[rows])

    @cached_property
    def _moments(self) -> np.ndarray:
        """The w y of each row for each output, w y**2 over all outputs, and w."""
        outputs, weight = self.rows.outputs, self.rows.sample_weight
        squares = np.square(outputs).sum(axis=1)
        return weight[:, None] * np.column_stack(
            [outputs, squares, np.ones_like(squares)]
        )

    def _sums(self, tree: Any) -> np.ndarray:
        """Return the sums of the moments of each node's rows, (n_nodes, n_outputs + 2)."""
        sums: np.ndarray = np.add.reduceat(self._moments[tree.order], tree.start)
        for k in np.flatnonzero(tree.subtree_size > 1)[::-1].tolist():
            sums[k] = sums[k + 1] + sums[k + 1 + tree.subtree_size[k + 1]]
        return sums

    def errors(self, tree: Any, *, splits: bool = False) -> np.ndarray:
        """Return the squared error of each node as a leaf, a share of the whole, (n_nodes,)."""
        sums = self._sums(tree)
        errors = sums[:, -2] - np.square(sums[:, :-2]).sum(axis=1) / sums[:, -1]
        return np.maximum(0.0, errors) / (sums[0, -2] or 1.0)

    def values(self, tree: Any) -> np.ndarray:
        """Return the means of each node, of shape (n_nodes, n_outputs)."""
        sums = self._sums(tree)
        return sums[:, :-2] / sums[:, -1:]

    def finish(self, tree: ObliqueTree, dataset: Dataset) -> ObliqueTree:
        """Return a fitted tree, over raw features, with the means of the training rows."""
        return dataset.refill(tree)


@dataclass(frozen=True, eq=False)
class LinesOfOutputs(MeansOfOutputs):
    """The squared error of several outputs, each of which has a line in each leaf."""

    # A term has the same price whichever output it is of.

    takes_noise = False
    least_rows = LEAST_ROWS

    lines: LinearLeafObjective = LinearLeafObjective()  # how they are fitted
    # Those of each output, bound to its rows.
    each: tuple[LinearLeafObjective, ...] = ()

    @property
    def term_penalty(self) -> float:  # type: ignore[override]
        """What a term of a leaf costs, a share of the whole loss."""
        return self.lines.term_penalty

    def bind(self, dataset: Dataset) -> Self:
        """Return the objective on the rows of a data set."""
        n = dataset.n_outputs
        # The penalty is a share of the squared error of all outputs, lines take one of their own.
        lines = replace(self.lines.penalized(n * self.lines.term_penalty), n_sharing=n)
        each = tuple(lines.bind(dataset.of_output(j)) for j in range(n))
        return replace(self, rows=dataset, each=each)

    def penalized(self, term_penalty: float) -> Self:
        """Return the objective where terms of leaves have another penalty."""
        lines = self.lines.penalized(term_penalty)
        if lines is self.lines:
            return self
        n = len(self.each)
        each = tuple(bound.penalized(n * term_penalty) for bound in self.each)
        return replace(self, lines=lines, each=each)

    def forget(self) -> None:
        """Give the memory of fits free."""
        for lines in self.each:
            lines.forget()

    def residuals(self, rows: np.ndarray) -> np.ndarray:
        """Return the leading component of what the models of some rows leave of their outputs."""
        left = np.column_stack([lines.residuals(rows) for lines in self.each])
        return leading_component(left, self.rows.sample_weight[rows])

    def errors(self, tree: Any, *, splits: bool = False) -> np.ndarray:
        """Return the squared errors of leaves, or of all nodes as leaves, a share of the whole."""
        errors = np.sum(
            [lines.errors(tree, splits=splits) for lines in self.each], axis=0
        )
        return errors / self.whole_loss(self.rows)

    def n_leaf_terms(self, tree: Any) -> int:
        """Return the number of coefficients of all leaves and outputs."""
        return sum(lines.n_leaf_terms(tree) for lines in self.each)

    def n_terms_of_nodes(self, tree: Any) -> np.ndarray:
        """Return the number of coefficients that each node has as a leaf, of shape (n_nodes,)."""
        return np.sum([lines.n_terms_of_nodes(tree) for lines in self.each], axis=0)

    def table(self, tree: Any) -> np.ndarray:
        """Return the models of the leaves, one output after the other."""
        return np.hstack([lines.table(tree) for lines in self.each])

    def held_out_table(self, tree: Any, reference: Any) -> np.ndarray:
        """Return the models of all nodes, each as if it were a leaf."""
        return np.hstack([lines.held_out_table(tree, reference) for lines in self.each])

    def finish(self, tree: ObliqueTree, dataset: Dataset) -> ObliqueTree:
        """Return a fitted tree, over raw features, with the models of its leaves."""
        tree = dataset.refill(tree)
        bound = self if self.rows is dataset else self.bind(dataset)
        routed = routed_rows(tree, dataset.raw)
        models = (
            lines.raw_models(routed, tree.predicting(tree.values[:, j : j + 1]))
            for j, lines in enumerate(bound.each)
        )
        return tree.with_models(OutputModels(tuple(models)))


# ---- log-linear leaves ---------------------------------------------------------------------------

MOST_LEAVES = 32
"""Trees of more have no models, which would take too long to fit."""

# The cost of a row's loss in a leaf, of that in the root: a row tells little of a rate.
_COST_OF_LEAVES = 0.0003
# Of models of the root of which so many have the same share of the L1 norm, leaves try a few.
_EVERY, _HALVINGS = 4, 2


@dataclass(frozen=True, eq=False)
class LogLinearLeaves:
    """Log-linear models of counts, or rates, in all leaves: Poisson regressions.

    They are of one leaf, or of the leaves of trees, each drawn to the model of all rows.
    """

    used: np.ndarray | None = None  # mask of the features that models may use

    def fits(
        self,
        rows: Dataset,
        held_out: Dataset,
        trees: Sequence[Individual],
        roots: Mapping[Strength, np.ndarray],
        end: float,
    ) -> Iterator[tuple[int | None, Strength, np.ndarray, tuple[int, int]]]:
        """Yield the models that are tried, what they say of rows held out, and their sizes.

        First those of one leaf, the `roots`, then those of the trees, by their positions, that are
        not too large for models, at a few strengths. Out of time fits end after a step.
        """
        fitted_to = rows_of_counts(rows)
        one_leaf: Any = leaf_of(rows.X.shape[1])
        several = [
            (at, tree)
            for at, tree in enumerate(trees)
            if 1 < tree.n_leaves <= MOST_LEAVES
        ]
        few = [one for one in roots if one.halvings == _HALVINGS]
        few = [*few[::_EVERY], few[-1]]
        fitted: dict[tuple[int, Strength], tuple[np.ndarray, tuple[int, int]]] = {}
        for at, tree in [(None, one_leaf), *several]:
            for strength in roots if at is None else few:
                root = roots[strength]
                key = id(tree), strength
                if key not in fitted:
                    scores = scores_of_nodes(
                        fitted_to, tree.apply(rows.X), tree, root, strength.C, end
                    )
                    of_rows = scores_of_rows(scores, held_out.X, tree.apply(held_out.X))
                    n_terms = tree.n_leaves * int(np.count_nonzero(root[:, :-1]))
                    size = tree.n_leaves, tree.complexity + n_terms
                    fitted[key] = rates_of(of_rows, rows), size
                yield at, strength, *fitted[key]

    def fill(
        self,
        tree: ObliqueTree,
        dataset: Dataset,
        root: np.ndarray,
        strength: Strength,
        end: float,
    ) -> ObliqueTree:
        """Return a finished tree, over raw features, with models in its leaves.

        Their scores are bounded by those of the training rows of their leaf, widened as lines are.
        """
        fitted_to = rows_of_counts(dataset)
        leaves = tree.apply(dataset.raw)
        scores = scores_of_nodes(fitted_to, leaves, tree, root, strength.C, end)
        at_mean = math.log(dataset.target_mean)
        of_rows = scores_of_rows(scores, dataset.X, leaves)[:, 0] + at_mean
        low, high = np.full((2, len(tree)), np.nan)
        np.fmin.at(low, leaves, of_rows)
        np.fmax.at(high, leaves, of_rows)
        margin = _WIDENED_SHARE * (high - low)
        coefficients = np.where(tree.is_leaf[:, np.newaxis], scores[:, 0, :-1], 0.0)
        coefficients /= dataset.scale
        intercepts = scores[:, 0, -1] - coefficients @ dataset.mean + at_mean
        models = LogModels(intercepts, coefficients, low - margin, high + margin)
        for array in (models.intercepts, models.lowest, models.highest):
            split = ~tree.is_leaf
            array[split] = models.as_scores(tree.values[split, 0])
        return tree.with_models(models)


def rows_of_counts(dataset: Dataset) -> ModelRows:
    """Return the rows with rates in units of their mean, which penalties do not depend on."""
    rates = 1.0 + dataset.y * (dataset.target_scale / dataset.target_mean)
    weight, spread = dataset.sample_weight, dataset.spread
    return ModelRows(dataset.X, np.maximum(rates, 0.0), weight, spread, of_counts=True)


def rates_of(scores: np.ndarray, dataset: Dataset) -> np.ndarray:
    """Return the raw rates of rows by their scores, (n_rows,)."""
    return dataset.target_mean * finite_exp(scores[:, 0])


def scores_of_rows(scores: np.ndarray, X: np.ndarray, leaves: np.ndarray) -> np.ndarray:
    """Return the scores of rows by the models of their leaves, of shape (n_rows, n_scores)."""
    of_rows = np.empty((len(leaves), scores.shape[1]))
    for k in np.unique(leaves):
        inside = leaves == k
        of_rows[inside] = X[inside] @ scores[k, :, :-1].T + scores[k, :, -1]
    return of_rows


def leaf_of(n_features: int) -> ObliqueTree:
    """Return a tree of one leaf."""
    return ObliqueTree(
        weights=np.zeros((1, n_features)),
        thresholds=np.zeros(1),
        subtree_size=np.ones(1, dtype=np.int32),
        values=np.zeros((1, 1)),
    )


def scores_of_nodes(
    rows: ModelRows,
    leaves: np.ndarray,
    tree: ObliqueTree,
    root: np.ndarray,
    C: float,
    end: float,
) -> np.ndarray:
    """Return the scores of all nodes, each drawn to its parent's, of terms that the root has."""
    is_free = root != 0.0
    is_free[:, -1] = True
    sizes = tree.subtree_size
    scores = np.zeros((len(sizes), *root.shape))
    scores[0] = root
    for k in np.flatnonzero(sizes > 1).tolist():
        for child in (k + 1, k + 1 + int(sizes[k + 1])):
            inside = (leaves >= child) & (leaves < child + sizes[child])
            cost = _COST_OF_LEAVES * C
            scores[child] = fit_scores(
                rows, inside, cost, scores[k], is_free, scores[k], end
            )
    drop_constant_terms(scores[:, :, :-1], scores[:, :, -1], rows.X, leaves)
    return scores


def drop_constant_terms(
    coefficients: np.ndarray, intercepts: np.ndarray, X: np.ndarray, leaves: np.ndarray
) -> None:
    """Move terms of columns that are constant in the rows of a leaf into its intercept.

    They say nothing of these rows; the models of all rows, and of parents, have brought them.
    """
    for k in np.unique(leaves).tolist():
        rows = X[leaves == k]
        is_constant = rows.min(axis=0) == rows.max(axis=0)
        intercepts[k] += coefficients[k] @ (is_constant * rows[0])
        coefficients[k] *= ~is_constant
