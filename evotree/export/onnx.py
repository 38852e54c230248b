"""A tree, or the vote of a forest, as an ONNX model, by the converter interface of skl2onnx.

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

from evotree._version import DISTRIBUTION
from evotree.fitted import is_forest
from evotree.schema import LOG
from evotree.tree import LEAD, ObliqueTree, SoftSides

MAX_LEAVES = 10_000
_FARTHEST = 1e300  # distance to a hyperplane
_SUREST = 1e6  # log-odds of a side; the other side's probability is 0 long before


def register_onnx() -> None:
    """Tell skl2onnx how to convert the estimators of evotree, alone and in pipelines.

    From then on `skl2onnx.to_onnx` and `skl2onnx.convert_sklearn` take `EvoTreeClassifier`,
    `ObliqueForestClassifier`, `ObliqueTreeClassifier`, `TAOClassifier` and their regressors.
    Classifiers have the options ``zipmap``, ``nocl`` and ``output_class_labels`` of all classifiers
    there; ONNX has maps of shares (``zipmap``) in single precision only. The converted part reads
    encoded rows, which ``encode`` of an estimator returns.

    Splits are computed in double precision, so that the leaf is that of ``predict`` on rows of the
    same precision, save where a row lies on a hyperplane to within rounding errors
    (`export_python`). Probabilities and predicted numbers are of the precision of the input.

    Raises
    ------
    ModuleNotFoundError
        If skl2onnx is not installed.

    Notes
    -----
    A model has a matrix of nodes times leaves and computes all splits for all rows: good for up to
    some hundred leaves. A tree of more than 10,000 leaves is refused at conversion, and so are
    class labels that ONNX cannot return: other than strings, whole numbers and truth values.
    """
    skl2onnx = _skl2onnx()
    shapes = import_module("skl2onnx.common.shape_calculator")
    options = {
        "zipmap": [True, False, "columns"],
        "nocl": [True, False],
        "output_class_labels": [True, False],
    }
    for kind in _estimators():
        if hasattr(kind, "predict_proba"):
            skl2onnx.update_registered_converter(
                kind,
                "EvotreeClassifier",
                shapes.calculate_linear_classifier_output_shapes,
                _convert_classifier,
                options=options,
            )
        else:
            skl2onnx.update_registered_converter(
                kind, "EvotreeRegressor", _shape_regressor, _convert_regressor
            )


def to_onnx(model: Any, target_opset: int | None = None) -> Any:
    """Return a fitted estimator as an ONNX model in double precision.

    Its input is ``X``, encoded rows of shape (n_samples, n_features), as ``model.encode`` returns
    them: it computes bends such as ``age above 52``, but neither fills in what is missing nor
    knows categories. The outputs of a classifier are
    ``label`` of shape (n_samples,), strings or 64-bit whole numbers, and ``probabilities`` of shape
    (n_samples, n_classes); that of a regressor is ``variable`` of shape (n_samples, 1). Precision
    and limits are those of `register_onnx`, which serves pipelines and single precision.

    Parameters
    ----------
    model : EvoTree, ObliqueForest, ObliqueTree or TAO classifier or regressor
        The estimator, fitted; or a model of one that `load_model` has read.
    target_opset : int, optional
        Version of ONNX's operators, at least 13; by default the newest that skl2onnx knows.

    Returns
    -------
    onnx.ModelProto
        ``model.SerializeToString()`` is what a file holds.

    """
    skl2onnx = _skl2onnx()
    if hasattr(model, "members"):
        model = _estimator_of(model)
    if type(model) not in _estimators() or not _trees_of(model):
        raise ValueError(
            f"model={model!r}: allowed is a fitted one of "
            f"{', '.join(kind.__name__ for kind in _estimators())}."
        )
    if target_opset is not None and target_opset < 13:
        raise ValueError(
            f"target_opset={target_opset!r}: allowed are versions from 13."
        )
    register_onnx()
    fitted = model.fitted_
    n_features = len(fitted.schema.read_by_code)
    types = import_module("skl2onnx.common.data_types")
    return skl2onnx.to_onnx(
        model,
        initial_types=[("X", types.DoubleTensorType([None, n_features]))],
        options={id(model): {"zipmap": False}}
        if hasattr(model, "predict_proba")
        else None,
        target_opset=target_opset,
    )


def _skl2onnx() -> Any:
    """Import skl2onnx, or say how to install it."""
    try:
        return import_module("skl2onnx")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"ONNX models need {error.name}: pip install '{DISTRIBUTION}[onnx]'",
            name=error.name,
        ) from error


def _estimators() -> tuple[type, ...]:
    """Return the estimators of trees; importing them takes a while."""
    from evotree import estimators

    return tuple(
        getattr(estimators, kind + task)
        for kind in ("EvoTree", "ObliqueTree", "TAO", "ObliqueForest")
        for task in ("Classifier", "Regressor")
    )


def _estimator_of(model: Any) -> Any:
    """Return an estimator with the fitted attributes that a model of a file has."""
    kinds = {kind.__name__: kind for kind in _estimators()}
    task = "Regressor" if model.classes is None else "Classifier"
    members = [kinds[f"ObliqueTree{task}"]() for _ in model.members]
    for member, fitted in zip(members, model.members, strict=True):
        member.fitted_ = fitted
    if len(members) == 1:
        return members[0]
    forest = kinds[f"ObliqueForest{task}"]()
    forest.estimators_ = members
    return forest


def _trees_of(model: Any) -> list[ObliqueTree]:
    """Return the trees of an estimator; none where it is not fitted."""
    if is_forest(model):
        return list(model.trees_)
    return [model.tree_] if hasattr(model, "fitted_") else []


def _convert_classifier(scope: Any, operator: Any, container: Any) -> None:
    """Write the nodes of a classifier: labels, picked by leaf or by vote, and probabilities."""
    model = operator.raw_operator
    graph = _Graph(scope, container)
    rows = _bent(graph, operator.inputs[0].full_name, model)
    tree = _trees_of(model)[0]
    classes = import_module("skl2onnx.common.utils_classifier").get_label_classes(
        scope, model
    )
    labels: Any = np.asarray(classes).tolist()
    if all(isinstance(label, str) for label in labels):
        labels = np.array([label.encode("utf-8") for label in labels], dtype=object)
    elif all(
        isinstance(label, numbers.Real) and float(label).is_integer()
        for label in labels
    ):
        try:
            labels = np.array([int(label) for label in labels], dtype=np.int64)
        except OverflowError as error:
            raise ValueError(
                f"tree has the class {max(labels)}: ONNX allows whole numbers below 2**63."
            ) from error
    else:
        raise ValueError(
            f"classes_ holds {labels[:10]}: allowed in ONNX are strings, whole "
            "numbers and truth values."
        )
    sides = None if is_forest(model) else model.fitted_.sides
    if is_forest(model):
        shares = _mean(graph, rows, model.trees_)
        at = graph.node("ArgMax", [shares], axis=1, keepdims=0)
    else:
        paths = _Paths(graph, rows, tree)
        at = paths.reached()
        if tree.models is not None:
            shares = graph.node("Softmax", [_leaf_values(paths, at)], axis=1)
            at = graph.node("ArgMax", [shares], axis=1, keepdims=0)
        else:
            labels = labels[tree.labels[tree.is_leaf]]
        if tree.models is None and sides is None:
            shares = _leaf_values(paths, at)
        elif sides is not None:
            is_label = np.eye(tree.values.shape[1])[tree.majority[tree.is_leaf]]
            shares = paths.mix(sides, graph.node("Gather", [is_label, at], axis=0))
    graph.node("Gather", [labels, at], operator.outputs[0].full_name, axis=0)
    graph.put_out(shares, operator, 1)


def _mean(graph: _Graph, rows: str, trees: Sequence[ObliqueTree]) -> str:
    """Write the nodes of `mean_of_trees`, which adds in the order of the trees."""
    all_paths = [_Paths(graph, rows, tree) for tree in trees]
    total, *others = [_leaf_values(paths, paths.reached()) for paths in all_paths]
    for other in others:
        total = graph.node("Add", [total, other])
    return (
        graph.node("Div", [total, np.array([float(len(trees))])]) if others else total
    )


def _shape_regressor(operator: Any) -> None:
    """Say which numbers a regressor returns, a column for each output."""
    shapes = import_module("skl2onnx.common.shape_calculator")
    shapes.calculate_linear_regressor_output_shapes(operator)
    operator.outputs[0].type.shape = [
        operator.inputs[0].type.shape[0],
        _trees_of(operator.raw_operator)[0].values.shape[1],
    ]


def _convert_regressor(scope: Any, operator: Any, container: Any) -> None:
    """Write the nodes of a regressor: its numbers, or the mean of those of a forest."""
    graph = _Graph(scope, container)
    rows = _bent(graph, operator.inputs[0].full_name, operator.raw_operator)
    graph.put_out(_mean(graph, rows, _trees_of(operator.raw_operator)), operator, 0)


def _bent(graph: _Graph, rows: str, model: Any) -> str:
    """Write the nodes that make all features of those that are no bends."""
    schema = model.fitted_.schema
    if not schema.bends:
        return rows
    place = {j: at for at, j in enumerate(schema.read_by_code)}
    made = [graph.node("Cast", [rows], to=graph.types.DOUBLE)]
    for base, bend in schema.bends.values():
        number = graph.node("Gather", [made[0], np.array([place[base]])], axis=1)
        knot = np.array([bend.knot])
        if bend.kind == LOG:
            made.append(graph.node("Log", [graph.node("Max", [number, knot])]))
        else:
            away = graph.node("Sub", [number, knot])
            away = graph.node("Mul", [away, np.array([float(bend.sign)])])
            made.append(graph.node("Relu", [away]))
    order = np.argsort([*schema.read_by_code, *schema.bends])
    return graph.node("Gather", [graph.node("Concat", made, axis=1), order], axis=1)


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
        if tree.n_leaves > MAX_LEAVES:
            raise ValueError(
                f"the tree has {tree.n_leaves} leaves: allowed are up to {MAX_LEAVES}."
            )
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
        self.rows = graph.node("Cast", [rows], to=graph.types.DOUBLE)
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
        log_reach = []
        for sign, odds in ((1.0, log_odds), (-1.0, graph.node("Neg", [log_odds]))):
            # The value of log(1 + exp(odds)) is max(odds, 0) + log(1 + exp(-|odds|)), whose exp is
            # finite.
            small = graph.node("Exp", [graph.node("Neg", [graph.node("Abs", [odds])])])
            rest = graph.node("Log", [graph.node("Add", [small, np.array([1.0])])])
            softplus = graph.node("Add", [graph.node("Relu", [odds]), rest])
            passed = (self.matrix == sign).astype(np.float64)
            log_reach.append(graph.node("MatMul", [softplus, passed]))
        reach = graph.node("Exp", [graph.node("Neg", [graph.node("Add", log_reach)])])
        mixed = graph.node("MatMul", [reach, sides.shares[self.tree.is_leaf]])
        # The label is raised above the other classes.
        of_label = graph.sum_rows(graph.node("Mul", [mixed, is_label]))
        # Less 1, the label is none of them.
        others = graph.node("Sub", [mixed, is_label])
        largest = graph.node("ArgMax", [others], axis=1, keepdims=1)
        most = graph.node("GatherElements", [others, largest], axis=1)
        least = graph.node("Add", [most, np.array([LEAD])])
        lacking = graph.node("Relu", [graph.node("Sub", [least, of_label])])
        raised = graph.node("Add", [mixed, graph.node("Mul", [is_label, lacking])])
        return graph.node("Div", [raised, graph.sum_rows(raised)])


class _Graph:
    """Nodes and constants of an ONNX graph, under names of their own."""

    def __init__(self, scope: Any, container: Any) -> None:
        self.scope, self.container = scope, container
        self.types = import_module("onnx").TensorProto

    def node(
        self,
        kind: str,
        inputs: Sequence[Any],
        output: str | None = None,
        **options: Any,
    ) -> str:
        """Add an operator over results, by their names, and arrays; return its result's name."""
        names = [
            self.constant(one) if isinstance(one, np.ndarray) else one for one in inputs
        ]
        operator = self.scope.get_unique_operator_name(kind)
        output = output or self.scope.get_unique_variable_name(kind.lower())
        self.container.add_node(kind, names, output, name=operator, **options)
        return output

    def constant(self, array: np.ndarray) -> str:
        """Add an array, and return its name."""
        name: str = self.scope.get_unique_variable_name("constant")
        known = {"f": self.types.FLOAT, "d": self.types.DOUBLE, "O": self.types.STRING}
        kind = known.get(array.dtype.char, self.types.INT64)
        self.container.add_initializer(
            name, kind, list(array.shape), array.ravel().tolist()
        )
        return name

    def clip(self, value: str, low: Any, high: Any) -> str:
        """Add the operators that bound numbers; NaN, of overflows to both sides, is `high`."""
        is_lower = self.node("LessOrEqual", [value, high])
        return self.node("Max", [self.node("Where", [is_lower, value, high]), low])

    def sum_rows(self, value: str) -> str:
        """Add the sums of rows, as a column, and return the name of the result."""
        return self.node("ReduceSum", [value, np.array([1])], keepdims=1)

    def put_out(self, value: str, operator: Any, at: int) -> None:
        """Make numbers an output of a model, in the precision of those that come in."""
        guess = import_module("skl2onnx.common.data_types").guess_proto_type
        given = guess(operator.inputs[0].type)
        kind = given if given == self.types.DOUBLE else self.types.FLOAT
        self.node("Cast", [value], operator.outputs[at].full_name, to=kind)
