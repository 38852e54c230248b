"""What trees are evolved for, and what their leaves hold, where a name does not say enough."""

from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Any

from evotree._sklearn import Interval
from evotree.configuration import Configuration

LEAVES = ("auto", "linear", "constant")
"""Names of what leaves hold."""


@dataclass(frozen=True, eq=False, repr=False)
class Cost(Configuration):
    """The least expected cost, of errors and of the features that a tree asks for.

    Parameters
    ----------
    matrix : array-like of shape (n_classes, n_classes) or None, default=None
        ``matrix[a][b]`` is what it costs to predict the b-th class for a row of the a-th, the
        classes being sorted; None is 1 for each error.
    features : array-like of shape (n_columns,), dict or None, default=None
        What it costs to know a column, in the unit of `matrix`: numbers of at least 0, or a dict by
        names or positions. A column is paid for once on the way to a leaf. A tuple of columns as a
        key is a group, which costs its number once for all of them.
    """

    matrix: Annotated[Any, "array-like", None] = None
    features: Annotated[Any, "array-like", dict, None] = None


@dataclass(frozen=True, repr=False)
class Quantile(Configuration):
    """A quantile of the targets, which leaves predict.

    Parameters
    ----------
    level : float in (0, 1), default=0.5
        Share of the rows below it.
    """

    level: Annotated[float, Interval(Real, 0.0, 1.0, closed="neither")] = 0.5


@dataclass(frozen=True, eq=False, repr=False)
class LinearLeaves(Configuration):
    """Leaves that hold bounded linear models of few terms, of classes logistic ones.

    Parameters
    ----------
    features : list of int or str, or None, default=None
        Positions or names of the columns that the models may use; None for any.
    split_features : list of int or str, or None, default=None
        Positions or names of the columns that splits may use; None for any.
    """

    features: Annotated[Any, "array-like", str, None] = None
    split_features: Annotated[Any, "array-like", str, None] = None
