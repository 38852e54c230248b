"""Loading of benchmark data and of users' own tables, and their numeric encoding.

In: a folder with one file for each data set, ``NAME.csv.gz``, ``NAME.csv`` or ``NAME.npz``, looked
for in this order. A CSV has a header row, the features first and a last column ``target``; an empty
cell is a missing value. An ``.npz`` holds ``data`` of shape (n_samples, n_features) and ``target``
of shape (n_samples,). A file ``checksums.txt`` in the folder, in the format of ``sha256sum``, is
respected where it is there.

Out: features as a pandas DataFrame, whose categorical columns keep their strings, and the target as
a numpy array; `make_preprocessor` makes numbers of the features. Nothing is downloaded and nothing
is written.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

__all__ = ["OFFICIAL_TRAIN_ROWS", "LoadedData", "load", "make_preprocessor", "read_csv"]

#: Number of leading rows that form the training part, for data sets with an official split.
OFFICIAL_TRAIN_ROWS = MappingProxyType(
    {
        "satimage": 4435,
        "dna": 2000,
        "usps": 7291,
        "pendigits": 7494,
        "letter": 15000,
        "shuttle": 43500,
        "mnist": 60000,
        "ijcnn1": 49990,
        "cod-rna": 59535,
        "optdigits": 3823,
    }
)

_SUFFIXES = (".csv.gz", ".csv", ".npz")
_TARGET = "target"


@dataclass(frozen=True, eq=False)
class LoadedData:
    """A data set as loaded from a folder.

    Attributes
    ----------
    name : str
        Name of the data set.
    X : DataFrame of shape (n_samples, n_features)
        Features: numeric columns, and object columns of strings for categories. Missing values are
        NaN.
    y : ndarray of shape (n_samples,)
        Target without missing values: numbers, or an object array of strings.
    n_train : int or None
        Number of leading rows that form the official training part, less than n_samples; the
        others are the test part. None where there is no official split.
    """

    name: str
    X: pd.DataFrame
    y: NDArray
    n_train: int | None


def load(name: str, data_home: str | os.PathLike[str]) -> LoadedData:
    """Load a data set from a folder.

    Parameters
    ----------
    name : str
        Name of the data set: its file name without the ending.
    data_home : path-like
        Folder of the data sets.

    Returns
    -------
    LoadedData
        Features, target and official split.

    Raises
    ------
    FileNotFoundError
        If the folder or the file of the data set is not there.
    ValueError
        If the name is not a plain name, the checksum does not match, the file cannot be read, the
        last column is not ``target``, a target is missing, or there are too few rows for the
        official split.
    """
    if not name or Path(name).name != name:
        raise ValueError(f"name={name!r} must be a plain name without a folder or an ending")
    folder = Path(data_home)
    path = _find(name, folder)
    _verify_checksum(path)
    if path.suffix == ".npz":
        X, y = _read_npz(path)
    else:
        # Only an empty cell is missing: "NA" may well be a category.
        table = read_csv(path, na_values=("",))
        if table.columns[-1] != _TARGET:
            raise ValueError(
                f"{path}: the last column must be '{_TARGET}', but it is {table.columns[-1]!r}"
            )
        X, y = table.iloc[:, :-1], table[_TARGET].to_numpy()
    if X.shape[1] == 0:
        raise ValueError(f"{path}: there must be at least one feature")
    n_missing = int(pd.isna(y).sum())
    if n_missing:
        raise ValueError(f"{path}: the target is missing in {n_missing} of {len(y)} rows")
    n_train = OFFICIAL_TRAIN_ROWS.get(name)
    if n_train is not None and n_train >= len(y):
        raise ValueError(
            f"{path}: the official training part of {name!r} has {n_train} rows and must leave "
            f"rows for testing, but the file has {len(y)} rows"
        )
    return LoadedData(name=name, X=X, y=y, n_train=n_train)


def read_csv(
    path: str | os.PathLike[str], na_values: Sequence[str] = ("", "NA", "NaN", "nan")
) -> pd.DataFrame:
    """Read a table of comma-separated values with a header row.

    A column is numeric where all its cells are numbers or missing; a wholly missing column counts
    as numeric. Every other column keeps its strings, truth values included.

    Parameters
    ----------
    path : path-like
        File in UTF-8; compressed by gzip where the name ends in ``.gz``.
    na_values : sequence of str
        Cells that stand for a missing value; every other cell is taken as it is.

    Returns
    -------
    DataFrame of shape (n_rows, n_columns)
        Numeric columns and object columns of strings; missing values are NaN. At least one row.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the path is a folder, or the file is empty, has no data rows, is not text in UTF-8, is
        damaged, has rows longer than the header, is not separated by commas, or has two columns of
        one name.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    if not path.is_file():
        raise ValueError(f"{path} is not a file; the path of a CSV file is needed")
    try:
        names = _parse(path, na_values=(), header=None, nrows=1, dtype=str).iloc[0]
        _check_names(path, names.tolist())
        table = _parse(path, na_values)
        # Strings such as "true" are labels like any other; pandas would respell them.
        truth = [c for c in table if is_bool_dtype(table[c]) or _holds_truth(table[c])]
        if truth:
            text = _parse(path, na_values, dtype=dict.fromkeys(truth, str))
            table = table.assign(**{c: text[c] for c in truth})
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not text in UTF-8: {error}") from error
    except (EOFError, zlib.error, OSError) as error:
        raise ValueError(f"{path} cannot be read; is it damaged or not gzip? {error}") from error
    except pd.errors.EmptyDataError as error:
        raise ValueError(f"{path} is empty; a header row and data rows are needed") from error
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        raise ValueError(
            f"{path} is not a table with the header's {len(names)} columns in every row: {error}"
        ) from error
    if table.empty:
        raise ValueError(f"{path} has a header but no data rows")
    strings = [c for c in table if not is_numeric_dtype(table[c])]
    return table.astype(dict.fromkeys(strings, object))


