"""The preset ``C4.5`` beside Weka's J48, tree by tree: a check that needs Java and ``weka.jar``.

``python -m experiments.studies.j48 --weka weka.jar --data-home DIR --out docs/results`` writes
``j48.md``. Trees are compared twice, with J48's numbers and with Quinlan's. Columns of categories
are left out: C4.5 has splits of many ways for them.
"""

import argparse
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np

from evotree.estimators import ObliqueTreeClassifier
from evotree.experiments.datasets import load
from evotree.operators import pruning
from evotree.tree import ObliqueTree
from experiments.study import TEXTS, Text
from experiments.tables import table

DATASETS = (
    "iris",
    "wine",
    "wdbc",
    "breast-w",
    "bupa",
    "glass",
    "heart",
    "hepatitis",
    "ionosphere",
    "page-blocks",
    "pima",
    "satimage",
    "segment",
    "sonar",
    "thyroid",
    "vehicle",
    "waveform21",
)
WITH_HOLES = (
    "iris",
    "wine",
    "wdbc",
    "bupa",
    "glass",
    "heart",
    "ionosphere",
    "pima",
    "vehicle",
)
SHARE_OF_HOLES = 0.2
N_FOLDS_HELD_OUT = 3  # every third row is one to predict

Node: TypeAlias = tuple[Any, ...]
"""A test ``(feature, threshold, left, right)``, or a leaf ``(class,)``."""

_LINE = re.compile(r"^((?:\|   )*)x(\d+) (<=|>) (-?[\d.E-]+)(?:: c(\d+) .*)?$")
_PREDICTION = re.compile(r"^ *\d+ +\d+:c\d+ +\d+:c(\d+) ", re.MULTILINE)


def write_arff(path: Path, X: np.ndarray, codes: np.ndarray, n_classes: int) -> None:
    """Write numbers and classes as Weka reads them; NaN becomes a question mark."""
    classes = ",".join(f"c{c}" for c in range(n_classes))
    lines = ["@relation rows", *(f"@attribute x{j} numeric" for j in range(X.shape[1]))]
    lines += [f"@attribute class {{{classes}}}", "@data"]
    for row, code in zip(X.tolist(), codes.tolist(), strict=True):
        lines.append(",".join("?" if x != x else repr(x) for x in row) + f",c{code}")
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


def run_j48(weka: Path, train: Path, test: Path) -> tuple[str, np.ndarray]:
    """Return the tree that J48 prints, and the classes that it predicts of the test rows."""
    command = [
        "java",
        "-cp",
        str(weka),
        "weka.classifiers.trees.J48",
        "-C",
        "0.25",
        "-M",
        "2",
    ]
    command += ["-t", str(train), "-T", str(test)]
    printed, predictions = (
        subprocess.run(
            [*command, *more], capture_output=True, text=True, check=True
        ).stdout
        for more in ((), ("-p", "0"))
    )
    return printed, np.array(_PREDICTION.findall(predictions), dtype=int)


def parse(output: str) -> Node:
    """Return the tree that J48 printed."""
    if single := re.search(r"^: c(\d+) \(", output, re.MULTILINE):
        return (int(single[1]),)
    lines = [match for line in output.splitlines() if (match := _LINE.match(line))]

    def take(depth: int) -> Node:
        sides = []
        for _ in range(2):
            match = lines.pop(0)
            if len(match[1]) != 4 * depth:
                raise ValueError(
                    f"the tree has {match[0]!r} where depth {depth} belongs."
                )
            sides.append((int(match[5]),) if match[5] else take(depth + 1))
        return int(match[2]), float(match[4]), *sides

    return take(0)


def as_nested(tree: ObliqueTree, column_of: list[int], k: int = 0) -> Node:
    """Return our tree in the form of `Node`; second terms, for missing values, are left out."""
    if tree.subtree_size[k] == 1:
        return (int(tree.labels[k]),)
    feature = int(np.flatnonzero(tree.weights[k])[0])
    sides = (
        as_nested(tree, column_of, child) for child in (tree.left(k), tree.right(k))
    )
    return column_of[feature], float(tree.thresholds[k]), *sides


def n_leaves(node: Node) -> int:
    """Return the number of leaves."""
    return 1 if len(node) == 1 else n_leaves(node[2]) + n_leaves(node[3])


