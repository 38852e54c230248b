"""From files of Parquet that no machine holds to a model: ``evotree fit --dask``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from evotree.cli.model_file import Model
from evotree.cli.table import MANY_TARGETS
from evotree.cli.training import course, evolved
from evotree.estimators import EvoTreeClassifier, EvoTreeRegressor

__all__ = ["connect", "has_many_numbers", "read_parquet", "train_collections"]


def connect(address: str) -> Any:
    """Return a client of Dask, to use in a ``with`` block.

    Parameters
    ----------
    address : str
        Of a scheduler, such as ``tcp://10.0.0.1:8786``; nothing starts workers on this machine.

    Returns
    -------
    distributed.Client
        The client.

    Raises
    ------
    ValueError
        If Dask is not installed.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise ValueError("--dask needs Dask: pip install 'evotree[dask]'") from error
    return Client(address) if address else Client(dashboard_address=None)


def read_parquet(pattern: str, target: str, drop: list[str]) -> tuple[Any, Any]:
    """Return features and targets of files; rows without a target are left out.

    Parameters
    ----------
    pattern : str
        Their names, such as ``rows/*.parquet``, or a folder.
    target : str
        The column of the targets.
    drop : list of str
        Columns to leave out.

    Returns
    -------
    X : dask.dataframe.DataFrame
        The other columns.
    y : dask.dataframe.Series
        The targets.

    Raises
    ------
    ValueError
        If there are no such files or columns, or no column is left.
    """
    import dask.dataframe as dd

    try:
        frame = dd.read_parquet(pattern)
    except Exception as error:  # those of the readers are of any type
        raise ValueError(f"{pattern} cannot be read as Parquet: {error}") from error
    for option, name in (("target", target), *(("drop", name) for name in drop)):
        if name not in frame.columns:
            names = ", ".join(map(str, frame.columns))
            raise ValueError(f"--{option} {name!r}: there is no such column of {names}")
    frame = frame.dropna(subset=[target])
    X, y = frame.drop(columns=[target, *drop]), frame[target]
    if len(X.columns) == 0:
        raise ValueError(f"{target!r} is the only column: there is nothing to predict it from")
    return X, y


def has_many_numbers(y: Any) -> bool:
    """Tell whether targets are numbers, of more values than classes have."""
    is_number = is_numeric_dtype(y.dtype) and not is_bool_dtype(y.dtype)
    return is_number and int(y.nunique().compute()) > MANY_TARGETS


def train_collections(
    X: Any, y: Any, target: str, parameters: Mapping[str, Any], is_regression: bool
) -> tuple[Model, EvoTreeClassifier | EvoTreeRegressor]:
    """Evolve a tree for rows in partitions, and make a model of it.

    Parameters
    ----------
    X : dask.dataframe.DataFrame of shape (n_rows, n_columns)
        The training rows; columns that are neither numbers nor truth values are categories.
    y : dask.dataframe.Series of shape (n_rows,)
        Their classes or targets.
    target : str
        Name of the column that these come from.
    parameters : mapping
        Parameters of the estimator.
    is_regression : bool
        Whether numbers are predicted.

    Returns
    -------
    model : Model
        The model.
    estimator : EvoTreeClassifier or EvoTreeRegressor
        The fitted estimator.
    """
    kind: Any = EvoTreeRegressor if is_regression else EvoTreeClassifier
    estimator = evolved(kind, X, y, parameters)
    tree, rows = estimator.tree_, estimator.training_rows_
    quality = estimator.pareto_front_[estimator.pareto_front_.index(tree)].quality
    training: dict[str, Any] = {"rows": int(tree.n_node_samples[0])}
    if is_regression:
        rmse = float(np.sqrt((1.0 - quality) * y.var(ddof=0).compute()))
        training |= {"r2": quality, "rmse": rmse, **course(estimator)}
        model = Model(target, None, estimator.columns_, tree, training, None, rows)
    else:
        training |= {"accuracy": quality, "base_rate": float(tree.values[0].max())}
        training |= course(estimator)
        sides = estimator.probabilities_
        model = Model(target, estimator.classes_, estimator.columns_, tree, training, sides, rows)
    return model, estimator
