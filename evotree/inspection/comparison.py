"""Two rows beside each other on the paths of a tree."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import is_classifier

from evotree.paths import explain


def check_model(name: str, model: Any) -> None:
    """Check that a model is an estimator of one tree."""
    if not hasattr(model, "importances"):
        raise TypeError(
            f"{name} is of the type {type(model).__name__}: allowed are estimators of evotree "
            "that have one tree."
        )


class RowComparison(NamedTuple):
    """Where the paths of two rows, a and b, part.

    `node` is the split, or the leaf where they meet. `terms` has a line for each of its terms, the
    one that parts them most first: the values, the weight as the split is printed, and what each
    adds to the distance to the hyperplane, in spreads of the projection, above 0 where the printed
    sum is above its threshold; at a leaf with a model, to what it says, of classes about the one
    that is predicted for `a`. `rows` has the leaf and prediction of each, and ``total``, that
    distance.
    """

    node: int
    terms: pd.DataFrame
    rows: pd.DataFrame

    def __repr__(self) -> str:
        where = "meet" if self.rows.leaf.eq(self.node).all() else "part"
        return f"{self.rows.to_string()}\nthey {where} at [{self.node}]\n{self.terms}"


def compare_rows(model: Any, row_a: Any, row_b: Any) -> RowComparison:
    """Return where the paths of two rows through the tree of a fitted model part, and why.

    Parameters
    ----------
    model : fitted estimator of one tree
        With a method `explain`.
    row_a, row_b : Series, table of one row or array-like of shape (n_columns,)
        With the columns that the model was fitted to.

    Returns
    -------
    RowComparison
        In the units of the columns, but for distances.
    """
    check_model("model", model)
    given = {"row_a": row_a, "row_b": row_b}
    rows = [model.encode(one_row(*one), bends=True) for one in given.items()]
    tree = model.fitted_.of_output(None).tree
    classes = model.classes_ if is_classifier(model) else None
    # The models of a leaf speak of one class, that of `row_a`.
    of = None if classes is None else tree.predict_label(rows[0])
    found = [explain(model.fitted_, one, of) for one in rows]
    paths = [one.terms for one in found]
    sides = [dict(zip(path.node, path.side, strict=True)) for path in paths]
    apart = [k for k in sides[0] if k in sides[1] and sides[0][k] != sides[1][k]]
    node = int(apart[0] if apart else found[0].rows.leaf[0])
    here = [path[path.node == node].set_index("feature") for path in paths]
    weights = here[0]["weight"]
    if apart:
        # Of two forms of an inequality the one that is printed begins with a weight of 1.
        printed = model.fitted_.split(node).terms
        weights = pd.Series(
            {model.feature_names_[j]: weight for weight, j in printed}
        ).loc[weights.index]
        here = [
            one.assign(
                contribution=one["contribution"] * np.sign(one["unit"]),
                total=one["total"] * np.sign(one["unit"]),
            )
            for one in here
        ]
    terms = pd.DataFrame(
        {
            "weight": weights,
            "value_a": here[0]["value"],
            "adds_a": here[0]["contribution"],
            "value_b": here[1]["value"],
            "adds_b": here[1]["contribution"],
        }
    )
    terms["difference"] = terms.adds_b - terms.adds_a
    order = terms.difference.abs().sort_values(ascending=False, kind="stable").index
    reached = pd.concat([one.rows[["leaf", "prediction"]] for one in found])
    reached = reached.set_axis(["a", "b"]).assign(
        total=[one["total"].iloc[0] if len(one) else np.nan for one in here]
    )
    return RowComparison(node, terms.loc[order], reached)


def one_row(name: str, row: Any) -> Any:
    """Return one row as a table of pandas, or as an array of two dimensions."""
    if isinstance(row, pd.Series):
        return row.to_frame().T.infer_objects()
    rows = row if hasattr(row, "columns") else np.atleast_2d(np.asarray(row))
    if np.ndim(row) == 0 or rows.shape[0] != 1 or len(rows.shape) != 2:
        raise ValueError(f"{name} has shape {np.shape(row)}: allowed is one row.")
    return rows if isinstance(rows, np.ndarray | pd.DataFrame) else rows.to_pandas()
