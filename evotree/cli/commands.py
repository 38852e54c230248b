"""What the commands do between files: from a user's table to a model and its page."""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from evotree.cli import RETRIED, rows, say
from evotree.configuration import Cost
from evotree.estimators import EvoTreeClassifier, EvoTreeRegressor, EvoTreeSurvival
from evotree.files import check_writable
from evotree.inspection.front import CHOSEN, check_rule
from evotree.model_file import (
    Model,
    errors_text,
    load_model,
    load_tree_model,
    save_model,
)
from evotree.survival import Times, concordance
from evotree.tables.columns import encode, numbers_of, reading, text_of
from evotree.tables.labels import positions_of

_FORWARD_FOLDS = 5
# Lines of the summary of a model that its report shows.
FACTS = (
    *("tree", "forest", "training", "test"),
    *("chosen", "penalties", "evolution", "seconds"),
)


def fit(args: argparse.Namespace) -> None:
    """Evolve a tree for a table and write a model file."""
    begin = time.perf_counter()
    folder = _make_folder(args.plots) if args.plots else None
    rows.check_task(args, args.task)
    with _naming("--select"):
        if args.select == "simplest":
            raise ValueError("rule='simplest' needs further rows, as Python takes them")
        if args.select != CHOSEN:
            check_rule(args.select)
    costs = rows.read(args.cost_matrix, args) if args.cost_matrix else None
    X, y, beside, is_regression = rows.read_training_rows(args)
    test, of_all = None, beside
    if args.test_size:
        X, y, test = rows.hold_out(
            X, y, args.test_size, args.random_state, not is_regression, beside
        )
        beside = beside.loc[X.index]
    if args.event:
        y = np.column_stack([beside["event"], y])
        if test is not None:
            events = of_all["event"].loc[test[0].index]
            test = test[0], np.column_stack([events, test[1]])
    if constant := rows.constant_columns(X):
        say(f"left out, the same in all rows: {', '.join(map(str, constant))}")
        X = X.drop(columns=constant)
    parameters = {
        name: value for name, value in vars(args).items() if name in args.evolution
    }
    parameters |= _parameters_of_task(args, costs, X, y)
    if "time_limit" in parameters:
        # What reading has taken is gone; the least time still gives a tree.
        spent = time.perf_counter() - begin
        parameters["time_limit"] = max(parameters["time_limit"] - spent, 1e-3)
    model, estimator = train(
        X,
        y,
        args.target,
        parameters,
        is_regression,
        test,
        beside=beside,
        rule=args.select,
    )
    if estimator.stop_reason_ == "interrupt":
        say("evotree: interrupted; the model is the best tree so far")
    save_model(args.out, model)
    # Rules may be many: the summary stands where a reader of a terminal looks, below.
    print(f"{model.rules()}\n{model.summary()}")
    if not args.test_size:
        figure = "R² and RMSE" if model.classes is None else "the accuracy"
        figure = "the concordance" if args.event else figure
        print(f"no rows were held out: --test-size 0.2 measures {figure} on new ones")
    print(f"wrote {args.out}")
    if folder:
        plotting = _plotting()
        axes = {"learning-curve.png": plotting.plot_learning_curve(estimator)}
        if len(model.feature_names) == 2 and model.labels is not None:
            axes["decision-regions.png"] = plotting.plot_decision_regions(
                estimator, X, y, class_names=model.labels
            )
        axes["tree.png"] = plotting.plot_tree(model)
        if args.event:
            axes["survival.png"] = plotting.plot_survival(estimator, X, y)
        _draw({folder / name: ax for name, ax in axes.items()})
    if args.report:
        from evotree.report import report

        X, y = test or (X, y)
        named = y if args.event else pd.Series(y, name=args.target)
        report(estimator, X, named).save(args.report)
        print(f"wrote {args.report}")


def _parameters_of_task(
    args: argparse.Namespace, costs: pd.DataFrame | None, X: Any, y: Any
) -> dict[str, Any]:
    """Return the parameters that columns, and classes or numbers have."""
    parameters: dict[str, Any] = {} if args.leaves is None else {"leaves": args.leaves}
    if args.monotonic_cst is not None:
        signs = {name: sign for name, sign in args.monotonic_cst if name in X}
        parameters["monotonic_cst"] = signs
    if args.class_weight is not None:
        parameters["class_weight"] = class_weights(args.class_weight, y)
    if costs is not None:
        parameters["objective"] = Cost(cost_matrix(costs, y))
    return parameters


