"""Loading of benchmark data: from a folder of files, from scikit-learn, from OpenML.

In: the name of a data set. A plain one stands for a file of that name in a folder, of any form that
`evotree.tables.readers` knows; the endings are looked for in the order of its `ENDINGS`. The target
of a CSV is its last column, called ``target``; of an ARFF file the attribute called ``class`` or
``target``, or the last. A file ``checksums.txt`` in the folder, in the format of ``sha256sum``, is
respected where it is there. With a prefix, ``sklearn:iris`` is a set that comes with scikit-learn,
and ``openml:NAME``, ``openml:NAME@VERSION`` or ``openml:NUMBER`` one of OpenML.

Out: features as a pandas DataFrame, whose categorical columns keep their strings, and the target as
a numpy array; `evotree.tables.columns` makes numbers of the features. Only ``openml:`` uses the
network and writes: its cache.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.error import URLError

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from sklearn import datasets

from evotree.tables.readers import ENDINGS, TARGET, read_table

__all__ = ["OFFICIAL_TRAIN_ROWS", "LoadedData", "load"]

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

#: The data sets that come with scikit-learn.
BUNDLED = ("iris", "digits", "breast_cancer", "wine", "diabetes")
_BUNDLED, _OPENML = "sklearn:", "openml:"
# The characters of OpenML's names; the rest has a meaning in addresses.
_OPENML_NAME = re.compile(r"(?P<name>[\w.,()+'-]+)(?:@(?P<version>[1-9][0-9]*))?", re.ASCII)
_CHECKSUMS = "checksums.txt"


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
    source : str
        Where it came from, as a paper says it: a file with its checksum, a function of
        scikit-learn, or a version of OpenML.
    """

    name: str
    X: pd.DataFrame
    y: NDArray
    n_train: int | None
    source: str = ""


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

    Examples
    --------
    >>> load("sklearn:iris").X.shape
    (150, 4)
    """
    place = name
    if name.startswith(_BUNDLED):
        X, y = _load_bundled(name.removeprefix(_BUNDLED))
        source = f"scikit-learn's load_{name.removeprefix(_BUNDLED)}"
    elif name.startswith(_OPENML):
        X, y, source = _fetch_from_openml(name.removeprefix(_OPENML), data_home)
    else:
        path = _find(name, data_home)
        source = f"{path.name}, SHA-256 {_checked_sum(path)}"
        place, (X, y) = str(path), _read(path)
    if X.shape[1] == 0:
        raise ValueError(f"{place}: there must be at least one feature")
    n_missing = int(pd.isna(y).sum())
    if n_missing:
        raise ValueError(f"{place}: the target is missing in {n_missing} of {len(y)} rows")
    n_train = OFFICIAL_TRAIN_ROWS.get(name)
    if n_train is not None and n_train >= len(y):
        raise ValueError(
            f"{place}: the official training part of {name!r} has {n_train} rows and must leave "
            f"rows for testing, but the file has {len(y)} rows"
        )
    return LoadedData(name=name, X=X, y=y, n_train=n_train, source=source)


def _read(path: Path) -> tuple[pd.DataFrame, NDArray]:
    """Read features and target from a file of any form."""
    # Only an empty cell is missing: "NA" may well be a category.
    table = read_table(path, na_values=("",))
    target = str(table.columns[-1])
    if path.name.endswith((".arff", ".arff.gz")):
        named = [name for name in table if name.lower() in ("class", TARGET)]
        if target not in named and named:
            target = named[0]
        if len(named) > 1 and target != table.columns[-1]:
            raise ValueError(
                f"{path}: the target may be any of {', '.join(named)}; one alone must be called "
                "so, or it must be the last attribute"
            )
    elif target != TARGET:
        raise ValueError(f"{path}: the last column must be '{TARGET}', but it is {target[:200]!r}")
    return table.drop(columns=target), table[target].to_numpy()


def _load_bundled(name: str) -> tuple[pd.DataFrame, NDArray]:
    """Load a data set that comes with scikit-learn."""
    if name not in BUNDLED:
        raise ValueError(
            f"scikit-learn has no bundled data set {name!r}; there are {', '.join(BUNDLED)}"
        )
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True, as_frame=True)
    return X, y.to_numpy()


def _fetch_from_openml(
    name: str, data_home: str | os.PathLike[str] | None
) -> tuple[pd.DataFrame, NDArray, str]:
    """Load a data set of OpenML and its source, from the network or the cache if it is there.

    J. Vanschoren, J. N. van Rijn, B. Bischl, L. Torgo: OpenML: Networked Science in Machine
    Learning. SIGKDD Explorations 15(2), 2013, 49-60.
    """
    parts = _OPENML_NAME.fullmatch(name)
    if parts is None:
        raise ValueError(f"OpenML needs NAME, NAME@VERSION or a number, but got {name!r}")
    stem, version, source = parts["name"], parts["version"], f"data set {name!r} of OpenML"
    if stem.isdigit() and version is None:
        wanted: dict[str, Any] = {"data_id": int(stem)}
    else:
        wanted = {"name": stem, "version": "active" if version is None else int(version)}
    try:
        # The faster parser fails where the values of a nominal attribute are numbers.
        bunch = datasets.fetch_openml(
            **wanted, data_home=data_home, parser="liac-arff", as_frame=True
        )
    except (URLError, HTTPException, ConnectionError, TimeoutError) as error:
        raise ConnectionError(
            f"{source} is not in the folder 'openml' of "
            f"{str(datasets.get_data_home(data_home))!r}, and a network is needed to fetch it: "
            f"{error}"
        ) from error
    except Exception as error:  # the parser has errors of its own
        raise ValueError(f"{source} cannot be loaded: {str(error)[:200]}") from error
    if len(bunch.target_names) != 1:
        raise ValueError(f"{source} must have one target, but has {bunch.target_names or 'none'}")
    found = bunch.details
    told = f"OpenML's {found['name']}, version {found['version']}, number {found['id']}"
    return bunch.data.apply(_plain_column), _plain_column(bunch.target).to_numpy(), told


def _plain_column(column: pd.Series) -> pd.Series:
    """Return a column of pandas' own types as numbers, or as strings and NaN."""
    if is_numeric_dtype(column) and not is_bool_dtype(column):
        return column if isinstance(column.dtype, np.dtype) else column.astype(np.float64)
    text = column.astype(object).map(str, na_action="ignore").astype(object)
    return text.where(text.notna(), np.nan)


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
    wanted = [name + suffix for suffix in ENDINGS]
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
    for suffix in ENDINGS:
        if file_name.endswith(suffix):
            return file_name.removesuffix(suffix)
    return ""


def _checked_sum(path: Path) -> str:
    """Return the SHA-256 of a file, which its line of ``checksums.txt`` must not contradict."""
    with path.open("rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    listing = path.with_name(_CHECKSUMS)
    # Names of other files may be of any encoding.
    text = listing.read_text(encoding="utf-8", errors="replace") if listing.is_file() else ""
    for line in text.splitlines():
        expected, _, file_name = line.strip().partition(" ")
        # sha256sum writes two characters between sum and name: a blank, then a blank or a star.
        if file_name.lstrip(" *") == path.name and actual != expected.lower():
            raise ValueError(
                f"{path}: the sha256 checksum is {actual}, but {listing.name} says "
                f"{expected[:64]}; fetch the file again or correct its line"
            )
    return actual
