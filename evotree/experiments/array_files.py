"""Reading of ``.npz`` files as data: no objects, and no array larger than what the file holds.

In: a file of NumPy arrays. Out: features as a pandas DataFrame and the target as an array. What a
header says of an array is compared with the file before memory is taken.
"""

from __future__ import annotations

import io
import math
import tokenize
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evotree.experiments.unpacking import memory

__all__ = ["MAX_COLUMNS", "check_width", "numbered", "read_npz"]

#: So many features are taken for a table; far above what trees are made of.
MAX_COLUMNS = 1_000_000
_TARGET = "target"
# What arrays may hold: truth values and numbers; the target also text.
_KINDS = {"data": "biuf", _TARGET: "biufU"}
# A header is shorter than this, or NumPy refuses it.
_MAX_HEADER = 2**16
# Deflate makes at most so many bytes of one.
_MAX_RATIO = 1032
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
# What the readers of archives and headers let pass of damaged ones.
_DAMAGED = (
    *(EOFError, LookupError, OSError, OverflowError, RecursionError, RuntimeError, SyntaxError),
    *(TypeError, ValueError, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)


def read_npz(path: Path) -> tuple[pd.DataFrame, NDArray]:
    """Read the arrays ``data`` and ``target`` of an .npz file; others are not looked at.

    Parameters
    ----------
    path : Path
        The file, as `numpy.savez` and `numpy.savez_compressed` write it.

    Returns
    -------
    X : DataFrame of shape (n_samples, n_features)
        The features x1, x2, ..., of the array's own type.
    y : ndarray of shape (n_samples,)
        The target: numbers, or an object array of strings.

    Raises
    ------
    ValueError
        If the file is damaged, lacks an array, has arrays of other shapes, of objects or of other
        types than numbers and, for the target, text, or has more than `MAX_COLUMNS` features.
    MemoryError
        If an array would take more than half of the machine's memory.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist()]
            if set(_KINDS) <= set(names):
                data, y = (_read_array(archive, path, name) for name in _KINDS)
    except _DAMAGED as error:
        raise ValueError(f"{path} cannot be read as .npz: {str(error)[:200]}") from error
    if not set(_KINDS) <= set(names):
        raise ValueError(
            f"{path} must hold the arrays 'data' and '{_TARGET}', but it holds "
            f"{', '.join(names[:10]) or 'none'}"
        )
    if data.ndim != 2 or y.shape != data.shape[:1] or len(y) == 0:
        raise ValueError(
            f"{path}: 'data' must have shape (n_samples, n_features) and '{_TARGET}' (n_samples,), "
            f"but the shapes are {data.shape} and {y.shape}"
        )
    check_width(str(path), data.shape[1])
    return numbered(data), y.astype(object) if y.dtype.kind == "U" else y


def _read_array(archive: zipfile.ZipFile, path: Path, name: str) -> NDArray:
    """Read an array whose header agrees with the size of its entry in the archive."""
    entry = archive.getinfo(f"{name}.npy")
    packed = entry.compress_size
    allowed = {zipfile.ZIP_STORED: packed, zipfile.ZIP_DEFLATED: _MAX_RATIO * packed}
    if entry.flag_bits & 1 or entry.compress_type not in allowed:
        raise ValueError(f"{name!r} is encrypted, or packed by another method than deflate")
    if packed > path.stat().st_size or entry.file_size > allowed[entry.compress_type]:
        raise ValueError(f"{name!r} is said to be larger than the file can hold")
    with archive.open(entry) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of headers as Python 2 wrote them
        start = io.BytesIO(file.read(_MAX_HEADER))
        version = np.lib.format.read_magic(start)
        if version not in _HEADERS:
            raise ValueError(f"{name!r} has the version {version} of the format")
        shape, _, dtype = _HEADERS[version](start)
    if dtype.kind not in _KINDS[name]:
        held = "objects, which are not read" if dtype.hasobject else f"values of type {dtype}"
        raise ValueError(f"{name!r} holds {held}")
    n_bytes = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or n_bytes != entry.file_size - start.tell():
        raise ValueError(f"{name!r} has not the {n_bytes} bytes of its shape {shape}")
    if n_bytes > memory() / 2:
        raise MemoryError(
            f"{path}: {name!r} takes {n_bytes / 2**30:.3g} GiB, more than half of this machine's "
            "memory"
        )
    with archive.open(entry) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array = np.lib.format.read_array(file, allow_pickle=False)
        file.read(1)  # at the end of an entry its checksum is compared
    return array


def check_width(source: str, n_columns: int) -> None:
    """Raise for a table of more than `MAX_COLUMNS` features.

    Parameters
    ----------
    source : str
        Begins the message.
    n_columns : int
        Number of features.

    Raises
    ------
    ValueError
        If there are more.
    """
    if n_columns > MAX_COLUMNS:
        raise ValueError(f"{source}: {n_columns} features; at most {MAX_COLUMNS} are read")


def numbered(data: NDArray) -> pd.DataFrame:
    """Return features without names as x1, x2, ...

    Parameters
    ----------
    data : ndarray of shape (n_samples, n_features)
        The features.

    Returns
    -------
    DataFrame of shape (n_samples, n_features)
        Columns of the array's type.
    """
    return pd.DataFrame(data, columns=[f"x{m + 1}" for m in range(data.shape[1])])