@contextmanager
def _naming(file: Any) -> Iterator[None]:
    """Name the file that is at fault in errors."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error


def predict(args: argparse.Namespace) -> None:
    """Predict the target of a table's rows, and say how well where it is known."""
    model = load_model(args.model)
    if args.proba and model.labels is None:
        raise ValueError(f"--proba: {args.model} predicts numbers, not classes")
    frame = rows.read_for_model(args.data, args, model)
    times = _times(model, frame, args.event)
    with _naming(args.data):
        predicted = model.predict(frame)
        table = (
            pd.DataFrame(model.predict_proba(frame), columns=model.labels)
            if args.proba
            else pd.DataFrame({"prediction": predicted})
        )
    table.to_csv(args.out or sys.stdout, index=False)
    truth = frame[model.target].dropna() if model.target in frame else pd.Series()
    if times is not None:
        score = concordance(Times.read(times), predicted[times.index])
        say(f"concordance {score:.4f} ({len(times)} rows)")
    elif model.labels is None and model.leaf_notes is None:
        truth = numbers_of(truth).dropna()
        if len(truth) > 1:
            measured = errors(truth.to_numpy(), predicted[truth.index])
            say(f"{errors_text(*measured)} ({len(truth)} rows)")
    elif len(truth) and model.labels is not None:
        classes = model.classes.tolist() if model.classes is not None else []
        said = positions_of(classes, predicted[truth.index])
        n_right = int((positions_of(classes, truth) == said).sum())
        say(f"accuracy {n_right / len(truth):.4f} ({n_right} of {len(truth)} rows)")


def _times(model: Model, frame: pd.DataFrame, event: str | None) -> pd.DataFrame | None:
    """Return events and times of the rows that have both, where a column of events is named."""
    if event is None:
        return None
    if model.leaf_notes is None:
        raise ValueError(f"--event {event!r}: the model predicts no risk of an event")
    rows.check_names(frame, {"event": [event], "target": [model.target]})
    known = frame[[event, model.target]].dropna()
    times = {
        "event": rows.events_of(known[event]),
        "time": numbers_of(known[model.target]),
    }
    return pd.DataFrame(times).dropna()


def warm_up(args: argparse.Namespace) -> None:
    """Compile everything."""
    from evotree.estimators.warmup import warmup

    warmup()


def show(args: argparse.Namespace) -> None:
    """Print a model's tree as rules, and draw it."""
    model = load_model(args.model)
    print(f"{model.rules()}\n{model.summary()}")
    if args.plot:
        _draw({args.plot: _plotting().plot_tree(load_tree_model(args.model))})


def export_model(args: argparse.Namespace) -> None:
    """Write a model's tree as rules, drawing or code."""
    with_shares = {"python": export.export_python, "c": export.export_c}
    forms: dict[str, Callable[[Any], str]] = {
        "rules": lambda model: model.rules(export.export_rules),
        "dot": export.export_graphviz,
        "sql": export.export_sql,
        **with_shares,
    }
    if args.to == "onnx" and not args.out:
        raise ValueError("--to onnx writes no text: --out names a file for it")
    if args.proba and args.to not in (*with_shares, "onnx"):
        raise ValueError(
            f"--proba: --to {args.to} writes labels; allowed are python, c and onnx"
        )
    model = load_model(args.model)
    if args.to == "onnx":
        Path(args.out).write_bytes(export.to_onnx(model).SerializeToString())
        return
    text = (
        with_shares[args.to](model, probability=True)
        if args.proba
        else forms[args.to](model)
    )
    Path(args.out).write_text(text, "utf-8") if args.out else print(text, end="")


def report_model(args: argparse.Namespace) -> None:
    """Write a page about a model."""
    model = load_model(args.model)
    frame = rows.read_for_model(args.data, args, model) if args.data else None
    with _naming(args.data):
        page = report_of_model(model, frame, args.event)
    page.save(args.out)
    for note in page.data["notes"]:
        say(note)
    print(f"wrote {args.out}")


def run_experiment_file(args: argparse.Namespace) -> None:
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
        *_, last_line = (first["error"] or "").strip().splitlines() or [""]
        print(f"first {status}: {first['dataset']}, {first['method']}: {last_line}")
    if len(counts) and "done" not in counts:
        raise ValueError(f"no fit was done; the tracebacks are in {args.out}.")
    report_experiment(args)


def report_experiment(args: argparse.Namespace) -> None:
    """Write tables, tests and pictures of results."""
    from evotree.experiments import execution, report

    methods = execution.read_runs(args.out)["method"].unique()
    _check_reference(args.reference, methods)
    for path in report.write_report(args.out, args.reference, args.pictures):
        print(f"wrote {path}")


