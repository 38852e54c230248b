"""Draw the README's picture: ``python docs/images/demo.py`` writes demo.png beside this file."""

from pathlib import Path

import matplotlib.pyplot as plt

from evotree import EvoTreeClassifier
from evotree.experiments.problems import make_problem
from evotree.plotting import plot_decision_regions, plot_learning_curve

X, y = make_problem("chessboard2", random_state=0)
model = EvoTreeClassifier(random_state=0).fit(X, y)
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), width_ratios=(2, 3))
plot_decision_regions(model, X, y, ax=left)
plot_learning_curve(model, ax=right)
left.set_title(f"{model.tree_.n_nodes} nodes")
figure.tight_layout()
figure.savefig(Path(__file__).with_suffix(".png"), dpi=80)
