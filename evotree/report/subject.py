"""What a report is of: a tree or forest with its names, and what is known of its training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import pandas as pd

from evotree.description.named import NamedTree, is_forest, named_tree
from evotree.engine.history import to_frame
from evotree.inspection.training_rows import TrainingRows
from evotree.tree import ObliqueTree


@dataclass(frozen=True, eq=False)
class Subject:
    """A model to report on.

    Attributes
    ----------
    named : NamedTree
        Its tree, with the columns that the features are made of.
    target : str
        What is predicted.
    front : sequence of FrontTree
        Other trees to choose from, by rising complexity; may be empty.
    history : pandas.DataFrame or None
        The records of the generations, as `evotree.to_frame` makes them.
    training : TrainingRows or None
        The summary of the training rows at the nodes of the tree.
    facts : mapping of str to str
        What else is known of the training, to be shown as it is.
    members : sequence of Subject
        The trees of a forest, of which `named` is the first; empty where the model is one tree.
    """

    named: NamedTree
    target: str = "the target"
    front: Sequence[Any] = ()
    history: pd.DataFrame | None = None
    training: TrainingRows | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    members: Sequence[Subject] = ()

    @classmethod
    def of(cls, model: Any, target: str | None = None) -> Self:
        """Return what a fitted estimator of this package knows of itself."""
        if is_forest(model):
            members = [cls.of(member, target) for member in model.estimators_]
            return replace(members[0], facts=_facts(model), members=members)
        logbook = getattr(model, "history_", None)
        return cls(
            named_tree(model),
            target or "the target",
            list(getattr(model, "pareto_front_", ())),
            to_frame(logbook) if logbook else None,
            model.training_rows_,
            _facts(model),
        )

    @property
    def trees(self) -> tuple[list[ObliqueTree], int]:
        """The trees to choose from, by rising complexity, and the position of the model's own."""
        own = self.named.tree
        others = [tree for tree in self.front if tree != own]
        at = sum(tree.complexity <= own.complexity for tree in others)
        return [*others[:at], own, *others[at:]], at


def _facts(estimator: Any) -> dict[str, str]:
    """Return what a fit has chosen and how it ended, as text."""
    found = {"estimator": type(estimator).__name__}
    if hasattr(estimator, "oob_score_"):
        name = "accuracy" if hasattr(estimator, "classes_") else "R²"
        found["out of bag"] = f"{name} {estimator.oob_score_:.4f}"
    for name in ("size_penalty", "term_penalty"):
        if hasattr(estimator, f"{name}_"):
            found[name.replace("_", " ")] = f"{getattr(estimator, f'{name}_'):.4g}"
    if hasattr(estimator, "n_generations_"):
        found["generations"] = str(estimator.n_generations_)
        found["stopped by"] = str(estimator.stop_reason_).replace("_", " ")
        seconds = estimator.seconds_.items()
        found["seconds"] = ", ".join(f"{name} {took:.3g}" for name, took in seconds if took >= 0.05)
    return found