def compare_methods(args: argparse.Namespace) -> None:
    """Compare the default with the models that one would take else, on a table."""
    from evotree.experiments import rivals

    X, y, beside, is_regression = rows.read_training_rows(args)
    comparison = rivals.compare(
        X,
        y,
        groups=beside.get("group"),
        time=beside.get("time"),
        task="regression" if is_regression else "classification",
        n_folds=args.folds,
        random_state=args.random_state,
        n_jobs=args.n_jobs,
    )
    print(comparison)
    if args.plot:
        _draw({args.plot: _plotting() and comparison.plot()})


def _check_reference(reference: str | None, methods: Iterable[str]) -> None:
    """Raise a ValueError where no method has the name."""
    if reference not in (None, *methods):
        raise ValueError(
            f"--reference {reference}: the methods are {', '.join(methods)}."
        )


def _make_folder(name: str) -> Path:
    """Make a folder if it is not there, and check that files can be written to it."""
    folder = Path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"cannot make the folder {folder}: {error.strerror}") from error
    check_writable(folder / "learning-curve.png")
    return folder


def _plotting() -> Any:
    """Import the plots, set up to draw into files: there may be no screen."""
    import matplotlib

    matplotlib.use("Agg")
    from evotree import plotting

    return plotting


def _draw(pictures: Mapping[str | Path, Any]) -> None:
    """Write the figures of axes to files, and name these."""
    for path, ax in pictures.items():
        print(f"wrote {_plotting().style.save_picture(ax, Path(path))}")


# ---- from rows to a model ------------------------------------------------------------------------


def _arguments_beside(beside: pd.DataFrame) -> dict[str, Any]:
    """Return what `fit` is told of rows beside their features."""
    of_rows = {}
    if "weight" in beside:
        of_rows["sample_weight"] = beside["weight"].to_numpy()
    if "group" in beside:
        of_rows["groups"] = beside["group"].to_numpy()
    if "time" in beside:
        from evotree.experiments.protocols import forward_folds

        with _naming("--time"):
            of_rows["cv"] = forward_folds(beside["time"].to_numpy(), _FORWARD_FOLDS)
    return of_rows


def train(
    X: Any,
    y: Any,
    target: str,
    given: dict[str, Any],
    is_regression: bool,
    test: Any,
    *,
    beside: pd.DataFrame,
    rule: str,
) -> tuple[Model, Any]:
    """Evolve a tree, and make a model of it that knows what became of it.

    The tree is that of the front which a rule of `select_tree` takes. `beside` are the columns of
    `rows.read_training_rows`.
    """
    of_rows = _arguments_beside(beside)
    kind = EvoTreeRegressor if is_regression else EvoTreeClassifier
    kind = EvoTreeSurvival if "event" in beside else kind
    estimator = kind(
        categorical_features=[not is_numeric_dtype(dtype) for dtype in X.dtypes]
    ).set_params(**given)
    try:
        estimator.fit(X, y, **of_rows)
    except KeyboardInterrupt:  # ends the evolution
        if not hasattr(estimator, "tree_"):
            raise
    model = Model.of(estimator.select_tree(rule), target)
    of_run = course(estimator)
    if rule != CHOSEN:
        of_run["choice"] = f"by --select {rule}"
    if "event" in beside:
        training = {**of_run, **_concordances("", model, X, y)}
        if test is not None:
            training |= _concordances("test_", model, *test)
        return replace(model, training=training), estimator
    if is_regression:
        r2, rmse = errors(y, model.predict(X))
        training = {"rows": len(y), "r2": r2, "rmse": rmse, **of_run}
        if test is not None:
            r2, rmse = errors(test[1], model.predict(test[0]))
            training |= {"test_rows": len(test[1]), "test_r2": r2, "test_rmse": rmse}
            ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3.0, 3.0, 13)))
            ridge.fit(encode(model.columns, X), y)
            predicted = ridge.predict(encode(model.columns, test[0]))
            training["others"] = {
                "the mean": list(errors(test[1], np.full(len(test[1]), np.mean(y)))),
                "ridge regression": list(errors(test[1], predicted)),
            }
        return replace(model, training=training), estimator
    counts = confusion_counts(model, X, y)
    of_class = counts.sum(axis=1)
    training = {
        "rows": len(y),
        "accuracy": float(np.trace(counts) / len(y)),
        "base_rate": float(of_class.max() / len(y)),
        **of_run,
    }
    if test is not None:
        most_frequent = int(of_class.argmax())
        n_rows = len(test[1])
        counts = confusion_counts(model, *test)
        of_class = counts.sum(axis=1)
        recall = [
            float(k / n) if n else None
            for k, n in zip(np.diag(counts), of_class[:-1], strict=True)
        ]
        training |= {
            "test_rows": n_rows,
            "test_accuracy": float(np.trace(counts) / n_rows),
            "base_rate": float(of_class[most_frequent] / n_rows),
            "balanced_accuracy": float(
                np.mean([share for share in recall if share is not None])
            ),
            "recall": recall,
            "confusion": counts[:-1].tolist(),
        }
    return replace(model, training=training), estimator


