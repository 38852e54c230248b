"""
Experiments and reports
=======================

Compare methods on data sets, folds and seeds; continue where you stopped; write a report.
"""

# %%
# Methods are estimators, data sets are names or tables. Every method gets the same folds.

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
from sklearn.tree import DecisionTreeClassifier

from evotree import ObliqueTreeClassifier, TAOClassifier
from evotree.experiments.execution import run_experiment
from evotree.experiments.experiment import Experiment
from evotree.experiments.protocols import Protocol
from evotree.experiments.report import write_report

experiment = Experiment(
    name="three trees",
    datasets=["sklearn:iris", "sklearn:wine", "sklearn:breast_cancer"],
    methods={
        "CART": DecisionTreeClassifier(min_samples_leaf=5, random_state=0),
        "WODT": ObliqueTreeClassifier.from_preset("WODT", random_state=0),
        "TAO": TAOClassifier("axis", depth=4, penalty="l1"),
    },
    protocol=Protocol(n_folds=3),
    seeds=[0],
)
folder = Path(mkdtemp())
runs = run_experiment(experiment, folder, jobs=1)

# %%
# Each fit is a row: scores, sizes, seconds, memory, and the traceback where it failed.

print(
    runs.groupby(["dataset", "method"])[["accuracy", "leaves", "seconds"]]
    .mean()
    .round(3)
)

# %%
# The report has means with tests, and a picture, in Markdown and CSV.

written = write_report(folder, reference="TAO")
print("\n".join(sorted(path.name for path in written)))

# %%
# Its picture shows accuracy against complexity.

from evotree.experiments.comparison import plot_accuracy_against_size

plot_accuracy_against_size(runs)
plt.show()

# %%
# The same experiment may stand in a file, ``evotree experiment run small.toml --n-jobs 2``. A
# second call runs only what is missing.

again = run_experiment(experiment, folder, jobs=1)
print(f"{len(runs)} fits before, {len(again)} now")

# sphinx_gallery_thumbnail_path = 'results/readable_fronts.png'
