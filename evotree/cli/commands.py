"""What the commands do between files: from a user's table to a model and its page."""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from sklearn.linear_model import RidgeCV
from sklearn.metrics import confusion_matrix, r2_score, root_mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evotree import export
from evotree.cli import rows as tables
from evotree.cli import say
from evotree.cli.options import RETRIED, SEARCH
from evotree.cli.rows import TableRows
from evotree.configuration import Cost, check_parameters
from evotree.engine.config import Checkpoint
from evotree.estimators import EvoTreeClassifier, EvoTreeRegressor, EvoTreeSurvival
from evotree.files import check_writable
from evotree.fitness.base import check_costs
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
from evotree.tables.columns import encode, numbers_of, positions_of, reading

ESTIMATORS = {
    "classification": EvoTreeClassifier,
    "regression": EvoTreeRegressor,
    "survival": EvoTreeSurvival,
}
_MEASURES = {
    "classification": "the accuracy",
    "regression": "R² and RMSE",
    "survival": "the concordance",
}
_FORWARD_FOLDS = 5
# Lines of the summary of a model that its report shows.
FACTS = (
    *("tree", "forest", "training", "test"),
    *("chosen", "penalties", "evolution", "seconds"),
)


def fit(args: argparse.Namespace) -> None:
    """Evolve a tree for a table and write a model file."""
    begin = time.perf_counter()
    parameters = {name: value for name, value in vars(args).items() if name in SEARCH}
    check_parameters(EvoTreeClassifier().set_params(**parameters))
    _check_task(args, args.task)
    with _naming("--select"):
        if args.select == "simplest":
            raise ValueError("rule='simplest' needs further rows, as Python takes them")
        if args.select != CHOSEN:
            check_rule(args.select)
    if args.plots:
        Path(args.plots).mkdir(parents=True, exist_ok=True)
        check_writable(Path(args.plots, "tree.png"))
    rows, test = tables.read_training_rows(args), None
    if args.test_size:
        rows, test = tables.hold_out(rows, args.test_size, args.random_state)
    rows = rows._replace(X=tables.without_constant_columns(rows.X))
    parameters |= _parameters_of_task(args, rows)
    if "time_limit" in parameters:
        # What reading has taken is gone; the least time still gives a tree.
        spent = time.perf_counter() - begin
        parameters["time_limit"] = max(parameters["time_limit"] - spent, 1e-3)
    is_category = [not is_numeric_dtype(dtype) for dtype in rows.X.dtypes]
    estimator = ESTIMATORS[rows.task](categorical_features=is_category)
    model = train(estimator.set_params(**parameters), rows, test, args)
    if estimator.stop_reason_ == "interrupt":
        say("evotree: interrupted; the model is the best tree so far")
    save_model(args.out, model)
    # Rules may be many: the summary stands where a reader of a terminal looks, below.
    print(f"{model.rules()}\n{model.summary()}")
    if test is None:
        print(
            f"no rows were held out: --test-size 0.2 measures {_MEASURES[rows.task]} on new ones"
        )
    print(f"wrote {args.out}")
    if args.plots:
        _draw_fit(Path(args.plots), estimator, model, rows)
    if args.report:
        from evotree.report import report

        X, y, *_ = test or rows
        named = y if args.event else pd.Series(y, name=args.target)
        report(estimator, X, named).save(args.report)
        print(f"wrote {args.report}")


def _check_task(args: argparse.Namespace, task: str) -> None:
    """Raise for an option that is not for a task."""
    if args.event and args.task == "classification":
        raise ValueError(
            "--event is for times, which --task classification does not predict"
        )
    for option in ("class_weight", "cost_matrix"):
        is_for_task = task in ("auto", "classification")
        if not is_for_task and getattr(args, option) is not None:
            raise ValueError(
                f"--{option.replace('_', '-')} is for classes, which "
                "--task classification predicts"
            )


