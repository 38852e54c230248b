"""What the commands do between files: from a user's table to a model and its page."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import classification_report, r2_score, root_mean_squared_error

from evotree import export
from evotree.cli import rows as tables
from evotree.cli import say, shown
from evotree.cli.options import search_parameters, value_of
from evotree.cli.rows import TableRows
from evotree.configuration import Cost, check_parameters
from evotree.engine.config import Checkpoint
from evotree.estimators import EvoTreeClassifier, EvoTreeRegressor
from evotree.files import write_whole
from evotree.fitness.base import check_costs, costs_of_rows
from evotree.front import CHOSEN, check_rule
from evotree.model_file import (
    Model,
    figures_text,
    load_model,
    load_tree_model,
    save_model,
)
from evotree.schema import text_of
from evotree.survival import Times, concordance
from evotree.survival.estimator import EvoTreeSurvival
from evotree.tables.columns import numbers_of, positions_of
from evotree.words import printable

ESTIMATORS = {
    "classification": EvoTreeClassifier,
    "regression": EvoTreeRegressor,
    "survival": EvoTreeSurvival,
}
_FORWARD_FOLDS = 5
# Lines of the summary of a model that its report shows.
FACTS = ("tree", "forest", "training", "test", "chosen", "evolution", "seconds")


def fit(args: argparse.Namespace) -> None:
    """Evolve a tree for a table and write a model file."""
    parameters = parameters_of(args)
    check_parameters(EvoTreeClassifier().set_params(**parameters))
    with _naming("--select"):
        if args.select == "simplest":
            raise ValueError("rule='simplest' needs further rows, as Python takes them")
        if args.select != CHOSEN:
            check_rule(args.select)
    rows, test = tables.read_training_rows(args), None
    if args.test_size:
        rows, test = tables.hold_out(rows, args.test_size, args.random_state)
    estimator = ESTIMATORS[rows.task]()
    parameters = _parameters_of_rows(parameters, args, rows)
    for name in {*parameters} - {*estimator.get_params()}:
        raise ValueError(
            f"--{name.replace('_', '-')} is not for {rows.task}; --task says what is predicted"
        )
    model = train(estimator.set_params(**parameters), rows, test, args)
    if estimator.stop_reason_ == "interrupt":
        say("evotree: interrupted; the model is the best tree so far")
    save_model(args.out, model)
    # Rules may be many: the summary stands where a reader of a terminal looks, below.
    print(shown(f"{model.rules()}\n{model.summary()}"))
    if test is None:
        print(
            "no rows were held out: --test-size 0.2 measures how new ones are predicted"
        )
    elif model.classes is not None:
        by_class = classification_report(
            test.y,
            model.predict(test.X),
            labels=model.classes,
            target_names=[printable(label) for label in model.labels or []],
            digits=4,
            zero_division=0,
        )
        print(shown(f"test rows by class\n{by_class}"), end="")
    print(shown(f"wrote {args.out}"))
    if args.report:
        from evotree.report import report

        X, y, *_ = test or rows
        if y.ndim == 1:
            y = pd.Series(y, name=args.target)
        # A page measures no rates.
        report(estimator, X, None if args.exposure else y).save(args.report)
        print(shown(f"wrote {args.report}"))


def parameters_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of the search that were given."""
    given = vars(args)
    parameters = {
        path: value_of(path, given[path]) if dict in allowed else given[path]
        for _, path, allowed in search_parameters()
        if path in given
    }
    for own, other in (("cost_matrix", "objective"), ("resume", "checkpoint")):
        if given[own] and other in parameters:
            raise ValueError(
                f"--{own.replace('_', '-')} is not allowed with --{other}: it says that, too"
            )
    if args.resume:
        parameters["checkpoint"] = Checkpoint(args.resume, resume=True)
    return parameters


def _parameters_of_rows(
    parameters: dict[str, Any], args: argparse.Namespace, rows: TableRows
) -> dict[str, Any]:
    """Return parameters with those that speak of columns, of classes or of what these cost."""
    parameters = dict(parameters)
    classes = np.unique(rows.y) if rows.task == "classification" else np.array([])
    label_of = {text_of(label): label for label in classes.tolist()}
    if isinstance(weights := parameters.get("class_weight"), dict) and label_of:
        for name, weight in weights.items():
            if name not in label_of or not isinstance(weight, int | float):
                raise ValueError(
                    f"--class-weight {name}={weight}: allowed are numbers for the classes "
                    f"{', '.join(label_of)}"
                )
        parameters["class_weight"] = {label_of[one]: weights[one] for one in weights}
    if args.cost_matrix:
        if not label_of:
            raise ValueError(f"--cost-matrix is not for {rows.task}, but for classes")
        costs = tables.read(args.cost_matrix, args)
        costs = costs.set_index(costs.columns[0]).apply(numbers_of)
        with _naming("--cost-matrix"):
            parameters["objective"] = Cost(check_costs(costs, classes))
    return parameters


