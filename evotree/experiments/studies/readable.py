"""The study of readable trees: accuracy at every complexity, and what evolution is worth.

A picture or a printed tree is made where it is missing.

References
----------
Breiman L., Friedman J. H., Olshen R. A., Stone C. J. (1984). Classification and Regression Trees.
Wadsworth.

Carreira-Perpiñán M. Á., Tavallali P. (2018). Alternating optimization of decision trees, with
application to learning sparse oblique trees. Advances in Neural Information Processing Systems.

Montañana R., Gámez J. A., Puerta J. M. (2021). STree: a single multi-class oblique decision tree
based on support vector machines. Lecture Notes in Computer Science 12882, 54-64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin

from evotree.estimators import EvoTreeClassifier
from evotree.experiments.experiment import Experiment
from evotree.experiments.markdown import markdown_table
from evotree.experiments.pictures import save_picture
from evotree.experiments.pictures.comparison import plot_accuracy_at_budgets
from evotree.experiments.protocols import Task, stratified_folds
from evotree.experiments.rows import read_rows
from evotree.experiments.studies.means import TIE, fold_means, paired
from evotree.experiments.studies.oc1 import FILES, OC1Protocol
from evotree.experiments.studies.peers import VERSIONS
from evotree.experiments.studies.readable_trees import (
    BUDGETS,
    CartTrees,
    CrossValidatedTrees,
    LinearTrees,
    PairTrees,
    RestartsClassifier,
    STreeTrees,
    TaoTrees,
    predict_within,
    tree_within,
)
from evotree.experiments.studies.study import Results, Study
from evotree.experiments.studies.suites import N_FOLDS, SLOW, THIRTY
from evotree.export.text import export_text
from evotree.fitness.penalties import PenalizedAccuracy
from evotree.plotting import plot_tree
from evotree.tables.columns import encode, feature_names, fit_columns

EVOTREE, CART, PAIRS = "EvoTree", "CART", "obliquetree"
SEARCH, RESTARTS, SEEDS = "search", "restarts", "seeds"
WORTH = (SEARCH, RESTARTS, SEEDS)
"""The methods that show what evolution is worth."""
WIDTHS: Mapping[str, int | None] = {EVOTREE: None, "EvoTree 3": 3, "EvoTree 2": 2, "EvoTree 1": 1}
"""The bounds on the features of a split."""

METHODS = (CART, "Linear", "STree", "TAO", PAIRS, *WIDTHS, *WORTH)

SECONDS = 10.0
"""Of a fit of each of `WORTH`, at most."""

AREA_BUDGETS = tuple(round(float(b), 1) for b in np.geomspace(BUDGETS[0], BUDGETS[-1], 9))
"""The mean of the accuracies at these budgets is the area under a method's front."""

PRINTED = ("sick", "heart", "wdbc", "vehicle", "wall-following")
"""The data sets whose trees are shown."""

WORTH_BUDGETS = (10, 20, 40)
LARGE_LOSS = 1.0  # points below CART, of which the report speaks


# ---- runs ----------------------------------------------------------------------------------------


def make_methods() -> dict[str, ClassifierMixin]:
    """Return the methods of the study by name."""
    methods = {
        CART: CartTrees(),
        "Linear": LinearTrees(),
        "STree": STreeTrees(),
        "TAO": TaoTrees(),
        PAIRS: PairTrees(),
        **{name: EvoTreeClassifier(max_features_per_split=n) for name, n in WIDTHS.items()},
        SEARCH: EvoTreeClassifier(time_limit=SECONDS, max_generations=1_000_000, patience=None),
        RESTARTS: RestartsClassifier(time_limit=SECONDS),
        SEEDS: EvoTreeClassifier(time_limit=SECONDS, max_generations=0),
    }
    return {name: methods[name] for name in METHODS}


