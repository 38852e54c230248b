"""What all estimators share: the checks of their input, and predictions of one tree."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_X_y, compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from evotree.configuration import (
    LinearLeaves,
    StrOptions,
    check_parameters,
    check_sample_weight,
    group_with,
    split_params,
)
from evotree.dataset import Dataset, as_numbers, check_weight, class_codes
from evotree.description.html import notebook_html
from evotree.estimators.explained import ExplainedTree
from evotree.estimators.intervals import conformal_width, leaf_deviations
from evotree.estimators.lazy import lazy_on_collections
from evotree.estimators.probabilities import fit_soft_sides
from evotree.estimators.rows import RowEncoder
from evotree.fitness.linear_leaves import term_penalty_of_rows
from evotree.fitness.objectives import Objective, compose
from evotree.operators.constraints import with_split_features
from evotree.tree import ObliqueTree, SoftSides, class_probabilities

PROBABILITIES = ("soft", "leaf")
"""What `predict_proba` of a classifier may be of: soft sides, or the shares of leaves."""

CLASS_WEIGHT = (dict, StrOptions({"balanced"}), None)
"""Constraints of weights of classes."""

SHARED = {
    "READS": """columns_ : tuple of NumericColumn or CategoricalColumn
        How the columns of `X` become features (`evotree.tables.columns`).
    feature_names_ : tuple of str
        Names of the features that trees read, such as ``size is missing``, ``colour is red``.
    n_features_in_ : int
        Number of columns seen during `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, where `X` had names.""",
    "CLASSES": """class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as scikit-learn means them; ``"balanced"`` counts rows by weight.
    probability : {"leaf", "soft"}, default="leaf"
        What `predict_proba` is of: the class shares of the leaf, as the published algorithms have
        it, or also the distances to the hyperplanes, as for `EvoTreeClassifier`.""",
    "SHARES": """classes_ : ndarray of shape (n_classes,)
        Class labels.
    probabilities_ : SoftSides or None
        Slopes, intercepts and class shares, with ``probability="soft"``.""",
    "MEANS": """n_outputs_ : int
        Number of targets of a row.
    residual_std_ : ndarray of shape (n_nodes,), or (n_nodes, n_outputs)
        Standard deviations of the residuals of the leaves' training rows
        (`evotree.estimators.intervals`); 0 at splits.""",
}
"""What the docstrings of several estimators say, by the word for it (`documented`)."""
SHARED["ONE_TREE"] = f"""{SHARED["READS"]}
    feature_importances_ : ndarray of shape (`n_features_in_`,)
        Shares that the columns have in lowering the impurity.
    training_rows_ : TrainingRows
        Means and ranges of the training rows, which `explain` and `counterfactuals` take."""


class TreeEstimator(ExplainedTree):
    """An estimator whose model is one oblique tree, ``tree_``, over encoded rows in raw units."""

    tree_: ObliqueTree

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether there is a tree."""
        return hasattr(self, "tree_")

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of groups and splitters, as ``splitter__n_restarts=5``."""
        own, of_groups = split_params(params)
        super().set_params(**own)
        for name, values in of_groups.items():
            setattr(self, name, group_with(self, name, values))
        return self

    @lazy_on_collections(lambda _: np.empty(0, dtype=np.int32))
    def apply(self, X: Any) -> np.ndarray:
        """Return the leaf that each row reaches, as positions in the arrays of `tree_`, int32."""
        rows = self.encode(X)
        return self.tree_.apply(rows)

    def decision_path(self, X: Any) -> csr_matrix:
        """Return the nodes that each row passes, from the root to its leaf.

        A ``csr_matrix`` of shape (n_samples, n_nodes), 1 where a row passes a node; nodes are
        positions in the arrays of `tree_`.
        """
        rows = self.encode(X)
        return self.tree_.decision_path(rows)

    def _repr_html_inner(self) -> str:
        """Return what a notebook shows that knows no bundles: scikit-learn's diagram, the tree."""
        return self._with_tree(super()._repr_html_inner())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Return what a notebook shows, as text and as HTML."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._with_tree(bundle["text/html"])
        return bundle

    def _with_tree(self, diagram: str) -> str:
        """Put the tree, if there is one, below a diagram."""
        return (
            diagram + notebook_html(self) if self.__sklearn_is_fitted__() else diagram
        )

    def _keep_tree(self, tree: ObliqueTree, dataset: Dataset) -> None:
        """Set the fitted attributes of a tree in the units of its training rows."""
        raw = dataset.to_raw(tree)
        if dataset.bound_objective is not None:
            raw = dataset.bound_objective.finish(raw, dataset)
        self._keep_raw_tree(raw, dataset)

    def _keep_raw_tree(self, tree: ObliqueTree, dataset: Dataset) -> None:
        """Set the fitted attributes of a tree in raw units."""
        self.__dict__.update(self._known_of(tree, dataset), tree_=tree)

    def get_depth(self) -> int:
        """Return the depth of the tree."""
        check_is_fitted(self)
        return self.tree_.depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves of the tree."""
        check_is_fitted(self)
        return self.tree_.n_leaves


class LocalTree(TreeEstimator):
    """An estimator whose tree is found node by node."""

    scaling: str

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
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
            Weights of the rows; a row of weight 2 counts as two rows.
        """
        check_parameters(self)
        with self._unchanged_on_failure():
            dataset = self._make_dataset(X, y, sample_weight, self.scaling)
            dataset = dataset.evolved_for(self._objective(dataset))
            self._fit(dataset)
        return self

    def _fit(self, dataset: Dataset) -> None:
        """Find a tree, and keep it."""
        raise NotImplementedError


class ClassReader(RowEncoder):
    """An estimator that reads rows with classes."""

    class_weight: Any
    classes_: np.ndarray

    def _make_dataset(
        self, X: Any, y: Any, sample_weight: Any, scaling: str, extras: Any = None
    ) -> Dataset:
        table, y = self._read_training_rows(X, y)
        try:
            check_classification_targets(y)
        except ValueError:
            class_codes(y)  # if it holds labels of several types, that is what to say
            raise
        weight = weight_of_rows(sample_weight, table)
        if self.class_weight is not None:
            with np.errstate(over="ignore"):
                weight = weight * class_weight_of_rows(self.class_weight, y, weight)
            weight = check_weight(
                weight,
                len(weight),
                f"class_weight={self.class_weight!r}: the product with sample_weight",
            )
        dataset = self._encoded(table, y, weight, scaling, "classification", extras)
        self.classes_ = dataset.classes
        return dataset

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of `predict_proba`.

        Minus infinity where a probability is 0, as where a leaf has none of a class.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


class TreeClassifier(ClassifierMixin, ClassReader, TreeEstimator):
    """A classifier whose model is one oblique tree."""

    probability: str
    probabilities_: SoftSides | None = None

    def _known_of(
        self, tree: ObliqueTree, dataset: Dataset, **how: Any
    ) -> dict[str, Any]:
        """Return the fitted attributes that go with a tree: also soft sides, if asked for."""
        is_soft = self.probability == "soft" and tree.models is None
        sides = fit_soft_sides(tree, dataset, **how) if is_soft else None
        return {**super()._known_of(tree, dataset), "probabilities_": sides}

    @lazy_on_collections(lambda self: self.classes_[:0])
    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row, that of the leaf that it reaches.

        It is the most frequent one there, with soft probabilities too.
        """
        rows = self.encode(X)  # which says first that there is no fit
        return self.classes_[self.tree_.predict_label(rows)]

    @lazy_on_collections(lambda self: np.empty((0, len(self.classes_))))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the classes, in the order of `classes_`, a column for each.

        With ``probability="soft"`` they depend on the distances of a row to the hyperplanes, as
        `evotree.tree.SoftSides` says, with ``"leaf"`` they are the class shares of the leaf
        that it reaches. The class that `predict` returns has the largest one.
        """
        return self._predict_encoded(self.encode(X))

    def _predict_encoded(self, rows: np.ndarray) -> np.ndarray:
        """Return the probabilities of encoded rows."""
        return class_probabilities(self.tree_, self.probabilities_, rows)


class TargetReader(RowEncoder):
    """An estimator that reads rows with targets."""

    leaves: str | LinearLeaves
    n_outputs_: int
    _output_scale: np.ndarray | None

    def _make_dataset(
        self, X: Any, y: Any, sample_weight: Any, scaling: str, extras: Any = None
    ) -> Dataset:
        header = getattr(y, "columns", None)
        several = is_of_several_outputs(y)
        try:
            table, y = self._read_training_rows(
                X, y, y_numeric=True, multi_output=several
            )
        except ValueError as error:
            if "could not convert" in str(error):
                as_numbers("y", y)  # names what holds the text
            raise
        weight = weight_of_rows(sample_weight, table)
        names = tuple(map(str, header)) if several and header is not None else None
        dataset = self._encoded(
            table, y, weight, scaling, "regression", extras, names=names
        )
        self._know_outputs(dataset)
        if isinstance(self.leaves, LinearLeaves):
            return with_split_features(dataset, self.leaves.split_features)
        return dataset

    def _know_outputs(self, dataset: Dataset) -> None:
        """Set how many outputs there are, and their units."""
        self.n_outputs_ = dataset.n_outputs
        self._output_scale = np.atleast_1d(dataset.target_scale)

    def _objective(self, dataset: Dataset) -> Objective | None:
        """Return what leaves are fitted for: lines, where they are asked for."""
        objective = compose("squared_error", dataset, leaves=self.leaves)
        price = term_penalty_of_rows(dataset.total_weight)
        return None if objective is None else objective.penalized(price)


class TreeRegressor(RegressorMixin, TargetReader, TreeEstimator):
    """A regressor whose model is one oblique tree with a mean or a line in each leaf.

    Of several outputs each has its own.
    """

    residual_std_: np.ndarray
    _scores: np.ndarray | None

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: there may be several outputs, but for absolute errors."""
        tags = super().__sklearn_tags__()
        criterion = getattr(self, "criterion", "squared_error")
        tags.target_tags.multi_output = criterion == "squared_error"
        return tags

    def _known_of(
        self, tree: ObliqueTree, dataset: Dataset, **how: Any
    ) -> dict[str, Any]:
        """Return the fitted attributes that go with a tree, which is not calibrated yet."""
        deviations = {"residual_std_": leaf_deviations(tree, dataset), "_scores": None}
        return super()._known_of(tree, dataset) | deviations

    @lazy_on_collections(lambda _: np.empty(0))
    def predict(
        self, X: Any, *, return_std: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Return what the leaf that each row reaches predicts, its mean target or its line.

        With `return_std` standard deviations of the targets about them come second: `residual_std_`
        of the leaves. Of several outputs each has a column.
        """
        rows = self.encode(X)
        predictions = self._predict_targets(rows)
        if not return_std:
            return predictions
        return predictions, self.residual_std_[self.tree_.apply(rows)]

    def _predict_targets(self, rows: np.ndarray) -> np.ndarray:
        """Return predictions of encoded rows, one column for each of several outputs."""
        predictions = self.tree_.predict_value(rows)
        return predictions if predictions.shape[1] > 1 else predictions[:, 0]

    def _check_targets(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return encoded rows and their targets, as many as the tree predicts."""
        several = is_of_several_outputs(y)
        rows, y = check_X_y(
            self.encode(X),
            y,
            dtype=np.float64,
            multi_output=several,
            y_numeric=True,
            estimator=self,
        )
        n_outputs, allowed = y.shape[1] if several else 1, self.tree_.values.shape[1]
        if n_outputs != allowed:
            raise ValueError(
                f"y has {n_outputs} outputs: allowed are {allowed}, as in fit."
            )
        return rows, y

    def calibrate(self, X: Any, y: Any) -> Self:
        """Learn from held-out rows, which `fit` has not seen, how wide intervals have to be.

        `fit`, and another tree, end what is learned.
        """
        rows, y = self._check_targets(X, y)
        residuals = np.abs(y - self._predict_targets(rows))
        self._scores = np.sort(residuals / self._units[self.tree_.apply(rows)], axis=0)
        return self

    def predict_interval(
        self, X: Any, coverage: float = 0.9
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return lower and upper ends of intervals that hold the targets with a probability.

        Split conformal prediction (`evotree.estimators.intervals`): an interval reaches from the
        prediction by a multiple of the standard deviation of its leaf to both sides. The multiple
        is the ``ceil((n + 1) * coverage)``-th smallest of the n held-out rows, which allow a
        `coverage` of ``n / (n + 1)`` at most. Where these and a new row are exchangeable, such as
        drawn independently from one distribution, the interval holds the new target with a
        probability of at least `coverage`, and of at most ``coverage + 1 / (n + 1)`` if no two of
        them are alike, however good the tree is. That is on average over rows of all leaves, not
        for each leaf by itself. Of several outputs each has intervals of its own; that all of them
        hold at once is less probable.
        """
        check_is_fitted(self)
        if self._scores is None:
            raise NotFittedError(
                "predict_interval: this estimator is not calibrated; call calibrate(X, y) with "
                "held-out rows first."
            )
        width = conformal_width(self._scores, coverage)
        rows = self.encode(X)
        middle = self._predict_targets(rows)
        reached = (width * self._units)[self.tree_.apply(rows)]
        return middle - reached, middle + reached

    @property
    def _units(self) -> np.ndarray:
        """Units of the residuals by leaf: their deviations, or 1 where nothing deviates."""
        return np.where(self.residual_std_ > 0.0, self.residual_std_, 1.0)


def is_of_several_outputs(y: Any) -> bool:
    """Return whether targets have several columns."""
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    return len(shape) == 2 and shape[1] > 1


def weight_of_rows(sample_weight: Any, table: Any) -> np.ndarray:
    """Return the weights of the rows of a table, within the bounds of data sets."""
    weight = check_sample_weight(
        sample_weight, table, dtype=np.float64, ensure_non_negative=True
    )
    return check_weight(weight, len(table))


def class_weight_of_rows(
    class_weight: Any, y: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Return the weight of each row's class."""
    if isinstance(class_weight, str):
        codes = np.unique(y, return_inverse=True)[1]
        totals = np.bincount(codes, weights=weight)
        n_present = np.count_nonzero(totals)
        factors = weight.sum() / (n_present * np.where(totals > 0.0, totals, 1.0))
        return factors[codes]
    factors = compute_sample_weight(class_weight, y)
    if not np.isfinite(factors).all() or factors.min() < 0.0:
        raise ValueError(
            f"class_weight={class_weight!r}: allowed are finite weights, at least 0."
        )
    return factors


def preset(presets: Mapping[str, Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    """Return the parameters of a preset."""
    if name not in presets:
        raise ValueError(f"name={name!r}: allowed presets are {sorted(presets)}.")
    return presets[name]
