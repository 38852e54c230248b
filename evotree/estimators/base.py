"""What all estimators share: checks of their input, predictions and explanations of one tree.

How far targets lie from predictions is said by standard deviations of leaves, and by conformal
intervals. A leaf with few rows says little about its deviation, so it borrows from all others.
Intervals are those of split conformal prediction (Lei et al. 2018) with the deviations of the
leaves as units of the residuals (their section 5.2): they differ by leaf, and cover as often as
they claim.

References
----------
Lei J., G'Sell M., Rinaldo A., Tibshirani R. J., Wasserman L. (2018). Distribution-free predictive
inference for regression. Journal of the American Statistical Association 113, 1094-1111.
Lee Y., Barber R. F., Willett R. (2023). Distribution-free inference with hierarchical data. arXiv
2306.06342.
Smyth G. K. (2004). Linear models and empirical Bayes methods for assessing differential expression
in microarray experiments. Statistical Applications in Genetics and Molecular Biology 3.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Self, cast

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_X_y
from sklearn.utils.validation import check_is_fitted

from evotree.configuration import with_groups
from evotree.dataset import (
    EXPOSURE,
    GROUPS,
    Dataset,
)
from evotree.estimators.rows import (
    Beside,
    ClassReader,
    NumberReader,
    RowEncoder,
    is_of_several_outputs,
)
from evotree.fitness.probabilities import fit_soft_sides
from evotree.fitted import FitArguments, Fitted, TrainingRows, summarize
from evotree.importances import importances
from evotree.leaf_models import class_probabilities
from evotree.paths import Explanation, explain
from evotree.texts import notebook_html
from evotree.tree import ObliqueTree, SoftSides

# Degrees of freedom that each leaf takes from all others.
_BORROWED_DEGREES = 5.0

PROBABILITIES = ("soft", "leaf")
"""What `predict_proba` of a classifier may be of: soft sides, or the shares of leaves."""

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
        (`leaf_deviations`); 0 at splits.""",
}
"""What the docstrings of several estimators say, by the word for it (`documented`)."""
SHARED["ONE_TREE"] = f"""{SHARED["READS"]}
    feature_importances_ : ndarray of shape (`n_features_in_`,)
        Shares that the columns have in lowering the impurity.
    training_rows_ : TrainingRows
        Means and ranges of the training rows, for `explain` and counterfactuals."""


