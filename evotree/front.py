"""The front of a fitted model: its trees, tables of them, and the rules that take one of them.

A fit compares candidates before it returns one tree: `TreeChoice` has them, for people.

The complexity of a tree is the number of its leaves and terms. Where the fitness has several
objectives of the user's own, the front holds the trees that are not dominated in these.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Self

import numpy as np
import pandas as pd

from evotree.dataset import Dataset
from evotree.fitness.base import FitnessQualityComplexity, PenalizedAccuracy
from evotree.fitted import Fitted
from evotree.operators.losses import (
    loss_moments,
    mean_and_error,
    null_loss,
    row_losses,
    units_of,
)
from evotree.operators.pruning import choose_tree
from evotree.schema import text_of
from evotree.tree import ObliqueTree, SoftSides

NAMED_RULES = ("accurate", "tree", "simplest")
"""Names of the rules of `select` that bound nothing."""

CHOSEN = "chosen"
"""Name of the rule of estimators that takes what `fit` has chosen."""

_MEASURES = {"complexity": "complexity", "terms": "n_terms", "leaves": "n_leaves"}
BOUNDS = {**_MEASURES, "size": "n_nodes"}
"""What rules may bound, and the attribute of a tree that is meant."""

_COLUMNS = {
    **_MEASURES,
    "nodes": "n_nodes",
    "depth": "depth",
    "quality": "quality",
    "origin": "origin",
}

MENU = (3, 5, 8, 12, 20)
"""Complexities for which fits say what the best tree of at most so many leaves and terms loses."""

MAX_MEMBERS = 100
"""Most members of a front; each keeps a partition of the rows while a run lasts."""


_LOSS_NAMES = {
    "log_loss": "log loss",
    "brier": "Brier loss",
    "roc_auc": "1 - AUC",
    "accuracy": "error rate",
    "balanced_accuracy": "balanced error rate",
    "cost": "cost a row",
    "f1": "loss of F1",
    "f1_macro": "loss of F1",
    "mcc": "loss of Matthews' correlation",
    "squared_error": "unexplained variance",
    "quantile": "pinball loss",
    "poisson": "Poisson deviance",
}

_LOSS_DECIMALS, _MOST_LOSS_DECIMALS = 3, 6


def has_own_objectives(individual: Any) -> bool:
    """Return whether a fitness has several objectives other than quality and complexity."""
    fitness = individual.fitness
    return len(fitness.weights) > 1 and not isinstance(
        fitness, FitnessQualityComplexity
    )


def own_scores(member: Any) -> tuple[float, ...]:
    """Return the values of a member's several objectives other than quality and complexity."""
    if isinstance(member, FrontTree):
        return member.scores
    return tuple(member.fitness.values) if has_own_objectives(member) else ()


class FrontTree(ObliqueTree):
    """A member of the front of a fitted estimator: a tree over raw features.

    Attributes
    ----------
    quality : float
        That of the finished tree on the training rows.
    origin : str
        What made the first individual that it descends from.
    scores : tuple of float
        What a callable objective returned, where that is several numbers.
    sides : SoftSides or None
        Soft sides that the tree was made with; None where they are fitted to it.
    """

    @classmethod
    def of(
        cls,
        tree: ObliqueTree,
        quality: float,
        origin: str,
        scores: Any = (),
        sides: SoftSides | None = None,
    ) -> Self:
        """Return a tree as a member of a front; the arrays are shared."""
        member = cls.__new__(cls)
        own = quality, origin, scores, sides
        member.__setstate__((ObliqueTree.__getstate__(tree), *own))
        return member

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.of(self, self.quality, self.origin, self.scores, self.sides)

    def __getstate__(self) -> Any:
        own = self.quality, self.origin, self.scores, self.sides
        return super().__getstate__(), *own

    def __setstate__(self, state: Any) -> None:
        tree, self.quality, self.origin, self.scores, self.sides = state
        super().__setstate__(tree)


