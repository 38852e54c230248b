"""First trees: of dipole splits, their sizes chosen by the fitness, or of random halves."""

from dataclasses import dataclass

import numpy as np

from evotree.dataset import Dataset
from evotree.fitness.node import Node, score_hyperplane
from evotree.individual import Individual
from evotree.operators.initialization.growth import GrowthLimits, grow_on_sample
from evotree.operators.pruning.penalized import prune
from evotree.operators.splitters.base import Split
from evotree.operators.splitters.dipole import Dipole
from evotree.rng import as_generator


def init_dipolar(
    dataset: Dataset,
    size_penalty: float,
    stream: np.ndarray,
    max_rows: int = 256,
    max_depth: int = 8,
    min_rows: int = 5,
    term_penalty: float = 0.0,
    max_width: int = 0,
) -> Individual:
    """Grow a dipolar tree on a random subsample, for speed and diversity, and prune it."""
    sample = as_generator(stream).permutation(len(dataset.distinct_of))[:max_rows]
    individual = grow_on_sample(
        dataset.subsample(sample),
        dataset,
        Dipole(scored=False, max_width=max_width),
        stream,
        limits=GrowthLimits(max_depth=max_depth, min_samples_split=min_rows),
    )
    return prune(individual, dataset, size_penalty, term_penalty)[0]


@dataclass(frozen=True)
class RandomHalves:
    """A normally distributed direction with the threshold that halves the rows, or nearly so."""

    # Grown to a depth, that is the complete tree with random parameters from which tree alternating
    # optimization may start (Carreira-Perpiñán and Tavallali 2018).
    def __call__(self, node: Node, stream: np.ndarray) -> Split | None:
        """Find the split (see `evotree.operators.splitters.base.Splitter`)."""
        weights = as_generator(stream).standard_normal((node.X.shape[1],))
        weights /= np.linalg.norm(weights)
        projection = np.sort(node.X @ weights)
        middle = projection[:-1] + 0.5 * np.diff(projection)
        n_left = np.arange(1, projection.size)
        fits = (projection[:-1] < middle) & (middle < projection[1:])
        fits &= np.minimum(n_left, projection.size - n_left) >= node.min_rows
        if not fits.any():
            return None
        distance = np.where(fits, np.abs(2 * n_left - projection.size), np.inf)
        threshold = float(middle[np.argmin(distance)])
        return Split(weights, threshold, score_hyperplane(node, weights, threshold))


def init_complete(
    dataset: Dataset, stream: np.ndarray, max_depth: int = 8, min_rows: int = 5
) -> Individual:
    """Make one individual whose tree is complete to a depth, with random directions."""
    limits = GrowthLimits(max_depth=max_depth, min_samples_split=min_rows)
    return grow_on_sample(dataset, dataset, RandomHalves(), stream, limits=limits)
