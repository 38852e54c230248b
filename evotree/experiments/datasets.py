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

import pandas as pd
from numpy.typing import NDArray
from sklearn import datasets

from evotree.tables.readers import (
    ENDINGS,
    TARGET,
    WEIGHT,
    plain_column,
    read_table,
)

# Numbers of leading rows that form the training part, for data sets with an official split.
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


def load(
    name: str,
    data_home: str | os.PathLike[str] | None = None,
    target: str | None = None,
) -> LoadedData:
    """Load a data set from a folder, from scikit-learn or from OpenML.

    Parameters
    ----------
    name : str
        The name of a file, with or without its ending, ``sklearn:`` and one of iris, digits,
        breast_cancer, wine and diabetes, or ``openml:`` and NAME, NAME@VERSION or a number.
    data_home : path-like or None, default=None
        Folder of the data sets, which a plain name needs; of the cache with ``openml:``.
    target : str, optional
        The column of a file that is predicted, where it is not found as above.

    Examples
    --------
    >>> load("sklearn:iris").X.shape
    (150, 4)
    """
    place = name
    if name.startswith(_BUNDLED):
        X, y, source = _load_bundled(name.removeprefix(_BUNDLED))
    elif name.startswith(_OPENML):
        X, y, source = _fetch_from_openml(name.removeprefix(_OPENML), data_home)
    else:
        path = _find(name, data_home)
        place = str(path)
        X, y, source = _read_file(path, target)
    if X.shape[1] == 0:
        raise ValueError(f"{place}: there must be at least one feature")
    if n_missing := int(pd.isna(y).sum()):
        raise ValueError(
            f"{place}: the target is missing in {n_missing} of {len(y)} rows"
        )
    n_train = OFFICIAL_TRAIN_ROWS.get(name)
    if n_train is not None and n_train >= len(y):
        raise ValueError(
            f"{place}: it has {len(y)} rows, of which {n_train} are the official training part"
        )
    return LoadedData(name=name, X=X, y=y, n_train=n_train, source=source)


def _load_bundled(name: str) -> tuple[pd.DataFrame, NDArray, str]:
    """Return features, target and source of a data set that comes with scikit-learn."""
    if name not in BUNDLED:
        raise ValueError(
            f"scikit-learn has no bundled data set {name!r}; there are {', '.join(BUNDLED)}"
        )
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True, as_frame=True)
    return X, y.to_numpy(), f"scikit-learn's load_{name}"


def _read_file(
    path: Path, named: str | None = None
) -> tuple[pd.DataFrame, NDArray, str]:
    """Return features, target and source of a data set in a file."""
    # Only an empty cell is missing: "NA" may well be a category.
    table = read_table(path, na_values=[""])
    if WEIGHT in table:
        raise ValueError(
            f"{path}: its rows have weights, which experiments do not know"
        )
    target = named or str(table.columns[-1])
    if target not in table:
        raise ValueError(
            f"{path}: it has no column {target!r}; it has "
            f"{', '.join(map(str, table))[:300]}"
        )
    if named is None and path.name.endswith((".arff", ".arff.gz")):
        names = [column for column in table if column.lower() in ("class", TARGET)]
        if target not in names and len(names) > 1:
            raise ValueError(
                f"{path}: the target may be any of {', '.join(names)}; let it be the last "
                "attribute"
            )
        if names and target not in names:
            target = names[0]
    elif named is None and target != TARGET:
        raise ValueError(
            f"{path}: the last column must be '{TARGET}', but it is {target[:200]!r}; "
            "target=... of the protocol names another one"
        )
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    source = f"{path.name}, SHA-256 {checksum}"
    return table.drop(columns=target), table[target].to_numpy(), source


def _fetch_from_openml(
    name: str, data_home: str | os.PathLike[str] | None
) -> tuple[pd.DataFrame, NDArray, str]:
    """Load a data set of OpenML and its source, from the network or the cache if it is there."""
    stem, at, version = name.partition("@")
    try:
        if name.isdigit():
            address: dict[str, Any] = {"data_id": int(name)}
        else:
            address = {"name": stem, "version": int(version) if at else "active"}
        # The faster parser fails where the values of a nominal attribute are numbers.
        bunch = datasets.fetch_openml(
            **address, data_home=data_home, parser="liac-arff", as_frame=True
        )
        (_,) = bunch.target_names
    except Exception as error:  # the network's, or of the parser
        raise ValueError(
            f"{name!r} of OpenML, NAME, NAME@VERSION or a number, with one target, cannot be "
            f"loaded: {str(error)[:200]}"
        ) from error
    details = bunch.details
    source = f"OpenML's {details['name']}, version {details['version']}, number {details['id']}"
    return (
        bunch.data.apply(plain_column),
        plain_column(bunch.target).to_numpy(),
        source,
    )


def _find(name: str, data_home: str | os.PathLike[str] | None) -> Path:
    """Return the file of a data set."""
    if not name or Path(name).name != name:
        raise ValueError(
            f"name={name!r} must be the plain name of a file in data_home, without a folder"
        )
    if data_home is None:
        raise ValueError(
            f"data_home must be the folder of the data set {name!r}, which is not {_BUNDLED}..."
        )
    folder = Path(data_home)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"data_home={str(folder)!r} is not a folder: {name!r} is not there"
        )
    file_names = [name]
    if not name.endswith(ENDINGS):
        file_names = [name + ending for ending in ENDINGS]
    for file_name in file_names:
        if (folder / file_name).is_file():
            return folder / file_name
    present = sorted(
        path.name for path in folder.iterdir() if path.name.endswith(ENDINGS)
    )
    stems = {file.partition(".")[0].lower(): file.partition(".")[0] for file in present}
    if name in BUNDLED:
        stems[name] = _BUNDLED + name
    stem = name.partition(".")[0].lower()
    near = [stems[one] for one in difflib.get_close_matches(stem, stems)]
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise FileNotFoundError(
        f"data set {name!r} is not in {str(folder)!r}: looked for {', '.join(file_names)}; {hint}"
        f"there are {', '.join(present) or 'no data sets'}"
    )
