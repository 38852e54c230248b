"""Readers of tables: CSV, NumPy's arrays, ARFF and the format of LIBSVM.

In: a file, whose name says what it holds:

- ``.csv``, ``.csv.gz``: a header row, then rows of as many cells;
- ``.npz``: arrays ``data`` of shape (n_rows, n_features) and ``target`` of shape (n_rows,);
- ``.arff``, ``.arff.gz``: numeric and nominal attributes;
- ``.libsvm``, ``.svm``, ``.txt``, also with ``.gz`` or ``.bz2`` behind: the format of LIBSVM.

Out: a DataFrame of numeric columns and object columns of strings, missing values being NaN. Where a
file has no names, the columns are x1, x2, ... and ``target``. What cannot be read raises
`ValueError`, naming the file and the reason. Files are data: no object in them is loaded.
"""

import bz2
import csv
import gzip
import os
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.io import arff
from sklearn.datasets import load_svmlight_file

TARGET = "target"  # the column of classes in files that do not name their columns
_LIBSVM = tuple(map("".join, product((".libsvm", ".svm", ".txt"), ("", ".gz", ".bz2"))))
ENDINGS = (".csv.gz", ".csv", ".npz", ".arff", ".arff.gz", *_LIBSVM)
"""Endings of the files that are read."""
# A line of a sparse file may name any feature; more of them would not fit into any memory.
_MAX_FEATURES = 1_000_000
# What is compressed may be many times as large; tables that are more are made to fill the memory.
_MAX_RATIO = 100
_ALWAYS_READ = 2**27  # bytes
_SHOWN = 200  # characters of an error


def read_table(
    path: str | os.PathLike[str], na_values: Sequence[str] = ("", "NA", "NaN", "nan")
) -> pd.DataFrame:
    """Read a table from a file."""
    path = Path(path)
    with reading(path):
        _check_inflated(path)
        if path.name.endswith(".npz"):
            frame = _read_npz(path)
        elif path.name.endswith((".arff", ".arff.gz")):
            frame = _read_arff(path)
        elif path.name.endswith(_LIBSVM):
            frame = _read_libsvm(path)
        else:
            frame = _read_csv(path, na_values)
        if frame.empty:
            raise ValueError("it has no data rows")
    return frame


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn whatever a reader raises into an error that names the file."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    if not path.is_file():
        raise ValueError(f"{path} is not a file")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", pd.errors.ParserWarning)
            yield
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        reason = reason if len(reason) <= _SHOWN else f"{reason[:_SHOWN]}..."
        raise ValueError(f"{path} cannot be read: {reason}") from error


def _check_inflated(path: Path) -> None:
    """Raise for a compressed file that would be far larger than it is."""
    most = max(_ALWAYS_READ, _MAX_RATIO * path.stat().st_size)
    inflated = 0
    if path.suffix == ".npz":
        with zipfile.ZipFile(path) as packed:
            inflated = sum(member.file_size for member in packed.infolist())
    elif path.suffix in (".gz", ".bz2"):
        with (gzip if path.suffix == ".gz" else bz2).open(path) as file:
            while inflated <= most and (block := file.read(2**20)):
                inflated += len(block)
    if inflated > most:
        raise ValueError(
            f"it is compressed and holds more than {most} bytes, and more than {_MAX_RATIO} times "
            "its size: unpack it first"
        )


def _read_csv(path: Path, na_values: Sequence[str]) -> pd.DataFrame:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        names = next(filter(None, csv.reader(file)), [])
    if not names:
        raise ValueError("it is empty; a header row and data rows are needed")
    if repeated := [repr(name) for name, n in Counter(names).items() if n > 1]:
        raise ValueError(
            f"column names must be distinct; repeated: {', '.join(sorted(repeated)[:10])}"
        )
    if len(names) == 1 and any(separator in names[0] for separator in ";\t|"):
        raise ValueError(f"it must be separated by commas; its header is {names[0]!r}")

    # Types are inferred from whole columns; the first column is never taken for row names.
    parse = partial(
        pd.read_csv,
        path,
        names=names,
        header=0,
        encoding="utf-8-sig",
        index_col=False,
        keep_default_na=False,
        na_values=list(na_values),
        low_memory=False,
    )
    try:
        frame = parse()
        # Strings such as "true" are labels like any other; pandas would respell them.
        labels = [name for name, dtype in frame.dtypes.items() if dtype.kind in "bO"]
        text = frame.dtypes[labels].map(lambda dtype: isinstance(dtype, pd.StringDtype))
        if mixed := list(text.index[~text.astype(bool)]):
            frame[mixed] = parse(usecols=mixed, dtype=str)
        frame = frame.astype(dict.fromkeys(labels, object))
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        raise ValueError(
            f"not every row has the {len(names)} columns of the header: {error}"
        ) from error
    # As parsed, each column is a block of its own, by which whatever follows would be slow.
    return frame.copy()


def _read_npz(path: Path) -> pd.DataFrame:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        data, target = arrays["data"], arrays[TARGET]
    if data.ndim != 2 or target.shape != data.shape[:1]:
        raise ValueError(
            f"'data' must have shape (n_rows, n_features) and '{TARGET}' (n_rows,), but the shapes "
            f"are {data.shape} and {target.shape}"
        )
    if data.dtype.kind not in "biuf" or target.dtype.kind not in "biufU":
        raise ValueError(
            f"'data' must hold numbers and '{TARGET}' numbers or text, but the types are "
            f"{data.dtype} and {target.dtype}"
        )
    return _numbered(
        data, target.astype(object) if target.dtype.kind == "U" else target
    )


def _read_arff(path: Path) -> pd.DataFrame:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig") as file:
        rows, attributes = arff.loadarff(file)
    if not attributes.names():
        raise ValueError("it has no attributes")
    frame = pd.DataFrame(rows)
    for name, kind in zip(attributes.names(), attributes.types(), strict=True):
        if kind == "nominal":
            labels = frame[name].str.decode("utf-8").astype(object)
            frame[name] = labels.where(labels != "?", np.nan)
        elif kind != "numeric":
            raise ValueError(f"attribute {name!r} is neither numeric nor nominal")
    return frame


def _read_libsvm(path: Path) -> pd.DataFrame:
    data, target = load_svmlight_file(str(path))
    if data.shape[1] > _MAX_FEATURES:
        raise ValueError(
            f"it has {data.shape[1]} features; at most {_MAX_FEATURES} are read"
        )
    return _numbered(data.toarray(), target)


def _numbered(data: np.ndarray, target: np.ndarray) -> pd.DataFrame:
    """Return features and target without names as columns x1, x2, ... and ``target``."""
    frame = pd.DataFrame(data, columns=[f"x{m + 1}" for m in range(data.shape[1])])
    frame[TARGET] = target
    return frame
