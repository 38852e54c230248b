"""Rules read back: a tree written as `export_text` prints it, by this package or by hand."""

import re
from collections.abc import Sequence

import numpy as np

from evotree.description.words import printable

_NODE = re.compile(r"(?P<indent>(?:\|   )*)\|--- (?P<rule>.*)")
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_ALLOWED = "a tree as export_text prints it"


def splits_of_text(
    text: str, feature_names: Sequence[str], parameter: str = "text"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return weights, thresholds and sizes of the subtrees of a tree that is written as rules.

    Numbers of nodes may be left out, and what leaves say is not read.
    """
    rules: list[tuple[int, str]] = []
    for line in filter(
        str.strip, re.split("^missing: ", text, flags=re.M)[0].splitlines()
    ):
        if (found := _NODE.fullmatch(line.rstrip())) is not None:
            rule = re.sub(r"^\[\d+\] ", "", found["rule"])
            rules.append((len(found["indent"]) // 4, rule))
        elif line.startswith("|") and rules:  # a folded line
            depth, rule = rules[-1]
            rules[-1] = depth, f"{rule} {line.lstrip('| ').rstrip()}"
        elif not line.startswith("#"):
            raise ValueError(
                f"{parameter} has the line {line!r}: allowed is {_ALLOWED}."
            )
    written: dict[str, int] = {}
    for j, name in enumerate(feature_names):
        if printable(name) in written:
            raise ValueError(
                f"{parameter} cannot be read: {feature_names[written[printable(name)]]!r} and "
                f"{name!r} are written alike; allowed are names that differ as they are printed."
            )
        written[printable(name)] = j
    term = "|".join(map(re.escape, sorted(written, key=len, reverse=True)))
    nodes: list[tuple[np.ndarray, float, int]] = []

    def read(at: int, depth: int) -> int:
        """Read the node at a line, with all below it; return the line after it."""
        if at >= len(rules) or rules[at][0] != depth or rules[at][1] == "else":
            where = f"after {rules[at - 1][1]!r}" if at else "in an empty text"
            raise ValueError(
                f"{parameter} lacks a node {where}: allowed is {_ALLOWED}."
            )
        number = len(nodes)
        after = at + 1
        nodes.append((np.zeros(len(written)), 0.0, 1))
        if after < len(rules) and rules[after][0] == depth + 1:
            split = _split(rules[at][1], written, term, parameter)
            after = read(after, depth + 1)
            if after >= len(rules) or rules[after] != (depth, "else"):
                raise ValueError(f"{parameter} has no else for {rules[at][1]!r}.")
            after = read(after + 1, depth + 1)
            nodes[number] = *split, len(nodes) - number
        return after

    if (end := read(0, 0)) < len(rules):
        raise ValueError(f"{parameter} goes on after its tree: {rules[end][1]!r}.")
    weights, thresholds, sizes = zip(*nodes, strict=True)
    return np.array(weights), np.array(thresholds), np.array(sizes, dtype=np.int32)


def _split(
    rule: str, written: dict[str, int], term: str, parameter: str
) -> tuple[np.ndarray, float]:
    """Return the hyperplane of an inequality, or of a question of one category."""
    weights = np.zeros(len(written))
    answers = [
        rule[: at.start() + 4] + rule[at.end() :]
        for at in re.finditer(" is not ", rule)
    ]
    if rule in written:  # the feature is 1 on the left
        weights[written[rule]] = -1.0
        return weights, -0.5
    for answer in answers:
        if answer in written:
            weights[written[answer]] = 1.0
            return weights, 0.5
    piece = rf"(?P<sign>[+-]?) ?(?:(?P<weight>{_NUMBER}) \* )?(?P<name>{term})"
    found = re.fullmatch(
        rf"(?P<sum>.+) (?P<relation><=|>=|<|>) (?P<bound>{_NUMBER})", rule
    )
    at = 0
    total = found["sum"] if found else ""
    while found and at < len(total):
        one = re.compile(piece + r"(?= [+-] |$)").match(total, at)
        if one is None or (at and not one["sign"]):
            break
        weight = float(one["weight"] or 1.0)
        weights[written[one["name"]]] += -weight if one["sign"] == "-" else weight
        at = one.end() + (one.end() < len(total))
    if (
        not found
        or at < len(total)
        or not np.isfinite(weights).all()
        or not weights.any()
    ):
        shown = ", ".join(map(repr, list(written)[:20]))
        raise ValueError(
            f"{parameter} has the split {rule!r}: allowed are sums such as 'a + 2 * b "
            f"<= 3' of the features {shown}."
        )
    threshold = float(found["bound"])
    relation = found["relation"]
    if relation.startswith(">"):
        weights, threshold = 0.0 - weights, 0.0 - threshold
    return weights, threshold if "=" in relation else float(
        np.nextafter(threshold, -np.inf)
    )