def _parameters_of_task(args: argparse.Namespace, rows: TableRows) -> dict[str, Any]:
    """Return the parameters that columns, and classes or numbers have."""
    _check_task(args, rows.task)
    given = vars(args)
    parameters: dict[str, Any] = {
        name: given[name] for name in ("objective", "checkpoint") if name in given
    }
    if args.resume:
        parameters["checkpoint"] = Checkpoint(args.resume, resume=True)
    if args.monotonic_cst:
        signs = {name: sign for name, sign in args.monotonic_cst if name in rows.X}
        parameters["monotonic_cst"] = signs
    if args.class_weight is not None:
        parameters["class_weight"] = class_weights(args.class_weight, rows.y)
    if args.cost_matrix is not None:
        table = tables.read(args.cost_matrix, args)
        parameters["objective"] = Cost(cost_matrix(table, rows.y))
    return parameters


@contextmanager
def _naming(name: Any) -> Iterator[None]:
    """Name the file or the option that is at fault in errors."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def predict(args: argparse.Namespace) -> None:
    """Predict the target of a table's rows, and say how well where it is known."""
    model = load_model(args.model)
    if args.proba and model.labels is None:
        raise ValueError(f"--proba: {args.model} predicts numbers, not classes")
    frame = tables.read_for_model(args.data, args, model)
    known = _known_targets(model, frame, args.event)
    with _naming(args.data):
        predicted = model.predict(frame)
        table = (
            pd.DataFrame(model.predict_proba(frame), columns=model.labels)
            if args.proba
            else pd.DataFrame({"prediction": predicted})
        )
    table.to_csv(args.out or sys.stdout, index=False)
    if len(known) > (model.labels is None):  # R² and concordance need two rows
        say(figures_text(figures(model, known.to_numpy(), predicted[known.index])))


def _known_targets(model: Model, frame: pd.DataFrame, event: str | None) -> Any:
    """Return the targets of a table's rows where they are known; of times with their events."""
    if event is not None:
        if not model.members[0].is_risk:
            raise ValueError(
                f"--event {event!r}: the model predicts no risk of an event"
            )
        tables.check_names(frame, {"event": [event], "target": [model.target]})
        known = frame[[event, model.target]].dropna()
        events, times = tables.events_of(known[event]), numbers_of(known[model.target])
        return pd.DataFrame({"event": events, "time": times}).dropna()
    if model.target not in frame or model.members[0].is_risk:
        return pd.Series(dtype=np.float64)
    targets = frame[model.target]
    return (numbers_of(targets) if model.classes is None else targets).dropna()


def warm_up(args: argparse.Namespace) -> None:
    """Compile everything."""
    from evotree.estimators.warmup import warmup

    warmup()


def show(args: argparse.Namespace) -> None:
    """Print a model's tree as rules, and draw it."""
    model = (load_tree_model if args.plot else load_model)(args.model)
    print(f"{model.rules()}\n{model.summary()}")
    if args.plot:
        _draw(args.plot, lambda plotting: plotting.plot_tree(model))


def export_model(args: argparse.Namespace) -> None:
    """Write a model's tree as rules, drawing or code."""
    if args.to == "onnx" and not args.out:
        raise ValueError("--to onnx writes no text: --out names a file for it")
    if args.proba and args.to not in ("python", "c", "onnx"):
        raise ValueError(
            f"--proba: --to {args.to} writes labels; allowed are python, c and onnx"
        )
    model = load_model(args.model)
    writers: dict[str, Callable[[], Any]] = {
        "rules": lambda: model.rules(export.export_rules),
        "dot": lambda: export.export_graphviz(model),
        "sql": lambda: export.export_sql(model),
        "python": lambda: export.export_python(model, probability=args.proba),
        "c": lambda: export.export_c(model, probability=args.proba),
        "onnx": lambda: export.to_onnx(model).SerializeToString(),
    }
    content = writers[args.to]()
    if args.out:
        data = content if args.to == "onnx" else content.encode()
        Path(args.out).write_bytes(data)
    else:
        print(content, end="")


def report_model(args: argparse.Namespace) -> None:
    """Write a page about a model."""
    model = load_model(args.model)
    frame = tables.read_for_model(args.data, args, model) if args.data else None
    with _naming(args.data):
        page = report_of_model(model, frame, args.event)
    page.save(args.out)
    for note in page.data["notes"]:
        say(note)
    print(f"wrote {args.out}")