def undominated(candidates: Iterable[Any], most: int = MAX_MEMBERS) -> list[Any]:
    """Return trees that no other one dominates, by rising complexity, and at most so many."""
    ordered = sorted(candidates, key=lambda tree: (tree.complexity, -tree.quality))
    front: list[Any] = []
    for tree in ordered:
        scores = own_scores(tree)
        if scores:
            others = [own_scores(other) for other in ordered if other is not tree]
            if not any(_dominates(other, scores) for other in others):
                front.append(tree)
        elif not front or tree.quality > front[-1].quality:
            front.append(tree)
    while len(front) > most:
        del front[least_gain(front)]
    return front


def least_gain(front: Sequence[Any]) -> int:
    """Return which member, but for the first and last, adds least quality for its complexity."""
    gains = np.diff([tree.quality for tree in front])
    return 1 + int((gains / np.diff([tree.complexity for tree in front]))[:-1].argmin())


def _dominates(scores: Sequence[float], others: Sequence[float]) -> bool:
    """Return whether scores, and the complexity after them, are as good, and one is better."""
    gains = np.subtract(scores, others)
    gains[-1] *= -1.0
    return bool((gains >= 0.0).all() and gains.any())


@dataclass(frozen=True, eq=False)
class TreeChoice:
    """The candidates of a fit, with what they lost on rows held out, and which one was chosen.

    Printed, it says the size of the tree that was chosen, the mean size of the trees of its folds
    where that is another, what the best larger candidate lost, and what the trees of the front lost
    that are best among those of at most 3, 5, 8, 12 and 20 leaves and terms, as far as each loses
    less than smaller ones, with the standard errors of the differences to the chosen one.

    Attributes
    ----------
    loss : str
        What was compared: ``"log_loss"``, ``"brier"`` or ``"roc_auc"`` of probabilities; else the
        name of the objective whose loss it was, such as ``"cost"``, what a row costs.
    n_leaves, n_terms : int
        Size of the tree that the fit returned.
    menu : dict
        Leaves and terms of the tree of the front at each complexity that bounds it.
    """

    loss: str
    n_leaves: int
    n_terms: int
    _columns: Mapping[str, np.ndarray]
    menu: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def loss_name(self) -> str:
        """What was compared, in words."""
        return _LOSS_NAMES.get(self.loss, "loss")

    @property
    def size(self) -> str:
        """The size of the tree, and of the trees of its folds where that is another."""
        # Losses are those of trees of folds, whose size need not be that of the tree of all rows.
        size = _size_text(self.n_leaves, self.n_terms)
        on_folds = _size_of(self.to_frame().query("chosen").iloc[0])
        text = size if on_folds == size else f"{size} ({on_folds} on folds)"
        return f"{text} with its score" if self.is_on_score else text

    @property
    def is_on_score(self) -> bool:
        """Whether a tree on a score was chosen."""
        chosen = self.to_frame().query("chosen").iloc[0]
        return bool(chosen.get("on_score", False))

    def to_frame(self) -> pd.DataFrame:
        """Return a table of the candidates, the least complex first.

        Its columns are ``kind``: ``"tree"`` for first trees at some penalties, ``"evolved"``,
        ``"logistic"`` for trees of logistic models, ``"score"`` for a score of columns and hinges,
        ``"linear"`` where counts have models, ``"size"`` for the best trees of at most so many
        leaves and terms as ``at_most`` says; where a score was tried ``on_score``, whether a
        candidate is a tree that stands on it;
        ``leaves`` and ``complexity``, means over folds; ``size_penalty`` and ``term_penalty``;
        ``C`` and ``halvings`` of models; ``loss``, the mean over the rows held out;
        ``excess``, the loss less that of the chosen one, and its ``standard_error``; ``chosen``;
        and ``fold_0`` and so on, the loss in each fold. Trees of targets without a score, or on
        one, leave when they clearly lose: their ``excess`` is that of the folds before.
        """
        return pd.DataFrame(dict(self._columns))

    def __repr__(self) -> str:
        table = self.to_frame()
        own = table[table["chosen"]].iloc[0]
        is_sized = table["at_most"].notna()
        most = max(round(own["complexity"]), self.n_leaves + self.n_terms)
        larger = table[~is_sized & (table["complexity"].round() > most)]
        smaller = self._worth_their_size(table[is_sized])
        # A smaller tree was not chosen since it lost more: the digits have to show it.
        digits = _digits_between(own["loss"], smaller["loss"].min())
        parts = [
            f"{self.size}: held-out {self.loss_name} {_loss_text(own['loss'], digits)}"
        ]
        if len(larger):
            parts.append(f"best larger tree {_best_of(larger, digits, own['loss'])}")
        for bound, row in smaller.set_index("at_most").iterrows():
            lost = _lost(row, digits, _size_text(*self.menu[int(bound)]))
            parts.append(f"complexity<={bound:g}: {lost}")  # as `select_tree` takes it
        return "; ".join(parts)

    def judged(self) -> dict[tuple[int, int], tuple[float, float]]:
        """Return what trees of the front lost on rows held out, by their leaves and terms.

        With each loss comes the standard error of its difference to that of the chosen tree. A tree
        of several lines of the menu has the loss of the first, whose bound it fills best.
        """
        table = self.to_frame()
        sized = table.set_index("at_most")
        rows = {
            self.menu[bound]: sized.loc[bound]
            for bound in sorted(self.menu, reverse=True)
            if bound in sized.index
        }
        rows[self.n_leaves, self.n_terms] = table[table["chosen"]].iloc[0]
        return {
            size: (float(row["loss"]), float(row["standard_error"]))
            for size, row in rows.items()
        }

    def judged_text(self, n_leaves: int, n_terms: int) -> str | None:
        """Return what the tree of a size lost on rows held out, in words; None if none did."""
        loss, error = self.judged().get((n_leaves, n_terms), (None, 0.0))
        if loss is None:
            return None
        after = f" ± {_loss_text(error, _LOSS_DECIMALS)}" if error else ""
        return f"held-out {self.loss_name} {_loss_text(loss, _LOSS_DECIMALS)}{after}"

    def _worth_their_size(self, sized: pd.DataFrame) -> pd.DataFrame:
        """Return which trees of the menu are smaller than the tree and better than smaller ones."""
        chosen, kept = self.n_leaves + self.n_terms, []
        least, before = np.inf, None
        for bound, size in self.menu.items():
            row = sized[sized["at_most"] == bound]
            if sum(size) < chosen and size != before and (row["loss"] < least).any():
                kept.append(bound)
                least, before = row["loss"].iloc[0], size
        return sized[sized["at_most"].isin(kept)].sort_values("at_most")

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return f"<p>{self!r}</p>{self.to_frame()._repr_html_()}"


