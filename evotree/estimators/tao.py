"""Estimators whose tree is optimized as a whole, node by node: translation only."""

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Annotated, Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.tree import BaseDecisionTree
from sklearn.utils.validation import check_is_fitted

from evotree.configuration import N_JOBS, Interval, LinearLeaves, StrOptions, documented
from evotree.dataset import SCALINGS, Dataset
from evotree.engine.parallel import thread_map
from evotree.estimators import base
from evotree.operators.constraints import SplitFeatures
from evotree.operators.initialization.growth import GrowthLimits, grow, init_complete
from evotree.operators.initialization.population import init_from_tree, raw_tree
from evotree.operators.pruning import prune
from evotree.operators.refinement import tao_sweeps
from evotree.operators.splitters.axis import Axis
from evotree.operators.splitters.base import Splitter
from evotree.operators.splitters.linear import Linear
from evotree.operators.splitters.linear_fit import LOSSES, PENALTIES
from evotree.operators.splitters.registry import SPLITTERS, as_splitter
from evotree.rng import make_streams, seed_from
from evotree.tree import Individual, ObliqueTree

RANDOM = "random"
_TREES = (ObliqueTree, base.TreeEstimator, BaseDecisionTree, FrozenEstimator)
_NEGLIGIBLE = (
    1e-8  # share of the weight, or of the squared error, that no node is worth
)


_TEXTS = {
    **base.SHARED,
    "ELSEWHERE": """\
``"random"``, complete with random directions that halve the rows; or one found elsewhere,
        an `ObliqueTree` or fitted estimator of this package or of scikit-learn that has one tree;
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
        Nodes of a grown tree with fewer distinct rows are leaves.
    scaling : {"standard", "common", "minmax"}, default="standard"
        Units in which the weights are penalized; a fitted tree is over raw features.
    n_jobs : int or None, default=None
        Number of threads that fit the nodes of one level; -1 means all cores.
    random_state : int, RandomState, Generator or None, default=None
        Source of all random draws. The same number gives the same tree for any `n_jobs`.
    categorical_features : array-like, "from_dtype" or None, default="from_dtype"
        Which columns are categories, as for `EvoTreeClassifier`.""",
}


@dataclass(eq=False, repr=False)
class AlternatingTree(base.LocalTree):
    """An estimator whose initial tree is improved by tree alternating optimization."""

    init: Annotated[Any, StrOptions({RANDOM, *SPLITTERS}), callable, *_TREES] = "axis"
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
        if isinstance(self.init, str) and self.init == RANDOM:
            return init_complete(
                dataset,
                stream,
                max_depth=self.depth,
                min_rows=self.min_samples_split,
            )
        if isinstance(self.init, str) or callable(self.init):
            limits = GrowthLimits(
                max_depth=self.depth, min_samples_split=self.min_samples_split
            )
            criterion = "entropy" if dataset.n_classes else "squared_error"
            individual = grow(
                dataset, as_splitter(self.init), criterion, limits, stream=stream
            )
            prune(individual, dataset, 0.0)
        else:
            self._check_given_tree(dataset.X.shape[1])
            individual = init_from_tree(dataset, 0.0, self.init)
            if dataset.is_split_on is not None:
                SplitFeatures(dataset.is_split_on).repair(individual, dataset)
        individual.stream = stream
        return individual

    def _check_given_tree(self, n_features: int) -> None:
        if not isinstance(self.init, ObliqueTree):
            check_is_fitted(
                self.init,
                msg="init: this %(name)s is not fitted. The copies that cross-validation makes "
                "are not; sklearn.frozen.FrozenEstimator keeps what it wraps fitted.",
            )
            if not hasattr(self.init, "tree_"):
                raise ValueError(
                    f"init={self.init!r}: allowed are estimators that have one tree."
                )
        n_given = raw_tree(self.init)[0].shape[1]
        if n_given != n_features:
            raise ValueError(
                f"init={self.init!r}: a tree over {n_given} features; the rows have {n_features}."
            )

    def _optimize(
        self, individual: Individual, dataset: Dataset, monotone: bool = True
    ) -> int:
        """Optimize a tree in place and return the number of sweeps."""
        oblique = Linear(self.loss, self.penalty, self.C, fallback=True)
        known: dict[str, Any] = {"oblique": oblique, "axis": Axis()}
        splitter = (
            known[self.node] if isinstance(self.node, str) else as_splitter(self.node)
        )
        n_iter = 0
        with thread_map(self.n_jobs, dataset.X.shape) as mapper:
            for done in tao_sweeps(
                individual,
                dataset,
                splitter,
                max_sweeps=self.max_iter,
                tol=self.tol,
                monotone=monotone,
                map=mapper,
            ):
                n_iter = done
        prune(individual, dataset, _NEGLIGIBLE)
        return n_iter


@documented(**_TEXTS)
@dataclass(kw_only=True, eq=False, repr=False)
class TAOClassifier(base.TreeClassifier, AlternatingTree):
    """A classifier that is one oblique tree, optimized by tree alternating optimization.

    From an initial tree on, every node in turn gets the test that is best given all the others: a
    linear classifier of the rows that its two subtrees predict differently. The shape stays, or
    shrinks: what no row reaches is dropped, and a subtree that predicts one class becomes a leaf.

    Parameters
    ----------
    init : str, Splitter, ObliqueTree or fitted estimator, default="axis"
        The initial tree: grown by a splitter, by its name or itself, with the entropy;
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

    class_weight: Annotated[Any, *base.CLASS_WEIGHT] = None
    probability: Annotated[str, StrOptions(set(base.PROBABILITIES))] = "leaf"


@documented(**_TEXTS)
@dataclass(kw_only=True, eq=False, repr=False)
class TAORegressor(base.TreeRegressor, AlternatingTree):
    """A regressor that is one oblique tree, optimized by tree alternating optimization.

    As `TAOClassifier`, with the squared error as loss of a row and the means or lines of the leaves
    as predictions: a row costs the difference between the squared errors of its node's two sides.

    Parameters
    ----------
    init : str, Splitter, ObliqueTree or fitted estimator, default="axis"
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
