"""Readers of data sets: ARFF and LIBSVM files, scikit-learn's bundled sets, OpenML.

In: a file, or a name. Out: features as a pandas DataFrame, numeric columns and object columns of
strings with NaN where a value is missing, and the target as a numpy array of numbers or strings.
The formats are read by scikit-learn; here is what its readers leave open: where the target is, one
form of columns, and errors that name the file.
"""

from __future__ import annotations

import csv
import io
import itertools
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from sklearn import datasets

# scipy's reader of ARFF knows neither strings nor sparse rows. The package liac-arff is the same
# code as this copy, which scikit-learn keeps up.
from sklearn.externals import _arff

from evotree.experiments.array_files import check_width, numbered
from evotree.experiments.unpacking import memory as _memory
from evotree.experiments.unpacking import open_unpacked

__all__ = ["BUNDLED", "fetch_from_openml", "load_bundled", "read_arff", "read_libsvm"]

#: The data sets that come with scikit-learn.
BUNDLED = ("iris", "digits", "breast_cancer", "wine", "diabetes")
_TARGET = "target"
# An attribute of such a name, in small or capital letters, is the target wherever it stands.
_TARGET_NAMES = ("class", _TARGET)
_DAMAGED = (EOFError, zlib.error, OSError)
# So many cells of an ARFF file are held as Python objects at a time.
_CHUNK = 2**18
_KEYWORD = re.compile(r"^\s*(@\w+)\s+")
_NUMERIC = re.compile(
    r"""^(@attribute\s+(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s'"{]\S*)\s+)"""
    r"(?:numeric|real|integer)\b.*$",
    re.IGNORECASE,
)
# The characters of OpenML's names; the rest has a meaning in addresses.
_OPENML = re.compile(r"(?P<name>[\w.,()+'-]+)(?:@(?P<version>[1-9][0-9]*))?", re.ASCII)


def read_arff(path: Path) -> tuple[pd.DataFrame, NDArray]:
    """Read an ARFF file, dense or sparse.

    The target is the last attribute if it is called ``class`` or ``target``, else the only one that
    is, else the last; capital letters do not matter. Numeric attributes become numbers, nominal
    ones and strings become strings; ``?`` is a missing value. In a sparse row, what is left out is
    0 or the first nominal value.

    Parameters
    ----------
    path : Path
        File in UTF-8; compressed by gzip where the name ends in ``.gz``.

    Returns
    -------
    X : DataFrame of shape (n_samples, n_features)
        Columns of float64 and object columns of strings; missing values are NaN.
    y : ndarray of shape (n_samples,)
        The target: strings, or numbers, which are integers where all are whole.

    Raises
    ------
    ValueError
        If the file is damaged, is not text in UTF-8, breaks the format, has attributes of dates or
        relations or no rows, or if two attributes may be the target and neither is last.
    MemoryError
        If the table would take more than half of the machine's memory.

    References
    ----------
    The format: https://waikato.github.io/weka-wiki/formats_and_processing/arff_stable/
    """
    try:
        with open_unpacked(path) as file, io.TextIOWrapper(file, encoding="utf-8-sig") as text:
            frame = _parse_arff(path, text)
    except _DAMAGED as error:
        raise ValueError(f"{path} cannot be read; is it damaged or not gzip? {error}") from error
    target = _target_among(path, list(frame))
    return frame.drop(columns=target), _whole_as_integers(frame[target].to_numpy())


def read_libsvm(path: Path) -> tuple[pd.DataFrame, NDArray]:
    """Read a text file in the sparse format of LIBSVM and SVMlight.

    Parameters
    ----------
    path : Path
        File with a line ``target index:value index:value ...`` for each row, indices from 0 or from
        1; compressed by gzip or bzip2 where the name ends in ``.gz`` or ``.bz2``.

    Returns
    -------
    X : DataFrame of shape (n_samples, n_features)
        The features x1, x2, ..., dense, float64; the last is the highest that is named in a row.
    y : ndarray of shape (n_samples,)
        The target: numbers, which are integers where all are whole.

    Raises
    ------
    ValueError
        If the file is damaged, breaks the format, has no rows or several targets in a row.
    MemoryError
        If the dense table would take more than half of the machine's memory.

    References
    ----------
    The format: https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/
    """
    try:
        with open_unpacked(path) as file:
            matrix, y = datasets.load_svmlight_file(file)
    except _DAMAGED as error:
        raise ValueError(f"{path} cannot be read; is it damaged? {error}") from error
    except (ValueError, OverflowError) as error:
        reason = str(error)[:200]
        raise ValueError(f"{path} cannot be read in the format of LIBSVM: {reason}") from error
    if len(y) == 0:
        raise ValueError(f"{path} has no data rows")
    return numbered(_dense(str(path), matrix)), _whole_as_integers(y)


