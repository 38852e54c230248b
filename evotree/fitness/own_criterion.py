"""A user's own criterion: a function of the class weights of the two sides of a split.

Murthy, Kasif and Salzberg (1994, section 2.4) leave the impurity measure to the user. Kernels know
it by an address, which stands where a criterion of `evotree.fitness.node` has its code.
"""

import math
from collections.abc import Callable
from numbers import Real
from typing import TypeAlias

import numpy as np
from numba.extending import is_jitted

from evotree._jit import AddressOf

OwnMeasure: TypeAlias = Callable[[np.ndarray, np.ndarray], float]
"""``measure(left, right)`` of class weights, each of shape (n_classes,): the lower the better.

A side may be empty: then it is the measure of the node undivided.
"""


class OwnCriterion(AddressOf):
    """A user's measure, checked once on a node without a split.

    Raises
    ------
    ValueError
        If it returns anything but a finite number.
    """

    def __init__(self, measure: OwnMeasure, totals: np.ndarray) -> None:
        self._measure = measure
        super().__init__(measure if is_jitted(measure) else self.score)
        self.score(totals.copy(), np.zeros_like(totals))

    def score(self, left: np.ndarray, right: np.ndarray) -> float:
        """Return the measure of a split; raise an error where it is no finite number."""
        value = self._measure(left, right)
        if not isinstance(value, Real) or not math.isfinite(value):
            raise ValueError(
                f"criterion={self._measure!r} returned {value!r} for the class weights "
                f"left={left} and right={right}: allowed are finite numbers."
            )
        return float(value)

    def raise_failure(self, score: float) -> None:
        """Raise what the measure raised in a search that ended with a score."""
        if self.error is not None:
            raise self.error
        if score == -math.inf:
            raise ValueError(
                f"criterion={self._measure!r} raised an error or returned no finite number for "
                "the class weights of two sides: allowed are finite numbers."
            )