def run_experiment(args: argparse.Namespace) -> None:
    """Do the fits that a file defines and that are missing."""
    from evotree.experiments import execution, experiment

    defined = experiment.read_experiment(args.file)
    _check_reference(args.reference, defined.methods)
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
    for status in [status for status in RETRIED if status in counts]:
        first = runs[runs["status"] == status].iloc[0]
        last_line = (first["error"] or "").strip().rpartition("\n")[2]
        print(f"first {status}: {first['dataset']}, {first['method']}: {last_line}")
    if len(counts) and "done" not in counts:
        raise ValueError(f"no fit was done; the tracebacks are in {args.out}.")
    report_experiment(args)


def report_experiment(args: argparse.Namespace) -> None:
    """Write tables, tests and pictures of results."""
    from evotree.experiments import report, store

    methods = store.read_runs(args.out)["method"].unique()
    _check_reference(args.reference, methods)
    for path in report.write_report(args.out, args.reference, args.pictures):
        print(f"wrote {path}")


def compare(args: argparse.Namespace) -> None:
    """Compare the default with the models that one would take else, on a table."""
    from evotree.experiments import rivals

    rows = tables.read_training_rows(args)
    comparison = rivals.compare(
        rows.X,
        rows.y,
        groups=rows.beside.get("group"),
        time=rows.beside.get("time"),
        task=rows.task,
        n_folds=args.folds,
        random_state=args.random_state,
        n_jobs=args.n_jobs,
    )
    print(comparison)
    if args.plot:
        _draw(args.plot, lambda _: comparison.plot())


def _check_reference(reference: str | None, methods: Iterable[str]) -> None:
    """Raise a ValueError where no method has the name."""
    if reference not in (None, *methods):
        raise ValueError(
            f"--reference {reference}: the methods are {', '.join(methods)}."
        )


# ---- pictures ------------------------------------------------------------------------------------


def _draw(path: str | Path, draw: Callable[[Any], Any]) -> None:
    """Write a picture to a file, and name this; `draw` is told the plots, and returns axes."""
    import matplotlib

    matplotlib.use("Agg")  # there may be no screen
    from evotree import plotting

    print(f"wrote {plotting.style.save_picture(draw(plotting), Path(path))}")


def _draw_fit(folder: Path, estimator: Any, model: Model, rows: TableRows) -> None:
    """Draw the search, its tree and what this predicts."""
    X, y = rows.X, rows.y
    _draw(folder / "learning-curve.png", lambda p: p.plot_learning_curve(estimator))
    if len(model.feature_names) == 2 and model.labels is not None:
        _draw(
            folder / "decision-regions.png",
            lambda p: p.plot_decision_regions(
                estimator, X, y, class_names=model.labels
            ),
        )
    _draw(folder / "tree.png", lambda p: p.plot_tree(model))
    if rows.task == "survival":
        _draw(folder / "survival.png", lambda p: p.plot_survival(estimator, X, y))


# ---- from rows to a model ------------------------------------------------------------------------


def train(
    estimator: Any, rows: TableRows, test: TableRows | None, args: argparse.Namespace
) -> Model:
    """Fit an estimator, and make a model of the tree of its front that a rule takes."""
    names = {"sample-weight": "sample_weight", "group": "groups"}
    beside: dict[str, Any] = {
        names[name]: rows.beside[name].to_numpy()
        for name in names
        if name in rows.beside
    }
    if "time" in rows.beside:
        from evotree.experiments.protocols import forward_folds

        with _naming("--time"):
            times = rows.beside["time"].to_numpy()
            beside["cv"] = forward_folds(times, _FORWARD_FOLDS)
    try:
        estimator.fit(rows.X, rows.y, **beside)
    except KeyboardInterrupt:  # ends the evolution
        if not hasattr(estimator, "tree_"):
            raise
    model = Model.of(estimator.select_tree(args.select), args.target)
    training = measure(model, rows, test) | course(estimator)
    if args.select != CHOSEN:
        training["select"] = args.select
    return replace(model, training=training)


