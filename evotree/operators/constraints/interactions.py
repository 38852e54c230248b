"""Which columns may share a split."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from evotree.dataset import Dataset
from evotree.individual import Individual
from evotree.operators.constraints.base import influences, narrow
from evotree.tables.columns import columns_asked

WORDS = {"no_interactions": 1, "pairwise": 2}
"""Words for: any columns may share a split, but no more than so many."""


@dataclass(frozen=True, eq=False)
class Interactions:
    """Bounds on which columns share a split; a `Constraint`."""

    # A split that breaks them keeps the terms of those columns that have the most influence
    # together, |weight| times the spread of the feature, of all that may share one; these are
    # fitted again.

    column_of: np.ndarray  # the column that each feature was made of, rising
    # Masks (n_sets, n_columns) of the columns that may share a split; None for any.
    groups: np.ndarray | None = None
    max_columns: int | None = None  # that share a split

    @cached_property
    def _first(self) -> np.ndarray:
        """The first feature of each column that makes any."""
        return np.unique(self.column_of, return_index=True)[1]

    @cached_property
    def _groups(self) -> np.ndarray | None:
        """The sets, of the columns that make features."""
        return (
            None if self.groups is None else self.groups[:, np.unique(self.column_of)]
        )

    @cached_property
    def _n_features(self) -> np.ndarray:
        """The number of features that each of these columns makes."""
        return np.diff(self._first, append=len(self.column_of))

    @cached_property
    def max_width(self) -> int:
        """The number of features of the columns that make the most."""
        if self._groups is None:
            return int(np.sort(self._n_features)[::-1][: self.max_columns].sum())
        return int((self._groups @ self._n_features).max())

    def keeps(self, individual: Individual, dataset: Dataset) -> bool:
        """Return whether all splits of a tree keep the bounds."""
        return not self._breaks(individual).any()

    def repair(self, individual: Individual, dataset: Dataset) -> None:
        """Make all splits of a tree keep the bounds."""
        influence = influences(individual, dataset)
        by_column = np.add.reduceat(influence, self._first, axis=1)
        if self._groups is None:
            order = np.argsort(-by_column, axis=1, kind="stable")
            allowed = np.zeros(by_column.shape, dtype=bool)
            np.put_along_axis(allowed, order[:, : self.max_columns], True, axis=1)
        else:
            allowed = self._groups[(by_column @ self._groups.T).argmax(axis=1)]
        allowed[~self._breaks(individual)] = True
        narrow(individual, dataset, np.repeat(allowed, self._n_features, axis=1))

    def _breaks(self, individual: Individual) -> np.ndarray:
        """Return a mask of the splits that break the bounds."""
        used = np.logical_or.reduceat(individual.weights != 0.0, self._first, axis=1)
        if self._groups is None:
            broken: np.ndarray = used.sum(axis=1) > self.max_columns
            return broken
        n_outside = used.astype(np.int64) @ ~self._groups.T
        return n_outside.min(axis=1) > 0


def as_interactions(interaction_cst: Any, dataset: Dataset) -> Interactions | None:
    """Return the constraint that a parameter describes."""
    if interaction_cst is None:
        return None
    names = [name for name, _ in dataset.columns] or list(dataset.feature_names)
    if isinstance(interaction_cst, str) and interaction_cst in WORDS:
        bounds = Interactions(dataset.column_of, max_columns=WORDS[interaction_cst])
    else:
        bounds = Interactions(dataset.column_of, _masks(interaction_cst, names))
    return None if bounds.max_width >= len(dataset.column_of) else bounds


def _masks(interaction_cst: Any, names: Sequence[str]) -> np.ndarray:
    """Return the sets of columns as masks, that of the columns of no set last, if there are any."""
    try:
        sets = [None if isinstance(s, str) else tuple(s) for s in interaction_cst]
    except TypeError:
        sets = [None]
    if isinstance(interaction_cst, str) or None in sets:
        raise ValueError(
            f"interaction_cst={interaction_cst!r}: allowed are None, 'pairwise', "
            "'no_interactions', and sequences of sets of columns."
        )
    columns = np.arange(len(names))
    masks = [
        np.isin(columns, list(columns_asked(s, names, "interaction_cst"))) for s in sets
    ]
    rest = ~np.any(masks, axis=0) if masks else np.ones(len(names), dtype=bool)
    return np.array([*masks, rest] if rest.any() else masks)