def make_preprocessor(X: pd.DataFrame) -> ColumnTransformer:
    """Make an unfitted transformer of a table's features to finite numbers.

    Numeric columns (truth values count as such): missing values are replaced by the mean, in a
    wholly missing column by 0. All other columns: missing values are replaced by the most frequent
    category, then every category becomes a column of 0 and 1; a category that was not there at
    fitting gives zeros only. The order of the columns is kept: consecutive columns of one kind
    share a step.

    Fit it on training rows only, so that means and categories know nothing of the test rows.

    Parameters
    ----------
    X : DataFrame of shape (n_samples, n_features)
        The features; only names and types of the columns are read.

    Returns
    -------
    ColumnTransformer
        Transforms a DataFrame with these columns to a dense ndarray of shape (n_samples,
        n_outputs), float64. Its ``get_feature_names_out`` gives a numeric column's own name and
        ``column_category`` for a category.

    Raises
    ------
    ValueError
        If X is not a DataFrame, has no columns, or has two columns of one name.

    Examples
    --------
    >>> X = pd.DataFrame({"size": [1.0, None, 3.0], "colour": ["red", "blue", "red"]})
    >>> make_preprocessor(X).fit_transform(X)
    array([[1., 0., 1.],
           [2., 1., 0.],
           [3., 0., 1.]])
    """
    if not isinstance(X, pd.DataFrame):
        raise ValueError(f"X must be a pandas DataFrame, but it is a {type(X).__name__}")
    if X.shape[1] == 0:
        raise ValueError("X must have at least one column")
    if not X.columns.is_unique:
        repeated = sorted(set(X.columns[X.columns.duplicated()].astype(str)))
        raise ValueError(f"X must have distinct column names; repeated: {', '.join(repeated)}")
    steps: list[tuple[str, BaseEstimator, list]] = []
    kinds = ((column, is_numeric_dtype(X[column])) for column in X)
    for numeric, run in itertools.groupby(kinds, key=lambda pair: pair[1]):
        columns = [column for column, _ in run]
        if numeric:
            step = SimpleImputer(strategy="mean", keep_empty_features=True)
        else:
            step = make_pipeline(
                SimpleImputer(strategy="most_frequent", keep_empty_features=True),
                OneHotEncoder(handle_unknown="ignore", sparse_output=False),
            )
        steps.append((f"{'numeric' if numeric else 'categorical'}_{len(steps)}", step, columns))
    return ColumnTransformer(steps, sparse_threshold=0.0, verbose_feature_names_out=False)


