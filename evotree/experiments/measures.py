"""What is measured of a fit besides its scores: the size of the tree, and memory."""

import os
import platform
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from evotree.tree import ObliqueTree


def innermost(model: Any) -> Any:
    """Return the fitted estimator inside searches and pipelines."""
    if hasattr(model, "best_estimator_"):
        return innermost(model.best_estimator_)
    return innermost(model.steps[-1][1]) if hasattr(model, "steps") else model


def tree_sizes(model: Any) -> dict[str, int]:
    """Return the sizes of a fitted tree, or of all trees of a forest together, if there are any."""
    sizes = _sizes_of(getattr(model, "regressor_", model))
    if sizes:  # the complexity may be more than leaves and terms
        sizes.setdefault("complexity", sizes["leaves"] + sizes["terms"])
    return sizes


def _sizes_of(model: Any) -> dict[str, int]:
    """Return what is known of the sizes of a fitted model."""
    if hasattr(model, "sizes_"):
        return dict(model.sizes_)
    model = innermost(model)
    if hasattr(model, "nodes_leaves"):  # a tree of the package STree
        nodes, leaves = model.nodes_leaves()
        inner = [node for node in model if not node.is_leaf()]
        # Of the machines of all pairs of classes a node keeps the one of its column.
        columns = [max(node.get_partition_column(), 0) for node in inner]
        weights = [node.get_classifier().coef_[k] for node, k in zip(inner, columns, strict=True)]
        return {"nodes": nodes, "leaves": leaves, "terms": sum(map(np.count_nonzero, weights))}
    members = np.ravel(np.asarray(getattr(model, "estimators_", []), dtype=object))
    trees = getattr(model, "trees_", [getattr(m, "tree_", None) for m in members])
    trees = [model.tree_] if hasattr(model, "tree_") else list(trees)
    names = {"leaves": "n_leaves", "nodes": "n_nodes", "terms": "n_terms"}
    names["complexity"] = "complexity"
    if not all(isinstance(tree, ObliqueTree) for tree in trees):
        names = {"leaves": "n_leaves", "nodes": "node_count"}
    if not trees or not all(hasattr(tree, name) for tree in trees for name in names.values()):
        return {}
    sizes = {key: int(sum(getattr(t, name) for t in trees)) for key, name in names.items()}
    depths = [tree.depth if isinstance(tree, ObliqueTree) else tree.max_depth for tree in trees]
    return {"terms": sizes["nodes"] - sizes["leaves"], **sizes, "depth": int(max(depths))}


class PeakMemory:
    """The most memory that this process has held since it was made, where Linux tells it."""

    def __init__(self) -> None:
        with suppress(OSError):  # begins the peak again
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")

    def megabytes(self) -> float:
        """Return the peak in units of 2**20 bytes; not a number where nothing tells it."""
        return float((_line_of("/proc/self/status", "VmHWM:") or "nan").split()[0]) / 1024.0


def machine() -> str:
    """Return system, processor and number of logical cores of this machine, in words."""
    # Python knows the name of the processor on other systems than Linux alone.
    processor = _line_of("/proc/cpuinfo", "model name").lstrip("\t :")
    processor = processor or platform.processor() or platform.machine()
    return f"{platform.system()} {platform.machine()}, {processor}, {os.cpu_count()} logical cores"


def _line_of(path: str, beginning: str) -> str:
    """Return the rest of the first line that begins so; empty where there is none."""
    with suppress(OSError):
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            if line.startswith(beginning):
                return line.removeprefix(beginning).strip()
    return ""