def load_bundled(name: str) -> tuple[pd.DataFrame, NDArray]:
    """Load a data set that comes with scikit-learn.

    Parameters
    ----------
    name : str
        A name of `BUNDLED`.

    Returns
    -------
    X : DataFrame of shape (n_samples, n_features)
        The features, under scikit-learn's names.
    y : ndarray of shape (n_samples,)
        The target as scikit-learn gives it: numbers of classes, for diabetes the numbers to
        predict.

    Raises
    ------
    ValueError
        If there is no such set.
    """
    if name not in BUNDLED:
        raise ValueError(
            f"scikit-learn has no bundled data set {name!r}; there are {', '.join(BUNDLED)}"
        )
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True, as_frame=True)
    return X, y.to_numpy()


def fetch_from_openml(
    name: str, data_home: str | os.PathLike[str] | None = None
) -> tuple[pd.DataFrame, NDArray]:
    """Load a data set of OpenML from the network, or from the cache if it was loaded before.

    The target is the attribute that OpenML calls the default target.

    Parameters
    ----------
    name : str
        ``NAME``, whose oldest active version is taken, ``NAME@VERSION``, or OpenML's number of the
        data set.
    data_home : path-like or None, default=None
        Folder in which the cache is the folder ``openml``; made where it is not there. None is
        scikit-learn's own folder, ``scikit_learn_data`` in the user's home.

    Returns
    -------
    X : DataFrame of shape (n_samples, n_features)
        Numeric columns and object columns of strings; missing values are NaN.
    y : ndarray of shape (n_samples,)
        The target: numbers, or for a nominal target strings.

    Raises
    ------
    ConnectionError
        If the set is not in the cache and OpenML does not answer.
    ValueError
        If the name is not of these forms, if OpenML has no such set, or if the set is damaged or
        has no target or several.
    MemoryError
        If a sparse set would, dense, take more than half of the machine's memory.

    References
    ----------
    J. Vanschoren, J. N. van Rijn, B. Bischl, L. Torgo: OpenML: Networked Science in Machine
    Learning. SIGKDD Explorations 15(2), 2013, 49-60.
    """
    parts = _OPENML.fullmatch(name)
    if parts is None:
        raise ValueError(f"OpenML needs NAME, NAME@VERSION or a number, but got {name!r}")
    stem, version, source = parts["name"], parts["version"], f"data set {name!r} of OpenML"
    if stem.isdigit() and version is None:
        wanted: dict[str, Any] = {"data_id": int(stem)}
    else:
        wanted = {"name": stem, "version": "active" if version is None else int(version)}
    # The faster parser fails where the values of a nominal attribute are numbers.
    options: dict[str, Any] = {**wanted, "data_home": data_home, "parser": "liac-arff"}
    try:
        bunch = datasets.fetch_openml(**options)
        if len(bunch.target_names) != 1:
            raise ValueError(f"it must have one target, but has {bunch.target_names or 'none'}")
        if not isinstance(bunch.data, pd.DataFrame):
            # Of sparse rows, targets that are left out come out at random; features do not.
            everything = datasets.fetch_openml(**options, target_column=None)
    except (URLError, HTTPException, ConnectionError, TimeoutError) as error:
        raise ConnectionError(
            f"{source} is not in the folder 'openml' of "
            f"{str(datasets.get_data_home(data_home))!r}, and a network is needed to fetch it: "
            f"{error}"
        ) from error
    except (ValueError, _arff.ArffException) as error:
        raise ValueError(f"{source} cannot be loaded: {_reason(error)}") from error
    if isinstance(bunch.data, pd.DataFrame):
        y = _plain_column(bunch.target).to_numpy()
        return bunch.data.apply(_plain_column), _whole_as_integers(y)
    table = _dense(source, everything.data)
    X = _with_categories(
        pd.DataFrame(table, columns=everything.feature_names), everything.categories
    )
    return X, _whole_as_integers(X.pop(bunch.target_names[0]).to_numpy())