def differences(one: Node, other: Node) -> list[str]:
    """Return where two trees differ by more than J48 prints, the highest places alone."""
    if one == other:
        return []
    has_leaf = len(one) == 1 or len(other) == 1
    if (
        has_leaf
        or one[0] != other[0]
        or abs(one[1] - other[1]) > 1e-6 + 1e-9 * abs(one[1])
    ):
        leaf = "class {}"
        test = "x{} <= {:.6g}"
        return [
            " / ".join((leaf, test)[len(n) > 1].format(*n[:2]) for n in (one, other))
        ]
    return differences(one[2], other[2]) + differences(one[3], other[3])


@contextmanager
def numbers_of_weka() -> Iterator[None]:
    """Prune by Weka's numbers in place of Quinlan's."""
    kept = pruning.normal_deviation, pruning._ALL_WRONG
    pruning.normal_deviation = lambda confidence: NormalDist().inv_cdf(1.0 - confidence)
    pruning._ALL_WRONG = 1.0
    try:
        yield
    finally:
        pruning.normal_deviation, pruning._ALL_WRONG = kept


def compare(
    dataset: str, weka: Path, data_home: Path, holes: float = 0.0
) -> dict[str, str]:
    """Return a row of the report: the trees of a data set, theirs beside ours."""
    data = load(dataset, data_home)
    X = data.X.select_dtypes("number").to_numpy(dtype=np.float64)
    classes, codes = np.unique(data.y.astype(str), return_inverse=True)
    generator = np.random.default_rng(0)
    held_out = generator.permutation(len(X)) % N_FOLDS_HELD_OUT == 0
    X = np.where(generator.random(X.shape) < holes, np.nan, X)
    with tempfile.TemporaryDirectory() as folder:
        train = Path(folder, "train.arff")
        test = Path(folder, "test.arff")
        write_arff(train, X[~held_out], codes[~held_out], len(classes))
        write_arff(test, X[held_out], codes[held_out], len(classes))
        output, predicted = run_j48(weka, train, test)
    theirs = parse(output)
    model = ObliqueTreeClassifier.from_preset("C4.5")

    def fit() -> tuple[Node, np.ndarray]:
        model.fit(X[~held_out], codes[~held_out])
        column_of = model.fitted_.schema.column_of.tolist()
        return as_nested(model.tree_, column_of), model.predict(X[held_out])

    quinlan, by_quinlan = fit()
    with numbers_of_weka():
        wekas, by_wekas = fit()
    one_way = model.tree_.labels[model.apply(X[held_out])]

    def accuracy(of: np.ndarray) -> str:
        return f"{100 * (of == codes[held_out]).mean():.2f}"

    return {
        "data set": dataset,
        "rows": f"{(~held_out).sum():,}",
        "missing": f"{100 * np.isnan(X).mean():.1f} %",
        "leaves, J48": str(n_leaves(theirs)),
        "leaves, J48's numbers": str(n_leaves(wekas)),
        "where they differ": ", ".join(differences(theirs, wekas)) or "nowhere",
        "leaves, C4.5's numbers": str(n_leaves(quinlan)),
        "accuracy, J48": accuracy(predicted),
        "ours, J48's numbers": accuracy(by_wekas),
        "predicted otherwise": f"{(by_wekas != predicted).sum()} of {held_out.sum():,}",
        "ours, one way": accuracy(one_way),
        "ours, C4.5's numbers": accuracy(by_quinlan),
    }


def report(whole: list[dict[str, str]], holes: list[dict[str, str]]) -> str:
    """Return the report."""
    counts = [
        row["predicted otherwise"].replace(",", "").split(" of ") for row in holes
    ]
    columns = ("accuracy, J48", "ours, J48's numbers", "ours, one way")
    figures = {
        "same": sum(row["where they differ"] == "nowhere" for row in whole),
        "same_with_holes": sum(row["where they differ"] == "nowhere" for row in holes),
        "n_otherwise": sum(int(n) for n, _ in counts),
        "n_rows": sum(int(n) for _, n in counts),
        "means": [np.mean([float(row[column]) for row in holes]) for column in columns],
        **{"whole": table(whole), "holes": table(holes)},
    }
    text = (TEXTS / "j48.md").read_text(encoding="utf-8")
    return Text().vformat(text, (), globals() | figures)


def main() -> None:
    """Compare the trees and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--weka", type=Path, required=True, help="weka.jar, version 3.6 or later"
    )
    parser.add_argument(
        "--data-home", type=Path, required=True, help="folder of the data sets"
    )
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the report")
    options = parser.parse_args()
    whole = [compare(name, options.weka, options.data_home) for name in DATASETS]
    holes = [
        compare(name, options.weka, options.data_home, SHARE_OF_HOLES)
        for name in WITH_HOLES
    ]
    (options.out / "j48.md").write_text(report(whole, holes), encoding="utf-8")


if __name__ == "__main__":
    main()
