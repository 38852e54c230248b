"""The study of SRBench: EvoTree beside 21 published methods, symbolic regression among them.

The protocol is that of SRBench (La Cava et al. 2021, NeurIPS Datasets and Benchmarks) for sets without
a known formula: three quarters of the rows train, at most `MAX_TRAIN_ROWS` of them, and targets are
standardized by these. In the rows the fold is `OFFICIAL`, and the seed draws rows.
"""

import ast
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from evotree.estimators import EvoTreeRegressor
from evotree.experiments.protocols import OFFICIAL, Parts, Task, take_rows
from evotree.export import export_python
from experiments.methods.regressors import EVOTREE
from experiments.study import Results, Study, StudyProtocol, define

SEEDS = (860, 5390, 6265, 11284, 11964, 15795, 21575, 22118, 23654, 29802)
"""Seeds of the ten splits, inferred from the published figures."""
MAX_TRAIN_ROWS = 10_000
COPIES = ("562_cpu_small", "197_cpu_act")
"""Near copies of another set, 227_cpu_small."""
REAL = (
    *("659_sleuth_ex1714", "1089_USCrime", "192_vineyard", "228_elusage"),
    *("542_pollution", "687_sleuth_ex1605", "527_analcatdata_election2000"),
    *("665_sleuth_case2002", "207_autoPrice", "230_machine_cpu", "712_chscase_geyser1"),
    *("695_chatfield_4", "505_tecator", "560_bodyfat", "556_analcatdata_apnea2"),
    *("1027_ESL", "522_pm10", "1029_LEV", "529_pollen", "225_puma8NH", "227_cpu_small"),
    *(
        *COPIES,
        "215_2dplanes",
        "564_fried",
        "1201_BNG_breastTumor",
        "1203_BNG_pwLinear",
    ),
)
FRIEDMAN = (
    *("579_fri_c0_250_5", "657_fri_c2_250_10", "604_fri_c4_500_10"),
    *("633_fri_c0_500_25", "643_fri_c2_500_25", "609_fri_c0_1000_5"),
    *("593_fri_c1_1000_10", "586_fri_c3_1000_25"),
)
"""Sets that were drawn from Friedman's functions."""
METHODS = {
    EVOTREE: EvoTreeRegressor(),
}


class SRBenchProtocol(StudyProtocol):
    """Three quarters of the rows to fit on, drawn for each seed, with standardized targets."""

    def take_parts(
        self, task: Task, data_home: Path | None, stratified: bool = True
    ) -> Parts:
        """Return the rows of a fit."""
        data = self.load(task.dataset, data_home)
        rows = np.arange(len(data.y))
        train, test = train_test_split(rows, test_size=0.25, random_state=task.seed)
        if len(train) > MAX_TRAIN_ROWS:
            rng = check_random_state(task.seed)
            train = rng.choice(train, MAX_TRAIN_ROWS, replace=False)
        y = (data.y - data.y[train].mean()) / data.y[train].std()
        return take_rows(data.X, y, train, test)


def expression_nodes(model: Any) -> int:
    """Return the size of a tree as one expression: the nodes of the code of `export_python`."""
    return count_nodes(ast.parse(export_python(model)))


def count_nodes(code: ast.AST) -> int:
    """Count numbers, columns, operations, comparisons, calls and choices; signs count none.

    A leaf's sum within its bounds is the greater one of a bound and the lesser one of the sum and
    the other bound: two operations and two numbers.
    """
    if isinstance(code, ast.Subscript):
        return 1
    if isinstance(code, ast.IfExp):
        return 1 + count_nodes(code.body) + count_nodes(code.orelse)
    is_node = isinstance(
        code, ast.Constant | ast.BinOp | ast.Compare | ast.Call | ast.If
    )
    return is_node + sum(map(count_nodes, ast.iter_child_nodes(code)))


EXPERIMENT = define(
    "srbench",
    (*REAL, *FRIEDMAN),
    METHODS,
    SRBenchProtocol(),
    metrics=("r2", "train_r2"),
    measures={"expression_nodes": expression_nodes},
    plan=[
        Task(dataset, method, OFFICIAL, seed)
        for seed, method, dataset in product(SEEDS, METHODS, (*REAL, *FRIEDMAN))
    ],
)


def report(results: Results) -> dict[str, Any]:
    """Return nothing yet."""
    return {}


STUDY = Study(EXPERIMENT, report)
