"""Fit the tree of the package linear-tree; run by another interpreter, which has the package.

``python linear_tree_fit.py DATA.npz TREE.json`` reads the training rows ``X`` and ``y`` and writes
a list of leaves. Each has its ``conditions``, triples of a feature, of whether it is above, and of
a threshold, and the ``coef`` and ``intercept`` of its model, a ridge regression.
"""

import json
import sys
from pathlib import Path

import numpy as np
from lineartree import LinearTreeRegressor
from sklearn.linear_model import Ridge

rows = np.load(sys.argv[1])
tree = LinearTreeRegressor(Ridge()).fit(rows["X"], rows["y"])
leaves = [
    {
        "conditions": [
            [int(j), side == "R", float(at)] for j, side, at in leaf.threshold
        ],
        "coef": np.ravel(leaf.model.coef_).tolist(),
        "intercept": float(leaf.model.intercept_),
    }
    for leaf in tree._leaves.values()
]
Path(sys.argv[2]).write_text(json.dumps(leaves), encoding="ascii")
