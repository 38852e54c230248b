"""The explanations of all estimators: rows of users go to `evotree.inspection`."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from evotree.dataset import Dataset
from evotree.description.named import named_tree, used_features
from evotree.estimators.rows import RowEncoder
from evotree.inspection.importances import importances
from evotree.inspection.training_rows import TrainingRows, summarize
from evotree.tables.columns import NumericColumn, column_of_feature, text_of
from evotree.tree import ObliqueTree

if TYPE_CHECKING:  # what explains rows is loaded when rows are explained
    from evotree.inspection.counterfactuals import Counterfactual
    from evotree.inspection.paths import Explanation
    from evotree.inspection.shapley import ShapValues


class ExplainedTree(RowEncoder):
    """An estimator whose tree explains itself."""

    tree_: ObliqueTree
    training_rows_: TrainingRows
    _output_scale: np.ndarray | None = None

    def _known_of(
        self, tree: ObliqueTree, dataset: Dataset, **how: Any
    ) -> dict[str, Any]:
        """Return the fitted attributes that go with a tree; `how` is for `fit_soft_sides`."""
        return {"training_rows_": summarize(tree, dataset.raw, dataset.sample_weight)}

    @property
    def feature_importances_(self) -> np.ndarray:
        """Shares that the columns have in lowering the impurity, those of `importances`."""
        return self.importances()

    def importances(self, kind: str = "impurity") -> np.ndarray:
        """Return the share that each column has in what the tree does, at least 0, with a sum of 1.

        Parameters
        ----------
        kind : {"impurity", "influence"}, default="impurity"
            ``"impurity"`` distributes what each split lowers the impurity of its rows by over its
            terms, by their influence, the absolute weight times the spread of the feature. A term
            of a leaf's linear model has the squared error that it explains. ``"influence"`` gives
            each split and model the number of its rows instead. The levels of a category count
            together, and a number with the question whether it is missing.
        """
        check_is_fitted(self)
        of_features = importances(self.tree_, kind, self._output_scale)
        return np.bincount(
            column_of_feature(self.columns_), of_features, self.n_features_in_
        )

    def _of_output(self, output: int | str | None) -> ObliqueTree:
        """Return the tree that predicts one of several outputs alone."""
        names = self.tree_.output_names
        if names is None and output is None:
            return self.tree_
        if names is None:
            raise ValueError(f"output={output!r}: the tree has one; allowed is None.")
        if isinstance(output, str) and output in names:
            return self.tree_.of_output(names.index(output))
        if isinstance(output, Integral) and 0 <= int(output) < len(names):
            return self.tree_.of_output(int(output))
        raise ValueError(
            f"output={output!r}: allowed are {', '.join(map(repr, names))}, and positions from "
            f"0 to {len(names) - 1}."
        )

    def explain(self, X: Any, output: int | str | None = None) -> Explanation:
        """Explain how rows reach their leaves.

        Returns ``terms``, a table of what each term adds to each decision on the path of each row,
        and to what the linear model of its leaf says, and ``rows``, which says how near each row is
        another decision, and which of its values no training row came near
        (`evotree.inspection.paths.Explanation`). `output` says, by position or name, which of
        several outputs is explained; None is for a tree of one.
        """
        from evotree.inspection.paths import explain

        classes = self.classes_ if is_classifier(self) else None
        tree, rows = self._of_output(output), self.encode(X)
        return explain(tree, self.training_rows_, rows, self.feature_names_, classes)

    def shap_values(
        self,
        X: Any,
        background: Any,
        *,
        n_permutations: int = 100,
        random_state: Any = None,
    ) -> ShapValues:
        """Return what each column adds to the prediction of each row, against a background.

        Interventional Shapley values, for `predict` of a regressor and `predict_proba` of a
        classifier (`evotree.inspection.shapley.ShapValues`). They are exact if the tree uses at
        most 12 columns, which takes 2**12 predictions for each row and each background row; else
        orders of the columns are sampled.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_columns)
            Rows to explain.
        background : array-like of shape (n_background, n_columns)
            Rows to compare with, such as a hundred training rows.
        n_permutations : int, at least 2, default=100
            Number of sampled orders.
        random_state : int, RandomState, Generator or None, default=None
            Source of the sampled orders.
        """
        from evotree.inspection.shapley import shap_values

        used = np.array(used_features([named_tree(self)]), dtype=np.intp)
        return shap_values(
            self._predict_encoded,
            self.encode(X),
            self.encode(background),
            self.columns_,
            used,
            n_permutations=n_permutations,
            random_state=random_state,
        )

    def counterfactuals(
        self,
        x: Any,
        target: Any = None,
        *,
        norm: str = "l1",
        costs: Any = None,
        bounds: Any = None,
        integers: Any = None,
        fixed: Any = None,
        plausible: bool = True,
        n_points: int = 1,
        output: int | str | None = None,
    ) -> list[Counterfactual]:
        """Return the nearest points that the tree predicts otherwise, the nearest first.

        That of a row which is predicted so already is itself. A `ValueError` says which constraint
        forbids any point, or that columns of whole numbers and categories are too many; a
        `RuntimeWarning` names leaves whose points cannot be told from those of another one.

        The distance of a feature is in units of its spread, times the cost of its column. The rows
        that reach a leaf form a polytope; its nearest point is found exactly, and placed
        behind the hyperplanes on its way by 1e-5 of the spread of the projection. What is missing
        in `x` stays missing, and no other cell becomes so; a row has one level of a category.

        Parameters
        ----------
        x : array-like of shape (n_columns,) or (1, n_columns)
            The row.
        target : class label, tuple of two float or None, default=None
            The class that the point is to have, None for any but that of `x`; for regression the
            interval ``(low, high)`` that its prediction is to be in.
        norm : {"l1", "count"}, default="l1"
            What is to be small: the sum of the distances of the features, or the number of columns
            that change, each times its cost; of points with the same number the nearest by
            ``"l1"`` is taken.
        costs : mapping or sequence of float, optional
            Factors above 0, by names or positions of columns, or one for each column.
        bounds : mapping, optional
            ``(low, high)`` by names or positions of columns of numbers; None is no bound.
        integers : sequence of str or int, optional
            Columns that hold whole numbers.
        fixed : sequence of str or int, optional
            Columns that cannot change.
        plausible : bool, default=True
            Whether each number stays in the range that it has in the training rows.
        n_points : int, at least 1, default=1
            How many points to find at most, each in another leaf.
        output : int, str or None, default=None
            Which of several outputs `target` is of, by position or name; None for a tree of one.

        References
        ----------
        Carreira-Perpiñán M. Á., Hada S. S. (2021). Counterfactual explanations for oblique decision
        trees: exact, efficient algorithms. AAAI Conference on Artificial Intelligence.
        """
        from evotree.inspection import counterfactuals as search
        from evotree.inspection.nearest import NORMS

        if norm not in NORMS:
            raise ValueError(
                f"norm={norm!r}: allowed are {', '.join(map(repr, NORMS))}."
            )
        if not isinstance(n_points, Integral) or n_points < 1:
            raise ValueError(
                f"n_points={n_points!r}: allowed are integers of at least 1."
            )
        row = _one_row(x)
        point = self.encode(row)[0].astype(np.float64)
        limits = search.Limits.of(
            self.columns_, costs, bounds, integers, fixed, plausible
        )
        tree = self._of_output(output)
        if is_classifier(self):
            goals = search.goals_of_class(tree, point, self.classes_, target)
        else:
            goals = search.goals_of_interval(tree, target)
        is_missing = np.asarray(pd.isna(pd.DataFrame(row))).ravel()

        def space_of(limits: Any) -> Any:
            limits = replace(limits, fixed=limits.fixed | is_missing)
            return search.Space(tree, self.training_rows_, self.columns_, point, limits)

        found = search.nearest_points(space_of(limits), goals, norm, n_points)
        if not found:
            why = search.explain_failure(space_of, limits, goals, self.columns_)
            raise ValueError(
                f"target={target!r}: no point within the constraints; {why}"
            )
        return [self._decoded(row, point, *one) for one in found]

    def _decoded(
        self,
        row: Any,
        before: np.ndarray,
        distance: float,
        leaf: int,
        point: np.ndarray,
    ) -> Counterfactual:
        """Return a point as a row of a table, with the cells that changed."""
        from evotree.inspection.counterfactuals import Counterfactual, cell

        is_frame = isinstance(row, pd.DataFrame)
        changed = (
            pd.DataFrame(row).copy() if is_frame else pd.DataFrame(np.asarray(row))
        )
        changes, at = {}, 0
        for j, column in enumerate(self.columns_):
            features = slice(at, at + len(column.feature_levels))
            at = features.stop
            if (before[features] == point[features]).all():
                continue
            # Of a level that no training row had, the features know nothing.
            is_number = isinstance(column, NumericColumn)
            first = (
                cell(column, before[features])
                if is_number
                else text_of(changed.iloc[0, j])
            )
            after = cell(column, point[features])
            changes[column.name] = (first, after)
            kept = float if isinstance(after, float) else object
            changed[changed.columns[j]] = pd.Series(
                [after], index=changed.index, dtype=kept
            )
        as_given = changed if is_frame else changed.to_numpy()
        return Counterfactual(as_given, changes, distance, leaf, point)

    def _predict_encoded(self, rows: np.ndarray) -> np.ndarray:
        """Return what encoded rows are predicted, of shape (n_rows, n_outputs)."""
        return self.tree_.predict_value(rows)


def _one_row(x: Any) -> Any:
    """Return one row as a table or array of two dimensions."""
    if isinstance(x, pd.Series):
        return x.to_frame().T
    row = x if hasattr(x, "columns") else np.atleast_2d(np.asarray(x))
    if row.shape[0] != 1 or len(row.shape) != 2:
        raise ValueError(f"x has shape {np.shape(x)}: allowed is one row.")
    if not isinstance(row, np.ndarray | pd.DataFrame):
        return row.to_pandas()
    return row
