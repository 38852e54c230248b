"""Rows in files of Parquet that no machine holds, for ``evotree fit --dask``."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from evotree.model_file import Model
from evotree.rng import make_streams, row_keys

_DRAWS = 2**62 + 2  # the number of a generation that no run reaches
_SHOWN = 10_000  # rows of plots and reports


def connect(address: str) -> Any:
    """Return a client of Dask, to use in a ``with`` block."""
    try:
        from distributed import Client
    except ImportError as error:
        raise ValueError("--dask needs Dask: pip install 'evotree[dask]'") from error
    return Client(address) if address else Client(dashboard_address=None)


def read(pattern: str) -> Any:
    """Return the rows of files."""
    import dask.dataframe as dd

    try:
        return dd.read_parquet(pattern)
    except Exception as error:  # those of the readers are of any type
        raise ValueError(f"{pattern} cannot be read as Parquet: {error}") from error


def hold_out(X: Any, y: Any, share: float, seed: int, _: bool = True) -> tuple[Any, Any, Any]:
    """Draw test rows: each row has the same chance, by a random number of its own."""
    seed, ranges = _seed_of_draw(seed, 0), _ranges(y)
    n_test = sum(int((row_keys(seed, *rows) < share).sum()) for rows in ranges)
    n_rows = sum(ranges[-1])
    if not 2 <= n_test < n_rows:
        raise ValueError(f"a test share of {share:g} leaves {n_test} of {n_rows} rows to test on")
    (X, X_test), (y, y_test) = (
        [_taken(one, ranges, seed, *ends) for ends in ((share, 1.0), (0.0, share))]
        for one in (X, y)
    )
    return X, y, (X_test, y_test)


def draw_rows(X: Any, y: Any, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return some rows to look at, in memory."""
    from dask import compute

    seed, ranges = _seed_of_draw(seed, 1), _ranges(y)
    share = min(1.0, _SHOWN / sum(ranges[-1]))
    rows, targets = compute(*[_taken(one, ranges, seed, 0.0, share) for one in (X, y)])
    return rows.reset_index(drop=True), targets.to_numpy()


def _seed_of_draw(seed: int, number: int) -> int:
    """Return a seed of its own for each draw."""
    return int(make_streams(seed % 2**63, _DRAWS, number + 1)[number][0])


def _ranges(y: Any) -> list[tuple[int, int]]:
    """Return the number of the first row, and how many there are, of each partition."""
    from dask import compute, delayed

    sizes = compute(*map(delayed(len), y.to_delayed(optimize_graph=False)))
    return list(zip(np.cumsum([0, *sizes[:-1]]).tolist(), sizes, strict=True))


def _taken(frame: Any, ranges: list[tuple[int, int]], seed: int, low: float, high: float) -> Any:
    """Return the rows whose random numbers are between two, partition by partition."""
    from dask import delayed
    from dask.dataframe import from_delayed

    parts = zip(frame.to_delayed(optimize_graph=False), ranges, strict=True)
    taken = [delayed(_between)(part, first, seed, low, high) for part, (first, _) in parts]
    return from_delayed(taken, meta=frame._meta, verify_meta=False)


def _between(part: Any, first: int, seed: int, low: float, high: float) -> Any:
    keys = row_keys(seed, first, len(part))
    return part[(low <= keys) & (keys < high)]


def add(ask: Callable[..., np.ndarray], model: Model, X: Any, y: Any, *others: Any) -> Any:
    """Ask something of a model and each partition of rows; return the sum."""
    from dask import compute, delayed

    parts = zip(*(rows.to_delayed(optimize_graph=False) for rows in (X, y)), strict=True)
    asked, sent = delayed(ask), delayed(model, traverse=False)
    return np.sum(compute(*[asked(sent, *part, *others) for part in parts]), axis=0)
