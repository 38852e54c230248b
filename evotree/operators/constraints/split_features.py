"""Which features splits may use."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evotree.dataset import Dataset
from evotree.individual import Individual
from evotree.operators.constraints.base import narrow
from evotree.tables.columns import columns_asked


@dataclass(frozen=True, eq=False)
class SplitFeatures:
    """Splits use some of the features alone; a `Constraint`."""

    # Operators see rows in which the others are 0 (`evotree.dataset.Dataset.split_X`), so that few
    # trees need repairs: those from elsewhere, and those whose operators draw weights at random. A
    # split that uses other features loses these, and what is left is fitted again; without any left
    # it is taken out.

    is_allowed: np.ndarray

    @property
    def max_width(self) -> int:
        """No split has more terms than there are features for it."""
        return max(1, int(self.is_allowed.sum()))

    def keeps(self, individual: Individual, dataset: Dataset) -> bool:
        """Return whether no split of a tree uses another feature."""
        return not individual.weights[:, ~self.is_allowed].any()

    def repair(self, individual: Individual, dataset: Dataset) -> None:
        """Take all other features from the splits of a tree."""
        kept = np.broadcast_to(self.is_allowed, individual.weights.shape)
        narrow(individual, dataset, kept)


def with_split_features(dataset: Dataset, split_features: Any) -> Dataset:
    """Return a data set whose splits may use some of the columns alone."""
    if split_features is None:
        return dataset
    columns = columns_asked(split_features, dataset.column_names, "split_features")
    if not columns:
        raise ValueError(
            "split_features=[]: allowed are None, and at least one column."
        )
    is_split_on = np.isin(dataset.column_of, list(columns))
    is_split_on.flags.writeable = False
    return replace(dataset, is_split_on=is_split_on)