@contextmanager
def _naming(name: Any) -> Iterator[None]:
    """Name the file or the option that is at fault in errors."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _write(out: str | None, content: bytes) -> None:
    """Write a result whole to its file, or to standard output."""
    if out is None:
        print(content.decode(), end="")
    else:
        write_whole(out, lambda file: file.write(content))


def predict(args: argparse.Namespace) -> None:
    """Predict the target of a table's rows, and say how well where it is known."""
    model = load_model(args.model)
    if args.proba and model.labels is None:
        raise ValueError(f"--proba: {args.model} predicts numbers, not classes")
    frame = tables.read_for_model(args.data, args, model)
    known = _known_targets(model, frame)
    with _naming(args.data):
        predicted = pd.Series(model.predict(frame), frame.index, name="prediction")
        shares = model.predict_proba(frame) if args.proba else None
    table = predicted if shares is None else pd.DataFrame(shares, columns=model.labels)
    _write(args.out, table.to_csv(index=False).encode())
    if len(known) > (model.labels is None):  # R² needs two rows
        X, y = frame.loc[known.index], known.to_numpy()
        say(figures_text(figures(model, X, y, predicted[known.index])))


def _known_targets(model: Model, frame: pd.DataFrame) -> pd.Series:
    """Return the classes or numbers of a table's rows where they are known.

    Times and rates have none: it takes another column to measure them.
    """
    member = model.members[0]
    if model.target not in frame or member.is_risk or member.arguments.has_exposures:
        return pd.Series(dtype=float)
    targets = frame[model.target]
    return (targets if model.classes is not None else numbers_of(targets)).dropna()


def warm_up(args: argparse.Namespace) -> None:
    """Compile everything."""
    from evotree.estimators.warmup import warmup

    warmup()


def show(args: argparse.Namespace) -> None:
    """Print a model's tree as rules, and draw it."""
    model = (load_tree_model if args.plot else load_model)(args.model)
    print(shown(f"{model.rules()}\n{model.summary()}"))
    if args.plot:
        from evotree import plotting

        _draw(args.plot, plotting.plot_tree(model))


def export_model(args: argparse.Namespace) -> None:
    """Write a model's tree as rules or code."""
    if args.to == "onnx" and not args.out:
        raise ValueError("--to onnx writes no text: --out names a file for it")
    if args.proba and args.to not in ("python", "c", "onnx", "sql"):
        raise ValueError(
            f"--proba: --to {args.to} writes labels; allowed are python, c, onnx and sql"
        )
    model = load_model(args.model)
    if args.to == "rules":
        made: Any = model.rules(export.export_rules)
    elif args.proba and args.to != "onnx":  # which always has them
        made = export.FORMS[args.to](model, probability=True)
    else:
        made = export.FORMS[args.to](model)
    _write(args.out, made.SerializeToString() if args.to == "onnx" else made.encode())


def report_model(args: argparse.Namespace) -> None:
    """Write a page about a model."""
    model = load_model(args.model)
    frame = tables.read_for_model(args.data, args, model) if args.data else None
    with _naming(args.data):
        page = report_of_model(model, frame)
    page.save(args.out)
    for note in page.data["notes"]:
        say(note)
    print(shown(f"wrote {args.out}"))


def run_experiment(args: argparse.Namespace) -> None:
    """Do the fits that a file defines and that are missing."""
    from evotree.experiments import execution, experiment

    defined = experiment.read_experiment(Path(args.file))
    if args.reference not in (None, *defined.methods):
        raise ValueError(
            f"--reference {args.reference}: the methods are {', '.join(defined.methods)}."
        )
    try:
        runs = execution.run_experiment(
            defined,
            args.out,
            args.data_home,
            jobs=args.n_jobs,
            time_limit=args.time_limit,
            retry=tuple(args.retry),
        )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"what was done is kept in {args.out}") from None
    counts = runs["status"].value_counts()
    print(", ".join(f"{count:,} {status}" for status, count in counts.items()))
    for status, some in runs[runs["status"] != "done"].groupby("status"):
        first = some.iloc[0]
        last_line = str(first["error"]).strip().rpartition("\n")[2]
        print(
            shown(f"first {status}: {first['dataset']}, {first['method']}: {last_line}")
        )
    if len(counts) and "done" not in counts:
        raise ValueError(f"no fit was done; the tracebacks are in {args.out}.")
    report_experiment(args)


def report_experiment(args: argparse.Namespace) -> None:
    """Write tables, tests and pictures of results."""
    from evotree.experiments.report import write_report

    for path in write_report(args.out, args.reference):
        print(shown(f"wrote {path}"))