def _digits_between(lost: float, other: float) -> int:
    """Return how many decimals show that another loss is greater: three, or a few more."""
    for digits in range(_LOSS_DECIMALS, _MOST_LOSS_DECIMALS):
        if _loss_text(lost, digits) != _loss_text(other, digits):
            return digits
    return _LOSS_DECIMALS


def _size_of(candidate: pd.Series) -> str:
    """Return the mean size of a candidate's trees of folds, in words."""
    n_leaves = round(candidate["leaves"])
    # Each mean is rounded by itself, and a split has a term.
    return _size_text(
        n_leaves, max(round(candidate["complexity"]) - n_leaves, n_leaves - 1)
    )


def _best_of(table: pd.DataFrame, digits: int, lost: float = -np.inf) -> str:
    """Return what the best candidate lost, and its size, in words; and how to take a better one."""
    best = table.loc[table["loss"].idxmin()]
    text = _lost(best, digits, _size_of(best))
    return (
        f"{text}: select_tree('complexity<={round(best['complexity'])}')"
        if best["loss"] < lost
        else text
    )


def _lost(candidate: pd.Series, digits: int, size: str) -> str:
    """Return what a candidate lost, the standard error of the difference, and its size."""
    loss, error = (
        _loss_text(candidate[name], digits) for name in ("loss", "standard_error")
    )
    return f"{loss} ± {error} ({size})"


def _size_text(n_leaves: int, n_terms: int) -> str:
    """Return the size of a tree in words."""
    terms = f"{n_terms} term{'' if n_terms == 1 else 's'}"
    if n_leaves == 1:
        return f"one leaf of {terms}" if n_terms else "one leaf"
    return f"one split of {terms}" if n_leaves == 2 else f"{n_leaves} leaves, {terms}"