def measure(model: Model, rows: TableRows, test: TableRows | None) -> dict[str, Any]:
    """Return how well training rows, and rows held out, are predicted, as a model keeps it."""
    parts = {"": rows} if test is None else {"": rows, "test_": test}
    predicted = {of: model.predict(part.X) for of, part in parts.items()}
    measured = {
        f"{of}{name}": value
        for of, part in parts.items()
        for name, value in figures(model, part.y, predicted[of]).items()
    }
    if model.classes is not None:
        classes = model.classes.tolist()
        trained, *_, true = [
            positions_of(classes, part.y) for part in (rows, *parts.values())
        ]
        most_frequent = np.bincount(trained).argmax()
        measured["base_rate"] = float(np.mean(true == most_frequent))
        if test is not None:
            codes = positions_of(classes, predicted["test_"])
            measured |= _figures_of_classes(true, codes, len(classes))
    elif test is not None and rows.task == "regression":
        ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3.0, 3.0, 13)))
        ridge.fit(encode(model.schema, rows.X), rows.y)
        others = {
            "the mean": np.full(len(test.y), np.mean(rows.y)),
            "ridge regression": ridge.predict(encode(model.schema, test.X)),
        }
        measured["others"] = {
            name: [*figures(model, test.y, numbers).values()][1:]
            for name, numbers in others.items()
        }
    return measured


def figures(model: Model, y: Any, predicted: np.ndarray) -> dict[str, Any]:
    """Return how well some rows are predicted, by the names that a model has for it."""
    if model.members[0].is_risk:
        return {"rows": len(y), "concordance": concordance(Times.read(y), predicted)}
    if model.classes is None:
        r2, rmse = r2_score(y, predicted), root_mean_squared_error(y, predicted)
        return {"rows": len(y), "r2": float(r2), "rmse": float(rmse)}
    classes = model.classes.tolist()
    is_right = positions_of(classes, y) == positions_of(classes, predicted)
    return {"rows": len(y), "accuracy": float(np.mean(is_right))}


def _figures_of_classes(
    true: np.ndarray, predicted: np.ndarray, n_classes: int
) -> dict[str, Any]:
    """Return what becomes of the rows of each class; that of an unknown one is -1."""
    labels = [*range(n_classes), -1]
    confusion = confusion_matrix(true, predicted, labels=labels)[:-1, :-1]
    pairs = zip(np.diag(confusion), confusion.sum(axis=1), strict=True)
    recall = [float(n_right / n) if n else None for n_right, n in pairs]
    return {
        "balanced_accuracy": float(np.mean([r for r in recall if r is not None])),
        "recall": recall,
        "confusion": confusion.tolist(),
    }


def course(estimator: Any) -> dict[str, Any]:
    """Return what became of the evolution of a fitted estimator, hyperparameters as chosen."""
    chosen = {
        "size_penalty": estimator.size_penalty_,
        "term_penalty": estimator.term_penalty_,
        **estimator.regularization_.get_params(),
    }
    return {
        "hyperparameters": {
            name: value if isinstance(value, int | float) else str(value)
            for name, value in chosen.items()
            if value is not None
        },
        "generations": estimator.n_generations_,
        "stop_reason": estimator.stop_reason_,
        "seconds": {
            name: round(seconds, 3) for name, seconds in estimator.seconds_.items()
        },
    }


def class_weights(
    given: Sequence[tuple[str, float | None]], y: np.ndarray
) -> str | dict[Any, float | None]:
    """Return the weights of classes as the classifier takes them."""
    if given == [("balanced", None)]:
        return "balanced"
    classes = np.unique(y).tolist()
    places = positions_of(classes, [label for label, _ in given])
    if (places < 0).any():
        raise ValueError(
            f"--class-weight {given[int(places.argmin())][0]}: the classes are "
            f"{', '.join(map(text_of, classes))}"
        )
    return {classes[k]: weight for k, (_, weight) in zip(places, given, strict=True)}


def cost_matrix(table: pd.DataFrame, y: np.ndarray) -> Any:
    """Return what errors cost as the classifier takes it."""
    classes = np.unique(y)
    read = reading([text_of(label) for label in classes.tolist()])
    costs = table.set_index(table.columns[0]).apply(numbers_of)
    costs = costs.rename(index=lambda label: read(text_of(label)), columns=read)
    with _naming("--cost-matrix"):
        return check_costs(costs, classes)


def report_of_model(
    model: Model, frame: pd.DataFrame | None, event: str | None = None
) -> Any:
    """Return the page about a model of a file."""
    from evotree.report import Subject, report

    # Names of the user's may have line breaks in them.
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
    known = _known_targets(model, frame, event)
    if len(known):
        frame = frame.loc[known.index]
    model.encode(frame.iloc[:1])  # says which columns are not there
    rows = frame.reindex(columns=list(model.schema.names))
    return report(subject, rows, known.to_numpy() if len(known) else None)
