"""Loading of benchmark data: from a folder of files, from scikit-learn, from OpenML.

A plain name stands for a file of that name in a folder, of any form that `evotree.tables.readers`
knows. The target of a CSV is its last column, called ``target``; of an ARFF file the attribute
called ``class`` or ``target``, or the last. Only ``openml:`` uses the network, and has a cache.
"""

import difflib
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from sklearn import datasets

from evotree.tables.readers import ENDINGS, TARGET, read_table

# Numbers of leading rows that form the training part, for data sets with an official split.
OFFICIAL_TRAIN_ROWS = MappingProxyType(
    {"satimage": 4435, "dna": 2000, "usps": 7291, "pendigits": 7494, "letter": 15000}
    | {
        "shuttle": 43500,
        "mnist": 60000,
        "ijcnn1": 49990,
        "cod-rna": 59535,
        "optdigits": 3823,
    }
)
BUNDLED = ("iris", "digits", "breast_cancer", "wine", "diabetes")  # with scikit-learn
_BUNDLED, _OPENML = "sklearn:", "openml:"


@dataclass(frozen=True, eq=False)
class LoadedData:
    """A data set as loaded, and where it is from, as a paper says it."""

    # Categories are object columns of strings, missing values NaN; the target has none. The leading
    # `n_train` rows are the official training part, if there is one.

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
        The file name without the ending, ``sklearn:`` and one of iris, digits, breast_cancer, wine
        and diabetes, or ``openml:`` and NAME, NAME@VERSION or a number.
    data_home : path-like or None, default=None
        Folder of the data sets, which a plain name needs; of the cache with ``openml:``.

    Examples
    --------
    >>> load("sklearn:iris").X.shape
    (150, 4)
    """
    place = name
    if name.startswith(_BUNDLED):
        bundled = name.removeprefix(_BUNDLED)
        if bundled not in BUNDLED:
            there_are = f"there are {', '.join(BUNDLED)}"
            raise ValueError(
                f"scikit-learn has no bundled data set {bundled!r}; {there_are}"
            )
        X, y = getattr(datasets, f"load_{bundled}")(return_X_y=True, as_frame=True)
        y, source = y.to_numpy(), f"scikit-learn's load_{bundled}"
    elif name.startswith(_OPENML):
        X, y, source = _fetch_from_openml(name.removeprefix(_OPENML), data_home)
    else:
        path = _find(name, data_home)
        source = f"{path.name}, SHA-256 {hashlib.sha256(path.read_bytes()).hexdigest()}"
        # Only an empty cell is missing: "NA" may well be a category.
        place, table = str(path), read_table(path, na_values=("",))
        target = str(table.columns[-1])
        if path.name.endswith((".arff", ".arff.gz")):
            named = [column for column in table if column.lower() in ("class", TARGET)]
            if target not in named and len(named) > 1:
                any_of = f"the target may be any of {', '.join(named)}"
                raise ValueError(f"{path}: {any_of}; let it be the last attribute")
            target = target if target in named or not named else named[0]
        elif target != TARGET:
            it_is = f"it is {target[:200]!r}"
            raise ValueError(f"{path}: the last column must be '{TARGET}', but {it_is}")
        X, y = table.drop(columns=target), table[target].to_numpy()
    if X.shape[1] == 0:
        raise ValueError(f"{place}: there must be at least one feature")
    if n_missing := int(pd.isna(y).sum()):
        raise ValueError(
            f"{place}: the target is missing in {n_missing} of {len(y)} rows"
        )
    n_train = OFFICIAL_TRAIN_ROWS.get(name)
    if n_train is not None and n_train >= len(y):
        part = f"{n_train} are the official training part"
        raise ValueError(f"{place}: it has {len(y)} rows, of which {part}")
    return LoadedData(name=name, X=X, y=y, n_train=n_train, source=source)


def _fetch_from_openml(
    name: str, data_home: str | os.PathLike[str] | None
) -> tuple[pd.DataFrame, NDArray, str]:
    """Load a data set of OpenML and its source, from the network or the cache if it is there."""
    stem, at, version = name.partition("@")
    try:
        wanted = {"name": stem, "version": int(version) if at else "active"}
        # The faster parser fails where the values of a nominal attribute are numbers.
        told: dict[str, Any] = {
            "data_home": data_home,
            "parser": "liac-arff",
            "as_frame": True,
        }
        told |= {"data_id": int(name)} if name.isdigit() else wanted
        bunch = datasets.fetch_openml(**told)
        (_,) = bunch.target_names
    except Exception as error:  # the network's, or of the parser
        what = f"{name!r} of OpenML, NAME, NAME@VERSION or a number, with one target"
        raise ValueError(f"{what}, cannot be loaded: {str(error)[:200]}") from error
    details = bunch.details
    source = f"OpenML's {details['name']}, version {details['version']}, number {details['id']}"
    return (
        bunch.data.apply(_plain_column),
        _plain_column(bunch.target).to_numpy(),
        source,
    )


def _plain_column(column: pd.Series) -> pd.Series:
    """Return a column of pandas' own types as numbers, or as strings and NaN."""
    if is_numeric_dtype(column) and not is_bool_dtype(column):
        return (
            column if isinstance(column.dtype, np.dtype) else column.astype(np.float64)
        )
    text = column.astype(object).map(str, na_action="ignore").astype(object)
    return text.where(text.notna(), np.nan)


def _find(name: str, data_home: str | os.PathLike[str] | None) -> Path:
    """Return the file of a data set."""
    if not name or Path(name).name != name:
        raise ValueError(
            f"name={name!r} must be a plain name without a folder or an ending"
        )
    if data_home is None:
        of = f"the data set {name!r}, which is not {_BUNDLED}..."
        raise ValueError(f"data_home must be the folder of {of}")
    folder = Path(data_home)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"data_home={str(folder)!r} is not a folder: {name!r} is not there"
        )
    wanted = [name + ending for ending in ENDINGS]
    for file_name in wanted:
        if (folder / file_name).is_file():
            return folder / file_name
    names = sorted(path.name for path in folder.iterdir())
    present = [file for file in names if file.endswith(ENDINGS)]
    stems = {file.partition(".")[0].lower(): file.partition(".")[0] for file in present}
    stems |= {name: _BUNDLED + name} if name in BUNDLED else {}
    near = [stems[stem] for stem in difflib.get_close_matches(name.lower(), stems)]
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    looked_for = f"looked for {', '.join(wanted)}; {hint}"
    there_are = f"there are {', '.join(present) or 'no data sets'}"
    raise FileNotFoundError(
        f"data set {name!r} is not in {str(folder)!r}: {looked_for}{there_are}"
    )