def compare(args: argparse.Namespace) -> None:
    """Compare the default with the models that one would take else, on a table."""
    from evotree.experiments import rivals

    rows = tables.read_training_rows(args)
    if "sample_weight" in rows.beside:
        say("the models count all rows alike, whatever their weights are")
    comparison = rivals.compare(
        rows.X,
        rows.y,
        groups=rows.beside.get("groups"),
        time=rows.beside.get("time"),
        task=rows.task,
        n_folds=args.folds,
        random_state=args.random_state,
        n_jobs=args.n_jobs,
    )
    print(shown(str(comparison)))
    if args.plot:
        _draw(args.plot, comparison.plot())


def _draw(path: str, axes: Any) -> None:
    """Write a picture to a file, and name this."""
    from evotree.plotting import style

    style.save_picture(axes, Path(path))
    print(shown(f"wrote {path}"))


# ---- from rows to a model ------------------------------------------------------------------------


def train(
    estimator: Any, rows: TableRows, test: TableRows | None, args: argparse.Namespace
) -> Model:
    """Fit an estimator, and make a model of the tree of its front that a rule takes."""
    beside = {name: rows.beside[name].to_numpy() for name in rows.beside}
    if "time" in beside:
        from evotree.experiments.protocols import forward_folds

        with _naming("--time"):
            beside["cv"] = forward_folds(beside.pop("time"), _FORWARD_FOLDS)
    try:
        estimator.fit(rows.X, rows.y, **beside)
    except KeyboardInterrupt:  # ends the evolution
        if not hasattr(estimator, "tree_"):
            raise
    model = Model.of(estimator.select_tree(args.select), args.target)
    training = measure(model, rows, test) | {
        "generations": estimator.n_generations_,
        "stop_reason": estimator.stop_reason_,
        "seconds": {name: round(s, 3) for name, s in estimator.seconds_.items()},
    }
    if args.select != CHOSEN:
        training["select"] = args.select
    return replace(model, training=training)


def measure(model: Model, rows: TableRows, test: TableRows | None) -> dict[str, Any]:
    """Return how well training rows, and rows held out, are predicted, as a model keeps it."""
    measured: dict[str, Any] = {}
    for of, part in (("", rows), ("test_", test)):
        if part is not None:
            exposure = part.beside.get("exposure")
            known = figures(model, part.X, part.y, model.predict(part.X), exposure)
            measured |= {f"{of}{name}": value for name, value in known.items()}
    if model.classes is not None:
        y = rows.y if test is None else test.y
        measured["base_rate"] = float(np.mean(y == pd.Series(rows.y).mode()[0]))
    return measured


def figures(
    model: Model, X: Any, y: Any, predicted: Any, exposure: Any = None
) -> dict[str, Any]:
    """Return how well some rows are predicted, by the names that a model has for it.

    Of events at exposures the rates are predicted, each of which counts as much as its exposure.
    """
    if model.members[0].is_risk:
        return {"rows": len(y), "concordance": concordance(Times.read(y), predicted)}
    if model.classes is None:
        weight = np.ones(len(y)) if exposure is None else np.asarray(exposure)
        rates = y / weight
        r2 = r2_score(rates, predicted, sample_weight=weight)
        rmse = root_mean_squared_error(rates, predicted, sample_weight=weight)
        return {"rows": len(y), "r2": float(r2), "rmse": float(rmse)}
    classes = model.classes.tolist()
    true, codes = positions_of(classes, y), positions_of(classes, predicted)
    found = {"rows": len(y), "accuracy": float(np.mean(true == codes))}
    fitted = model.members[0]
    if fitted.is_of_costs and (true >= 0).all():
        rows = model.encode(X, bends=True)
        found["cost"] = float(costs_of_rows(fitted, rows, true).mean())
        base = np.array(fitted.arguments.cost_matrix)[true, fitted.winners[0]]
        found["base_cost"] = float(base.mean())
    return found


def report_of_model(model: Model, frame: pd.DataFrame | None) -> Any:
    """Return the page about a model of a file."""
    from evotree.report import Subject, report

    lines = [line.partition(" ") for line in model.summary().splitlines()]
    subject = Subject(
        model.members[0],
        model.target,
        facts={name: fact.strip() for name, _, fact in lines if name in FACTS},
        members=model.members if len(model.members) > 1 else (),
    )
    if frame is None:
        return report(subject)
    frame = frame.set_axis(frame.columns.map(str), axis=1)
    known = _known_targets(model, frame)
    if len(known):
        frame = frame.loc[known.index]
    model.encode(frame.iloc[:1])  # says which columns are not there
    rows = frame.reindex(columns=list(model.schema.names))
    return report(subject, rows, known.to_numpy() if len(known) else None)
