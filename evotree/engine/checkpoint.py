"""Checkpoints: the whole state of a run in one file, which is data and never code.

A file holds the trees as arrays and all else as JSON, in NumPy's format ``.npz``. The partitions of
the trees are no part of it: made from scratch they are the same, bit for bit. A run that goes on
from its file reaches the end that it would have reached without.
"""

from __future__ import annotations

import hashlib
import io
import json
import tokenize
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evotree.dataset import Dataset
from evotree.engine.evolution import Evolution
from evotree.engine.islands import Archipelago
from evotree.engine.run_state import ARRAYS, RunLoader, TreeArrays, describe_run
from evotree.files import PathLike, check_writable, write_whole

FORMAT, VERSION = "evotree checkpoint", 1


@dataclass(frozen=True)
class Checkpoint:
    """What a file holds.

    Attributes
    ----------
    runs : list of Evolution
        The run, or its islands.
    settings : dict
        What the run was told; JSON.
    """

    runs: list[Evolution]
    settings: dict[str, Any]


def fingerprint(dataset: Dataset) -> str:
    """Return a checksum of the rows, targets and weights of a data set, and of its features."""
    digest = hashlib.sha256()
    for array in (dataset.X, dataset.y, dataset.sample_weight, dataset.mean, dataset.scale):
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    digest.update(json.dumps([*map(str, dataset.feature_names)]).encode())
    digest.update(json.dumps([*map(str, dataset.classes.tolist())]).encode())
    return digest.hexdigest()


# ---- writing -------------------------------------------------------------------------------------


def save_checkpoint(
    path: PathLike, run: Evolution, dataset: Dataset, settings: Mapping[str, Any]
) -> None:
    """Write a run to a file, whole or not at all.

    Parameters
    ----------
    path : path-like
        The file; replaced if it is there.
    run : Evolution or Archipelago
        After a generation; read only.
    dataset : Dataset
        The rows that it evolves on; their checksum is kept.
    settings : mapping
        What the run was told; JSON. `load_checkpoint` returns it.

    Raises
    ------
    OSError
        If the file cannot be written.
    ValueError
        If an individual has a kind of fitness of the user's own.
    """
    runs = run.islands if isinstance(run, Archipelago) else [run]
    arrays = TreeArrays()
    state = {
        "format": FORMAT,
        "version": VERSION,
        "data": fingerprint(dataset),
        "settings": dict(settings),
        "runs": [describe_run(one, arrays) for one in runs],
    }
    content: dict[str, Any] = arrays.flat()
    text = json.dumps(state, default=_plain)
    content["state"] = np.frombuffer(text.encode(), dtype=np.uint8)
    write_whole(path, lambda file: np.savez(file, **content))


def _plain(value: Any) -> Any:
    """Return NumPy's numbers as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} cannot be kept in a checkpoint")


# ---- reading -------------------------------------------------------------------------------------


def read_settings(path: PathLike) -> dict[str, Any]:
    """Read what the run of a file was told, without its trees.

    Parameters
    ----------
    path : path-like
        Written by `save_checkpoint`.

    Returns
    -------
    dict
        The settings.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is no checkpoint or is torn.
    """
    with _telling(path):
        return dict(_read(path)[1]["settings"])


def load_checkpoint(path: PathLike, dataset: Dataset) -> Checkpoint:
    """Read a run from a file.

    Nothing in the file is executed, and no more memory is taken than the file is long and the
    partitions of its trees need.

    Parameters
    ----------
    path : path-like
        Written by `save_checkpoint`.
    dataset : Dataset
        The rows that the run evolves on.

    Returns
    -------
    Checkpoint
        The run or its islands, and its settings.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is no checkpoint, is torn, or is one of other rows.
    """
    with _telling(path):
        arrays, state = _read(path)
        if state["data"] != fingerprint(dataset):
            raise _Refused("is a checkpoint of other rows")
        load = RunLoader(arrays, dataset)
        runs = [load.run(data) for data in state["runs"]]
        settings = dict(state["settings"])
    if not runs:
        raise ValueError(f"{path} holds no run.")
    return Checkpoint(runs, settings)


class _Refused(Exception):
    """A file that is what it seems to be, and still cannot be used."""


@contextmanager
def _telling(path: PathLike) -> Iterator[None]:
    """Turn whatever a wrong file leads to into one error that names the file."""
    with open(path, "rb"):  # says what is wrong with the path itself
        pass
    try:
        yield
    except _Refused as refused:
        raise ValueError(f"{path} {refused}.") from None
    except (
        ArithmeticError,
        AttributeError,
        EOFError,
        LookupError,
        MemoryError,
        NotImplementedError,
        OSError,
        RecursionError,
        SyntaxError,
        TypeError,
        ValueError,
        tokenize.TokenError,
        zipfile.BadZipFile,
    ) as error:
        raise ValueError(f"{path} is no checkpoint, or is torn: {error!r}.") from error


def _read(path: PathLike) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays and the JSON of a file."""
    with zipfile.ZipFile(path) as archive:
        # What is not compressed is no longer than the file.
        if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
            raise _Refused("is no checkpoint: it is compressed")
        arrays = {}
        for name in ("state", *ARRAYS, *(f"{name}_start" for name in ARRAYS)):
            arrays[name] = _read_array(archive.read(f"{name}.npy"))  # checks its sum
    state = json.loads(arrays.pop("state").tobytes().decode())
    if state["format"] != FORMAT:
        raise _Refused("is no checkpoint")
    if state["version"] != VERSION:
        raise _Refused(f"is a checkpoint of version {state['version']!r}; known is {VERSION}")
    return arrays, state


def _read_array(content: bytes) -> np.ndarray:
    """Return an array that is announced to be as long as what follows."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise ValueError(f"an array of version {version}")
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype.hasobject or is_fortran:
        raise ValueError(f"an array of {shape} {dtype}")
    return np.frombuffer(content, dtype, offset=file.tell()).reshape(shape)


# ---- as a callback -------------------------------------------------------------------------------


@dataclass
class CheckpointWriter:
    """A callback that writes a run to a file every some generations.

    Parameters
    ----------
    path : path-like
        The file.
    dataset : Dataset
        The rows that the run evolves on.
    settings : mapping, optional
        What `save_checkpoint` keeps with the run; JSON.
    every : int, at least 1, default=10
        Generations between two writings; where islands evolve, at the end of an epoch.

    Raises
    ------
    OSError
        If the file cannot be written.
    ValueError
        If `every` is less than 1.
    """

    path: PathLike
    dataset: Dataset
    settings: Mapping[str, Any] = field(default_factory=dict)
    every: int = 10

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ValueError(f"checkpoint_every={self.every!r}: allowed are integers from 1.")
        check_writable(self.path)
        self._written = 0

    def __call__(self, run: Evolution) -> None:
        """Write the run if it is time to."""
        if run.generation - self._written >= self.every:
            self.write(run)

    def write(self, run: Evolution) -> None:
        """Write the run."""
        save_checkpoint(self.path, run, self.dataset, self.settings)
        self._written = run.generation