def _loss_text(value: float, digits: int) -> str:
    return (
        f"{value:.{digits}f}".replace("0.", ".", 1)
        if 0.0 <= value < 1.0
        else text_of(float(f"{value:.{digits}g}"))
    )


def in_unit(columns: Mapping[str, np.ndarray], unit: float) -> dict[str, np.ndarray]:
    """Return the columns of `TreeChoice` with losses in another unit."""
    of_losses = ("loss", "excess", "standard_error")
    return {
        name: column * unit if name in of_losses or name.startswith("fold_") else column
        for name, column in columns.items()
    }


class FittedFront(Sequence[FrontTree]):
    """The front of a fitted estimator; printed, it has an arrow at the estimator's tree.

    Its members are trees. Those of an estimator are what is known of each, `models`, a list of
    `evotree.fitted.Fitted`; a search alone knows its trees.
    """

    def __init__(
        self,
        members: Iterable[FrontTree | Fitted],
        is_regression: bool,
        chosen: int | None = None,
        choice: TreeChoice | None = None,
    ) -> None:
        known = list(members)
        self.models = [one for one in known if isinstance(one, Fitted)]
        self.items: list[Any] = [model.tree for model in self.models] or known
        self.is_regression = is_regression
        self.chosen = chosen
        self.choice = choice

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]

    def __repr__(self) -> str:
        table = self._shown().to_string(float_format="{:.4f}".format, na_rep="")
        return (
            table
            if self.choice is None
            else f"{table}\nchosen: {self.choice!r}".replace("; ", ";\n    ")
        )

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return self._shown().to_html(float_format="{:.4f}".format, na_rep="")

    def _shown(self) -> pd.DataFrame:
        """Return the table that is printed."""
        known = self.to_frame()
        table = known[["quality", "complexity", "terms", "leaves", "depth"]]
        if self.choice is not None and known["held_out_loss"].count() > 1:
            name = f"held-out {self.choice.loss_name}"
            table.insert(1, name, known["held_out_loss"])
        if self.models and self.models[0].arguments.objective:
            table = table.assign(quality=self.models[0].told(table["quality"]))
            table = table.rename(columns={"quality": self.models[0].measure})
        table.index = pd.Index(
            [f"{'->' if i == self.chosen else '  '} {i:>2}" for i in range(len(self))]
        )
        return table

    def choosing(self, tree: ObliqueTree) -> Self:
        """Return the same front with the arrow at a tree; at none if that is no member."""
        at = self.index(tree) if tree in self else None
        members = self.models or self.items
        return type(self)(members, self.is_regression, at, self.choice)

    def of_models(self, models: Iterable[Fitted]) -> Self:
        """Return the same front with what is known of each of its trees."""
        return type(self)(models, self.is_regression, self.chosen, self.choice)

    def to_frame(self, held_out: Dataset | None = None) -> pd.DataFrame:
        """Return the front as a table; see `front_table`.

        Where a fit has compared candidates, ``held_out_loss`` is what the chosen tree and those of
        the menu lost on rows held out, and ``held_out_loss_se`` the standard error of the
        difference to the chosen one (`TreeChoice.judged`); they are NaN for trees of other sizes.
        """
        table = front_table(self.items, held_out)
        if self.choice is not None:
            judged = self.choice.judged()
            sizes = [(tree.n_leaves, tree.n_terms) for tree in self.items]
            losses = [judged.get(size, (np.nan, np.nan)) for size in sizes]
            table[["held_out_loss", "held_out_loss_se"]] = np.array(losses)
        return table


def front_table(
    members: Sequence[Any], held_out: Dataset | None = None
) -> pd.DataFrame:
    """Return the members of a front as a table."""
    table = pd.DataFrame(
        {
            name: [getattr(member, attribute) for member in members]
            for name, attribute in _COLUMNS.items()
        }
    )
    if held_out is not None:
        quality, standard_error = held_out_quality(members, held_out)
        at = table.columns.get_loc("origin")
        table.insert(at, "held_out_quality", quality)
        table.insert(at + 1, "held_out_se", standard_error)
    for at, values in enumerate(zip(*map(own_scores, members), strict=True)):
        table[f"objective_{at}"] = values
    return table


