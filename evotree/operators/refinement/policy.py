"""Local refinement: which individuals are polished, when, by what, and what came of it.

An evolution that refines some of its members is a memetic algorithm (Moscato 1989, "On evolution,
search, optimization, genetic algorithms and martial arts: towards memetic algorithms").
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from evotree._jit import compile_seconds
from evotree._sklearn import HasMethods, Interval, StrOptions
from evotree.configuration import Configuration, RisingPair
from evotree.individual import Outcome, set_fitness
from evotree.operators.pruning.penalized import prune
from evotree.operators.refinement.refiners import Refiner, make_refiner
from evotree.operators.splitters.linear_fit import PENALTIES
from evotree.rng import uniform

if TYPE_CHECKING:
    from deap import base

    from evotree.dataset import Dataset
    from evotree.individual import Individual

TARGETS = ("random", "best", "promising")
"""Names of the ways to choose which individuals are refined."""

_ABOVE_0 = Interval(Real, 0.0, None, closed="neither")


class Spent(NamedTuple):
    """What the refinements of a run have taken so far."""

    evaluations: int = 0
    seconds: float = 0.0  # compilation of kernels apart

    def plus(self, refined: Sequence[Individual]) -> Spent:
        """Return what it is once some more individuals are refined; users' own need not say."""
        outcomes = [getattr(individual, "outcome", None) for individual in refined]
        seconds = math.fsum(outcome.seconds for outcome in outcomes if outcome is not None)
        return Spent(self.evaluations + len(refined), self.seconds + seconds)


NOTHING_SPENT = Spent()


@dataclass(frozen=True, repr=False)
class Refinement(Configuration):
    """Which individuals are refined, when, and by what.

    Parameters
    ----------
    operators : str, iterable of str or mapping of str to float, default="tao"
        Names of refiners (see `make_refiner`), for equal shares or with their shares of the
        refinements, which need not add up to 1. Keys of a mapping may also be refiners.
    probability : float in [0, 1], default=0.1
        Share of a generation's offspring that is refined.
    target : {"random", "best", "promising"}, default="random"
        Which: any with this chance, the fittest, or the fittest of each structure, structures with
        the fittest member first. Of the fittest it is one at least, unless the probability is 0.
    every : int, at least 1, default=1
        Every how many generations.
    max_seconds : float or None, default=None
        No more refinements in the generations after that in which they have taken so long
        together. A run with such a budget depends on the speed of the machine.
    max_evaluations : int or None, default=None
        No more refinements than so many.
    C : float above 0, or tuple of two, default=(0.1, 10.0)
        Cost of a row's loss in the linear classifiers of ``"tao"``, ``"sparse"`` and
        ``"linear"``; of two numbers, each refinement draws one between them, log-uniformly.
    penalty : {"l2", "l1"}, default="l2"
        Their penalty; "l1" makes weights 0.
    """

    operators: Annotated[
        str | Iterable[str] | Mapping[str | Refiner, float], HasMethods(["__iter__"])
    ] = "tao"
    probability: Annotated[float, Interval(Real, 0.0, 1.0, closed="both")] = 0.1
    target: Annotated[str, StrOptions(set(TARGETS))] = "random"
    every: Annotated[int, Interval(Integral, 1, None, closed="left")] = 1
    max_seconds: Annotated[float | None, _ABOVE_0, None] = None
    max_evaluations: Annotated[int | None, Interval(Integral, 1, None, closed="left"), None] = None
    C: Annotated[
        float | tuple[float, float], _ABOVE_0, RisingPair(Real, 0.0, None, closed="neither")
    ] = (0.1, 10.0)
    penalty: Annotated[str, StrOptions(set(PENALTIES))] = "l2"

    def bounds(self) -> tuple[float, float]:
        """Return the bounds of C."""
        return self.C if isinstance(self.C, tuple) else (self.C, self.C)

    def left(self, spent: Spent) -> int | None:
        """Return how many refinements the budgets still allow; None where there is no limit."""
        if self.max_seconds is not None and spent.seconds >= self.max_seconds:
            return 0
        if self.max_evaluations is None:
            return None
        return max(0, self.max_evaluations - spent.evaluations)

    def shares(self) -> dict[str | Refiner, float]:
        """Return the share of each operator in the refinements; they add up to 1."""
        operators = (self.operators,) if isinstance(self.operators, str) else self.operators
        if not isinstance(operators, Mapping):
            operators = dict.fromkeys(operators, 1.0)
        total = math.fsum(operators.values())
        if not 0.0 < total < math.inf or min(operators.values()) < 0.0:
            raise ValueError(
                f"refinement has the shares {dict(operators)!r}: allowed are numbers of at least "
                "0, some above."
            )
        return {name: share / total for name, share in operators.items()}