class TreeEstimator(RowEncoder):
    """An estimator whose model is one oblique tree, ``tree_``, over encoded rows in raw units."""

    @property
    def tree_(self) -> ObliqueTree:
        """The tree, over features in their own units."""
        check_is_fitted(self)
        return self.fitted_.tree

    @property
    def training_rows_(self) -> TrainingRows | None:
        """Means and ranges of the training rows."""
        return self.fitted_.training

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of groups and splitters, as ``splitter__n_restarts=5``."""
        return super().set_params(**with_groups(self, params))

    def apply(self, X: Any) -> np.ndarray:
        """Return the leaf that each row reaches, as positions in the arrays of `tree_`, int32."""
        return self.tree_.apply(self._features(X))

    def decision_path(self, X: Any) -> csr_matrix:
        """Return the nodes that each row passes, from the root to its leaf.

        A ``csr_matrix`` of shape (n_samples, n_nodes), 1 where a row passes a node; nodes are
        positions in the arrays of `tree_`.
        """
        return self.tree_.decision_path(self._features(X))

    def _check_targets(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return encoded rows, and their labels or targets, as many as the tree predicts."""
        y = self._read_y(X, y)
        several = is_of_several_outputs(y)
        rows, y = check_X_y(
            self._features(X),
            y,
            dtype=np.float64,
            multi_output=several,
            estimator=self,
        )
        n_outputs, allowed = y.shape[1] if several else 1, self.tree_.values.shape[1]
        if self.fitted_.classes is None and n_outputs != allowed:
            raise ValueError(
                f"y has {n_outputs} outputs: allowed are {allowed}, as in fit."
            )
        return rows, y

    def _html_repr(self) -> str:
        """Return what a notebook shows: scikit-learn's diagram, and the tree, if there is one."""
        diagram: str = super()._html_repr()
        return diagram + notebook_html(self) if hasattr(self, "fitted_") else diagram

    def _keep_tree(self, tree: ObliqueTree, dataset: Dataset) -> None:
        """Set what is known of a tree in the units of its training rows."""
        raw = dataset.to_raw(tree)
        if dataset.bound_objective is not None:
            raw = dataset.bound_objective.finish(raw, dataset)
        self.fitted_ = self._fitted_of(raw, dataset)

    def get_depth(self) -> int:
        """Return the depth of the tree."""
        return self.tree_.depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves of the tree."""
        return self.tree_.n_leaves

    # ---- explanations ----------------------------------------------------------------------------

    def _fitted_of(
        self,
        tree: ObliqueTree,
        dataset: Dataset,
        *,
        brief: bool = False,
        end: float = math.inf,
    ) -> Fitted:
        """Return what training rows say of a tree over raw features; soft sides may be brief."""
        return Fitted(
            tree,
            dataset.schema,
            classes=dataset.classes if dataset.n_classes else None,
            training=summarize(tree, dataset.raw, dataset.sample_weight),
            output_scale=None
            if dataset.n_classes
            else np.atleast_1d(dataset.target_scale),
            arguments=FitArguments(
                has_weights=dataset.has_weights,
                has_exposures=EXPOSURE in dataset.extras,
                has_groups=GROUPS in dataset.extras,
            ),
        )

    @property
    def feature_importances_(self) -> np.ndarray:
        """Shares that the columns have in lowering the impurity, those of `importances`."""
        return self.importances()

    def importances(self, *, named: bool = False) -> Any:
        """Return the share that each column has in what the tree does, at least 0, with a sum of 1.

        What each split lowers the impurity of its rows by is distributed over its terms, by their
        influence, the absolute weight times the spread of the feature. A term of a leaf's linear
        model has the squared error that it explains. The levels of a category count together, and a
        number with the question whether it is missing.

        Parameters
        ----------
        named : bool, default=False
            Whether a Series by the names of the columns is returned, instead of an array in their
            order.
        """
        check_is_fitted(self)
        schema = self.fitted_.schema
        shares = np.bincount(
            schema.column_of,
            importances(self.tree_, self.fitted_.output_scale),
            len(schema),
        )
        return (
            pd.Series(shares, list(schema.names), name="importance")
            if named
            else shares
        )

    def explain(self, X: Any, output: int | str | None = None) -> Explanation:
        """Explain how rows reach their leaves.

        Returns ``terms``, a table of what each term adds to each decision on the path of each row,
        and to what the linear model of its leaf says, and ``rows``, which says how near each row is
        another decision, and which of its values no training row came near
        (`evotree.paths.Explanation`). `output` says, by position or name, which of
        several outputs is explained; None is for a tree of one.
        """
        rows = self._features(X)  # first: it says so where there is no model
        return explain(self.fitted_.of_output(output), rows)


class TreeClassifier(ClassReader, TreeEstimator):
    """A classifier whose model is one oblique tree."""

    probability: str

    @property
    def probabilities_(self) -> SoftSides | None:
        """Soft sides of the tree; None where probabilities are the shares of leaves."""
        return self.fitted_.sides

    def _fitted_of(
        self,
        tree: ObliqueTree,
        dataset: Dataset,
        *,
        brief: bool = False,
        end: float = math.inf,
    ) -> Fitted:
        """Return what training rows say of a tree: also soft sides, if asked for."""
        fitted = super()._fitted_of(tree, dataset)
        if self.probability != "soft" or tree.models is not None:
            return fitted
        sides = getattr(tree, "sides", None)
        return replace(
            fitted,
            sides=sides or fit_soft_sides(tree, dataset, brief=brief, end=end),
        )

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row, that of the leaf that it reaches.

        It is the most frequent one there, with soft probabilities too, or the one that is best for
        the objective, as `predict_proba` says.
        """
        rows = self._features(X)  # which says first that there is no fit
        return self.classes_[self.tree_.predict_label(rows)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the classes, in the order of `classes_`, a column for each.

        With ``probability="soft"`` they depend on the distances of a row to the hyperplanes, as
        `evotree.tree.SoftSides` says, with ``"leaf"`` they are the class shares of the leaf
        that it reaches. The most frequent class of that leaf has the largest one. `predict` returns
        this class, unless trees are evolved for ``"balanced_accuracy"``, ``"f1"``, ``"f1_macro"``,
        ``"mcc"`` or ``"cost"``: these choose the labels of leaves, while probabilities stay
        estimates. The class that is cheapest to predict need not be the most probable one.
        """
        return class_probabilities(self.tree_, self.probabilities_, self._features(X))


class Calibration(NamedTuple):
    """How far held-out targets lay from what a tree predicted, in units of its leaves."""

    fitted: Fitted
    scores: np.ndarray  # (n_rows,) or (n_rows, n_outputs), sorted
    mass: (
        np.ndarray | None
    )  # how many groups have come with each; None where rows count


class TreeRegressor(NumberReader, TreeEstimator):
    """A regressor whose model is one oblique tree with a mean or a line in each leaf.

    Of several outputs each has its own.
    """

    _calibration: "Calibration | None" = None

    @property
    def residual_std_(self) -> np.ndarray:
        """Standard deviations of the residuals of the leaves' training rows."""
        return cast(np.ndarray, self.fitted_.deviations)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: there may be several outputs."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _fitted_of(
        self,
        tree: ObliqueTree,
        dataset: Dataset,
        *,
        brief: bool = False,
        end: float = math.inf,
    ) -> Fitted:
        """Return what training rows say of a tree: also the deviations of its leaves."""
        fitted = super()._fitted_of(tree, dataset)
        return replace(fitted, deviations=leaf_deviations(tree, dataset))

    def predict(
        self, X: Any, *, return_std: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Return what the leaf that each row reaches predicts, its mean target or its line.

        With `return_std` standard deviations of the targets about them come second: `residual_std_`
        of the leaves. Of several outputs each has a column.
        """
        rows = self._features(X)
        predictions = self._predict_targets(rows)
        if not return_std:
            return predictions
        return predictions, self.residual_std_[self.tree_.apply(rows)]

    def _predict_targets(self, rows: np.ndarray) -> np.ndarray:
        """Return predictions of encoded rows, one column for each of several outputs."""
        predictions = self.tree_.predict_value(rows)
        return predictions if predictions.shape[1] > 1 else predictions[:, 0]

    def calibrate(
        self, X: Any, y: Any, *, groups: Any = None, exposure: Any = None
    ) -> Self:
        """Learn from held-out rows, which `fit` has not seen, how wide intervals have to be.

        `fit`, and another tree, end what is learned. Rows may belong together, as the labels
        `groups` say: intervals are then for rows of further groups, and each group counts once,
        however many rows it has (Lee, Barber and Willett 2023). Where the model was fitted with
        exposures, `exposure` has those of these rows, and intervals are for rates.
        """
        check_is_fitted(self)
        self.fitted_.check_beside("calibrate", exposure, groups=groups)
        beside = Beside(groups=groups, exposure=exposure).in_order(X, y)
        rows, y = self._check_targets(X, y)
        extras, _ = beside.columns(len(rows))
        if exposure is not None:
            y = y / extras[EXPOSURE]
        residuals = np.abs(y - self._predict_targets(rows))
        scores = residuals / self._units[self.tree_.apply(rows)]
        mass = None
        if groups is not None:
            share = 1.0 / np.bincount(extras[GROUPS])[extras[GROUPS]]
            mass = np.cumsum(share[np.argsort(scores, axis=0)], axis=0)
        self._calibration = Calibration(self.fitted_, np.sort(scores, axis=0), mass)
        return self

    @property
    def _is_calibrated(self) -> bool:
        """Whether intervals were learned for the present tree."""
        return getattr(self._calibration, "fitted", None) is self.fitted_

    def predict_interval(
        self, X: Any, coverage: float = 0.9
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return lower and upper ends of intervals that hold the targets with a probability.

        Split conformal prediction (`evotree.estimators.base`): an interval reaches from the
        prediction by a multiple of the standard deviation of its leaf to both sides. The multiple
        is the ``ceil((n + 1) * coverage)``-th smallest of the n held-out rows, which allow a
        `coverage` of ``n / (n + 1)`` at most. Where these and a new row are exchangeable, such as
        drawn independently from one distribution, the interval holds the new target with a
        probability of at least `coverage`, and of at most ``coverage + 1 / (n + 1)`` if no two of
        them are alike, however good the tree is. That is on average over rows of all leaves, not
        for each leaf by itself. Of several outputs each has intervals of its own; that all of them
        hold at once is less probable. Calibrated by groups, the n of the bounds are groups.
        """
        check_is_fitted(self)
        if not self._is_calibrated:
            raise NotFittedError(
                "predict_interval: this estimator is not calibrated; call calibrate(X, y) with "
                "held-out rows first."
            )
        _, scores, mass = cast(Calibration, self._calibration)
        width = conformal_width(scores, coverage, mass)
        rows = self._features(X)
        middle = self._predict_targets(rows)
        reached = (width * self._units)[self.tree_.apply(rows)]
        return middle - reached, middle + reached

    @property
    def _units(self) -> np.ndarray:
        """Units of the residuals by leaf: their deviations, or 1 where nothing deviates."""
        return np.where(self.residual_std_ > 0.0, self.residual_std_, 1.0)


def preset(presets: Mapping[str, Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    """Return the parameters of a preset."""
    if name not in presets:
        raise ValueError(f"name={name!r}: allowed presets are {sorted(presets)}.")
    return presets[name]


def leaf_deviations(tree: ObliqueTree, dataset: Dataset) -> np.ndarray:
    """Return the standard deviation of the residuals of the training rows in each leaf.

    A leaf whose rows have the residuals r and the weights w, in units of the mean weight of all
    rows, has ``d = max(0, sum(w) - p)`` degrees of freedom, where p is the number of its
    coefficients, the intercept or mean included. Its variance is

        (sum(w r**2) + 5 s**2) / (d + 5),

    the moderated variance of Smyth (2004), where s**2 is that of all leaves together: the sum of
    their squared residuals over n rows less all coefficients, at least 1.
    """
    if dataset.outputs is not None:
        return np.column_stack(
            [
                leaf_deviations(tree.of_output(j), dataset.of_output(j))
                for j in range(dataset.n_outputs)
            ]
        )
    leaves, weight = tree.apply(dataset.raw), dataset.sample_weight
    residuals = dataset.raw_targets - tree.predict_value(dataset.raw)[:, 0]
    rows = np.bincount(leaves, weight, len(tree))
    errors = np.bincount(leaves, weight * residuals**2, len(tree))
    n_terms = tree.is_leaf.astype(np.float64)
    if tree.models is not None:
        n_terms += (tree.models.coefficients != 0.0).sum(axis=1)
    freedom = np.maximum(0.0, rows - n_terms)
    pooled = errors.sum() / max(1.0, dataset.total_weight - n_terms.sum())
    variances = (errors + _BORROWED_DEGREES * pooled) / (freedom + _BORROWED_DEGREES)
    return np.where(tree.is_leaf, np.sqrt(variances), 0.0)


def conformal_width(
    scores: np.ndarray, coverage: float, mass: np.ndarray | None = None
) -> Any:
    """Return the score that a further row keeps below with a probability of `coverage` or more.

    The scores are sorted. Where they are of groups, `mass` is how many groups have come with each,
    a row of a group of n rows being 1 / n of it.
    """
    if not 0.0 < coverage < 1.0:
        raise ValueError(f"coverage={coverage!r}: allowed are numbers between 0 and 1.")
    what = "rows" if mass is None else "groups"
    if mass is None:
        mass = np.arange(1.0, len(scores) + 1.0).reshape(-1, *[1] * (scores.ndim - 1))
    n = round(float(mass[-1].max()))
    # 10 * 0.9 is 9, whatever it rounds to
    least = (n + 1) * coverage * (1.0 - 1e-12)
    if least > n:
        raise ValueError(
            f"coverage={coverage!r}: {n} {what} of calibration allow {n / (n + 1):.6g} at most."
        )
    at = np.minimum((mass < least).sum(axis=0), len(scores) - 1)
    return np.take_along_axis(scores, at[np.newaxis], axis=0)[0]
