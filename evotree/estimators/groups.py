"""What a fit takes beside rows and targets: groups and folds from outside, and exposures.

Rows of one patient, machine or day are alike. Where some of them are held out and others are not, a
tree that only knows its groups seems to be good.
"""

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd

from evotree.dataset import EXPOSURE, GROUPS, HELD_OUT, PART, TRAINED_ON, as_numbers
from evotree.schema import LARGEST
from evotree.tables.frames import by_row

_ALLOWED = (
    "allowed are None, an integer, a splitter of scikit-learn such as GroupKFold, and pairs of "
    "arrays of positions of rows, to train on and to hold out"
)


@dataclass(frozen=True, eq=False)
class Beside:
    """What a fit takes beside rows and targets: weights, further columns, and folds."""

    sample_weight: Any = None
    sensitive: Any = None
    groups: Any = None
    cv: Any = None
    exposure: Any = None
    extras: Any = None  # further columns, as arrays by name

    def columns(self, X: Any, table: Any, y: np.ndarray) -> tuple[dict[str, Any], Any]:
        """Return the extra columns of a data set, and its folds, for rows that are checked."""
        extras = {}
        groups, cv = None, self.cv
        if self.sensitive is not None:
            extras["sensitive"] = by_row(self.sensitive, X, "sensitive")
        if self.groups is not None:
            groups = read_groups(by_row(self.groups, X, GROUPS), len(table))
            extras[GROUPS] = groups
        if self.exposure is not None:
            exposure = by_row(self.exposure, X, EXPOSURE)
            extras[EXPOSURE] = read_exposure(exposure, len(table))
        if cv is not None:
            cv, part_of = read_folds(cv, table, y, groups)
            if part_of is not None:
                extras[PART] = part_of
        return extras | (self.extras or {}), cv


def read_groups(groups: Any, n_rows: int) -> np.ndarray:
    """Return the number of the group of each row, int64, from 0.

    Labels may be of any type that can be hashed. The numbers do not depend on the order of rows.
    """
    if not hasattr(groups, "shape"):
        groups = pd.Series(list(groups), dtype=object)
    elif hasattr(groups, "to_numpy"):
        groups = groups.to_numpy()
    if tuple(groups.shape) != (n_rows,):
        raise ValueError(
            f"groups has shape {tuple(groups.shape)}: allowed is one label for each of {n_rows} "
            "rows."
        )
    try:
        codes, labels = pd.factorize(groups)
    except TypeError as error:
        raise ValueError(
            f"groups: {error}; allowed are labels such as numbers, texts and dates."
        ) from error
    is_missing = codes < 0
    if is_missing.any():
        raise ValueError(
            f"groups has missing labels: {is_missing.sum()} of {n_rows}, the first in row "
            f"{is_missing.argmax()}. Leave these rows out, or give each a group of its own."
        )
    if len(labels) < 2:
        raise ValueError(
            f"groups has one label, {labels[0]!r}: allowed are two or more, so that some can be "
            "held out."
        )
    order = sorted(range(len(labels)), key=lambda code: str(labels[code]))
    return np.argsort(order)[codes]


def read_exposure(exposure: Any, n_rows: int) -> np.ndarray:
    """Return the exposure of each row, float64, above 0."""
    numbers = as_numbers(EXPOSURE, exposure)
    if numbers.shape != (n_rows,):
        raise ValueError(
            f"exposure has shape {numbers.shape}: allowed is one number for each of {n_rows} rows."
        )
    is_wrong = ~((numbers > 0.0) & (numbers <= LARGEST))
    if is_wrong.any():
        raise ValueError(
            f"exposure has {numbers[is_wrong][0]:g} in row {is_wrong.argmax()}: allowed are "
            f"numbers above 0, up to {LARGEST:g}."
        )
    return numbers


def read_folds(
    cv: Any, X: Any, y: np.ndarray, groups: np.ndarray | None
) -> tuple[int | np.ndarray, np.ndarray | None]:
    """Return a number of folds, or what they do with parts of the rows, and the part of each row.

    The first is an array of shape (n_parts, n_folds) then, as `evotree.dataset.Dataset.cv` is, the
    second one of shape (n_rows,).
    """
    n_rows = len(y)
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        n_groups = n_rows if groups is None else int(groups.max()) + 1
        if not 2 <= int(cv) <= n_groups:
            raise ValueError(
                f"cv={cv}: allowed are integers from 2 to {n_groups}, the number of "
                f"{'rows' if groups is None else 'groups'}."
            )
        return int(cv), None
    if isinstance(cv, str | bool) or not (
        hasattr(cv, "split") or hasattr(cv, "__iter__")
    ):
        raise ValueError(f"cv={cv!r}: {_ALLOWED}.")
    pairs = [*(cv.split(X, y, groups) if hasattr(cv, "split") else cv)]
    roles = np.zeros((n_rows, len(pairs)), dtype=np.int8)
    for fold, pair in enumerate(pairs):
        train, test = _positions_of(pair, fold, n_rows)
        roles[train, fold] = TRAINED_ON
        roles[test, fold] = HELD_OUT
        if groups is None:
            shared = np.intersect1d(train, test)
        else:
            shared = np.flatnonzero(np.isin(groups, groups[train]))
            shared = shared[np.isin(groups[shared], groups[test])]
        if shared.size:
            what = "the row" if groups is None else "the group of the row"
            raise ValueError(
                f"cv has {what} {shared[0]} in both parts of the pair {fold}: allowed are pairs "
                f"that share no {'row' if groups is None else 'group; GroupKFold makes such'}."
            )
    if ((roles == HELD_OUT).sum(axis=1) > 1).any() or not pairs:
        raise ValueError(
            f"cv has {len(pairs)} pairs, some of which hold out the same rows: allowed are one or "
            "more, each row being held out once at most."
        )
    parts, part_of = np.unique(roles, axis=0, return_inverse=True)
    return parts, part_of


def _positions_of(pair: Any, fold: int, n_rows: int) -> list[np.ndarray]:
    """Return the positions of a pair: of the rows to train on, and of those to hold out."""
    try:
        train, test = pair
        positions = [np.asarray(one).reshape(-1) for one in (train, test)]
    except (TypeError, ValueError) as error:
        raise ValueError(f"cv has {pair!r} for the pair {fold}: {_ALLOWED}.") from error
    for one in positions:
        are_whole = one.dtype.kind in "iu" or one.size == 0
        if not are_whole or (one.size and not 0 <= one.min() <= one.max() < n_rows):
            raise ValueError(
                f"cv has positions in the pair {fold} that are no rows: allowed are integers from "
                f"0 to {n_rows - 1}."
            )
    return [one.astype(np.int64) for one in positions]
