"""Loading of benchmark data and of users' own tables, and their numeric encoding.

In: the name of a data set. A plain one stands for a file of that name in a folder; the endings are
looked for in this order:

- ``.csv.gz``, ``.csv``: a header row, the features first and a last column ``target``; an empty
  cell is a missing value;
- ``.npz``: arrays ``data`` of shape (n_samples, n_features) and ``target`` of shape (n_samples,);
- ``.arff``, ``.arff.gz``: the target is the attribute called ``class`` or ``target``, or the last;
- ``.libsvm``, ``.svm``, ``.txt``, also with ``.gz`` or ``.bz2`` behind: the format of LIBSVM.

A file ``checksums.txt`` in the folder, in the format of ``sha256sum``, is respected where it is
there. With a prefix, ``sklearn:iris`` is a set that comes with scikit-learn, and ``openml:NAME``,
``openml:NAME@VERSION`` or ``openml:NUMBER`` one of OpenML.

Out: features as a pandas DataFrame, whose categorical columns keep their strings, and the target as
a numpy array; `make_preprocessor` makes numbers of the features. Only ``openml:`` uses the network
and writes: its cache.
"""

from __future__ import annotations

import difflib
import hashlib
import itertools
import os
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from evotree.experiments.array_files import read_npz
from evotree.experiments.readers import (
    BUNDLED,
    fetch_from_openml,
    load_bundled,
    read_arff,
    read_libsvm,
)
from evotree.experiments.unpacking import open_unpacked

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

_READERS: dict[str, Callable[[Path], tuple[pd.DataFrame, NDArray]]] = {
    ".npz": read_npz,
    ".arff": read_arff,
    ".arff.gz": read_arff,
    **{
        ending + packed: read_libsvm
        for ending in (".libsvm", ".svm", ".txt")
        for packed in ("", ".gz", ".bz2")
    },
}
_SUFFIXES = (".csv.gz", ".csv", *_READERS)
_BUNDLED, _OPENML = "sklearn:", "openml:"
_CHECKSUMS = "checksums.txt"
_TARGET = "target"
# So many characters of a file are shown in a message.
_SHOWN = 200


