"""All losses by their names, and the objective that is composed of a loss, leaves and an order."""

from collections.abc import Callable
from typing import Any

from evotree.dataset import Dataset
from evotree.fitness.base import LINES, ORDER, OUTPUTS, Objective
from evotree.fitness.costs import FeatureCosts
from evotree.fitness.linear_leaves import LinearLeafObjective, lines_asked
from evotree.fitness.losses import (
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
from evotree.objectives import Cost, LinearLeaves, Quantile

__all__ = ["CLASS_OBJECTIVES", "LOSSES", "TARGET_OBJECTIVES", "Leaves", "Objective"]
__all__ += ["as_objective", "compose"]

_KINDS: tuple[type[Objective], ...] = (ExpectedCost, ConfusionScore, ProbabilityScore, RankingScore)
_KINDS += SquaredLoss, QuantileLoss, PoissonLoss

LOSSES = {name: loss for loss in _KINDS for name in loss.names}
"""The loss of each name; what is here is tested by the properties that all losses have."""

CLASS_OBJECTIVES = tuple(name for name, loss in LOSSES.items() if loss.is_of_classes)
"""Names of the objectives of classifiers."""

TARGET_OBJECTIVES = tuple(name for name, loss in LOSSES.items() if not loss.is_of_classes)
"""Names of the objectives of regressors."""

_PLAIN = ("accuracy", "squared_error")  # the search has kernels of its own for these


def as_objective(
    objective: str | Callable[..., Any] | Objective,
    dataset: Dataset,
    *,
    cost_matrix: Any = None,
    features: FeatureCosts | None = None,
    level: float = 0.5,
) -> Objective | None:
    """Return the objective of a name or of a callable; None for the accuracy and squared error.

    ``cost_matrix[a][b]`` is what it costs to predict class b where a is true, and `level` the
    quantile of ``"quantile"``.
    """
    if isinstance(objective, Objective):
        return objective
    allowed = CLASS_OBJECTIVES if dataset.n_classes else TARGET_OBJECTIVES
    if callable(objective) and dataset.n_classes:
        return OwnObjective(objective)
    if objective not in allowed:
        callables = "and callables" if dataset.n_classes else "callables are for classes"
        names = ", ".join(map(repr, allowed))
        raise ValueError(f"objective={objective!r}: allowed are {names}; {callables}.")
    options = {"cost_matrix": cost_matrix, "features": features, "level": level}
    return None if objective in _PLAIN else LOSSES[objective].named(objective, dataset, **options)


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
    task. What does not go together is refused here, and nowhere else.
    """
    names = CLASS_OBJECTIVES if dataset.n_classes else TARGET_OBJECTIVES
    name, options = _named(objective or _PLAIN[not dataset.n_classes], dataset)
    is_known = isinstance(name, str) and name in names
    kind: Any = LOSSES[name] if is_known else type(as_objective(name, dataset, **options))
    asked = {
        LINES: leaves not in ("auto", "constant"),
        OUTPUTS: dataset.outputs is not None,
        ORDER: constraint is not None,
    }
    for part, is_asked in asked.items():
        if is_asked and part not in kind.goes_with:
            allowed = [repr(one) for one in names if part in LOSSES[one].goes_with]
            what = f"leaves={leaves!r}" if part == LINES else part
            shown = ", ".join(allowed) or "none"
            given = f"objective={objective or name!r} does not go with {what}"
            raise ValueError(f"{given}: allowed are {shown}.")
    if asked[OUTPUTS] and asked[ORDER]:
        raise ValueError(f"monotonic_cst: y has {dataset.n_outputs} outputs; allowed is None.")
    loss = as_objective(name, dataset, **options)
    if isinstance(loss, MeansOfOutputs):
        return loss
    lines = loss if isinstance(loss, LinearLeafObjective) else None
    if lines is None and leaves != "constant" and LINES in kind.goes_with:
        loss = lines = lines_asked(leaves, dataset, max_terms)
    if asked[OUTPUTS]:
        return MeansOfOutputs() if lines is None else LinesOfOutputs(lines=lines)
    if constraint is None:
        return loss
    return (kind() if loss is None else loss).constrained(constraint)


def _named(objective: Any, dataset: Dataset) -> tuple[Any, dict[str, Any]]:
    """Return the name of what a user asks for, and the options of `as_objective`."""
    if isinstance(objective, Quantile):
        return "quantile", {"level": objective.level}
    if not isinstance(objective, Cost):
        return objective, {}
    features = None
    if objective.features is not None:
        columns = dataset.column_names, dataset.column_of.tolist()
        features = FeatureCosts.of(objective.features, *columns)
    return "cost", {"cost_matrix": objective.matrix, "features": features}
