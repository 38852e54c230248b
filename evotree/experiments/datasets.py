"""Loading of benchmark data: from a folder of files, or from scikit-learn.

A plain name stands for a file of that name in a folder, of any form that `evotree.tables.readers`
knows. The target is the column called ``target``.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from numpy.typing import NDArray
from sklearn import datasets

from evotree.tables.readers import ENDINGS, read_table

BUNDLED = ("iris", "digits", "breast_cancer", "wine", "diabetes")  # with scikit-learn
_BUNDLED = "sklearn:"
TARGET = "target"  # the column, in upper or lower case


@dataclass(frozen=True, eq=False)
class LoadedData:
    """A data set as loaded, and where it is from, as a paper says it."""

    # Categories are object columns of strings, missing values NaN; the target has none.

    X: pd.DataFrame
    y: NDArray
    source: str


def load(
    name: str,
    data_home: str | os.PathLike[str] | None = None,
    target: str | None = None,
) -> LoadedData:
    """Load a data set from a folder or from scikit-learn.

    Parameters
    ----------
    name : str
        The name of a file, with or without its ending, or ``sklearn:`` and one of iris, digits,
        breast_cancer, wine and diabetes.
    data_home : path-like or None, default=None
        Folder of the data sets, which a plain name needs.
    target : str, optional
        The column of a file that is predicted, where it is not found as above.

    Examples
    --------
    >>> load("sklearn:iris").X.shape
    (150, 4)
    """
    if name.startswith(_BUNDLED):
        return _load_bundled(name.removeprefix(_BUNDLED))
    data = _read_file(_find(name, data_home), target)
    if n_missing := int(pd.isna(data.y).sum()):
        raise ValueError(
            f"{name}: the target is missing in {n_missing} of {len(data.y)} rows"
        )
    return data


def _load_bundled(name: str) -> LoadedData:
    """Return a data set that comes with scikit-learn."""
    if name not in BUNDLED:
        raise ValueError(
            f"scikit-learn has no bundled data set {name!r}; there are {', '.join(BUNDLED)}"
        )
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True, as_frame=True)
    return LoadedData(X, y.to_numpy(), f"scikit-learn's load_{name}")


def _read_file(path: Path, target: str | None) -> LoadedData:
    """Return a data set in a file."""
    # Only an empty cell is missing: "NA" may well be a category.
    table = read_table(path, na_values=[""])
    named = {str(column).lower(): column for column in table}
    target = target or named.get(TARGET)
    if target not in table:
        raise ValueError(
            f"{path}: it has no column {target or TARGET!r} to predict, which target=... of the "
            f"protocol names; it has {', '.join(map(str, table))[:300]}"
        )
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    return LoadedData(
        table.drop(columns=target),
        table[target].to_numpy(),
        f"{path.name}, SHA-256 {checksum}",
    )


def _find(name: str, data_home: str | os.PathLike[str] | None) -> Path:
    """Return the file of a data set."""
    if not name or Path(name).name != name:
        raise ValueError(
            f"name={name!r} must be the plain name of a file in data_home, without a folder"
        )
    if data_home is None:
        raise ValueError(
            f"data_home (--data-home DIR) must be the folder of the data set {name!r}, which is "
            f"not {_BUNDLED}..."
        )
    files = [name] if name.endswith(ENDINGS) else [name + end for end in ENDINGS]
    for file in files:
        if (path := Path(data_home, file)).is_file():
            return path
    names = sorted(one.name for one in Path(data_home).iterdir())
    present = [one for one in names if one.endswith(ENDINGS)]
    raise FileNotFoundError(
        f"data set {name!r} is not in {str(data_home)!r}: looked for {', '.join(files)}; there are "
        f"{', '.join(present) or 'no data sets'}; {_BUNDLED}... comes with scikit-learn"
    )