@dataclass(frozen=True, eq=False)
class LoadedData:
    """A data set as loaded.

    Attributes
    ----------
    name : str
        Name of the data set, as it was asked for.
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


def load(name: str, data_home: str | os.PathLike[str] | None = None) -> LoadedData:
    """Load a data set from a folder, from scikit-learn or from OpenML.

    Parameters
    ----------
    name : str
        Name of the data set: its file name without the ending, ``sklearn:`` and one of iris,
        digits, breast_cancer, wine and diabetes, or ``openml:`` and a name, a name with a version
        (``NAME@VERSION``) or a number of OpenML.
    data_home : path-like or None, default=None
        Folder of the data sets, which a plain name needs. With ``openml:``, the folder of the
        cache; None is scikit-learn's own. With ``sklearn:``, of no effect.

    Returns
    -------
    LoadedData
        Features, target and official split; only files have one.

    Raises
    ------
    FileNotFoundError
        If the folder or the file of the data set is not there.
    ConnectionError
        If a set of OpenML is not in the cache and there is no network.
    ValueError
        If the name is not a plain name or a plain name has no folder, scikit-learn or OpenML has no
        such set, the checksum does not match, the file cannot be read, the last column of a CSV is
        not ``target``, a target is missing, or there are too few rows for the official split.
    MemoryError
        If an array, an ARFF file or a sparse set would, dense, take more than half of the machine's
        memory, or the text of a file more than an eighth.

    Examples
    --------
    >>> load("sklearn:iris").X.shape
    (150, 4)
    """
    if name.startswith(_BUNDLED):
        source, (X, y) = name, load_bundled(name.removeprefix(_BUNDLED))
    elif name.startswith(_OPENML):
        source, (X, y) = name, fetch_from_openml(name.removeprefix(_OPENML), data_home)
    else:
        path = _find(name, data_home)
        _verify_checksum(path)
        source, (X, y) = str(path), _read(path)
    if X.shape[1] == 0:
        raise ValueError(f"{source}: there must be at least one feature")
    n_missing = int(pd.isna(y).sum())
    if n_missing:
        raise ValueError(f"{source}: the target is missing in {n_missing} of {len(y)} rows")
    n_train = OFFICIAL_TRAIN_ROWS.get(name)
    if n_train is not None and n_train >= len(y):
        raise ValueError(
            f"{source}: the official training part of {name!r} has {n_train} rows and must leave "
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
    MemoryError
        If the text takes more than an eighth of the machine's memory.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    if not path.is_file():
        raise ValueError(f"{path} is not a file; the path of a CSV file is needed")
    names: list[str] = []
    try:
        names = _parse(path, na_values=(), header=None, nrows=1, dtype=str).iloc[0].tolist()
        _check_names(path, names)
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
        header = f"the header's {len(names)} columns" if names else "the same columns"
        raise ValueError(
            f"{path} is not a table with {header} in every row: {str(error)[:_SHOWN]}"
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


def _find(name: str, data_home: str | os.PathLike[str] | None) -> Path:
    """Return the file of a data set."""
    if not name or Path(name).name != name:
        raise ValueError(f"name={name!r} must be a plain name without a folder or an ending")
    if data_home is None:
        raise ValueError(
            f"data_home must be the folder of the data set {name!r}; only names that begin with "
            f"{_BUNDLED} or {_OPENML} need none"
        )
    folder = Path(data_home)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"data_home={str(folder)!r} is not a folder; the data set {name!r} should be in it"
        )
    wanted = [name + suffix for suffix in _SUFFIXES]
    for file_name in wanted:
        if (folder / file_name).is_file() and file_name != _CHECKSUMS:
            return folder / file_name
    present = {p.name: _stem(p.name) for p in sorted(folder.iterdir()) if p.name != _CHECKSUMS}
    present = {file_name: stem for file_name, stem in present.items() if stem}
    known = {stem.lower(): stem for stem in present.values()}
    if name in BUNDLED:
        known[name] = _BUNDLED + name
    near = [known[stem] for stem in difflib.get_close_matches(name.lower(), known)]
    raise FileNotFoundError(
        f"data set {name!r} is not in {str(folder)!r}: looked for {', '.join(wanted)}; "
        + (f"did you mean {' or '.join(near)}? " if near else "")
        + f"there are {', '.join(present) or 'no data sets'}"
    )


def _stem(file_name: str) -> str:
    """Return the name of the data set in a file; empty if the file holds none."""
    for suffix in _SUFFIXES:
        if file_name.endswith(suffix):
            return file_name.removesuffix(suffix)
    return ""


def _read(path: Path) -> tuple[pd.DataFrame, NDArray]:
    """Read features and target from a file of any of the forms."""
    for suffix, reader in _READERS.items():
        if path.name.endswith(suffix):
            return reader(path)
    # Only an empty cell is missing: "NA" may well be a category.
    table = read_csv(path, na_values=("",))
    if table.columns[-1] != _TARGET:
        raise ValueError(
            f"{path}: the last column must be '{_TARGET}', but it is "
            f"{str(table.columns[-1])[:_SHOWN]!r}"
        )
    return table.iloc[:, :-1], table[_TARGET].to_numpy()


def _verify_checksum(path: Path) -> None:
    """Compare a file with its line of ``checksums.txt``, where there is one."""
    listing = path.with_name(_CHECKSUMS)
    if not listing.is_file():
        return
    # Names of other files may be of any encoding.
    for line in listing.read_text(encoding="utf-8", errors="replace").splitlines():
        expected, _, file_name = line.strip().partition(" ")
        # sha256sum writes two characters between sum and name: a blank, then a blank or a star.
        if file_name.lstrip(" *") == path.name:
            with path.open("rb") as file:
                actual = hashlib.file_digest(file, "sha256").hexdigest()
            if actual != expected.lower():
                raise ValueError(
                    f"{path}: the sha256 checksum is {actual}, but {listing.name} says "
                    f"{expected[:64]}; fetch the file again or correct its line"
                )


def _parse(path: Path, na_values: Sequence[str], **options: Any) -> pd.DataFrame:
    """Parse a CSV with pandas; rows longer than the header raise a ParserWarning."""
    with warnings.catch_warnings(), open_unpacked(path) as file:
        warnings.simplefilter("error", pd.errors.ParserWarning)
        return pd.read_csv(
            file,
            encoding="utf-8",
            keep_default_na=False,
            na_values=list(na_values),
            # Types are inferred from whole columns; the first column is never taken for row names.
            low_memory=False,
            index_col=False,
            **options,
        )


def _check_names(path: Path, names: list[str]) -> None:
    """Raise for a header that repeats a name or is not separated by commas."""
    repeated = sorted(repr(name) for name, count in Counter(names).items() if count > 1)
    if repeated:
        some = ", ".join(repeated[:10])[:_SHOWN]
        raise ValueError(f"{path}: column names must be distinct; repeated: {some}")
    if len(names) == 1 and any(separator in names[0] for separator in ";\t|"):
        raise ValueError(f"{path} must be separated by commas; its header is {names[0][:_SHOWN]!r}")


def _holds_truth(column: pd.Series) -> bool:
    """Tell whether pandas made truth values of some cells of an object column."""
    return column.dtype == object and any(isinstance(value, bool) for value in column)
