"""What a fit compared before it returned a tree, for people: one line, or a table."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

_LOSS_NAMES = {
    "log_loss": "log loss",
    "brier": "Brier loss",
    "roc_auc": "1 - AUC",
}

_DECIMALS, _MOST_DECIMALS = 3, 6  # of a loss


@dataclass(frozen=True, eq=False)
class TreeChoice:
    """The candidates of a fit, with what they lost on rows held out, and which one was chosen.

    Printed, it says in a line the size of the tree that was chosen, the mean size of the trees of
    its folds where that is another, and what the best candidates of larger and of smaller trees
    lost, with the standard error of the difference.

    Attributes
    ----------
    loss : str
        What was compared: ``"log_loss"``, ``"brier"`` or ``"roc_auc"``; or ``"loss"``, that of the
        objective.
    n_leaves, n_terms : int
        Size of the tree that the fit returned.
    """

    loss: str
    n_leaves: int
    n_terms: int
    _columns: Mapping[str, np.ndarray]

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
        return size if on_folds == size else f"{size} ({on_folds} on folds)"

    def to_frame(self) -> pd.DataFrame:
        """Return a table of the candidates, the least complex first.

        Its columns are ``kind``: ``"tree"`` for first trees at some penalties, ``"evolved"``,
        ``"logistic"`` for trees of logistic models, ``"linear"`` where leaves have models;
        ``leaves`` and ``complexity``, means over folds; ``size_penalty`` and ``term_penalty``;
        ``C`` and ``halvings`` of logistic models; ``loss``, the mean over the rows held out;
        ``excess``, the loss less that of the chosen one, and its ``standard_error``; ``chosen``;
        where columns bend ``bends``, whether those of a candidate do; and ``fold_0`` and so on, the
        loss in each fold.
        """
        return pd.DataFrame(dict(self._columns))

    def __repr__(self) -> str:
        table = self.to_frame()
        own = table[table["chosen"]].iloc[0]
        rounded = table["complexity"].round()
        is_bent = table.get("bends", pd.Series(True, table.index))
        larger = table[is_bent & (rounded > round(own["complexity"]))]
        smaller = table[is_bent & (rounded < round(own["complexity"]))]
        # A smaller tree was not chosen since it lost more: the digits have to show it.
        digits = _digits_between(own["loss"], smaller["loss"].min())
        parts = [
            f"{self.size}: held-out {self.loss_name} {_short_number(own['loss'], digits)}"
        ]
        if "bends" in table:  # those without stand for themselves
            parts.append(f"without bends {_best_of(table[~is_bent], digits)}")
        if len(larger):
            parts.append(f"best larger tree {_best_of(larger, digits, own['loss'])}")
        if len(smaller):
            parts.append(f"best smaller tree {_best_of(smaller, digits)}")
        return "; ".join(parts)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return f"<p>{self!r}</p>{self.to_frame()._repr_html_()}"


def _digits_between(lost: float, other: float) -> int:
    """Return how many decimals show that another loss is greater: three, or a few more."""
    for digits in range(_DECIMALS, _MOST_DECIMALS):
        if _short_number(lost, digits) != _short_number(other, digits):
            return digits
    return _DECIMALS


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
    loss, error = (
        _short_number(best[name], digits) for name in ("loss", "standard_error")
    )
    text = f"{loss} ± {error} ({_size_of(best)})"
    return (
        f"{text}: select_tree('complexity<={round(best['complexity'])}')"
        if best["loss"] < lost
        else text
    )


def _size_text(n_leaves: int, n_terms: int) -> str:
    """Return the size of a tree in words."""
    terms = f"{n_terms} term{'' if n_terms == 1 else 's'}"
    if n_leaves == 1:
        return f"one leaf of {terms}" if n_terms else "one leaf"
    return f"one split of {terms}" if n_leaves == 2 else f"{n_leaves} leaves, {terms}"


def _short_number(value: float, digits: int) -> str:
    return (
        f"{value:.{digits}f}".replace("0.", ".", 1)
        if 0.0 <= value < 1.0
        else f"{value:.{digits}g}"
    )