def _concordances(of: str, model: Model, X: Any, y: Any) -> dict[str, Any]:
    """Return how well risks order times, by the names that a model keeps it under."""
    score = concordance(Times.read(y), model.predict(X))
    return {f"{of}rows": len(y), f"{of}concordance": score}


def errors(y: np.ndarray, predicted: np.ndarray) -> tuple[float, float]:
    """Return R² and RMSE of predictions of at least two rows."""
    return float(r2_score(y, predicted)), float(root_mean_squared_error(y, predicted))


def course(estimator: Any) -> dict[str, Any]:
    """Return what became of the evolution of a fitted estimator, hyperparameters as chosen."""
    chosen = {
        "size_penalty": estimator.size_penalty_,
        "term_penalty": estimator.term_penalty_,
        **estimator.regularization_.get_params(),
    }
    choice = estimator.choice_
    return {
        **({} if choice is None else {"choice": repr(choice)}),
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
) -> str | dict[Any, float]:
    """Return the weights of classes as the classifier takes them."""
    if given == [("balanced", None)]:
        return "balanced"
    classes = {text_of(label): label for label in np.unique(y).tolist()}
    read = reading([*classes])
    weights = {}
    for label, weight in given:
        if read(label) not in classes or weight is None:
            raise ValueError(
                f"--class-weight {label}: the classes are {', '.join(classes)}"
            )
        weights[classes[read(label)]] = weight
    return weights


def cost_matrix(table: pd.DataFrame, y: np.ndarray) -> np.ndarray:
    """Return what errors cost as the classifier takes it."""
    labels = [text_of(label) for label in np.unique(y).tolist()]
    read = reading(labels)
    first, *predicted = map(str, table.columns)
    predicted = list(map(read, predicted))
    rows = [read(text_of(label)) for label in table.iloc[:, 0].tolist()]
    for where, names in ((f"column {first!r}", rows), ("header", predicted)):
        if sorted(names) != sorted(labels):
            raise ValueError(
                f"--cost-matrix has {', '.join(names)} in its {where}: allowed are "
                f"the classes {', '.join(labels)}, each once"
            )
    costs = table.iloc[:, 1:].set_axis(rows).set_axis(predicted, axis=1)
    numbers = costs.apply(numbers_of).loc[labels, labels].to_numpy()
    if not np.isfinite(numbers).all():
        raise ValueError("--cost-matrix has a cell that is not a number")
    return numbers


def confusion_counts(model: Model, X: pd.DataFrame, y: Any) -> np.ndarray:
    """Count some rows by their classes and those predicted; unknown classes come last."""
    assert model.classes is not None
    # Of a class that is not known the position is -1.
    positions = [*range(len(model.classes)), -1]
    true = positions_of(model.classes.tolist(), y)
    return confusion_matrix(true, model.codes(X), labels=positions)[:, :-1]


def report_of_model(
    model: Model, frame: pd.DataFrame | None, event: str | None = None
) -> Any:
    """Return the page about a model of a file."""
    from evotree.report import Subject, report

    # Names of the user's may have line breaks in them.
    lines = [line.split(maxsplit=1) for line in model.summary().splitlines()]
    facts = {line[0]: line[1] for line in lines if len(line) == 2 and line[0] in FACTS}
    members = [
        Subject(named, model.target, training=model.training_rows, facts=facts)
        for named in model.named
    ]
    subject = replace(members[0], members=members) if len(members) > 1 else members[0]
    if frame is None:
        return report(subject)
    frame = frame.set_axis(frame.columns.map(str), axis=1)
    y = None
    times = _times(model, frame, event)
    if times is not None:
        frame, y = frame.loc[times.index], times.to_numpy()
    elif model.target in frame and model.leaf_notes is None:
        truth = frame[model.target]
        known = (truth if model.classes is not None else numbers_of(truth)).notna()
        if known.any():
            frame = frame[known]
            y = truth[known].to_numpy()
    model.encode(frame.iloc[:1])  # says which columns are not there
    return report(subject, frame.reindex(columns=[c.name for c in model.columns]), y)
