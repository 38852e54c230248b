"""
Export to C, SQL and ONNX
=========================

Take a tree to where it is needed: as source code, as a query, as a model for other runtimes.
"""

# %%
# Fit a tree to the iris data, with names that SQL can say, and take one with an oblique split.

from sklearn.datasets import load_iris

from evotree import EvoTreeClassifier
from evotree.export import export_c, export_python, export_sql, to_onnx
from evotree.plotting import plot_tree

iris = load_iris(as_frame=True)
X = iris.data.rename(columns=lambda name: name.removesuffix(" (cm)").replace(" ", "_"))
y = iris.target_names[iris.target]
model = EvoTreeClassifier(random_state=0).fit(X, y)
model.select_tree("complexity<=7")
plot_tree(model)

# %%
# A function in Python without a single import:

print(export_python(model))

# %%
# C99, to be compiled with ``-ffp-contract=off``:

print(export_c(model, name="predict"))

# %%
# An SQL expression, which a database answers as ``predict`` does:

import sqlite3

expression = export_sql(model)
print(expression)

database = sqlite3.connect(":memory:")
X.to_sql("flowers", database, index=False)
answers = [one for (one,) in database.execute(f"SELECT {expression} FROM flowers")]
print("the same as predict:", answers == model.predict(X).tolist())

# %%
# An ONNX model, with probabilities:

import numpy as np
from onnxruntime import InferenceSession

session = InferenceSession(to_onnx(model).SerializeToString())
labels, probabilities = session.run(None, {session.get_inputs()[0].name: X.to_numpy()})
print("the same as predict:", labels.tolist() == model.predict(X).tolist())
print(
    "largest difference:", f"{np.abs(probabilities - model.predict_proba(X)).max():.0e}"
)
