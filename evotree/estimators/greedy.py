"""Estimators whose tree is grown greedily, by any splitter, and pruned: translation only."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import Bunch
from sklearn.utils._param_validation import Interval, StrOptions

from evotree.dataset import SCALINGS, Dataset
from evotree.estimators.base import TreeClassifier, TreeEstimator, TreeRegressor, preset
from evotree.estimators.presets import GREEDY_PRESETS
from evotree.fitness.criteria import CLASSIFICATION, REGRESSION
from evotree.individual import Individual
from evotree.operators.initialization.growth import grow
from evotree.operators.initialization.induction import PRUNINGS, induce, leaf_medians
from evotree.operators.pruning.held_out import cost_complexity_path
from evotree.operators.pruning.penalized import node_risk
from evotree.operators.splitters.base import Splitter
from evotree.operators.splitters.registry import SPLITTERS, as_splitter
from evotree.rng import make_streams, seed_from


class GreedyTree(TreeEstimator):
    """An estimator whose tree is grown top-down by a splitter, and pruned."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "splitter": [StrOptions(set(SPLITTERS)), callable],
        "max_depth": [Interval(Integral, 0, None, closed="left"), None],
        "min_samples_split": [Interval(Integral, 2, None, closed="left")],
        "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
        "min_weight_fraction_leaf": [Interval(Real, 0.0, 0.5, closed="both")],
        "min_impurity_decrease": [Interval(Real, 0.0, None, closed="left")],
        "ccp_alpha": [Interval(Real, 0.0, None, closed="left")],
        "pruning": [StrOptions(set(PRUNINGS)), None],
        "validation_fraction": [Interval(Real, 0.0, 1.0, closed="neither")],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "standard_errors": [Interval(Real, 0.0, None, closed="left")],
        "scaling": [StrOptions(set(SCALINGS))],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        splitter: str | Splitter = "oc1",
        *,
        criterion: str,
        max_depth: int | None = None,
        min_samples_split: int = 2,
        min_samples_leaf: int = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        pruning: str | None = None,
        validation_fraction: float = 0.1,
        n_folds: int = 10,
        standard_errors: float = 0.0,
        scaling: str = "standard",
        random_state: Any = None,
    ) -> None:
        self.splitter = splitter
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.min_impurity_decrease = min_impurity_decrease
        self.ccp_alpha = ccp_alpha
        self.pruning = pruning
        self.validation_fraction = validation_fraction
        self.n_folds = n_folds
        self.standard_errors = standard_errors
        self.scaling = scaling
        self.random_state = random_state

    @classmethod
    def from_preset(cls, name: str, **parameters: Any) -> Self:
        """Make an estimator with the setting of a published algorithm.

        Parameters
        ----------
        name : str
            A key of `evotree.estimators.GREEDY_PRESETS`, such as ``"OC1"`` or ``"WODT"``.
        **parameters
            Parameters that differ from the preset.

        Returns
        -------
        estimator
            Not fitted.

        Raises
        ------
        ValueError
            If there is no such preset.
        """
        return cls(**{**preset(GREEDY_PRESETS, name), **parameters})

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Grow a tree, and prune it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows, finite. Missing values are imputed before, for example by the mean as in
            OC1: ``make_pipeline(SimpleImputer(), ObliqueTreeClassifier())``.
        y : array-like of shape (n_samples,)
            Class labels, or targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows; a row of weight 2 counts as two rows.

        Returns
        -------
        estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are not as described; the message names what is wrong.
        """
        self._validate_params()
        dataset = self._make_dataset(X, y, sample_weight, self.scaling)
        stream = make_streams(seed_from(self.random_state), 0, 1)[0]
        individual = induce(
            dataset,
            partial(self._grow, stream=stream),
            pruning=self.pruning,
            ccp_alpha=self.ccp_alpha / dataset.target_scale**2,
            risk=self._risk(),
            validation_fraction=self.validation_fraction,
            n_folds=self.n_folds,
            standard_errors=self.standard_errors,
            stream=stream,
        )
        tree = individual.to_tree()
        if self.criterion == "absolute_error":
            tree.values = leaf_medians(individual, dataset)
        self.tree_ = dataset.to_raw(tree)
        return self

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Bunch:
        """Return the sequence of minimal cost-complexity pruning of the tree grown on some rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Class labels, or targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        Bunch
            ``ccp_alphas`` and ``impurities``, as scikit-learn's trees return them.
        """
        self._validate_params()
        dataset = clone(self)._make_dataset(X, y, sample_weight, self.scaling)
        grown = self._grow(dataset, make_streams(seed_from(self.random_state), 0, 1)[0])
        risk = node_risk(grown.counts, dataset.n_classes, self._risk())
        alphas, impurities = cost_complexity_path(risk, grown.subtree_size)
        unit = dataset.target_scale**2
        return Bunch(ccp_alphas=alphas * unit, impurities=impurities * unit)

    def _grow(self, dataset: Dataset, stream: np.ndarray) -> Individual:
        power = 1 if self.criterion == "absolute_error" else 2
        return grow(
            dataset,
            as_splitter(self.splitter),
            self.criterion,
            max_depth=self.max_depth,
            min_samples_split=self.min_samples_split,
            min_samples_leaf=self.min_samples_leaf,
            min_weight_fraction_leaf=self.min_weight_fraction_leaf,
            min_impurity_decrease=self.min_impurity_decrease / dataset.target_scale**power,
            stream=stream,
        )

    def _risk(self) -> str | None:
        """Return the criterion that `ccp_alpha` is weighed against, or None for squared error."""
        return None if self.criterion == "absolute_error" else self.criterion


class ObliqueTreeClassifier(TreeClassifier, GreedyTree):
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
    max_depth : int, at least 0, or None, default=None
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
        `ccp_alpha` for each leaf is kept, as in scikit-learn. Not with `pruning`.
    pruning : {"cost_complexity", "cross_validation", "reduced_error"} or None, default=None
        ``"cost_complexity"`` chooses from the nested sequence of Breiman et al. by a held-out
        part of the rows, ``"cross_validation"`` by cross-validation; ``"reduced_error"`` cuts
        what does not help on a held-out part. The leaves of the pruned tree predict by all rows.
    validation_fraction : float in (0, 1), default=0.1
        Share of the rows that is held out.
    n_folds : int, at least 2, default=10
        Number of folds of the cross-validation.
    standard_errors : float, at least 0, default=0.0
        The k of the k-SE rule: the smallest tree within so many of the least error is chosen.
    scaling : {"standard", "common", "minmax"}, default="standard"
        Units in which splitters see the features; a fitted tree is over raw features.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as scikit-learn means them; ``"balanced"`` counts rows by weight.
    random_state : int, RandomState, Generator or None, default=None
        Source of all random draws.

    Attributes
    ----------
    tree_ : ObliqueTree
        The tree, over features in their own units; its values are class shares.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where `X` had names.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GreedyTree._parameter_constraints,
        "criterion": [StrOptions(set(CLASSIFICATION))],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        splitter: str | Splitter = "oc1",
        *,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: int = 2,
        min_samples_leaf: int = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        pruning: str | None = None,
        validation_fraction: float = 0.1,
        n_folds: int = 10,
        standard_errors: float = 0.0,
        scaling: str = "standard",
        class_weight: Mapping[Any, float] | str | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            splitter,
            criterion=criterion,
            max_depth=max_depth,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            min_weight_fraction_leaf=min_weight_fraction_leaf,
            min_impurity_decrease=min_impurity_decrease,
            ccp_alpha=ccp_alpha,
            pruning=pruning,
            validation_fraction=validation_fraction,
            n_folds=n_folds,
            standard_errors=standard_errors,
            scaling=scaling,
            random_state=random_state,
        )
        self.class_weight = class_weight


class ObliqueTreeRegressor(TreeRegressor, GreedyTree):
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
    max_depth : int, at least 0, or None, default=None
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
        `ccp_alpha` for each leaf is kept, as in scikit-learn. Not with `pruning`.
    pruning : {"cost_complexity", "cross_validation", "reduced_error"} or None, default=None
        ``"cost_complexity"`` chooses from the nested sequence of Breiman et al. by a held-out
        part of the rows, ``"cross_validation"`` by cross-validation; ``"reduced_error"`` cuts
        what does not help on a held-out part. The leaves of the pruned tree predict by all rows.
    validation_fraction : float in (0, 1), default=0.1
        Share of the rows that is held out.
    n_folds : int, at least 2, default=10
        Number of folds of the cross-validation.
    standard_errors : float, at least 0, default=0.0
        The k of the k-SE rule: the smallest tree within so many of the least error is chosen.
    scaling : {"standard", "common", "minmax"}, default="standard"
        Units in which splitters see the features; a fitted tree is over raw features.
    random_state : int, RandomState, Generator or None, default=None
        Source of all random draws.

    Attributes
    ----------
    tree_ : ObliqueTree
        The tree, over features in their own units; its values are means, or medians.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where `X` had names.

    Examples
    --------
    >>> from evotree import ObliqueTreeRegressor
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> ObliqueTreeRegressor("axis", max_depth=2).fit(X, y).get_n_leaves()
    4
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GreedyTree._parameter_constraints,
        "criterion": [StrOptions(set(REGRESSION))],
    }

    def __init__(
        self,
        splitter: str | Splitter = "oc1",
        *,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: int = 2,
        min_samples_leaf: int = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        pruning: str | None = None,
        validation_fraction: float = 0.1,
        n_folds: int = 10,
        standard_errors: float = 0.0,
        scaling: str = "standard",
        random_state: Any = None,
    ) -> None:
        super().__init__(
            splitter,
            criterion=criterion,
            max_depth=max_depth,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            min_weight_fraction_leaf=min_weight_fraction_leaf,
            min_impurity_decrease=min_impurity_decrease,
            ccp_alpha=ccp_alpha,
            pruning=pruning,
            validation_fraction=validation_fraction,
            n_folds=n_folds,
            standard_errors=standard_errors,
            scaling=scaling,
            random_state=random_state,
        )
