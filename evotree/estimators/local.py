"""Estimators whose tree is found node by node: translation only.

It is grown greedily, by any splitter, and pruned; or an initial one is optimized as a whole by
tree alternating optimization, for one penalty or for a path of them.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Integral, Real
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.tree import BaseDecisionTree
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from evotree.configuration import (
    N_JOBS,
    HasMethods,
    Interval,
    LinearLeaves,
    StrOptions,
    check_parameters,
    documented,
)
from evotree.dataset import SCALINGS, Dataset
from evotree.estimators import base
from evotree.estimators.rows import CLASS_WEIGHT, Beside
from evotree.fitness.node import CLASSIFICATION
from evotree.operators.constraints import SplitFeatures
from evotree.operators.initialization import growth as induction
from evotree.operators.initialization.population import init_from_tree
from evotree.operators.pruning import cost_complexity_path, prune, risk_of_leaves
from evotree.operators.refinement import tao_sweeps
from evotree.operators.splitters.base import Axis, Splitter
from evotree.operators.splitters.linear import LOSSES, PENALTIES, Linear
from evotree.operators.splitters.registry import (
    GREEDY_PRESETS,
    SPLITTERS,
    as_splitter,
    criterion_of,
    splitter_of,
)
from evotree.parallel import thread_map
from evotree.rng import make_streams, seed_from
from evotree.tree import Individual, ObliqueTree, node_depths

_TEXTS = {
    **base.SHARED,
    "LIMITS": """max_depth : int, at least 0, or None, default=None
        Nodes at this depth are leaves; None means any depth.
    min_samples_split : int, at least 2, default=2
        Nodes with fewer training rows are leaves; equal rows count one by one, whatever they weigh.
    min_samples_leaf : int, at least 1, default=1
        A split leaves at least so many training rows on each side, counted likewise.
    min_weight_fraction_leaf : float in [0, 0.5], default=0.0
        A split leaves at least this share of the whole weight on each side.
    ccp_alpha : float, at least 0, default=0.0
        Minimal cost-complexity pruning: the smallest subtree that minimizes the impurity plus
        `ccp_alpha` for each leaf is kept, as in scikit-learn. Not with `pruning`.""",
    "VALIDATION": """validation_fraction : float in (0, 1), default=0.1
        Share of the rows that is held out.
    n_folds : int, at least 2, default=10
        Number of folds of the cross-validation.
    standard_errors : float, at least 0, default=0.0
        The k of the k-SE rule: the smallest tree within so many of the least error is chosen.
    scaling : {"standard", "common", "minmax"}, default="standard"
        Units in which splitters see the features; a fitted tree is over raw features.
    random_state : int, RandomState, Generator or None, default=None
        Source of all random draws.
    categorical_features : array-like, "from_dtype" or None, default="from_dtype"
        Which columns are categories, as for `EvoTreeClassifier`.""",
    "ELSEWHERE": """\