def make_experiment() -> Experiment:
    """Return the fits of the study, data set by data set; what takes minutes a fit comes last."""
    methods = make_methods()
    plan = [
        Task(dataset, method, fold, 0)
        for dataset in THIRTY
        for method in methods
        for fold in range(N_FOLDS)
    ]
    scorers: dict[str, Callable[[Any, np.ndarray, np.ndarray], float]] = {"area": area}
    measures: dict[str, Callable[[Any], float | None]] = {"fitness": fitness_of_best}
    for budget in BUDGETS:
        scorers[f"accuracy_{budget}"] = partial(accuracy_within, budget=budget)
        measures[f"complexity_{budget}"] = partial(complexity_within, budget=budget)
        measures[f"terms_{budget}"] = partial(terms_within, budget=budget)
        measures[f"leaves_{budget}"] = partial(leaves_within, budget=budget)
    return Experiment(
        "readable",
        THIRTY,
        methods,
        OC1Protocol(N_FOLDS, files={"digits": FILES["digits"]}),
        metrics=("accuracy", "train_accuracy"),
        scorers=scorers,
        measures=measures,
        plan=sorted(plan, key=lambda task: task.method == PAIRS and task.dataset in SLOW),
        curve=None,
        warm_up=True,
    )


def accuracy_within(model: Any, X: np.ndarray, y: np.ndarray, budget: float) -> float:
    """Return the accuracy of the tree that a method chooses within a budget."""
    return float(np.mean(predict_within(model, X, budget) == y))