def _find(name: str, folder: Path) -> Path:
    """Return the file of a data set."""
    if not folder.is_dir():
        raise FileNotFoundError(f"data_home={str(folder)!r} is not a folder")
    wanted = [name + suffix for suffix in _SUFFIXES]
    for file_name in wanted:
        if (folder / file_name).is_file():
            return folder / file_name
    present = sorted(p.name for p in folder.iterdir() if p.name.endswith(_SUFFIXES))
    raise FileNotFoundError(
        f"data set {name!r} is not in {str(folder)!r}: looked for {', '.join(wanted)}; "
        f"there are {', '.join(present) or 'no data sets'}"
    )


def _verify_checksum(path: Path) -> None:
    """Compare a file with its line of ``checksums.txt``, where there is one."""
    listing = path.with_name("checksums.txt")
    if not listing.is_file():
        return
    for line in listing.read_text(encoding="utf-8").splitlines():
        expected, _, file_name = line.strip().partition(" ")
        # sha256sum writes two characters between sum and name: a blank, then a blank or a star.
        if file_name.lstrip(" *") == path.name:
            with path.open("rb") as file:
                actual = hashlib.file_digest(file, "sha256").hexdigest()
            if actual != expected.lower():
                raise ValueError(
                    f"{path}: the sha256 checksum is {actual}, but {listing.name} says {expected}; "
                    "fetch the file again or correct its line"
                )


def _read_npz(path: Path) -> tuple[pd.DataFrame, NDArray]:
    """Read ``data`` and ``target``; the features are called x1, x2, ..."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file}
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as .npz: {error}") from error
    if not {"data", _TARGET} <= set(arrays):
        raise ValueError(
            f"{path} must hold the arrays 'data' and '{_TARGET}', but it holds "
            f"{', '.join(arrays) or 'none'}"
        )
    data, y = arrays["data"], arrays[_TARGET]
    if data.ndim != 2 or y.shape != data.shape[:1] or len(y) == 0:
        raise ValueError(
            f"{path}: 'data' must have shape (n_samples, n_features) and '{_TARGET}' (n_samples,), "
            f"but the shapes are {data.shape} and {y.shape}"
        )
    return pd.DataFrame(data, columns=[f"x{m + 1}" for m in range(data.shape[1])]), y


def _parse(path: Path, na_values: Sequence[str], **options: Any) -> pd.DataFrame:
    """Parse a CSV with pandas; rows longer than the header raise a ParserWarning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        return pd.read_csv(
            path,
            encoding="utf-8",
            compression="gzip" if path.suffix == ".gz" else None,
            keep_default_na=False,
            na_values=list(na_values),
            # Types are inferred from whole columns; the first column is never taken for row names.
            low_memory=False,
            index_col=False,
            **options,
        )


def _check_names(path: Path, names: list[str]) -> None:
    """Raise for a header that repeats a name or is not separated by commas."""
    repeated = sorted({repr(n) for n in names if names.count(n) > 1})
    if repeated:
        raise ValueError(f"{path}: column names must be distinct; repeated: {', '.join(repeated)}")
    if len(names) == 1 and any(separator in names[0] for separator in ";\t|"):
        raise ValueError(f"{path} must be separated by commas; its header is {names[0]!r}")


def _holds_truth(column: pd.Series) -> bool:
    """Tell whether pandas made truth values of some cells of an object column."""
    return column.dtype == object and any(isinstance(value, bool) for value in column)