def as_refinement(
    refinement: None | str | Iterable[str] | Mapping[Any, float] | Refinement,
) -> Refinement | None:
    """Return the refinement that a parameter describes: its operators, or all of it."""
    if refinement is None or isinstance(refinement, Refinement):
        return refinement
    return Refinement(refinement)


def make_refiners(
    refinement: Refinement,
    size_penalty: float,
    term_penalty: float = 0.0,
    max_features: int | None = None,
) -> dict[str, tuple[float, Refiner]]:
    """Return share and refiner of each operator, by name."""
    refiners: dict[str, tuple[float, Refiner]] = {}
    for operator, share in refinement.shares().items():
        kind = operator
        if not isinstance(operator, str):
            kind = getattr(operator, "__name__", type(operator).__name__)
        name, n_alike = str(kind), 1
        while name in refiners:
            n_alike += 1
            name = f"{kind}{n_alike}"
        parameters = refinement.bounds(), refinement.penalty, term_penalty, max_features
        refiners[name] = share, make_refiner(operator, size_penalty, *parameters)
    return refiners


def refine(
    individual: Individual,
    toolbox: base.Toolbox,
    dataset: Dataset,
    refiners: Mapping[str, tuple[float, Refiner]],
    size_penalty: float,
    term_penalty: float = 0.0,
) -> tuple[Individual]:
    """Refine an individual by one of several operators, unless its fitness would fall."""
    begin = time.perf_counter() - compile_seconds()
    draw = uniform(individual.stream)
    for name, (share, refiner) in refiners.items():  # noqa: B007
        draw -= share
        if draw < 0.0:
            break
    trial = individual.clone()
    refiner(trial, dataset)
    prune(trial, dataset, size_penalty, term_penalty)
    set_fitness(trial, toolbox.evaluate(trial))
    gain = trial.fitness.wvalues[0] - individual.fitness.wvalues[0]
    if trial.fitness >= individual.fitness:
        individual.become(trial)
        individual.fitness.wvalues = trial.fitness.wvalues
    seconds = time.perf_counter() - compile_seconds() - begin
    individual.outcome = Outcome(name, max(gain, 0.0), max(seconds, 0.0))
    return (individual,)


def choose_for_refinement(
    individuals: Sequence[Individual],
    generation: int,
    spent: Spent = NOTHING_SPENT,
    *,
    refinement: Refinement,
) -> list[Individual]:
    """Return the individuals of a generation that are to be refined."""
    left = refinement.left(spent)
    if generation % refinement.every or left == 0 or refinement.probability == 0.0:
        return []
    candidates = [individual for individual in individuals if len(individual) > 1]
    if refinement.target == "random":
        return [tree for tree in candidates if uniform(tree.stream) < refinement.probability][:left]
    candidates.sort(key=lambda tree: tree.fitness.wvalues, reverse=True)
    if refinement.target == "promising":  # the first of each structure
        best_of = {tree.subtree_size.tobytes(): tree for tree in reversed(candidates)}
        candidates = [tree for tree in candidates if best_of[tree.subtree_size.tobytes()] is tree]
    n_chosen = max(1, round(refinement.probability * len(individuals)))
    return candidates[: n_chosen if left is None else min(n_chosen, left)]