def area(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the mean accuracy at `AREA_BUDGETS`, which are even on a logarithmic scale."""
    return float(np.mean([accuracy_within(model, X, y, budget) for budget in AREA_BUDGETS]))


def complexity_within(model: Any, budget: float) -> int:
    """Return the complexity of the tree that a method chooses within a budget."""
    return tree_within(model, budget).complexity


def terms_within(model: Any, budget: float) -> int:
    """Return the terms of the tree that a method chooses within a budget."""
    return tree_within(model, budget).n_terms


def fitness_of_best(model: Any) -> float | None:
    """Return the fitness of the best tree of a front, at the penalties of the fit."""
    if isinstance(model, CrossValidatedTrees):
        return None
    best: Any = tree_within(model)
    return PenalizedAccuracy(model.size_penalty_, model.term_penalty_)(best)[0]


def leaves_within(model: Any, budget: float) -> int:
    """Return the leaves of the tree that a method chooses within a budget."""
    return tree_within(model, budget).n_leaves


# ---- means ---------------------------------------------------------------------------------------


def complete_means(runs: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return means over folds, data set by method; NaN where folds are missing."""
    return fold_means(runs, column, THIRTY, METHODS)


def accuracies(runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return mean accuracies in percent, data set by method, at each budget and of the best."""
    columns = {str(budget): f"accuracy_{budget}" for budget in BUDGETS} | {"best": "accuracy"}
    return {title: 100.0 * complete_means(runs, column) for title, column in columns.items()}


# ---- tables --------------------------------------------------------------------------------------


def budgets_table(runs: pd.DataFrame) -> str:
    """Return mean accuracies at the budgets, each method over its own data sets, in Markdown."""
    means = accuracies(runs)
    sizes, areas = complete_means(runs, "complexity"), 100.0 * complete_means(runs, "area")
    seconds = complete_means(runs, "seconds")
    rows = []
    for method in sizes:
        row = {"method": method, "data sets": str(int(sizes[method].notna().sum()))}
        row |= {title: f"{table[method].mean():.2f}" for title, table in means.items()}
        row["its complexity"] = f"{sizes[method].mean():,.1f}"
        row["area"] = f"{areas[method].mean():.2f}"
        row["seconds"] = f"{seconds[method].mean():,.1f}"
        rows.append(row)
    return markdown_table(pd.DataFrame(rows))


def against_table(runs: pd.DataFrame, reference: str, reverse: bool = False) -> str:
    """Return how methods differ from one of them, on the data sets of both, in Markdown.

    Parameters
    ----------
    runs : DataFrame
        Rows of the fits.
    reference : str
        The method.
    reverse : bool, default=False
        Whether the others are taken from the reference, not the reference from the others.

    Returns
    -------
    str
        The table.
    """
    means = accuracies(runs)
    methods = means["best"].columns
    if reference not in methods or len(methods) < 2:
        return f"{reference} and another method have not been run yet."
    sign = -1.0 if reverse else 1.0
    rows = []
    for method in methods.drop(reference):
        row = {"method": method}
        for title, table in means.items():
            row[title] = paired(sign * (table[method] - table[reference]))
        rows.append(row)
    return markdown_table(pd.DataFrame(rows))


def bounds_table(runs: pd.DataFrame) -> str:
    """Return the sizes of EvoTree's trees beside those of tuned CART, in Markdown."""
    accuracy = 100.0 * complete_means(runs, "accuracy")
    sizes = {name: complete_means(runs, name) for name in ("complexity", "leaves", "terms")}
    rows = []
    for method in [name for name in WIDTHS if name in accuracy and CART in accuracy]:
        both = accuracy.index[accuracy[[method, CART]].notna().all(axis=1)]
        row = {"method": method, "data sets": str(len(both))}
        for name in (method, CART):
            row[f"accuracy{_of(name)}"] = f"{accuracy.loc[both, name].mean():.2f}"
        row["difference"] = paired(accuracy.loc[both, method] - accuracy.loc[both, CART])
        for title, table in sizes.items():
            for name in (method, CART):
                row[f"{title}{_of(name)}"] = f"{table.loc[both, name].mean():,.1f}"
        rows.append(row)
    return markdown_table(pd.DataFrame(rows)) if rows else "Not run yet."


def _of(method: str) -> str:
    return " of CART" if method == CART else ""


def unbounded_section(runs: pd.DataFrame) -> str:
    """Return accuracy and complexity of EvoTree beside tuned CART, the worst data set first."""
    accuracy = 100.0 * complete_means(runs, "accuracy")
    if not {EVOTREE, CART} <= set(accuracy):
        return "Not run yet."
    sizes = complete_means(runs, "complexity")
    difference = (accuracy[EVOTREE] - accuracy[CART]).dropna().sort_values(kind="stable")
    rows = []
    for dataset in difference.index:
        row = {"data set": dataset, "difference": f"{difference[dataset]:+.1f}"}
        for method in (EVOTREE, CART):
            row[f"accuracy, {method}"] = f"{accuracy.loc[dataset, method]:.1f}"
            row[f"complexity, {method}"] = f"{sizes.loc[dataset, method]:,.1f}"
        rows.append(row)
    known = sizes[EVOTREE].dropna()
    worse = [str(name) for name in difference.index if difference[name] < -LARGE_LOSS]
    return f"""Mean complexity: {known.mean():,.1f} on {len(known)} data sets. Difference to tuned
CART: {paired(difference)}. More than {LARGE_LOSS:g} point below it:
{", ".join(worse) or "none"}.

{markdown_table(pd.DataFrame(rows))}"""


def worth_table(runs: pd.DataFrame) -> str:
    """Return the search beside restarts and first trees, on the data sets of all, in Markdown."""
    if not set(WORTH) <= set(runs["method"]):
        return "Not run yet."
    columns = {f"accuracy at {budget}": f"accuracy_{budget}" for budget in WORTH_BUDGETS}
    columns |= {"area": "area", "accuracy of the best": "accuracy"}
    columns |= {"its accuracy on training rows": "train_accuracy", "its fitness": "fitness"}
    rows = []
    for title, column in columns.items():
        means = (100.0 * complete_means(runs, column)).reindex(columns=WORTH).dropna()
        row = {"figure": title, "data sets": str(len(means))}
        row |= {name: f"{means[name].mean():.2f}" for name in WORTH}
        for other in (RESTARTS, SEEDS):
            row[f"{SEARCH} - {other}"] = paired(means[SEARCH] - means[other])
        rows.append(row)
    return markdown_table(pd.DataFrame(rows))


def gaps_section(runs: pd.DataFrame) -> str:
    """Return what is gained over the first trees in fitness and in accuracy, by data set."""
    if not set(WORTH) <= set(runs["method"]):
        return "Not run yet."
    gains = {}
    for column in ("fitness", "accuracy"):
        means = (100.0 * complete_means(runs, column)).reindex(columns=WORTH)
        for method in (SEARCH, RESTARTS):
            gains[f"{column}, {method}"] = means[method] - means[SEEDS]
    table = pd.DataFrame(gains).dropna()
    fitness, accuracy = table[f"fitness, {SEARCH}"], table[f"accuracy, {SEARCH}"]
    table.insert(0, "gap", fitness - accuracy)
    is_fitter, is_better = fitness >= TIE, accuracy >= TIE
    table = table.sort_values("gap", ascending=False, kind="stable").map("{:+.2f}".format)
    return f"""What is gained over *seeds*, in points. The *gap* is the gain of *search* in fitness
less its gain in accuracy; where it is large, evolution has learned what other rows do not confirm,
unless other penalties were chosen. The fitness rises by {TIE:g} points or more on
{is_fitter.sum()} of {len(table)} data sets, and the accuracy with it on
{(is_fitter & is_better).sum()} of these.

{markdown_table(table.rename_axis("data set").reset_index())}"""


def cells(runs: pd.DataFrame, column: str) -> str:
    """Return the mean accuracies of a column, data set by method, the best bold, in Markdown."""
    means = 100.0 * complete_means(runs, column)
    rows = []
    for dataset, row in means.round(1).iterrows():
        texts = {name: "" if np.isnan(value) else f"{value:.1f}" for name, value in row.items()}
        best = {name: f"**{texts[name]}**" for name in row.index if row[name] == row.max()}
        rows.append({"data set": dataset} | texts | best)
    return markdown_table(pd.DataFrame(rows)) if rows else "Not run yet."


# ---- pictures and trees --------------------------------------------------------------------------


def draw_fronts(runs: pd.DataFrame, out: Path) -> str:
    """Draw mean accuracies against mean complexities into a folder; return the Markdown.

    Of the data sets that all methods drawn have; methods without any whole data set are left out.
    """
    means, best = accuracies(runs), complete_means(runs, "complexity")
    common = best.dropna().index
    if not len(common):
        return "No data set has been run with all methods yet."
    x = pd.DataFrame(
        {str(b): complete_means(runs, f"complexity_{b}").loc[common].mean() for b in BUDGETS}
        | {"best": best.loc[common].mean()}
    )
    y = pd.DataFrame({title: table.loc[common].mean() for title, table in means.items()})
    of = f"mean of {len(common)} of {len(THIRTY)} data sets"
    ax = plot_accuracy_at_budgets(x, y, xlabel=f"complexity ({of})")
    save_picture(ax, out / "readable_fronts.png")
    return (
        f"Means over the {len(common)} data sets that all methods drawn have. A line joins the "
        "budgets, a broken one leads to the tree that the method chooses without any.\n\n"
        "![Accuracy against complexity](readable_fronts.png)"
    )


def draw_trees(data_home: Path, out: Path) -> None:
    """Fit, print and draw the trees of `PRINTED` where EvoTree was run and files are missing."""
    if EVOTREE not in set(read_rows(STUDY.rows_file(out))["method"]):
        return
    protocol = OC1Protocol(N_FOLDS)
    for dataset in PRINTED:
        text_file, picture = out / f"readable_{dataset}.txt", out / f"readable_{dataset}.png"
        if text_file.exists() and picture.exists():
            continue
        data = protocol.load(dataset, data_home)
        train, test = stratified_folds(data.y, N_FOLDS, 0)[0]
        columns = fit_columns(data.X.iloc[train])
        X = pd.DataFrame(encode(columns, data.X), columns=list(feature_names(columns)))
        model = EvoTreeClassifier(random_state=0).fit(X.iloc[train], data.y[train])
        cart = CartTrees().fit(X.iloc[train].to_numpy(), data.y[train])
        rows, y = X.iloc[test], data.y[test]
        facts = [
            f"{name}: {100.0 * accuracy:.1f} % of the test rows, {tree.n_leaves} leaves, "
            f"{tree.n_terms} terms"
            for name, tree, accuracy in (
                (EVOTREE, model.tree_, model.score(rows, y)),
                (CART, cart.tree_, cart.score(rows.to_numpy(), y)),
            )
        ]
        text_file.write_text("\n".join([*facts, "", export_text(model)]), encoding="utf-8")
        save_picture(plot_tree(model), picture)


def printed_trees(out: Path) -> str:
    """Return the trees of `PRINTED` that have been made, in Markdown."""
    parts = []
    for dataset in PRINTED:
        file = out / f"readable_{dataset}.txt"
        if file.exists():
            text = file.read_text(encoding="utf-8").rstrip()
            picture = f"![The tree of {dataset}](readable_{dataset}.png)"
            parts.append(f"### {dataset}\n\n```text\n{text}\n```\n\n{picture}")
    return "\n\n".join(parts) or "Not made yet."


# ---- report --------------------------------------------------------------------------------------


def methods_text() -> str:
    """Return what the methods are."""
    return f"""Methods: EvoTree is `EvoTreeClassifier()`, without a bound
and with at most 1, 2 and 3 features a split; it chooses in its front, by the penalties of the
fit. CART is scikit-learn's tree and its prunings by cost-complexity, among which
{CartTrees().n_folds} folds of the training rows choose (each pruning judged by the middle of its
range of penalties): its *best* is tuned CART. In the same way are chosen: TAO, the L1 paths of
`TAOClassifier` from trees of depth {_listed(TaoTrees().depths)}, with C from
{max(TaoTrees().Cs):g} to {min(TaoTrees().Cs):g}; Linear, `ObliqueTreeClassifier("linear")` with C
of {_listed(LinearTrees().Cs)}, and its prunings; STree, the package of that name, version
{VERSIONS["stree"]}, with C of {_listed(STreeTrees().Cs)}, on features scaled to [-1, 1], and its
prunings; obliquetree, the package of that name, version {VERSIONS["obliquetree"]}, with splits on
two features, and its prunings. Of these, Linear has {LinearTrees().n_folds} folds, the others
{TaoTrees().n_folds}."""


def write(results: Results) -> str:
    """Return the report, and draw its picture."""
    runs, out = results.runs, results.out
    compared = runs[~runs["method"].isin(WORTH)]
    return f"""# Readable trees: accuracy at every complexity

Written by `evotree experiment study readable --data-home DIR --out docs/results --n-jobs 2`,
from the rows in `readable_runs.csv`: {results.planned} fits.

The complexity of a tree is the number of its leaves and of the terms of its splits, the weights
other than 0; that of an axis-parallel tree is its number of nodes. At a budget each method takes
the tree that it finds best itself, without the test rows, among its trees of at most that
complexity; *best* is its choice among all.

The protocol and the folds are those of [the benchmark](benchmark.md), on {len(THIRTY)} of its data
sets. The defaults of `EvoTreeClassifier` were chosen on them or judged by them. Accuracy is the
share of test rows classified right, in percent; figures are means over the data sets of which a
method has all {N_FOLDS} folds. Seconds are those of a fit on one thread, the choice of settings
included, on a machine that did other work at the same time.

{methods_text()}

## Accuracy against complexity

{draw_fronts(compared, out)}

Each method over its own data sets; *area* is the mean accuracy at {len(AREA_BUDGETS)} budgets from
{BUDGETS[0]} to {BUDGETS[-1]}, even on a logarithmic scale:

{budgets_table(compared)}

Differences to CART in points on the data sets of both, with their standard errors, and data sets
won / tied / lost; a difference below {TIE:g} points is a tie:

{against_table(compared, CART)}

EvoTree less each other method, in the same way:

{against_table(compared, EVOTREE, reverse=True)}

## Bounds on the features of a split

The trees that are chosen without a budget, beside tuned CART, on the data sets of both:

{bounds_table(runs)}

## Without a bound

{unbounded_section(runs)}

## What evolution is worth

*search* is EvoTree for {SECONDS:g} seconds; *restarts* has the same seconds, the same first
trees from ever new random numbers and the same refinements, but no selection, mutation and
crossover; *seeds* are the first trees of the search alone. Each chooses hyperparameters in at most
half of the seconds, so that the choices may differ. *Fitness* is what all maximize, on the rows
that it is measured on, times 100.

{worth_table(runs)}

{gaps_section(runs)}

## Trees

EvoTree's trees of the first fold's training rows.

{printed_trees(out)}

## Accuracy at a complexity of 20

The best method is bold.

{cells(compared, "accuracy_20")}

## Accuracy of the best

{cells(compared, "accuracy")}
"""


def _listed(values: Iterable[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


STUDY = Study(
    "readable",
    "accuracy against complexity on 30 data sets, and what evolution is worth",
    make_experiment,
    write,
    draw=draw_trees,
)
