"""Linear models in leaves: fitted from sums of products of their rows, with few terms.

A leaf of a regression tree predicts ``intercept + coefficients @ x``. All that a fit needs are the
sums of products of the leaf's features and targets, which those of two siblings add up to. Features
enter one by one while the squared error falls by more than a term costs. The model is pulled
towards the line of all rows, the more so the fewer rows the leaf has.

References
----------
Quinlan J. R. (1992). Learning with continuous classes. Australian Joint Conference on Artificial
Intelligence, 343-348.
"""

from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from evotree._jit import inner_kernel, kernel
from evotree.dataset import Dataset
from evotree.fitness.base import LINES, ORDER, OUTPUTS, TargetLoss, routed_rows
from evotree.fitness.orders import isotonic_values
from evotree.leaf_models import LeafModels
from evotree.objectives import LinearLeaves
from evotree.tables.columns import columns_asked
from evotree.tree import ObliqueTree

LOWEST, HIGHEST, ERROR, INTERCEPT, N_FIXED = range(5)
"""Columns of a fit, before the coefficients, and their number."""

LEAST_ROWS = 10
"""A leaf with fewer predicts by the model of all rows."""

_WIDENED = 0.25  # of the range of a leaf's targets, on each side
_REMEMBERED = 1 << 26  # bytes of sums of products
_MOST_FEATURES = 48  # that lines may use, unless the user names them
_KEYS_SEED = 0x5EED
_ROUNDING = 1e-13  # share of its terms that a sum of them is none below
_TERM_SHARE = 0.05  # of log(n) / n, a penalty for a term


@kernel
def leaf_keys(order, start, end, subtree_size, keys):
    """Return a key of the set of rows of each node, of shape (n_nodes, 2), uint64."""
    found = np.zeros((subtree_size.shape[0], 2), dtype=np.uint64)
    for k in range(subtree_size.shape[0] - 1, -1, -1):
        if subtree_size[k] == 1:
            for t in range(start[k], end[k]):
                found[k, 0] += keys[order[t], 0]
                found[k, 1] += keys[order[t], 1]
        else:
            right = k + 1 + subtree_size[k + 1]
            for c in range(2):
                found[k, c] = found[k + 1, c] + found[right, c]
    return found


@kernel
def sum_products(X, y, sample_weight, features, rows, grid, sums):
    """Write the weighted sums of products of some rows' ``(1, x, y)`` into `sums`."""
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
            for b in range(
                m + 2
            ):  # vector instructions do all of it sooner than the half
                sums[a, b] += (weighted * z[b] + grid[a, b]) - grid[a, b]
    for a in range(m + 2):
        for b in range(a):
            sums[a, b] = sums[b, a]
    return low, high


def rounding_grid(squares: np.ndarray) -> np.ndarray:
    """Return the numbers that round products when they are added to them and taken off again."""
    largest = np.sqrt(np.outer(squares, squares))
    exponents = np.ceil(np.log2(np.where(largest > 0.0, largest, 1.0)))
    return 1.5 * np.exp2(exponents + 2.0)


@inner_kernel
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
def fit_model(sums, prior, shrinkage, n_rows, term_cost, most_terms, signs, fit):
    """Fit the linear model of one leaf."""
    m = sums.shape[0] - 2
    weight = sums[0, 0]
    A = np.empty(
        (m + 1, m + 1)
    )  # centred products of the features, and of the target, last
    for a in range(m + 1):
        for b in range(m + 1):
            A[a, b] = sums[a + 1, b + 1] - sums[0, a + 1] * sums[0, b + 1] / weight
    T = A + shrinkage * prior
    own = np.empty(m)
    for j in range(m):
        own[j] = max(T[j, j], 1e-300)
    is_in, is_barred = np.zeros(m, dtype=np.bool_), np.zeros(m, dtype=np.bool_)
    most = min(most_terms, int(n_rows / 5.0))
    bic = np.log(max(n_rows, 2.0))
    n_in = 0
    while n_in < most:
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


