"""Estimators whose tree is grown greedily, by any splitter, and pruned: translation only."""

from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Integral, Real
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils import Bunch

from evotree.configuration import (
    Interval,
    LinearLeaves,
    StrOptions,
    check_parameters,
    documented,
)
from evotree.dataset import SCALINGS, Dataset
from evotree.estimators import base
from evotree.estimators.lazy import lazy_on_collections
from evotree.estimators.presets import GREEDY_PRESETS
from evotree.fitness.criteria import CLASSIFICATION, REGRESSION
from evotree.fitness.objectives import Objective
from evotree.operators.initialization import growth as induction
from evotree.operators.initialization.growth import GrowthLimits, grow
from evotree.operators.pruning import cost_complexity_path, risk_of_leaves
from evotree.operators.splitters.axis import C45
from evotree.operators.splitters.base import Splitter
from evotree.operators.splitters.registry import SPLITTERS, as_splitter
from evotree.rng import make_streams, seed_from
from evotree.tables.columns import (
    NumericColumn,
    column_of_feature,
    indicator_of_feature,
)
from evotree.tree import Individual

_TEXTS = {
    **base.SHARED,
    "LIMITS": """max_depth : int, at least 0, or None, default=None
        Nodes at this depth are leaves; None means any depth.
    min_samples_split : int, at least 2, default=2
        Nodes with fewer distinct rows are leaves.
    min_samples_leaf : int, at least 1, default=1
        A split leaves at least so many distinct rows on each side.
    min_weight_fraction_leaf : float in [0, 0.5], default=0.0
        A split leaves at least this share of the whole weight on each side.
    min_impurity_decrease : float, at least 0, default=0.0
        A split lowers the criterion by at least so much, times the share of the weight that
        reaches its node.
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
}


@dataclass(eq=False, repr=False)
class GreedyTree(base.LocalTree):
    """An estimator whose tree is grown top-down by a splitter, and pruned."""

    splitter: Annotated[str | Splitter, StrOptions(set(SPLITTERS)), callable] = "oc1"
    _: KW_ONLY
    criterion: Annotated[str, str] = ""
    max_depth: Annotated[
        int | None, Interval(Integral, 0, None, closed="left"), None
    ] = None
    min_samples_split: Annotated[int, Interval(Integral, 2, None, closed="left")] = 2
    min_samples_leaf: Annotated[int, Interval(Integral, 1, None, closed="left")] = 1
    min_weight_fraction_leaf: Annotated[
        float, Interval(Real, 0.0, 0.5, closed="both")
    ] = 0.0
    min_impurity_decrease: Annotated[
        float, Interval(Real, 0.0, None, closed="left")
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
        return cls(**{**base.preset(GREEDY_PRESETS, name), **parameters})

    def _fit(self, dataset: Dataset) -> None:
        """Grow a tree, and prune it."""
        self._induce(dataset, make_streams(seed_from(self.random_state), 0, 1)[0])

    def _induce(self, dataset: Dataset, stream: np.ndarray, **rules: Any) -> None:
        """Grow a tree, prune it and keep it."""
        names = "pruning", "validation_fraction", "n_folds", "standard_errors"
        rules |= {name: getattr(self, name) for name in names}
        rules |= {
            "ccp_alpha": self.ccp_alpha / _unit(dataset) ** 2,
            "risk": self._risk(),
        }
        grow_tree = partial(self._grow, stream=stream)
        individual = induction.induce(dataset, grow_tree, **rules, stream=stream)
        tree = individual.to_tree()
        if self.criterion == "absolute_error":
            tree.values = induction.leaf_medians(individual, dataset)
        self._keep_tree(tree, dataset)

    def cost_complexity_pruning_path(
        self, X: Any, y: Any, sample_weight: Any = None
    ) -> Bunch:
        """Return the sequence of minimal cost-complexity pruning of the tree grown on some rows.

        A ``Bunch`` of ``ccp_alphas`` and ``impurities``, as scikit-learn's trees return them; rows,
        targets and weights are as for `fit`.
        """
        check_parameters(self)
        twin = clone(self)
        dataset = twin._make_dataset(X, y, sample_weight, self.scaling)
        dataset = dataset.evolved_for(twin._objective(dataset))
        grown = self._grow(dataset, make_streams(seed_from(self.random_state), 0, 1)[0])
        risk, _ = risk_of_leaves(grown, dataset.n_classes, self._risk())
        alphas, impurities = cost_complexity_path(risk, grown.subtree_size)
        unit = _unit(dataset) ** 2
        return Bunch(ccp_alphas=alphas * unit, impurities=impurities * unit)

    def _grow(self, dataset: Dataset, stream: np.ndarray) -> Individual:
        return grow(
            dataset,
            as_splitter(self.splitter),
            self.criterion,
            self._limits(dataset),
            stream=stream,
        )

    def _limits(self, dataset: Dataset) -> GrowthLimits:
        """Return what says where nodes are leaves, in the units of the data set."""
        power = 1 if self.criterion == "absolute_error" else 2
        return GrowthLimits(
            max_depth=self.max_depth,
            min_samples_split=self.min_samples_split,
            min_samples_leaf=self.min_samples_leaf,
            min_weight_fraction_leaf=self.min_weight_fraction_leaf,
            min_impurity_decrease=self.min_impurity_decrease / _unit(dataset) ** power,
        )

    def _risk(self) -> str | None:
        """Return the criterion that `ccp_alpha` is weighed against, or None for squared error."""
        return None if self.criterion == "absolute_error" else self.criterion


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
        ``"cross_entropy"``, ``"wodt"``, ``"co2"``, ``"linear"``, ``"dipole"``, or an object of
        `evotree.operators`, such as ``OC1(n_restarts=5)``.
    criterion : str, default="gini"
        What a split is scored by: ``"entropy"``, ``"gini"``, ``"twoing"``, ``"error"``,
        ``"max_minority"``, ``"sum_minority"``, ``"sum_of_variances"`` or ``"gain_ratio"``.
    <LIMITS>
    pruning : {"cost_complexity", "cross_validation", "pessimistic", "reduced_error"} or None, \
default=None
        ``"cost_complexity"`` chooses from the nested sequence of Breiman et al. by a held-out
        part of the rows, ``"cross_validation"`` by cross-validation; ``"reduced_error"`` cuts
        what does not help on a held-out part. ``"pessimistic"`` cuts, or raises subtrees, by upper
        bounds of the errors on the training rows, as C4.5 does. The leaves of the pruned tree
        predict by all rows.
    confidence : float in (0, 1], default=0.25
        Of ``"pessimistic"``: the less, the more is pruned.
    <VALIDATION>
    <CLASSES>

    Attributes
    ----------
    tree_ : ObliqueTree
        The tree, over features in their own units; its values are class shares.
    <SHARES>
    shares_rows_ : bool
        Whether `predict` and `predict_proba` send a row down both branches where a value is
        missing, as C4.5 does. All that reads `tree_` sends it to the branch of more training rows.
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

    criterion: Annotated[str, StrOptions(set(CLASSIFICATION))] = "gini"
    pruning: Annotated[
        Any, StrOptions({*induction.PRUNINGS, induction.PESSIMISTIC}), None
    ] = None
    confidence: Annotated[float, Interval(Real, 0.0, 1.0, closed="right")] = 0.25
    class_weight: Annotated[Any, *base.CLASS_WEIGHT] = None
    probability: Annotated[str, StrOptions(set(base.PROBABILITIES))] = "leaf"

    def _induce(self, dataset: Dataset, stream: np.ndarray, **rules: Any) -> None:
        """Grow a tree, prune it and keep it; C4.5 shares rows with missing values."""
        splitter = as_splitter(self.splitter)
        rules = {**rules, "confidence": self.confidence}
        self.shares_rows_ = (
            isinstance(splitter, C45) and self.pruning == induction.PESSIMISTIC
        )
        if isinstance(splitter, C45) and self.shares_rows_:
            splitter = induction.with_indicators(
                splitter, indicator_of_feature(self.columns_)
            )
            tree = induction.induce_c45(
                dataset,
                splitter,
                confidence=self.confidence,
                limits=self._limits(dataset),
                stream=stream,
            )
            self._keep_raw_tree(tree, dataset)
        else:
            super()._induce(dataset, stream, **rules)

    @lazy_on_collections(lambda self: self.classes_[:0])
    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row, that of the leaf that it reaches.

        A tree of C4.5 sends a row down both branches where a value is missing, and predicts the
        class of the highest share in the mean of the leaves.
        """
        predicted: np.ndarray = super().predict(X)
        if getattr(self, "shares_rows_", False):
            at, shares = self._predict_incomplete(X)
            predicted[at] = self.classes_[shares.argmax(axis=1)]
        return predicted

    @lazy_on_collections(lambda self: np.empty((0, len(self.classes_))))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the classes, in the order of `classes_`, a column for each.

        They are the class shares of the leaf that a row reaches, or depend on its distances to the
        hyperplanes, as `probability` says. Where a tree of C4.5 asks a row for a value that is
        missing, they are the mean of the class shares of the leaves of both branches, weighted by
        training rows. The class that `predict` returns has the largest one.
        """
        probabilities: np.ndarray = super().predict_proba(X)
        if getattr(self, "shares_rows_", False):
            at, shares = self._predict_incomplete(X)
            probabilities[at] = shares
        return probabilities

    def _warn_of_gaps(self, table: pd.DataFrame) -> None:
        """Say nothing where rows are shared: nothing stands for what they lack."""
        if not getattr(self, "shares_rows_", False):
            super()._warn_of_gaps(table)

    def _predict_incomplete(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows that lack a value that some split asks for, and their class shares."""
        is_number = [isinstance(column, NumericColumn) for column in self.columns_]
        is_empty = self._cells(X).isna().to_numpy() & is_number
        is_missing = is_empty[:, column_of_feature(self.columns_)]
        is_used = (self.tree_.weights != 0.0).any(axis=0)
        at = np.flatnonzero(is_missing[:, is_used].any(axis=1))
        rows = self.encode(X)[at]
        return at, induction.mean_of_branches(self.tree_, rows, is_missing[at])


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
        What a split is scored by: ``"squared_error"``, whose leaves predict means, or
        ``"absolute_error"``, whose leaves predict medians.
    <LIMITS>
    pruning : {"cost_complexity", "cross_validation", "reduced_error"} or None, default=None
        ``"cost_complexity"`` chooses from the nested sequence of Breiman et al. by a held-out
        part of the rows, ``"cross_validation"`` by cross-validation; ``"reduced_error"`` cuts
        what does not help on a held-out part. The leaves of the pruned tree predict by all rows.
    <VALIDATION>
    leaves : {"constant", "linear"} or LinearLeaves, default="constant"
        What leaves hold: the mean of their targets, or a bounded linear model of few terms, as for
        `EvoTreeRegressor`. Splits then part the residuals of the line of their node, and subtrees
        that lines do not gain from become leaves; `pruning` keeps trees from fitting noise. Not
        with ``"absolute_error"``.

    Attributes
    ----------
    tree_ : ObliqueTree
        The tree, over features in their own units; its values are means, or medians.
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

    criterion: Annotated[str, StrOptions(set(REGRESSION))] = "squared_error"
    leaves: Annotated[Any, StrOptions({"constant", "linear"}), LinearLeaves] = (
        "constant"
    )

    def _objective(self, dataset: Dataset) -> Objective | None:
        """Return what leaves are fitted for: lines, where they are asked for."""
        if self.criterion != "squared_error" and self.leaves != "constant":
            raise ValueError(
                f"leaves={self.leaves!r}: criterion={self.criterion!r} needs 'constant'."
            )
        if self.criterion != "squared_error" and dataset.outputs is not None:
            raise ValueError(
                f"criterion={self.criterion!r}: y has {dataset.n_outputs} outputs; "
                "squared_error is allowed."
            )
        return super()._objective(dataset)
