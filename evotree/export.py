"""A finished tree as text that one can read, and as plain data that gives back the same tree.

In: an `ObliqueTree`, or a fitted classifier around one. Out: indented rules, or a dictionary of
numbers and lists that JSON holds without loss.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evotree.tree import ObliqueTree

__all__ = ["export_text", "tree_from_dict", "tree_to_dict"]

TREE_VERSION = 1
#: Limits of what is taken for a tree; far above anything that evolution makes.
MAX_NODES = 100_000
MAX_NUMBERS = 50_000_000

_LINE_WIDTH = 100
_LEAST_WIDTH = 40


def export_text(
    tree: Any,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | None = None,
    decimals: int = 3,
    spreads: Sequence[float] | np.ndarray | None = None,
) -> str:
    """Return a tree as indented rules.

    A row goes to the first branch below a rule where the rule holds, and to ``else`` where it does
    not. The terms of a rule are ordered by their influence, the largest first; weights of 0 are
    left out. A rule is scaled so that the weight of its first term is 1, which changes no decision:
    the other weights and the threshold are then in units of that feature.

    Parameters
    ----------
    tree : ObliqueTree or fitted classifier
        The tree; of a classifier its ``tree_``, with the names of its features and classes.
    feature_names : sequence of str, optional
        One name for each feature; by default those of the classifier, else ``x0``, ``x1``, ...
    class_names : sequence, optional
        One name for each class; by default those of the classifier, else 0, 1, ... A tree with one
        output and no class names is shown with its values.
    decimals : int, at least 0, default=3
        Digits after the decimal point; numbers below 1 show as many significant digits instead,
        since weights over features of large units are small.
    spreads : sequence of float, optional
        A standard deviation for each feature: influence is then |weight| times spread, else
        |weight|.

    Returns
    -------
    str
        Lines that end in a newline.

    Raises
    ------
    ValueError
        If the number of names or spreads does not fit the tree, or `decimals` is not a whole number
        of at least 0.

    Examples
    --------
    >>> tree = ObliqueTree(
    ...     weights=np.array([[0.5, -2.0], [0.0, 0.0], [0.0, 0.0]]),
    ...     thresholds=np.array([1.5, 0.0, 0.0]),
    ...     subtree_size=np.array([3, 1, 1], dtype=np.int32),
    ...     values=np.array([[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]]),
    ... )
    >>> print(export_text(tree, ["length", "width"], ["no", "yes"]), end="")
    |--- width - 0.250 * length >= -0.750
    |   |--- class: no (share 1.00)
    |--- else
    |   |--- class: yes (share 0.75)
    """
    if isinstance(decimals, bool) or not isinstance(decimals, int) or decimals < 0:
        raise ValueError(f"decimals={decimals!r}: allowed is a whole number of at least 0.")
    if not isinstance(tree, ObliqueTree):
        tree, feature_names, class_names = _of_classifier(tree, feature_names, class_names)
    n_features, n_outputs = tree.n_features, tree.values.shape[1]
    if feature_names is None:
        feature_names = [f"x{j}" for j in range(n_features)]
    if class_names is None and n_outputs > 1:
        class_names = range(n_outputs)
    influence = np.abs(tree.weights)
    if spreads is not None:
        _check_length("spreads", spreads, n_features, "features")
        influence = influence * np.asarray(spreads, dtype=np.float64)
    _check_length("feature_names", feature_names, n_features, "features")
    if class_names is not None:
        _check_length("class_names", class_names, n_outputs, "classes")

    lines: list[str] = []
    # Waiting places, the next one last: a node and its depth, or the "else" before a node.
    waiting: list[tuple[int, int, bool]] = [(0, 0, False)]
    while waiting:
        k, depth, is_else = waiting.pop()
        indent = "|   " * depth
        if is_else:
            lines.append(f"{indent}|--- else")
        elif tree.subtree_size[k] == 1:
            lines.append(f"{indent}|--- {_leaf(tree.values[k], class_names, decimals)}")
        else:
            terms = [
                (float(tree.weights[k, j]), str(feature_names[j]))
                for j in np.argsort(-influence[k], kind="stable")
                if tree.weights[k, j] != 0.0
            ]
            lines += _rule(terms, float(tree.thresholds[k]), indent, decimals)
            waiting.append((tree.right(k), depth + 1, False))
            waiting.append((k, depth, True))
            waiting.append((tree.left(k), depth + 1, False))
    return "\n".join(lines) + "\n"


def _of_classifier(
    classifier: Any, feature_names: Sequence[str] | None, class_names: Sequence[Any] | None
) -> tuple[ObliqueTree, Sequence[str] | None, Sequence[Any] | None]:
    """Return the tree of a fitted classifier, and its names where none are given."""
    tree = getattr(classifier, "tree_", None)
    if not isinstance(tree, ObliqueTree):
        raise ValueError(
            f"tree is a {type(classifier).__name__}: allowed are an ObliqueTree and a fitted "
            "classifier that has one as tree_."
        )
    if feature_names is None:
        feature_names = getattr(classifier, "feature_names_in_", None)
    if class_names is None:
        class_names = getattr(classifier, "classes_", None)
    return tree, feature_names, class_names


def _check_length(name: str, given: Sequence[Any] | np.ndarray, n: int, things: str) -> None:
    if len(given) != n:
        raise ValueError(f"{name} has {len(given)} entries: the tree has {n} {things}.")


def _number(value: float, decimals: int) -> str:
    """Return a number of at least 1 with fixed decimals, a smaller one with as many digits."""
    if value == 0.0 or abs(value) >= 1.0:
        return f"{value:.{decimals}f}"
    return f"{value:#.{max(decimals, 1)}g}"


def _rule(
    terms: list[tuple[float, str]], threshold: float, indent: str, decimals: int
) -> list[str]:
    """Return the lines of a rule; a long sum goes on below its first term."""
    relation = "<="
    if terms:
        first = terms[0][0]
        scaled = [(weight / first, name) for weight, name in terms]
        numbers = [threshold / first, *(weight for weight, _ in scaled)]
        # Extreme weights, which division would take to infinity or to 0, stay as they are.
        if np.isfinite(numbers).all() and all(weight for weight, _ in scaled):
            terms, threshold = scaled, numbers[0]
            relation = "<=" if first > 0.0 else ">="
    pieces: list[str] = []
    for weight, name in terms:
        factor = "" if abs(weight) == 1.0 else f"{_number(abs(weight), decimals)} * "
        sign = "-" if weight < 0.0 else "+"
        pieces.append(f"{sign} {factor}{name}" if pieces else f"{sign.strip('+')}{factor}{name}")
    pieces = pieces or ["0"]
    pieces[-1] += f" {relation} {_number(threshold + 0.0, decimals)}"
    # A term is one word to the wrapper: its blanks are put back afterwards.
    blank = "\0"
    wrapped = textwrap.wrap(
        " ".join(piece.replace(" ", blank) for piece in pieces),
        width=max(_LINE_WIDTH - len(indent), _LEAST_WIDTH) - 5,
        break_long_words=False,
        break_on_hyphens=False,
    )
    starts = [f"{indent}|--- "] + [f"{indent}|    "] * (len(wrapped) - 1)
    return [start + line.replace(blank, " ") for start, line in zip(starts, wrapped, strict=True)]


def _leaf(values: np.ndarray, class_names: Sequence[Any] | None, decimals: int) -> str:
    """Return what a leaf predicts."""
    if class_names is None:
        return "value: " + _number(float(values[0]), decimals)
    c = int(values.argmax())
    share = float(values[c])
    # Rounding must not call a leaf pure that is not.
    text = f"{share:.2f}" if share == 1.0 or share < 0.995 else "above 0.99"
    return f"class: {class_names[c]} (share {text})"


def tree_to_dict(tree: ObliqueTree) -> dict[str, Any]:
    """Return a tree as plain data: numbers, lists and strings.

    Parameters
    ----------
    tree : ObliqueTree
        Any valid tree.

    Returns
    -------
    dict
        ``version`` of this form, and the four arrays of the tree as nested lists. `json.dumps`
        writes a float so that it reads back as the same one.
    """
    return {
        "version": TREE_VERSION,
        "subtree_size": tree.subtree_size.tolist(),
        "thresholds": tree.thresholds.tolist(),
        "weights": tree.weights.tolist(),
        "values": tree.values.tolist(),
    }


def tree_from_dict(data: Any) -> ObliqueTree:
    """Return the tree that `tree_to_dict` made plain data of.

    Parameters
    ----------
    data : dict
        From `tree_to_dict`, perhaps by way of a file that others have changed: all is checked.

    Returns
    -------
    ObliqueTree
        Valid, and equal to the first one to the last bit.

    Raises
    ------
    ValueError
        Naming the entry that is missing or wrong.
    """
    if not isinstance(data, Mapping):
        raise ValueError(f"the tree is {_kind(data)}, not an object with names.")
    version = data.get("version")
    if type(version) is not int or version < 1:
        raise ValueError(f"the tree's version is {_kind(version)}, not a whole number above 0.")
    if version > TREE_VERSION:
        raise ValueError(
            f"the tree has version {version}, made by a newer evotree: this one reads up to "
            f"{TREE_VERSION}."
        )
    missing = [n for n in ("subtree_size", "thresholds", "weights", "values") if n not in data]
    if missing:
        raise ValueError(f"the tree has no {', '.join(missing)}.")
    sizes = data["subtree_size"]
    if not isinstance(sizes, list) or not 1 <= len(sizes) <= MAX_NODES:
        raise ValueError(f"subtree_size is not a list of 1 to {MAX_NODES} numbers.")
    if not all(type(size) is int and 1 <= size <= len(sizes) for size in sizes):
        raise ValueError(f"subtree_size has entries that are not whole numbers in 1..{len(sizes)}.")
    return ObliqueTree(
        weights=_matrix(data["weights"], "weights"),
        thresholds=_vector(data["thresholds"], "thresholds"),
        subtree_size=np.array(sizes, dtype=np.int32),
        values=_matrix(data["values"], "values"),
    ).validate()


def _kind(value: Any) -> str:
    """Name the type of a value as a reader of JSON would."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a truth value"}
    return "missing" if value is None else names.get(type(value), "a number")


def _vector(values: Any, name: str) -> np.ndarray:
    """Return a list of numbers as an array."""
    if not isinstance(values, list):
        raise ValueError(f"{name} is {_kind(values)}, not a list of numbers.")
    for value in values:
        if type(value) is not float and type(value) is not int:
            raise ValueError(f"{name} has an entry that is {_kind(value)}, not a number.")
    try:
        return np.array(values, dtype=np.float64)
    except OverflowError:
        raise ValueError(f"{name} has a number that is too large.") from None


def _matrix(rows: Any, name: str) -> np.ndarray:
    """Return a list of equally long lists of numbers as an array with at least one column."""
    if not isinstance(rows, list) or not rows or not all(isinstance(row, list) for row in rows):
        raise ValueError(f"{name} is not a list of lists of numbers.")
    lengths = {len(row) for row in rows}
    if len(lengths) > 1 or lengths == {0}:
        raise ValueError(f"{name} has rows of lengths {sorted(lengths)[:5]}: all must be alike.")
    if len(rows) * len(rows[0]) > MAX_NUMBERS:
        raise ValueError(f"{name} has more than {MAX_NUMBERS} numbers.")
    return np.stack([_vector(row, name) for row in rows])
