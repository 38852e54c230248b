"""All losses by their names, and the objective that is composed of a loss, leaves and an order."""

from typing import Any

from evotree.configuration import Cost, LinearLeaves, Quantile
from evotree.dataset import Dataset
from evotree.fitness.base import LINES, ORDER, OUTPUTS, Objective
from evotree.fitness.linear_leaves import LinearLeafObjective, lines_asked
from evotree.fitness.logistic_leaves import LogisticLeaves
from evotree.fitness.losses import (
    Accuracy,
    ConfusionScore,
    ExpectedCost,
    Leaves,
    OwnObjective,
    PoissonLoss,
    ProbabilityScore,
    QuantileLoss,
    RankingScore,
    SquaredLoss,
)
from evotree.fitness.several_outputs import LinesOfOutputs, MeansOfOutputs

__all__ = [
    "CLASS_OBJECTIVES",
    "LOSSES",
    "TARGET_OBJECTIVES",
    "Leaves",
    "Objective",
    "as_objective",
    "class_models",
    "compose",
]

_KINDS: tuple[type[Objective], ...] = (
    Accuracy,
    ExpectedCost,
    ConfusionScore,
    ProbabilityScore,
    RankingScore,
    SquaredLoss,
    QuantileLoss,
    PoissonLoss,
)

LOSSES = {name: loss for loss in _KINDS for name in loss.names}
"""The loss of each name; what is here is tested by the properties that all losses have."""

CLASS_OBJECTIVES = tuple(name for name, loss in LOSSES.items() if loss.is_of_classes)
"""Names of the objectives of classifiers."""

TARGET_OBJECTIVES = tuple(
    name for name, loss in LOSSES.items() if not loss.is_of_classes
)
"""Names of the objectives of regressors."""

_PLAIN = ("accuracy", "squared_error")  # the search has kernels of its own for these


_NAMES: dict[type, str] = {Cost: "cost", Quantile: "quantile"}


def as_objective(objective: Any, dataset: Dataset) -> Objective | None:
    """Return what users ask for as an objective.

    Parameters
    ----------
    objective : str, callable, Cost, Quantile or Objective
        As `evotree.EvoTreeClassifier` and `evotree.EvoTreeRegressor` take it.
    dataset : Dataset
        Its task decides what is allowed; anything else raises a ValueError.

    Returns
    -------
    Objective or None
        None stands for the accuracy and the squared error, for which the search has kernels.
    """
    if isinstance(objective, Objective):
        return objective
    name: Any = _NAMES.get(type(objective), objective)
    allowed = CLASS_OBJECTIVES if dataset.n_classes else TARGET_OBJECTIVES
    if callable(name) and dataset.n_classes:
        return OwnObjective(name)
    if name not in allowed:
        callables = (
            "and callables" if dataset.n_classes else "callables are for classes"
        )
        names = ", ".join(map(repr, allowed))
        raise ValueError(f"objective={name!r}: allowed are {names}; {callables}.")
    return None if name in _PLAIN else LOSSES[name].named(name, dataset, objective)


def compose(
    objective: Any,
    dataset: Dataset,
    *,
    leaves: str | LinearLeaves = "constant",
    max_terms: int | None = None,
    constraint: Any = None,
) -> Objective | None:
    """Return the objective of a loss at some kind of leaves, for all outputs, under a constraint.

    `objective` is a name, a callable, a `Cost`, a `Quantile`, an objective, or None for that of the
    task. What does not go together is refused here, and nowhere else. Linear leaves of classes are
    `class_models`: trees evolve for the loss with constant leaves.
    """
    names = CLASS_OBJECTIVES if dataset.n_classes else TARGET_OBJECTIVES
    objective = objective or _PLAIN[not dataset.n_classes]
    name: Any = _NAMES.get(type(objective), objective)
    is_known = isinstance(name, str) and name in names
    kind: Any = LOSSES[name] if is_known else type(as_objective(objective, dataset))
    parts = {
        LINES: leaves not in ("auto", "constant"),
        OUTPUTS: dataset.outputs is not None,
        ORDER: constraint is not None,
    }
    for part, is_there in parts.items():
        if is_there and part not in kind.goes_with:
            allowed = [repr(one) for one in names if part in LOSSES[one].goes_with]
            raise ValueError(
                f"objective={objective!r} does not go with "
                f"{f'leaves={leaves!r}' if part == LINES else part}: allowed are "
                f"{', '.join(allowed) or 'none'}."
            )
    if parts[OUTPUTS] and parts[ORDER]:
        raise ValueError(
            f"monotonic_cst: y has {dataset.n_outputs} outputs; allowed is None."
        )
    if dataset.n_classes and parts[LINES]:
        for bound, value in {
            "monotonic_cst": constraint,
            "max_terms": max_terms,
        }.items():
            if value is not None:
                raise ValueError(
                    f"{bound} does not go with leaves={leaves!r} of classes: allowed is None."
                )
    loss = as_objective(objective, dataset)
    if isinstance(loss, MeansOfOutputs):
        return loss
    lines = loss if isinstance(loss, LinearLeafObjective) else None
    has_lines = leaves != "constant" and LINES in kind.goes_with
    if lines is None and has_lines and not dataset.n_classes:
        loss = lines = lines_asked(leaves, dataset, max_terms)
    if parts[OUTPUTS]:
        return MeansOfOutputs() if lines is None else LinesOfOutputs(lines=lines)
    if constraint is None:
        return loss
    return (kind() if loss is None else loss).constrained(constraint)


def class_models(
    leaves: str | LinearLeaves, dataset: Dataset, *, is_free: bool
) -> LogisticLeaves | None:
    """Return the models that the leaves of classes may hold; None where they hold shares alone.

    With ``"auto"`` one leaf is tried where trees are free: nothing else is asked of them.
    """
    if not dataset.n_classes or leaves == "constant":
        return None
    if leaves == "auto":
        return LogisticLeaves() if is_free and dataset.objective is None else None
    return LogisticLeaves.asked(leaves, dataset)