def held_out_losses(front: Sequence[Any], held_out: Dataset) -> np.ndarray:
    """Return what the members of a front lose on held-out rows, as `mean_and_error` takes it."""
    if held_out.X.shape[0] == 0:
        raise ValueError("X has no rows: at least one is needed.")
    losses = np.array([row_losses(member, held_out) for member in front])
    return loss_moments(losses, held_out.sample_weight, units_of(held_out))


def held_out_quality(
    front: Sequence[Any], held_out: Dataset
) -> tuple[np.ndarray, np.ndarray]:
    """Return the accuracy of the members of a front on held-out rows, or R² for targets.

    Of counts it is the share of Poisson's deviance that is saved, of quantiles that of their loss.
    """
    loss, error = mean_and_error(held_out_losses(front, held_out))
    weight, whole = held_out.total_weight, null_loss(held_out)
    if whole == 0.0:  # equal targets
        return np.where(loss == 0.0, 1.0, 0.0), np.zeros(len(front))
    return 1.0 - loss * (weight / whole), error * (weight / whole)


def menu_of(front: Sequence[Any]) -> dict[int, tuple[int, int]]:
    """Return leaves and terms of the tree that `select` takes at each bound of the menu."""
    smallest = min(tree.complexity for tree in front)
    chosen = {
        bound: select(front, f"complexity<={bound}")
        for bound in MENU
        if bound >= smallest
    }
    return {bound: (tree.n_leaves, tree.n_terms) for bound, tree in chosen.items()}


def check_rule(rule: str) -> tuple[str, int]:
    """Split the name of a rule of `select` into its kind and its bound."""
    if rule in NAMED_RULES:
        return rule, 0
    pattern = rf"\s*({'|'.join(BOUNDS)})\s*<=\s*(\d+)\s*"
    match = re.fullmatch(pattern, rule) if isinstance(rule, str) else None
    if match is None or int(match[2]) < (match[1] != "terms"):
        raise ValueError(
            f"rule={rule!r}: allowed are 'chosen', 'accurate', 'tree', 'simplest', 'complexity<=k' "
            "(leaves and terms), 'terms<=k', 'leaves<=k' and 'size<=k' (nodes), such as "
            "'terms<=12', k being at least 1, of terms 0."
        )
    return match[1], int(match[2])


def select(
    front: Any,
    rule: str,
    held_out: Dataset | None = None,
    penalties: tuple[float, float] = (0.0, 0.0),
) -> Any:
    """Choose a member of a front by its quality on the training rows, or on rows held out.

    `penalties` for nodes and terms are those of the rule ``"tree"`` where no rows are held out.
    """
    kind, bound = check_rule(rule)
    if len(front) == 0:
        raise ValueError("front has no members: update it with a population first.")
    members = list(front)
    if kind in BOUNDS:
        measure = attrgetter(BOUNDS[kind])
        members = [member for member in members if measure(member) <= bound]
        if not members:
            raise ValueError(
                f"rule={rule!r}: the least {kind} of a member of the front is "
                f"{min(map(measure, front))}; add_prunings makes smaller ones."
            )
    elif kind == "tree":
        members = [member for member in members if member.n_leaves > 1]
        if not members:
            raise ValueError("rule='tree': no tree of the front has a split.")
    elif kind == "simplest" and held_out is None:
        raise ValueError(
            "rule='simplest' needs X and y, rows that fit has not seen: a larger tree is better on "
            "the rows that it was fitted to."
        )
    if held_out is None and kind == "tree":
        return max(members, key=PenalizedAccuracy(*penalties))
    if held_out is None:
        return min(members, key=lambda member: (-member.quality, member.complexity))
    # The rule of pruning takes the trees from the most complex to the simplest.
    chosen = choose_tree(
        held_out_losses(members, held_out)[::-1],
        1.0 if kind == "simplest" else 0.0,
    )
    return members[len(members) - 1 - chosen]
