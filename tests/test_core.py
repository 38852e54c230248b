"""The core stands alone: what stands around it is not imported by it, and may be deleted."""

import json
import subprocess
import sys

import pytest

from tests.size import AROUND

# Fits, predicts, explains, prints and saves, and says which modules of the package that took.
USUAL_WORK = """
import json, sys, tempfile
from pathlib import Path

from sklearn.datasets import load_iris
from evotree import {name}, load_model, save_model
from evotree.texts import export_text

X, y = load_iris(return_X_y=True)
model = {name}(random_state=0, max_generations=2).fit(X, y)
model.predict(X), model.explain(X[:3]), model.importances(), repr(model.choice_)
model.pareto_front_.to_frame(), model.select_tree("tree").edit(X, y).prune(0)
export_text(model)
with tempfile.TemporaryDirectory() as folder:
    save_model(Path(folder) / "model.json", model, "kind")
    load_model(Path(folder) / "model.json").predict(X)
# Where a module is None, as `tests.alone` has it, none was imported.
modules = [name for name, module in sys.modules.items() if module is not None]
print(json.dumps([name for name in modules if name.startswith("evotree.")]))
"""


@pytest.mark.parametrize("name", ["EvoTreeClassifier", "EvoTreeRegressor"])
def test_the_usual_work_imports_the_core_alone(name):
    code = USUAL_WORK.format(name=name)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    imported = {module.split(".")[1] for module in json.loads(done.stdout)}
    assert {"engine", "estimators", "operators", "model_file", "texts"} <= imported
    assert imported & set(AROUND) == set()