class _PlainLines:
    """The lines of an ARFF file, with attributes as the parser knows them; counts the lines.

    The parser wants a blank behind a keyword where the format allows a tab, cuts the fractions of
    attributes called integer, and does not know ranges behind a type (``real [0, 1]``).
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self.n_read = 0
        self._lines = iter(lines)

    def __iter__(self) -> Iterator[str]:
        in_header = True
        for line in self._lines:
            self.n_read += 1
            if in_header:
                line = _KEYWORD.sub(r"\1 ", line.strip())
                line = _NUMERIC.sub(r"\1numeric", line)
                in_header = not line.lower().startswith("@data")
            yield line


def _parse_arff(path: Path, text: Iterable[str]) -> pd.DataFrame:
    """Return the table of all attributes; parts of it become arrays while the rest is read."""
    lines = _PlainLines(text)
    chunks: list[pd.DataFrame] = []
    n_rows = 0
    try:
        content = _arff.load(lines, return_type=_arff.DENSE_GEN)
        names = [name for name, _ in content["attributes"]]
        numeric = [name for name, kind in content["attributes"] if kind == "NUMERIC"]
        rows = iter(content["data"])
        while chunk := list(itertools.islice(rows, max(1, _CHUNK // len(names)))):
            n_rows += len(chunk)
            _check_memory(str(path), n_rows, len(names))
            frame = pd.DataFrame(chunk, columns=names, dtype=object)
            # The copy lies in one piece; columns apart would take several times the memory.
            chunks.append(frame.astype(dict.fromkeys(numeric, np.float64)).copy())
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not text in UTF-8: {error}") from error
    # The last three are what the parser lets pass of malformed lines.
    except (_arff.ArffException, ValueError, IndexError, csv.Error) as error:
        raise ValueError(f"{path}: cannot read line {lines.n_read}: {_reason(error)}") from error
    if not chunks:
        raise ValueError(f"{path} has attributes but no data rows")
    frame = pd.concat(chunks, ignore_index=True)
    return frame.where(frame.notna(), np.nan)


def _reason(error: Exception) -> str:
    """Return what an error says; one of the ARFF parser without its count of lines."""
    if isinstance(error, _arff.BadAttributeType):
        return "the type of an attribute must be numeric, real, integer, string or {values}"
    if not isinstance(error, _arff.ArffException):
        return str(error)[:200]
    # The messages are patterns for the number of the line; a percent sign in the data spoils them.
    message = re.sub(r",? (at|in) line:? ?%d\b", "", str(error.message)).replace("%%", "%")
    return message if len(message) < 200 else f"{message[:200]}..."


def _target_among(path: Path, names: list[str]) -> str:
    """Return the name of the target of an ARFF file."""
    named = [name for name in names if name.lower() in _TARGET_NAMES]
    if names[-1] in named or not named:
        return names[-1]
    if len(named) > 1:
        raise ValueError(
            f"{path}: the target may be any of {', '.join(named)}; one alone must be called so, "
            "or it must be the last attribute"
        )
    return named[0]


def _whole_as_integers(y: NDArray) -> NDArray:
    """Return whole numbers as integers, as they are read from a CSV; anything else as it is."""
    if y.dtype.kind == "f" and bool(np.all((np.abs(y) < 2**53) & (y == np.rint(y)))):
        return y.astype(np.int64)
    return y


def _plain_column(column: pd.Series) -> pd.Series:
    """Return a column of pandas' own types as numbers, or as strings and NaN."""
    if is_numeric_dtype(column) and not is_bool_dtype(column):
        return column if isinstance(column.dtype, np.dtype) else column.astype(np.float64)
    text = column.astype(object).map(str, na_action="ignore").astype(object)
    return text.where(text.notna(), np.nan)


def _with_categories(X: pd.DataFrame, categories: Mapping[str, list[str]]) -> pd.DataFrame:
    """Return a table with the strings of nominal attributes in the place of their positions."""
    strings = {name: X[name].map(dict(enumerate(categories[name]))) for name in categories}
    return X.assign(**strings).astype(dict.fromkeys(categories, object))


def _dense(source: str, matrix: Any) -> NDArray:
    """Return a sparse matrix as an array, if the machine can hold it."""
    _check_memory(source, *matrix.shape)
    check_width(source, matrix.shape[1])
    return matrix.toarray()


def _check_memory(source: str, n_rows: int, n_columns: int) -> None:
    """Raise for a table of floats that is too large for this machine.

    Half of the memory is allowed, since the encoding of a table is a second one of its size.
    """
    needed, allowed = 8.0 * n_rows * n_columns, _memory() / 2
    if needed > allowed:
        raise MemoryError(
            f"{source}: a table of {n_columns} columns and {n_rows} rows or more takes "
            f"{needed / 2**30:.3g} GiB, but half of this machine's memory is "
            f"{allowed / 2**30:.3g} GiB; fewer rows or columns are needed"
        )
