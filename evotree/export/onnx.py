"""A tree, or the vote of a forest, as an ONNX model.

ONNX's own tree ensembles ask for one feature at a time. Oblique trees are products of matrices
instead (the GEMM strategy of Nakandala et al., OSDI 2020): all splits at once, then for each leaf
the number of its path's splits that came out as its path has it.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from evotree._version import DISTRIBUTION, __version__
from evotree.fitted import Fitted, is_forest, members_of
from evotree.schema import LOG, Schema
from evotree.tree import LEAD, ObliqueTree, SoftSides

OPSET, IR_VERSION = 13, 7  # the oldest that have all operators, which old runtimes read
_FARTHEST = 1e300  # distance to a hyperplane
_SUREST = 1e6  # log-odds of a side; the other side's probability is 0 long before


def to_onnx(model: Any) -> Any:
    """Return a fitted estimator, or a tree, as an ONNX model in double precision.

    Its input is ``X``, encoded rows of shape (n_samples, n_features), as ``model.encode`` returns
    them: it computes bends such as ``age above 52``, but neither fills in what is missing nor
    knows categories. The outputs of a classifier are
    ``label`` of shape (n_samples,), strings or 64-bit whole numbers, and ``probabilities`` of shape
    (n_samples, n_classes); that of a regressor is ``variable`` of shape (n_samples, n_outputs). The
    leaf is that of ``predict``, save where a row lies on a hyperplane to within rounding errors
    (`export_python`).

    Parameters
    ----------
    model : fitted estimator of a tree or forest, or ObliqueTree
        The model; or one that `load_model` has read.

    Returns
    -------
    onnx.ModelProto
        ``model.SerializeToString()`` is what a file holds.

    Raises
    ------
    ModuleNotFoundError
        If onnx is not installed.
    ValueError
        If classes are others than strings, whole numbers and truth values.

    Notes
    -----
    The model has a matrix of nodes times leaves and computes all splits for all rows: good for up
    to some hundred leaves.
    """
    graph = _Graph(_onnx())
    members = members_of(model)
    fitted = members[0]
    rows = _bent(graph, "X", fitted.schema)
    if fitted.classes is None:
        values = _mean(graph, rows, [one.tree for one in members])
        graph.put_out(values, "variable", fitted.tree.values.shape[1])
    else:
        labels = _labels_of(fitted)
        label, shares = _classified(graph, rows, members, labels, is_forest(model))
        graph.put_out(label, "label", None, labels.dtype)
        graph.put_out(shares, "probabilities", len(labels))
    return graph.model(len(fitted.schema.read_by_code))


def _onnx() -> Any:
    """Import onnx, or say how to install it."""
    try:
        return import_module("onnx")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"ONNX models need {error.name}: pip install '{DISTRIBUTION}[onnx]'",
            name=error.name,
        ) from error


def _labels_of(fitted: Fitted) -> np.ndarray:
    """Return the classes as ONNX has them: strings, or whole numbers of 64 bits."""
    labels = fitted.labels
    if all(isinstance(label, str) for label in labels):
        return np.array(labels, dtype=object)
    if not all(
        isinstance(label, numbers.Real)
        and float(label).is_integer()
        and -(2**63) <= label < 2**63
        for label in labels
    ):
        raise ValueError(
            f"classes_ holds {labels[:10]}: allowed in ONNX are strings, whole "
            "numbers below 2**63 and truth values."
        )
    return np.array([int(label) for label in labels], dtype=np.int64)


def _classified(
    graph: _Graph,
    rows: str,
    members: Sequence[Fitted],
    labels: np.ndarray,
    is_vote: bool,
) -> tuple[str, str]:
    """Write the nodes of a classifier: labels, picked by leaf or by vote, and probabilities."""
    tree, sides = members[0].tree, members[0].sides
    if is_vote or len(members) > 1 or tree.models is not None:
        shares = _mean(graph, rows, [one.tree for one in members])
        if tree.models is not None:
            shares = graph.node("Softmax", [shares], axis=1)
        at = graph.node("ArgMax", [shares], axis=1, keepdims=0)
        return graph.node("Gather", [labels, at], axis=0), shares
    paths = _Paths(graph, rows, tree)
    at = paths.reached()
    label = graph.node("Gather", [labels[tree.labels[tree.is_leaf]], at], axis=0)
    if sides is None:
        return label, _leaf_values(paths, at)
    is_label = np.eye(tree.values.shape[1])[tree.majority[tree.is_leaf]]
    return label, paths.mix(sides, graph.node("Gather", [is_label, at], axis=0))


def _mean(graph: _Graph, rows: str, trees: Sequence[ObliqueTree]) -> str:
    """Write the nodes of `mean_of_trees`, which adds in the order of the trees."""
    all_paths = [_Paths(graph, rows, tree) for tree in trees]
    total, *others = [_leaf_values(paths, paths.reached()) for paths in all_paths]
    for other in others:
        total = graph.node("Add", [total, other])
    if not others:
        return total
    return graph.node("Div", [total, np.array([float(len(trees))])])


def _bent(graph: _Graph, rows: str, schema: Schema) -> str:
    """Write the nodes that make all features of those that are no bends."""
    if not schema.bends:
        return rows
    place = {j: at for at, j in enumerate(schema.read_by_code)}
    table = np.array(
        [
            [place[base], bend.kind == LOG, bend.knot, bend.sign]
            for base, bend in schema.bends.values()
        ]
    )
    bases, is_log, knots, signs = table.T
    number = graph.node("Gather", [rows, bases.astype(np.int64)], axis=1)
    away = graph.node("Mul", [graph.node("Sub", [number, knots]), signs])
    # The logarithms of what hinges have are made, too, and left out.
    least = np.where(is_log > 0.0, knots, 1.0)
    logs = graph.node("Log", [graph.node("Max", [number, least])])
    made = graph.node("Where", [is_log > 0.0, logs, graph.node("Relu", [away])])
    order = np.argsort([*schema.read_by_code, *schema.bends])
    both = graph.node("Concat", [rows, made], axis=1)
    return graph.node("Gather", [both, order], axis=1)


def _leaf_values(paths: _Paths, leaf: str) -> str:
    """Write the nodes of `predict_value`: values, or linear models, picked by leaf."""
    graph = paths.graph
    tree = paths.tree
    if tree.models is None:
        return graph.node("Gather", [tree.values[tree.is_leaf], leaf], axis=0)
    outputs = []
    for one in tree.models.take(tree.is_leaf).each:
        used = np.flatnonzero(one.coefficients.any(axis=0))
        coefficients, intercepts, lowest, highest = (
            graph.node("Gather", [array, leaf], axis=0)
            for array in (
                one.coefficients[:, used],
                one.intercepts[:, np.newaxis],
                one.lowest[:, np.newaxis],
                one.highest[:, np.newaxis],
            )
        )
        values = graph.node("Gather", [paths.rows, used], axis=1)
        products = graph.node("Mul", [coefficients, values])
        summands = graph.node("Concat", [intercepts, products], axis=1)
        # A running sum adds in the order of the features, as `LeafModels.predict` does.
        sums = graph.node("CumSum", [summands, np.array([1])])
        last = graph.node("Gather", [sums, np.array([len(used)])], axis=1)
        bounded = graph.clip(last, lowest, highest)
        outputs.append(graph.node("Exp", [bounded]) if one.is_log else bounded)
    return graph.node("Concat", outputs, axis=1)


class _Paths:
    """The splits of a tree for all rows, and on which side of each a leaf is: 1 left, -1 right."""

    def __init__(self, graph: _Graph, rows: str, tree: ObliqueTree) -> None:
        self.graph, self.tree = graph, tree
        # A tree of one leaf has one split too, which no path asks for.
        self.nodes = (
            np.flatnonzero(~tree.is_leaf) if tree.n_leaves > 1 else np.array([0])
        )
        k, leaves = self.nodes[:, np.newaxis], np.flatnonzero(tree.is_leaf)
        right = k + 1 + tree.subtree_size.take(k + 1, mode="clip")
        is_below = (k < leaves) & (leaves < k + tree.subtree_size[k])
        sides = np.where(leaves < right, 1.0, -1.0)
        self.matrix = np.where(is_below, sides, 0.0).astype(np.float32)
        self.rows = rows
        self.sums = graph.node("MatMul", [self.rows, tree.weights[self.nodes].T])
        self.thresholds = tree.thresholds[self.nodes]

    def reached(self) -> str:
        """Write the nodes that find the leaf of each row: that whose whole path it follows."""
        graph = self.graph
        holds = graph.node("LessOrEqual", [self.sums, self.thresholds])
        ones = graph.node("Cast", [holds], to=graph.types.FLOAT)
        wanted = (self.matrix > 0.0).sum(axis=0, dtype=np.float32)
        missed = graph.node("Sub", [graph.node("MatMul", [ones, self.matrix]), wanted])
        return graph.node("ArgMax", [missed], axis=1, keepdims=0)

    def mix(self, sides: SoftSides, is_label: str) -> str:
        """Write the nodes of `SoftSides.predict`: products along paths are sums of logarithms."""
        graph = self.graph
        # Infinity times 0 would be NaN: distances and their log-odds are finite.
        away = graph.node("Sub", [self.sums, self.thresholds])
        away = graph.clip(away, np.array(-_FARTHEST), np.array(_FARTHEST))
        log_odds = graph.node("Mul", [away, sides.slopes[self.nodes]])
        log_odds = graph.node("Add", [log_odds, sides.intercepts[self.nodes]])
        log_odds = graph.clip(log_odds, np.array(-_SUREST), np.array(_SUREST))
        # The logarithms of both sides' probabilities: of their half log-odds the log-softmax.
        halves = graph.node("Unsqueeze", [log_odds, np.array([2])])
        halves = graph.node("Mul", [halves, np.array([-0.5, 0.5])])
        log_sides = graph.node("LogSoftmax", [halves], axis=2)
        log_sides = graph.node("Reshape", [log_sides, np.array([0, -1])])
        passed = np.stack([self.matrix == 1.0, self.matrix == -1.0], axis=1)
        passed = passed.reshape(-1, self.matrix.shape[1]).astype(np.float64)
        reach = graph.node("Exp", [graph.node("MatMul", [log_sides, passed])])
        mixed = graph.node("MatMul", [reach, sides.shares[self.tree.is_leaf]])
        # The label is raised above the other classes; less 1, it is none of them.
        others = graph.node("Sub", [mixed, is_label])
        most = graph.node("ReduceMax", [others], axes=[1], keepdims=1)
        least = graph.node("Add", [most, np.array([LEAD])])
        raised = graph.node("Max", [mixed, graph.node("Mul", [is_label, least])])
        total = graph.node("ReduceSum", [raised, np.array([1])], keepdims=1)
        return graph.node("Div", [raised, total])


class _Graph:
    """Nodes and constants of an ONNX graph, under names of their own."""

    def __init__(self, onnx: Any) -> None:
        self.onnx, self.types = onnx, onnx.TensorProto
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.outputs: list[Any] = []

    def node(self, kind: str, inputs: Sequence[Any], **options: Any) -> str:
        """Add an operator over results, by their names, and arrays; return its result's name."""
        names = [
            self.constant(one) if isinstance(one, np.ndarray) else one for one in inputs
        ]
        made = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(
            self.onnx.helper.make_node(kind, names, [made], made, **options)
        )
        return made

    def constant(self, array: np.ndarray) -> str:
        """Add an array, and return its name."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def clip(self, value: str, low: Any, high: Any) -> str:
        """Add the operators that bound numbers; NaN, of overflows to both sides, is `high`."""
        is_lower = self.node("LessOrEqual", [value, high])
        return self.node("Max", [self.node("Where", [is_lower, value, high]), low])

    def put_out(
        self, value: str, name: str, width: int | None, dtype: Any = np.float64
    ) -> None:
        """Make a result an output, with so many columns or, by None, without any."""
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        shape = [None] if width is None else [None, width]
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [name]))
        self.outputs.append(self.onnx.helper.make_tensor_value_info(name, kind, shape))

    def model(self, n_features: int) -> Any:
        """Return the model of all nodes, over rows ``X`` of so many features."""
        helper = self.onnx.helper
        rows = helper.make_tensor_value_info("X", self.types.DOUBLE, [None, n_features])
        return helper.make_model(
            helper.make_graph(
                self.nodes, "evotree", [rows], self.outputs, self.constants
            ),
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="evotree",
            producer_version=__version__,
        )
