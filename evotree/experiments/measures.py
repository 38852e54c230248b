"""What is measured of a fit besides its scores: the size of the tree, and memory."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from evotree.tree import ObliqueTree

_RESET_PEAK = "5"  # what Linux is told to begin the peak again


def innermost(model: Any) -> Any:
    """Return the fitted estimator inside searches and pipelines."""
    if hasattr(model, "best_estimator_"):
        return innermost(model.best_estimator_)
    return innermost(model.steps[-1][1]) if hasattr(model, "steps") else model


def tree_sizes(model: Any) -> dict[str, int]:
    """Return the sizes of a fitted model that is one tree, or of all trees of a forest together.

    Parameters
    ----------
    model : estimator
        Fitted.

    Returns
    -------
    dict of str to int
        ``leaves``, ``nodes``, ``depth``, the greatest of a forest, ``terms`` (weights other than
        0; a split of one feature has one) and ``complexity`` (leaves and terms). Empty for other
        models, unless they have ``sizes_`` of their own.
    """
    sizes = _sizes_of(model)
    if sizes:
        sizes.setdefault("complexity", sizes["leaves"] + sizes["terms"])
    return sizes


def _sizes_of(model: Any) -> dict[str, int]:
    """Return the sizes, the complexity where it is more than leaves and terms."""
    model = getattr(model, "regressor_", model)
    if hasattr(model, "sizes_"):
        return dict(model.sizes_)
    model = innermost(model)
    tree = getattr(model, "tree_", None)
    if isinstance(tree, ObliqueTree):
        return _sizes_of_trees([tree])
    if hasattr(model, "trees_"):
        return _sizes_of_trees(model.trees_)
    if hasattr(model, "nodes_leaves"):
        return _sizes_of_stree(model)
    trees: list[Any] = [tree] if hasattr(tree, "node_count") else _trees_of_forest(model)
    if all(isinstance(tree, ObliqueTree) for tree in trees):
        return _sizes_of_trees(trees) if trees else {}
    if not all(hasattr(tree, "node_count") for tree in trees):
        return {}
    leaves, nodes = (int(sum(getattr(t, n) for t in trees)) for n in ("n_leaves", "node_count"))
    depth = int(max(t.max_depth for t in trees))
    return {"leaves": leaves, "nodes": nodes, "depth": depth, "terms": nodes - leaves}


def _sizes_of_trees(trees: Sequence[ObliqueTree]) -> dict[str, int]:
    """Return the sizes of trees of this package together, and the greatest depth."""
    return {
        "leaves": sum(tree.n_leaves for tree in trees),
        "nodes": sum(tree.n_nodes for tree in trees),
        "depth": max(tree.depth for tree in trees),
        "terms": sum(tree.n_terms for tree in trees),
        "complexity": sum(tree.complexity for tree in trees),
    }


def _sizes_of_stree(stree: Any) -> dict[str, int]:
    """Return the sizes of a tree of the package STree."""
    nodes, leaves = stree.nodes_leaves()
    # Of the machines of all pairs of classes a node keeps the one of its column.
    weights = sum(
        np.count_nonzero(node.get_classifier().coef_[max(node.get_partition_column(), 0)])
        for node in stree
        if not node.is_leaf()
    )
    return {"nodes": nodes, "leaves": leaves, "terms": int(weights)}


def _trees_of_forest(model: Any) -> list[Any]:
    members = np.ravel(np.asarray(getattr(model, "estimators_", []), dtype=object))
    return [getattr(member, "tree_", None) for member in members]


class PeakMemory:
    """The most memory that this process has held since it was made.

    On Linux the kernel's record is reset where it lets us; elsewhere the figure is the peak of the
    whole process so far.
    """

    def __init__(self) -> None:
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text(_RESET_PEAK, encoding="ascii")

    def megabytes(self) -> float:
        """Return the peak in units of 2**20 bytes; not a number where nothing tells it."""
        with suppress(OSError):
            for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) / 1024.0
        try:
            import resource
        except ImportError:  # Windows
            return float("nan")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / 2**20 if sys.platform == "darwin" else peak / 1024.0


def machine() -> str:
    """Return system, processor and number of logical cores of this machine, in words."""
    processor = platform.processor() or platform.machine()
    # Python knows the name of the processor on other systems than Linux alone.
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                processor = line.partition(":")[2].strip()
                break
    return f"{platform.system()} {platform.machine()}, {processor}, {os.cpu_count()} logical cores"