``"random"``, complete with random directions that halve the rows; or one found elsewhere,
        an `ObliqueTree`, a model of `load_model`, or a fitted estimator of this package or of
        scikit-learn that has one tree, columns by their names;
        in searches wrapped by `sklearn.frozen.FrozenEstimator`, since copies are not fitted.""",
    "NODE": """node : {"oblique", "axis"} or Splitter, default="oblique"
        What finds the test of a node: a linear classifier, the best test of one feature, or a
        splitter.
    loss : {"logistic", "svm"}, default="logistic"
        Loss of the linear classifiers: of logistic regression, or squared hinge.
    penalty : {"l1", "l2"}, default="l1"
        Penalty of their weights; ``"l1"`` makes many of them 0.""",
    "SWEEPS": """max_iter : int, at least 1, default=14
        Most sweeps.
    min_samples_split : int, at least 2, default=5
        Nodes of a grown tree with fewer training rows are leaves; equal rows count one by one.
    scaling : {"standard", "common", "minmax"}, default="standard"
        Units in which the weights are penalized; a fitted tree is over raw features.
    n_jobs : int or None, default=None
        Number of threads that fit the nodes of one level; -1 means all cores.
    random_state : int, RandomState, Generator or None, default=None
        Source of all random draws. The same number gives the same tree for any `n_jobs`.
    categorical_features : array-like, "from_dtype" or None, default="from_dtype"
        Which columns are categories, as for `EvoTreeClassifier`.""",
}


class LocalTree(base.TreeEstimator):
    """An estimator whose tree is found node by node."""

    scaling: str

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        cv: Any = None,
    ) -> Self:
        """Grow a tree, and prune it, or make an initial one, and optimize it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows, which may have missing values, encoded as by `EvoTreeClassifier`. OC1
            imputes means: ``make_pipeline(SimpleImputer(), ObliqueTreeClassifier())``.
        y : array-like of shape (n_samples,), or (n_samples, n_outputs) for regression
            Class labels, or targets. Several outputs share one tree; they are standardized, each
            by its own mean and standard deviation, and count alike.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows. A row of weight 2 weighs as much as two rows, but is one where rows
            are counted: for `min_samples_split`, `min_samples_leaf` and folds.
        groups : array-like of shape (n_samples,), optional
            Labels of rows that belong together, as for `EvoTreeClassifier`: `pruning` holds them
            out together, and the standard errors of its rule are those of groups.
        cv : int, splitter or iterable of pairs, optional
            The folds of ``pruning="cross_validation"``, as for `EvoTreeClassifier`; other rules
            hold out what the last one does. None without `pruning`, which holds no rows out.
        """
        check_parameters(self)
        with self._unchanged_on_failure():
            beside = Beside(sample_weight, groups=groups, cv=cv)
            dataset = self._make_dataset(X, y, beside, self.scaling)
            if cv is not None and getattr(self, "pruning", None) is None:
                raise ValueError(
                    "cv is given, but nothing is pruned by rows held out: allowed is None."
                )
            self._fit(dataset.evolved_for(self._objective(dataset)))
        return self

    def _fit(self, dataset: Dataset) -> None:
        """Find a tree, and keep it."""
        raise NotImplementedError


# ---- grown greedily ------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class GreedyTree(LocalTree):
    """An estimator whose tree is grown top-down by a splitter, and pruned."""

    splitter: Annotated[str | Splitter, StrOptions(set(SPLITTERS)), callable] = "oc1"
    _: KW_ONLY
    criterion: Annotated[Any, str] = ""
    max_depth: Annotated[
        int | None, Interval(Integral, 0, None, closed="left"), None
    ] = None
    min_samples_split: Annotated[int, Interval(Integral, 2, None, closed="left")] = 2
    min_samples_leaf: Annotated[int, Interval(Integral, 1, None, closed="left")] = 1
    min_weight_fraction_leaf: Annotated[
        float, Interval(Real, 0.0, 0.5, closed="both")
    ] = 0.0
    ccp_alpha: Annotated[float, Interval(Real, 0.0, None, closed="left")] = 0.0
    pruning: Annotated[str | None, StrOptions(set(induction.PRUNINGS)), None] = None
    validation_fraction: Annotated[
        float, Interval(Real, 0.0, 1.0, closed="neither")
    ] = 0.1
    n_folds: Annotated[int, Interval(Integral, 2, None, closed="left")] = 10
    standard_errors: Annotated[float, Interval(Real, 0.0, None, closed="left")] = 0.0
    scaling: Annotated[str, StrOptions(set(SCALINGS))] = "standard"
    random_state: Annotated[Any, "random_state", np.random.Generator] = None

    @classmethod
    def from_preset(cls, name: str, **parameters: Any) -> Self:
        """Make an estimator with the setting of a published algorithm, which `parameters` change.

        `name` is a key of `evotree.estimators.GREEDY_PRESETS`, such as ``"OC1"`` or ``"WODT"``.
        """
        own = base.preset(GREEDY_PRESETS, name)
        # The criteria are of classes.
        criterion = criterion_of(name, 0 if issubclass(cls, RegressorMixin) else 2)
        return cls(**{**own, "criterion": criterion, **parameters})

    def _fit(self, dataset: Dataset) -> None:
        """Grow a tree, and prune it."""
        stream = make_streams(seed_from(self.random_state), 0, 1)[0]
        individual = induction.induce(
            dataset,
            partial(self._grow, stream=stream),
            pruning=self.pruning,
            ccp_alpha=self.ccp_alpha / _unit(dataset) ** 2,
            risk=self.criterion,
            validation_fraction=self.validation_fraction,
            n_folds=self.n_folds,
            standard_errors=self.standard_errors,
            stream=stream,
        )
        self._keep_tree(individual.to_tree(), dataset)

    def cost_complexity_pruning_path(
        self, X: Any, y: Any, sample_weight: Any = None
    ) -> Bunch:
        """Return the sequence of minimal cost-complexity pruning of the tree grown on some rows.

        A ``Bunch`` of ``ccp_alphas`` and ``impurities``, as scikit-learn's trees return them; rows,
        targets and weights are as for `fit`.
        """
        check_parameters(self)
        twin = clone(self)
        dataset = twin._make_dataset(X, y, Beside(sample_weight), self.scaling)
        dataset = dataset.evolved_for(twin._objective(dataset))
        grown = self._grow(dataset, make_streams(seed_from(self.random_state), 0, 1)[0])
        risk, _ = risk_of_leaves(grown, dataset.n_classes, self.criterion)
        alphas, impurities = cost_complexity_path(risk, grown.subtree_size)
        unit = _unit(dataset) ** 2
        return Bunch(ccp_alphas=alphas * unit, impurities=impurities * unit)

    def _grow(self, dataset: Dataset, stream: np.ndarray) -> Individual:
        return induction.grow(
            dataset,
            as_splitter(self.splitter),
            self.criterion,
            induction.GrowthLimits(
                max_depth=self.max_depth,
                min_samples_split=self.min_samples_split,
                min_samples_leaf=self.min_samples_leaf,
                min_weight_fraction_leaf=self.min_weight_fraction_leaf,
            ),
            stream=stream,
        )


def _unit(dataset: Dataset) -> float:
    """Return the unit of the targets; several outputs stay standardized."""
    return 1.0 if dataset.outputs is not None else float(dataset.target_scale)


@documented(**_TEXTS)
@dataclass(kw_only=True, eq=False, repr=False)
class ObliqueTreeClassifier(base.TreeClassifier, GreedyTree):
    """A classifier that is one oblique tree, grown greedily by a splitter, and pruned.

    Parameters
    ----------
    splitter : str or Splitter, default="oc1"
        What finds the hyperplane of a node: ``"axis"``, ``"cart_lc"``, ``"oc1"``, ``"annealing"``,
        ``"cross_entropy"``, ``"wodt"``, ``"linear"``, ``"dipole"``, or an object of
        `evotree.operators`, such as ``OC1(n_restarts=5)``.
    criterion : str, default="gini"
        What a split is scored by: ``"entropy"``, ``"gini"``, ``"twoing"``, ``"error"``,
        ``"max_minority"`` or ``"sum_minority"``.
    <LIMITS>
    pruning : {"cost_complexity", "cross_validation"} or None, default=None
        ``"cost_complexity"`` chooses from the nested sequence of Breiman et al. by a held-out
        part of the rows, ``"cross_validation"`` by cross-validation. The leaves of the pruned tree
        predict by all rows.
    <VALIDATION>
    <CLASSES>

    Attributes
    ----------
    tree_ : ObliqueTree
        The tree, over features in their own units; its values are class shares.
    <SHARES>
    <ONE_TREE>

    References
    ----------
    Breiman L., Friedman J., Olshen R., Stone C. (1984). Classification and regression trees.

    Examples
    --------
    >>> from evotree import ObliqueTreeClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = ObliqueTreeClassifier("linear", random_state=0).fit(X, y)
    >>> tree.get_n_leaves() < 10
    True
    """

    criterion: Annotated[Any, StrOptions(set(CLASSIFICATION))] = "gini"
    class_weight: Annotated[Any, *CLASS_WEIGHT] = None
    probability: Annotated[str, StrOptions(set(base.PROBABILITIES))] = "leaf"


@documented(**_TEXTS)
@dataclass(kw_only=True, eq=False, repr=False)
class ObliqueTreeRegressor(base.TreeRegressor, GreedyTree):
    """A regressor that is one oblique tree, grown greedily by a splitter, and pruned.

    Parameters
    ----------
    splitter : str or Splitter, default="oc1"
        What finds the hyperplane of a node: ``"axis"``, ``"cart_lc"``, ``"oc1"``, ``"annealing"``,
        ``"cross_entropy"``, ``"linear"``, ``"dipole"``, or an object of `evotree.operators`, such
        as ``OC1(n_restarts=5)``.
    criterion : str, default="squared_error"
        What a split is scored by: ``"squared_error"``; `EvoTreeRegressor` has other losses.
    <LIMITS>
    pruning : {"cost_complexity", "cross_validation"} or None, default=None
        ``"cost_complexity"`` chooses from the nested sequence of Breiman et al. by a held-out
        part of the rows, ``"cross_validation"`` by cross-validation. The leaves of the pruned tree
        predict by all rows.
    <VALIDATION>
    leaves : {"constant", "linear"} or LinearLeaves, default="constant"
        What leaves hold: the mean of their targets, or a bounded linear model of few terms, as for
        `EvoTreeRegressor`. Splits then part the residuals of the line of their node, and subtrees
        that lines do not gain from become leaves; `pruning` keeps trees from fitting noise.

    Attributes
    ----------
    tree_ : ObliqueTree
        The tree, over features in their own units; its values are means.
    <MEANS>
    <ONE_TREE>

    Examples
    --------
    >>> from evotree import ObliqueTreeRegressor
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> ObliqueTreeRegressor("axis", max_depth=2).fit(X, y).get_n_leaves()
    4
    """

    criterion: Annotated[Any, StrOptions({"squared_error"})] = "squared_error"
    leaves: Annotated[Any, StrOptions({"constant", "linear"}), LinearLeaves] = (
        "constant"
    )


# ---- optimized by alternation --------------------------------------------------------------------

RANDOM = "random"
_TREES = (ObliqueTree, base.TreeEstimator, BaseDecisionTree, FrozenEstimator)
_LOADED_MODEL = HasMethods("summary")
# Share of the weight, or of the squared error, that no node is worth.
_NEGLIGIBLE = 1e-8


@dataclass(eq=False, repr=False)
class AlternatingTree(LocalTree):
    """An estimator whose initial tree is improved by tree alternating optimization."""

    init: Annotated[
        Any,
        StrOptions({RANDOM, *SPLITTERS, *GREEDY_PRESETS}),
        callable,
        _LOADED_MODEL,
        *_TREES,
    ] = "axis"
    _: KW_ONLY
    depth: Annotated[int, Interval(Integral, 0, None, closed="left")] = 8
    node: Annotated[str | Splitter, StrOptions({"oblique", "axis"}), callable] = (
        "oblique"
    )
    loss: Annotated[str, StrOptions(set(LOSSES))] = "logistic"
    penalty: Annotated[str, StrOptions(set(PENALTIES))] = "l1"
    C: Annotated[float, Interval(Real, 0.0, None, closed="neither")] = 10.0
    tol: Annotated[float, Interval(Real, 0.0, None, closed="left")] = 0.005
    max_iter: Annotated[int, Interval(Integral, 1, None, closed="left")] = 14
    min_samples_split: Annotated[int, Interval(Integral, 2, None, closed="left")] = 5
    scaling: Annotated[str, StrOptions(set(SCALINGS))] = "standard"
    n_jobs: Annotated[int | None, *N_JOBS, None] = None
    random_state: Annotated[Any, "random_state", np.random.Generator] = None

    def _fit(self, dataset: Dataset) -> None:
        """Make an initial tree, and optimize it."""
        individual = self._first(dataset)
        self.n_iter_ = self._optimize(individual, dataset)
        self._keep_tree(individual.to_tree(), dataset)

    def _first(self, dataset: Dataset) -> Individual:
        """Return the initial tree, without subtrees that predict one class."""
        stream = make_streams(seed_from(self.random_state), 0, 1)[0]
        limits = induction.GrowthLimits(
            max_depth=self.depth, min_samples_split=self.min_samples_split
        )
        if isinstance(self.init, str) and self.init == RANDOM:
            return induction.grow_on_sample(
                dataset, dataset, induction.random_halves, stream, limits=limits
            )
        if isinstance(self.init, str) or callable(self.init):
            individual = induction.grow(
                dataset,
                splitter_of(self.init) or as_splitter(self.init),
                criterion_of(self.init, dataset.n_classes),
                limits,
                stream=stream,
            )
            prune(individual, dataset, 0.0)
        else:
            if isinstance(self.init, BaseEstimator):
                check_is_fitted(
                    self.init,
                    msg="init: this %(name)s is not fitted. The copies that cross-validation "
                    "makes are not; sklearn.frozen.FrozenEstimator keeps what it wraps fitted.",
                )
            individual = init_from_tree(dataset, 0.0, self.init)
            if dataset.is_split_on is not None:
                SplitFeatures(dataset.is_split_on).repair(individual, dataset)
        individual.stream = stream
        return individual

    def _optimize(
        self, individual: Individual, dataset: Dataset, monotone: bool = True
    ) -> int:
        """Optimize a tree in place and return the number of sweeps."""
        known: dict[str, Any] = {
            "oblique": Linear(self.loss, self.penalty, self.C, fallback=True),
            "axis": Axis(),
        }
        splitter = (
            known[self.node] if isinstance(self.node, str) else as_splitter(self.node)
        )
        with thread_map(self.n_jobs, dataset.X.shape) as mapper:
            n_iter = max(
                tao_sweeps(
                    individual,
                    dataset,
                    splitter,
                    max_sweeps=self.max_iter,
                    tol=self.tol,
                    monotone=monotone,
                    map=mapper,
                )
            )
        prune(individual, dataset, _NEGLIGIBLE)
        return n_iter


@documented(**_TEXTS)
@dataclass(kw_only=True, eq=False, repr=False)
class TAOClassifier(base.TreeClassifier, AlternatingTree):
    """A classifier that is one oblique tree, optimized by tree alternating optimization.

    From an initial tree on, every node in turn gets the test that is best given all the others: a
    linear classifier of the rows that its two subtrees predict differently. The shape stays, or
    shrinks: after the last sweep what no row reaches is dropped, and a subtree that predicts one
    class becomes a leaf.

    Parameters
    ----------
    init : str, Splitter, ObliqueTree, model or fitted estimator, default="axis"
        The initial tree: grown by a splitter, by its name or itself, with the entropy; by the
        splitter and the criterion of a greedy preset, such as ``"OC1"``;
        <ELSEWHERE>
    depth : int, at least 0, default=8
        Depth to which an initial tree is grown.
    <NODE>
    C : float above 0, default=10.0
        Cost of the loss of a row of weight 1, beside the penalty. Smaller values give sparser
        weights, and trees of fewer nodes. AdaBoost hands over weights that sum to 1: there it
        takes as many times `C` as there are rows.
    tol : float, at least 0, default=0.005
        A sweep that lowers the training error by no more than this share of it is the last.
    <SWEEPS>
    <CLASSES>

    Attributes
    ----------
    tree_ : ObliqueTree
        The tree, over features in their own units; its values are class shares.
    n_iter_ : int
        Sweeps done.
    <SHARES>
    <ONE_TREE>

    References
    ----------
    Carreira-Perpiñán M. Á., Tavallali P. (2018). Alternating optimization of decision trees, with
    application to learning sparse oblique trees. Advances in Neural Information Processing Systems.

    Examples
    --------
    >>> from evotree import TAOClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = TAOClassifier(random_state=0).fit(X, y)
    >>> tree.score(X, y) > 0.97
    True
    """

    class_weight: Annotated[Any, *CLASS_WEIGHT] = None
    probability: Annotated[str, StrOptions(set(base.PROBABILITIES))] = "leaf"


@documented(**_TEXTS)
@dataclass(kw_only=True, eq=False, repr=False)
class TAORegressor(base.TreeRegressor, AlternatingTree):
    """A regressor that is one oblique tree, optimized by tree alternating optimization.

    As `TAOClassifier`, with the squared error as loss of a row and the means or lines of the leaves
    as predictions: a row costs the difference between the squared errors of its node's two sides.

    Parameters
    ----------
    init : str, Splitter, ObliqueTree, model or fitted estimator, default="axis"
        The initial tree: grown by a splitter, by its name or itself, with the squared error;
        <ELSEWHERE>
    depth : int, at least 0, default=4
        Depth to which an initial tree is grown.
    <NODE>
    C : float above 0, default=1.0
        Cost of the loss of a row of weight 1 whose two squared errors differ by the variance of the
        targets, beside the penalty. Smaller values give sparser weights, and trees of fewer nodes.
    tol : float, at least 0, default=0.005
        A sweep that lowers the squared error by no more than this share of it is the last.
    <SWEEPS>
    leaves : {"constant", "linear"} or LinearLeaves, default="constant"
        What leaves hold: the mean of their targets, as published, or a bounded linear model of few
        terms, as for `EvoTreeRegressor`. Splits are optimized for it. The penalty for a term is
        ``log(n) / (20 n)`` of the whole squared error, for n rows.

    Attributes
    ----------
    tree_ : ObliqueTree
        The tree, over features in their own units; its values are means.
    <MEANS>
    n_iter_ : int
        Sweeps done.
    <ONE_TREE>

    References
    ----------
    Zharmagambetov A., Carreira-Perpiñán M. Á. (2020). Smaller, more accurate regression forests
    using tree alternating optimization. International Conference on Machine Learning.

    Examples
    --------
    >>> from evotree import TAORegressor
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> TAORegressor(depth=3).fit(X, y).score(X, y) > 0.5
    True
    """

    depth: Annotated[int, Interval(Integral, 0, None, closed="left")] = 4
    C: Annotated[float, Interval(Real, 0.0, None, closed="neither")] = 1.0
    leaves: Annotated[Any, StrOptions({"constant", "linear"}), LinearLeaves] = (
        "constant"
    )


# ---- the path of ever sparser trees --------------------------------------------------------------

COSTS = tuple(float(C) for C in np.logspace(1.0, -2.0, 13))
"""The values of C by default, from 10 down to 0.01."""


@dataclass(frozen=True)
class TAOPath:
    """The trees of a path.

    Attributes
    ----------
    table : DataFrame
        One row a tree: ``C``; ``train_score``, the share of the rows that are classified right, or
        R²; ``leaves``; ``weights``, those that are not 0; ``path_mean``, the tests that a training
        row meets in the mean; ``cost``, the multiplications that it takes.
    estimators : list of TAOClassifier or TAORegressor
        The fitted estimators; the ``tree_`` of each is over raw features, with exact zeros.
    """

    table: pd.DataFrame
    estimators: list[AlternatingTree]


def tao_path(
    X: Any,
    y: Any,
    *,
    Cs: Sequence[float] = COSTS,
    estimator: AlternatingTree | None = None,
    sample_weight: Any = None,
) -> TAOPath:
    """Fit trees for falling C, each starting from the one before; a table of them, and the trees.

    With the penalty ``"l1"`` more and more weights are 0; where all weights of a node are, it loses
    a child, so the trees shrink (Carreira-Perpiñán and Tavallali 2018, section 4). The first sweep
    of each C changes all nodes, since what is to be minimized has changed.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Training rows.
    y : array-like of shape (n_samples,)
        Class labels, or targets.
    Cs : sequence of float above 0
        Values of C; taken from the highest to the lowest. By default 13 from 10 to 0.01.
    estimator : TAOClassifier or TAORegressor, optional
        Parameters of the trees but for C; it is not changed; by default ``TAOClassifier()``.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, for the fits.
    """
    costs = sorted((float(C) for C in Cs), reverse=True)
    if not costs or not all(0.0 < C < np.inf for C in costs):
        raise ValueError(
            f"Cs={Cs!r}: allowed are finite numbers above 0, at least one."
        )
    model = clone(TAOClassifier() if estimator is None else estimator).set_params(
        C=costs[0]
    )
    check_parameters(model)
    beside = Beside(sample_weight)
    dataset = model._make_dataset(X, y, beside, model.scaling)
    dataset = dataset.evolved_for(model._objective(dataset))
    individual = model._first(dataset)
    fitted: list[AlternatingTree] = []
    for C in costs:
        step = clone(model).set_params(C=C)
        step._make_dataset(X, y, beside, model.scaling)
        step.n_iter_ = step._optimize(individual, dataset, monotone=not fitted)
        step._keep_tree(individual.to_tree(), dataset)
        fitted.append(step)
    records = [
        {"C": step.C, "train_score": step.score(X, y)}
        | sizes_of_tree(step.tree_, step.apply(X))
        for step in fitted
    ]
    return TAOPath(pd.DataFrame(records), fitted)


def sizes_of_tree(tree: ObliqueTree, leaves: np.ndarray) -> dict[str, float]:
    """Return the sizes of a tree, and what the way to the leaves takes."""
    n_weights = np.count_nonzero(tree.weights, axis=1)
    paid = np.zeros(tree.n_nodes, dtype=np.int64)
    for k in np.flatnonzero(~tree.is_leaf).tolist():
        paid[[tree.left(k), tree.right(k)]] = paid[k] + n_weights[k]
    return {
        "leaves": tree.n_leaves,
        "weights": int(n_weights.sum()),
        "path_mean": float(node_depths(tree.subtree_size)[leaves].mean()),
        "cost": float(paid[leaves].mean()),
    }
