"""Questions to a fitted model, each a function of it: `counterfactuals`, `shap_values`, and others.

What would have to change for another prediction, what each column adds to it, how two rows differ,
and whether refits to other rows agree. In: an estimator of one tree, and rows as its `predict`
takes them. Out: tables and numbers in the units of the columns. Nothing is fitted here but clones
of the models that users ask `stability` about, and no rows are kept.
"""

from evotree.inspection.comparison import RowComparison, compare_rows
from evotree.inspection.nearest import Counterfactual, counterfactuals
from evotree.inspection.refits import Stability, stability
from evotree.inspection.shapley import ShapValues, shap_values

__all__ = [
    "Counterfactual",
    "RowComparison",
    "ShapValues",
    "Stability",
    "compare_rows",
    "counterfactuals",
    "shap_values",
    "stability",
]
