"""
Hold a rule that is known, and edit the rest
============================================

A doctor's rule stays at the root, evolution finds what is below, and a person has the last word.
"""

# %%
# Cells of breast tumours, measured under the microscope. Pathologists distrust large nuclei: the
# rule says so, as `export_text` would print it. Its leaves may say anything.

from pathlib import Path
from tempfile import mkdtemp

from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from evotree import Evolution, EvoTreeClassifier
from evotree.export import export_text
from evotree.inspection import stability
from evotree.plotting import plot_tree
from evotree.report import report

cells, benign = load_breast_cancer(return_X_y=True, as_frame=True)
kinds = benign.map({0: "malignant", 1: "benign"})
names = {
    "worst radius": "radius",
    "worst texture": "texture",
    "worst smoothness": "smoothness",
}
names |= {"worst concave points": "dents", "worst symmetry": "symmetry"}
X, X_test, y, y_test = train_test_split(
    cells[[*names]].rename(columns=names), kinds, stratify=kinds, random_state=0
)
rule = """
|--- radius <= 16.8
|   |--- small nuclei
|--- else
|   |--- large nuclei
"""

# %%
# All trees of the search have the rule at node 0, bit for bit.

held = EvoTreeClassifier(
    evolution=Evolution(start=rule, hold=[0]), leaves="constant", random_state=0
).fit(X, y)
print(export_text(held))
print(f"right on held-out rows: {held.score(X_test, y_test):.3f}")
plot_tree(held)

# %%
# A free search tells the price of the rule.

free = clone(held).set_params(evolution=Evolution()).fit(X, y)
print(f"right without the rule: {free.score(X_test, y_test):.3f}")
differ = held.predict(X_test) != free.predict(X_test)
print(f"predicted otherwise: {differ.sum()} of {len(differ)} rows")

# %%
# Numbers that nobody can remember are rounded by hand. Each edit makes a new model, whose leaves
# the rows fill again, and says what it cost; the old one stays as it was.

threshold = round(abs(float(held.tree_.thresholds[1])), 1)  # of the sum above
rounder = held.edit(X, y).set_threshold(1, threshold)
print(rounder.edit_cost_)
simpler = rounder.edit(X, y).drop_term(1, "texture")
print(simpler.edit_cost_)
print(export_text(simpler))

# %%
# Would other patients have given the same tree? Refits to four fifths of the rows agree on most
# predictions, and share the root, which is held. The splits below are less sure.

quick = clone(held).set_params(
    size_penalty=held.size_penalty_, term_penalty=held.term_penalty_
)
refits = stability(quick.set_params(max_generations=10), X, y, n=6, random_state=0)
print(refits.summary.round(3))
refits.columns[::-1].plot.barh(xlabel="share of the refits that use it")

# %%
# The page of the report is for those who do not program: there one selects a split, prunes it or
# moves its threshold, sees what that does to the held-out rows, and copies the lines of Python.

page = Path(mkdtemp()) / "cells.html"
report(simpler, X_test, y_test).save(page)
print(f"{page.name}: {page.stat().st_size // 1000} kB, no other files")

# sphinx_gallery_thumbnail_number = 1