class _Known(NamedTuple):
    """What is remembered of a set of rows: `sum_products`, bounds of targets, fits by the price."""

    sums: np.ndarray
    bounds: tuple[float, float]
    fits: dict[float, np.ndarray]


class _Memory:
    """What is known of sets of rows, the latest ones."""

    def __init__(self, n_rows: int, n_features: int, n_sharing: int = 1) -> None:
        rng = np.random.default_rng(_KEYS_SEED)
        self.keys = rng.integers(0, 2**64, (n_rows, 2), dtype=np.uint64)
        self.shape = n_rows, n_features, n_sharing
        self.most = max(256, _REMEMBERED // (8 * n_sharing * (n_features + 2) ** 2))
        self.known: OrderedDict[bytes, _Known] = OrderedDict()
        self.last: tuple[Any, ...] = (None,)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Memory, self.shape

    def put(self, key: bytes, known: _Known) -> None:
        """Remember what is known of one more set, and forget what is too much."""
        self.known[key] = known
        with suppress(KeyError):  # where another thread was faster
            while len(self.known) > self.most:
                self.known.popitem(last=False)


@dataclass(frozen=True, eq=False)
class LinearLeafObjective(TargetLoss):
    """The squared error of linear models in the leaves."""

    # Under a monotonic constraint coefficients have the signs of the constraint, or are 0. Leaves
    # below a split whose sides have an order share their coefficients and bounds, so that the order
    # of their intercepts is that of their predictions, wherever a row is.

    goes_with = frozenset({LINES, OUTPUTS, ORDER})
    takes_noise = False

    shrinkage: float = 10.0  # how many rows the line of all rows counts as in each leaf
    term_penalty: float = 0.0
    used: tuple[int, ...] | None = (
        None  # features; by default those most correlated with y
    )
    max_terms: int = 10  # of a leaf
    n_sharing: int = 1  # number of outputs that have such leaves, and share the memory
    constraint: Any = None
    rows: Any = None  # what it is bound to, and what is known of that
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
            products = (
                np.abs((dataset.sample_weight * dataset.y) @ dataset.X) / dataset.spread
            )
            order = np.argsort(-products, kind="stable")[: min(d, _MOST_FEATURES)]
            used = tuple(np.sort(order).tolist())
        columns = np.column_stack([np.ones(n), dataset.X[:, list(used)], dataset.y])
        squares = np.einsum("i,ij,ij->j", dataset.sample_weight, columns, columns)
        memory, grid = _Memory(n, len(used), self.n_sharing), rounding_grid(squares)
        bound = replace(self, used=used, rows=dataset, memory=memory, grid=grid)
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
        same = term_penalty == self.term_penalty
        return self if same else replace(self, term_penalty=term_penalty)

    def forget(self) -> None:
        """Give the memory of fits free; what is asked for again is fitted again."""
        self.memory.known.clear()
        self.memory.last = (None,)

    @property
    def _columns(self) -> list[int]:
        return list(self.used or ())

    @property
    def _signs(self) -> np.ndarray:
        """The signs that coefficients have to have; 0 for any."""
        if self.constraint is None:
            return np.zeros(len(self._columns), dtype=np.int64)
        return self.constraint.array[self._columns]

    def fits(self, tree: Any, *, splits: bool = False) -> np.ndarray:
        """Return the fits of the leaves of a tree, or of all nodes."""
        size, memory = tree.subtree_size, self.memory
        asked = tree.order, tree.start, size, self.term_penalty, splits
        last = memory.last  # read once: another thread may replace it
        if len(last) > 1 and all(a is b for a, b in zip(asked, last, strict=False)):
            return last[-1]
        fits = np.zeros((len(size), N_FIXED + len(self._columns)))
        known, above = self._known(tree, splits), self.sharing(tree)
        for k, of_rows in known.items():
            if above is None or above[k] == k:
                fits[k] = self._fit_of(of_rows)
        if above is not None:
            self._fit_in_order(tree, above, known, fits)
        memory.last = (*asked, fits)
        return fits

    def _known(self, tree: Any, splits: bool) -> dict[int, _Known]:
        """Return what is known of the rows of the leaves of a tree, or of all nodes."""
        size, memory = tree.subtree_size, self.memory
        keys = leaf_keys(tree.order, tree.start, tree.end, size, memory.keys)
        known = [memory.known.get(key.tobytes()) for key in keys]
        asked = range(len(size)) if splits else np.flatnonzero(size == 1).tolist()
        if any(known[k] is None for k in asked):
            was = list(known)
            self._find(tree, known)
            for k, of_rows in enumerate(known):
                if was[k] is None:
                    memory.put(keys[k].tobytes(), of_rows)
        return {k: known[k] for k in asked}

    def _find(self, tree: Any, known: list[Any]) -> None:
        """Write what is not known of the nodes of a tree."""
        # Sums are exact: those of a node less those of one child are those of the other one. Only
        # the rows of the smaller child are read.
        size, n_rows = tree.subtree_size, tree.end - tree.start
        known[0] = self.whole

        def rows_of(k: int) -> np.ndarray:
            return tree.order[tree.start[k] : tree.end[k]]

        for k in np.flatnonzero(size > 1).tolist():
            children = k + 1, k + 1 + int(size[k + 1])
            if known[children[0]] is None and known[children[1]] is None:
                least = min(children, key=n_rows.__getitem__)
                for j in reversed(range(least, least + int(size[least]))):
                    if known[j] is None and size[j] == 1:
                        known[j] = self._sum_rows(rows_of(j))
                    elif known[j] is None:
                        left, right = known[j + 1], known[j + 1 + size[j + 1]]
                        low, high = zip(left.bounds, right.bounds, strict=True)
                        known[j] = _Known(
                            left.sums + right.sums, (min(low), max(high)), {}
                        )
            for child, other in (children, children[::-1]):
                if known[child] is None:
                    targets = self.rows.y[
                        rows_of(child)
                    ]  # none, where rounding moved rows
                    bounds = targets.min(initial=np.inf), targets.max(initial=-np.inf)
                    known[child] = _Known(known[k].sums - known[other].sums, bounds, {})

    def _sum_rows(self, rows: np.ndarray) -> _Known:
        """Return the sums of products of some rows."""
        data, columns = self.rows, np.array(self.used, dtype=np.int64)
        sums, arrays = np.empty_like(self.grid), (data.X, data.y, data.sample_weight)
        return _Known(sums, sum_products(*arrays, columns, rows, self.grid, sums), {})

    def _fit_of(self, known: _Known) -> np.ndarray:
        """Return the fit of what is known of a leaf, remembered."""
        fit = known.fits.get(self.term_penalty)
        if fit is None:
            fit = known.fits[self.term_penalty] = self._fit(known)
        return fit

    def _fit(self, known: _Known) -> np.ndarray:
        """Return the fit of what is known of a leaf."""
        whole, n_rows = self.whole, round(float(known.sums[0, 0]), 9)
        if n_rows < LEAST_ROWS and known is not whole:
            fit = self._fit_of(whole).copy()
            fit[ERROR] = squared_error(known.sums, fit)
        else:
            fit = self._fit_sums(known.sums, n_rows, 1)
            fit[LOWEST], fit[HIGHEST] = known.bounds
        return fit

    def _fit_sums(self, sums: np.ndarray, n_rows: float, n_leaves: int) -> np.ndarray:
        """Return the line of some sums, which so many leaves have, but for its bounds."""
        fit = np.empty(len(sums) - 2 + N_FIXED)
        price = n_leaves * self.term_penalty * self.unit
        fit_model(
            sums,
            self.prior,
            self.shrinkage,
            n_rows,
            price,
            self.max_terms,
            self._signs,
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
        self, tree: Any, above: np.ndarray, known: dict[int, _Known], fits: np.ndarray
    ) -> None:
        """Write the fits below each topmost split with an order, which share their coefficients."""
        # These are of least squares within the leaves. The intercepts are an isotonic regression of
        # what they leave of the means of the targets.
        orders, size = self.constraint.orders(tree), tree.subtree_size
        for root in np.unique(above[above != np.arange(len(size))]).tolist():
            part = slice(root, root + size[root])
            leaves = root + np.flatnonzero(size[part] == 1)
            sums = np.array([known[k].sums for k in leaves.tolist()])
            weight, means = sums[:, 0, 0], sums[:, 0, :] / sums[:, 0, :1]
            within = (sums - np.einsum("l,li,lj->lij", weight, means, means)).sum(
                axis=0
            )
            within[0, 0] = weight.sum()
            n_rows = round(float(within[0, 0]), 9)
            if n_rows < LEAST_ROWS:
                shared = self._fit_of(self.whole)
                intercepts = np.full(size[root], shared[INTERCEPT])
            else:
                shared = self._fit_sums(within, n_rows - len(leaves) + 1.0, len(leaves))
                lows, highs = zip(
                    *(known[k].bounds for k in leaves.tolist()), strict=True
                )
                shared[LOWEST], shared[HIGHEST] = min(lows), max(highs)
                rests, weights = np.zeros((2, size[root]))
                rests[leaves - root] = means[:, -1] - means[:, 1:-1] @ shared[N_FIXED:]
                weights[leaves - root] = weight
                intercepts = isotonic_values(orders[part], size[part], rests, weights)
            for k in [k for k in known if part.start < k < part.stop]:
                fits[k] = shared
                fits[k, INTERCEPT] = intercepts[k - root]
                fits[k, ERROR] = squared_error(known[k].sums, fits[k])

    def whole_loss(self, dataset: Dataset) -> float:
        """Return the squared error of the mean."""
        return self.unit if dataset is self.rows else super().whole_loss(dataset)

    def residuals(self, rows: np.ndarray) -> np.ndarray:
        """Return what the model of some rows leaves of their targets."""
        fit = self._fit(self._sum_rows(rows))
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
        margin = _WIDENED * (high - low)
        return LeafModels(
            fits[:, INTERCEPT].copy(), coefficients, low - margin, high + margin
        )

    def table(self, tree: Any) -> np.ndarray:
        """Return the models of the leaves: intercepts, bounds and coefficients."""
        return self.models(tree).table

    def held_out_table(self, tree: Any, mass: np.ndarray, reference: Any) -> np.ndarray:
        """Return the models of all nodes, each as if it were a leaf."""
        return self.models(tree, splits=True).table

    def values(self, tree: Any) -> np.ndarray:
        """Return the mean target of each node, of shape (n_nodes, 1)."""
        return tree.counts[:, 1:2] / tree.counts[:, :1]

    def finish(self, tree: ObliqueTree, dataset: Dataset) -> ObliqueTree:
        """Return a fitted tree, over raw features, with the models of its leaves."""
        bound = self if self.rows is dataset else self.bind(dataset)

        def fill(tree: ObliqueTree) -> ObliqueTree:
            tree = dataset.refill(tree)
            return tree.with_models(
                bound.raw_models(routed_rows(tree, dataset.raw), tree)
            )

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
        constants = models.intercepts, models.lowest, models.highest
        intercepts, low, high = (
            dataset.target_mean + scale * array for array in constants
        )
        intercepts = intercepts - at_mean
        for array in (intercepts, low, high):
            array[~tree.is_leaf] = tree.values[~tree.is_leaf, 0]
        return LeafModels(intercepts, coefficients, low, high)


def term_penalty_of_rows(n_rows: float) -> float:
    """Return the penalty for a term of a leaf where no cross-validation chooses it."""
    return _TERM_SHARE * float(np.log(n_rows + 1.0)) / n_rows


def lines_asked(
    leaves: str | LinearLeaves, dataset: Dataset, max_terms: int | None = None
) -> LinearLeafObjective:
    """Return the objective of linear leaves, as users ask for them."""
    used, most = None, LinearLeafObjective.max_terms
    if isinstance(leaves, LinearLeaves) and leaves.features is not None:
        chosen = columns_asked(leaves.features, dataset.column_names, "features")
        used = tuple(np.flatnonzero(np.isin(dataset.column_of, list(chosen))).tolist())
    if max_terms is not None:
        most = min(most, max_terms // dataset.n_outputs)
    return LinearLeafObjective(used=used, max_terms=most)
