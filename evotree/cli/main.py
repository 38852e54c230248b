"""The command line: ``evotree demo``, ``fit``, ``predict``, ``explain``, ``report`` and others.

Results go to standard output, messages and the progress bar to standard error. A mistake of the
user's ends with one line there and exit status 2. Modules are imported by the command that uses
them, so that ``evotree --help`` answers at once.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from evotree import __version__
from evotree.cli.arguments import add_evolution, evolution_parameters, example, share
from evotree.cli.experiment_commands import add_commands
from evotree.files import check_writable

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from evotree.estimators import EvoTreeClassifier, EvoTreeRegressor
    from evotree.model_file import Model


class UsageError(Exception):
    """A command line that cannot be understood."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    argv = sys.argv[1:] if argv is None else argv
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            args = _make_parser(_defaults(argv)).parse_args(argv)
            args.run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes standard output once more at exit, which would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt as error:
        _say(f"evotree: interrupted, {str(error) or 'nothing was written'}")
        return 130
    except (UsageError, ValueError, OSError, MemoryError) as error:
        missing = isinstance(error, FileNotFoundError) and error.filename
        message = f"no such file: {missing}" if missing else str(error)
        _say(f"evotree: error: {' '.join(message.split())}")
        return 2
    return 0


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _say(f"evotree: warning: {' '.join(str(message).split())}")


def _defaults(argv: Sequence[str]) -> dict[str, Any]:
    """Return the classifier's parameters where the help of a command shows them."""
    if argv[:1] not in (["fit"], ["demo"]) or not {"-h", "--help"} & set(argv):
        return {}
    from evotree.cli.demo import HYPERPARAMETERS
    from evotree.estimators import EvoTreeClassifier

    of_command = HYPERPARAMETERS if argv[0] == "demo" else {}
    return EvoTreeClassifier().set_params(**of_command).get_params()


def _make_parser(defaults: Mapping[str, Any]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="evotree",
        description="Evolve small oblique decision trees, use them and read them.",
        **example("evotree demo", "evotree fit --help"),
    )
    parser.add_argument("--version", action="version", version=f"evotree {__version__}")
    table = "a table: CSV with a header row (.csv, .csv.gz), .npz, .arff or .libsvm"
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    _add_fits(commands, table, defaults)
    _add_uses(commands, table)
    _add_views(commands, table)
    add_commands(commands)
    return parser


def _add_fits(commands: Any, table: str, defaults: Mapping[str, Any]) -> None:
    """Add the commands that compile and evolve."""
    warmup = commands.add_parser(
        "warmup", help="compile everything now, so that no fit has to", **example("evotree warmup")
    )
    warmup.set_defaults(run=_warm_up)

    demo = commands.add_parser(
        "demo",
        help="watch random trees evolve to the best one",
        **example("evotree demo --problem chessboard2 --out demo-output"),
    )
    demo.set_defaults(run=_demo)
    demo.add_argument("--problem", metavar="NAME", default="chessboard2", help="(%(default)s)")
    demo.add_argument("--out", metavar="DIR", default="demo-output", help="(%(default)s)")

    fit = commands.add_parser(
        "fit",
        help="evolve a tree for a table and write a model file",
        **example(
            'python -c "from sklearn.datasets import load_iris as iris; '
            "iris(as_frame=True).frame.to_csv('iris.csv', index=False)\"",
            "evotree fit iris.csv --target target --out iris.json --report iris.html",
        ),
    )
    fit.set_defaults(run=_fit)
    fit.add_argument("data", metavar="DATA", help=table)
    fit.add_argument("--target", metavar="COLUMN", required=True, help="the column to predict")
    fit.add_argument("--out", metavar="MODEL.json", required=True, help="the model file to write")
    fit.add_argument(
        "--task",
        choices=("auto", "classification", "regression"),
        default="auto",
        help="predict classes or numbers; by default numbers where the target has many (auto)",
    )
    fit.add_argument(
        "--leaves",
        choices=("auto", "linear", "constant"),
        help="what leaves of regression hold: lines where they can be (auto), lines, or means",
    )
    fit.add_argument(
        "--test-size",
        metavar="SHARE",
        type=share,
        default=0.0,
        help="share of the rows to hold out and test on, such as 0.2 (none)",
    )
    fit.add_argument(
        "--drop", metavar="COLUMN", nargs="+", action="extend", default=[], help="leave columns out"
    )
    fit.add_argument(
        "--class-weight",
        metavar="WEIGHT",
        nargs="+",
        help="weights of rows: 'balanced', for classes of equal weight, or CLASS=NUMBER each (1)",
    )
    fit.add_argument(
        "--cost-matrix",
        metavar="FILE",
        help="a table of what errors cost: the class, then a column for each predicted class",
    )
    fit.add_argument(
        "--dask",
        metavar="ADDRESS",
        nargs="?",
        const="",
        help="read DATA, files of Parquet, on the workers of a scheduler of Dask; on this machine "
        "without ADDRESS",
    )
    fit.add_argument("--plots", metavar="DIR", help="draw learning curve and tree into a folder")
    fit.add_argument(
        "--report",
        metavar="FILE.html",
        help="write a page about the tree, the others of its front and the run",
    )
    for command in (demo, fit):
        add_evolution(command, defaults)


def _add_uses(commands: Any, table: str) -> None:
    """Add the commands that take a model file."""
    predict = commands.add_parser(
        "predict",
        help="predict the target of a table's rows",
        **example("evotree predict iris.json iris.csv --out predictions.csv"),
    )
    predict.set_defaults(run=_predict)
    predict.add_argument("model", metavar="MODEL.json", help="a model file")
    predict.add_argument("data", metavar="DATA", help=f"{table}, with the model's columns")
    predict.add_argument("--out", metavar="FILE.csv", help="(standard output)")
    predict.add_argument(
        "--proba", action="store_true", help="write the shares of all classes, a column each"
    )

    explain = commands.add_parser(
        "explain",
        help="say why a table's rows are predicted so",
        **example("evotree explain iris.json iris.csv --out terms.csv --plot first-row.png"),
    )
    explain.set_defaults(run=_explain)
    explain.add_argument("model", metavar="MODEL.json", help="a model file")
    explain.add_argument("data", metavar="DATA", help=f"{table}, with the model's columns")
    explain.add_argument("--out", metavar="FILE.csv", help="(standard output)")
    explain.add_argument("--plot", metavar="FILE.png", help="draw the first row as well")


def _add_views(commands: Any, table: str) -> None:
    """Add the commands that show a model in other forms."""
    show = commands.add_parser(
        "show",
        help="print a model's tree as rules",
        **example("evotree show iris.json --plot tree.png"),
    )
    show.set_defaults(run=_show)
    show.add_argument("model", metavar="MODEL.json", help="a model file")
    show.add_argument("--plot", metavar="FILE.png", help="draw the tree as well")

    export = commands.add_parser(
        "export",
        help="write a model's tree as rules, drawing or code",
        **example("evotree export iris.json --to sql --out iris.sql"),
    )
    export.set_defaults(run=_export)
    export.add_argument("model", metavar="MODEL.json", help="a model file")
    about = "rules, dot, python or c (over encoded features), or sql (over the table's columns)"
    export.add_argument("--to", metavar="FORM", required=True, help=about)
    export.add_argument("--out", metavar="FILE", help="(standard output)")

    page = commands.add_parser(
        "report",
        help="write a page about a model, to look at and to ask",
        **example("evotree report iris.json --data iris.csv --out iris.html"),
    )
    page.set_defaults(run=_report)
    page.add_argument("model", metavar="MODEL.json", help="a model file")
    page.add_argument(
        "--data", metavar="DATA", help=f"rows to follow and to measure on: {table} (none)"
    )
    page.add_argument("--out", metavar="FILE.html", required=True, help="the page to write")


# ---- commands ------------------------------------------------------------------------------------


def _demo(args: argparse.Namespace) -> None:
    from evotree.cli.demo import HYPERPARAMETERS, course, draw_rows
    from evotree.cli.training import train
    from evotree.experiments.problems import PROBLEMS

    if args.problem not in PROBLEMS:
        raise UsageError(f"--problem {args.problem}: there are {', '.join(PROBLEMS)}")
    problem, folder = PROBLEMS[args.problem], _make_folder(args.out)
    print(f"{problem.name}: {problem.description}; the best tree has {problem.optimal_nodes} nodes")
    rows, test = draw_rows(args.problem, args.random_state)
    parameters = {**HYPERPARAMETERS, **evolution_parameters(args)}
    model, classifier = train(*rows, "class", parameters, test)
    print(f"{course(classifier)}\n\n{model.rules()}\n{model.summary()}")
    _draw(model, classifier, *rows, folder)
    if problem.n_features == 2:
        film = _plotting().plot_evolution(classifier, *rows, class_names=model.labels)
        film.save(folder / "evolution.gif", writer="pillow", dpi=80)
        print(f"wrote {folder / 'evolution.gif'}")


def _fit(args: argparse.Namespace) -> None:
    from evotree.cli import table
    from evotree.cli.training import (
        class_weights,
        cost_matrix,
        cost_objective,
        train,
        train_regressor,
    )
    from evotree.tables.readers import read_table

    begin = time.perf_counter()
    check_writable(args.out)
    if args.report:
        check_writable(args.report)
    folder = _make_folder(args.plots) if args.plots else None
    if args.dask is not None:
        _fit_collections(args, folder)
        return
    frame = read_table(args.data)
    X, y = table.features_and_target(frame, args.target, args.drop)
    if len(y) < len(frame):
        _say(f"left out, without {args.target!r}: {len(frame) - len(y)} of {len(frame)} rows")
    is_regression = _is_regression(args, y)
    y = (table.as_numbers if is_regression else table.as_classes)(y, args.target)
    table.check_features(X)
    test = None
    if args.test_size:
        seed = args.random_state
        X, y, test = table.hold_out(X, y, args.test_size, seed, is_classes=not is_regression)
    constant = table.constant_columns(X)
    if constant:
        _say(f"left out, the same in all rows: {', '.join(map(str, constant))}")
    X = X.drop(columns=constant)
    parameters = evolution_parameters(args)
    if not is_regression:
        parameters["class_weight"] = class_weights(args.class_weight, y)
        if args.cost_matrix is not None:
            costs = cost_matrix(read_table(args.cost_matrix), y)
            parameters["objective"] = cost_objective(parameters, costs)
    elif args.leaves is not None:
        parameters["leaves"] = args.leaves
    if "time_limit" in parameters:
        # What reading has taken is gone; the least time still gives a tree.
        spent = time.perf_counter() - begin
        parameters["time_limit"] = max(parameters["time_limit"] - spent, 1e-3)
    fit = train_regressor if is_regression else train
    model, estimator = fit(X, y, args.target, parameters, test)
    _show_fit(args, model, estimator)
    if folder:
        _draw(model, estimator, X, y, folder)
    if args.report:
        _report_fit(args, estimator, *((X, y) if test is None else test))


def _show_fit(
    args: argparse.Namespace, model: Model, estimator: EvoTreeClassifier | EvoTreeRegressor
) -> None:
    """Write the model file, and say what is in it."""
    from evotree.model_file import save_model

    if estimator.stop_reason_ == "interrupt":
        _say("evotree: interrupted; the model is the best tree so far")
    save_model(args.out, model)
    # Rules may be many: the summary stands where a reader of a terminal looks, below.
    print(f"{model.rules()}\n{model.summary()}")
    if not args.test_size:
        figure = "R² and RMSE" if model.classes is None else "the accuracy"
        print(f"no rows were held out: --test-size 0.2 measures {figure} on new ones")
    print(f"wrote {args.out}")


def _report_fit(
    args: argparse.Namespace,
    estimator: EvoTreeClassifier | EvoTreeRegressor,
    X: pd.DataFrame,
    y: np.ndarray,
) -> None:
    """Write the page about a fit, with some rows."""
    import pandas as pd

    from evotree.report import report

    report(estimator, X, pd.Series(y, name=args.target)).save(args.report)
    print(f"wrote {args.report}")


def _fit_collections(args: argparse.Namespace, folder: Path | None) -> None:
    """Fit a tree to files of Parquet, on workers of Dask."""
    from evotree.cli import collections
    from evotree.cli.table import AUTO, REGRESSION

    shown = None
    with collections.connect(args.dask) as client:
        X, y = collections.read_parquet(args.data, args.target, args.drop)
        _say(f"{X.npartitions} partitions on {len(client.scheduler_info()['workers'])} workers")
        told_by_target = args.task == AUTO
        many = told_by_target and collections.has_many_numbers(y)
        is_regression = many or args.task == REGRESSION
        _check_options_of_task(args, is_regression)
        test = None
        if args.test_size:
            X, y, test = collections.hold_out(X, y, args.test_size, args.random_state)
        parameters = {**evolution_parameters(args), **_parameters_of_task(args, y)}
        train = collections.train_collections
        model, estimator = train(X, y, args.target, parameters, is_regression, test)
        if folder or args.report:
            shown = collections.draw_rows(*(test or (X, y)), args.random_state)
    _show_fit(args, model, estimator)
    if folder and shown:
        _draw(model, estimator, *shown, folder)
    if args.report and shown:
        _report_fit(args, estimator, *shown)


def _parameters_of_task(args: argparse.Namespace, y: Any) -> dict[str, Any]:
    """Return the parameters that classes or numbers of a collection have."""
    from evotree.cli.training import class_weights, cost_matrix, cost_objective
    from evotree.tables.readers import read_table

    found: dict[str, Any] = {}
    if args.leaves is not None:
        found["leaves"] = args.leaves
    if args.class_weight is not None or args.cost_matrix is not None:
        classes = y.unique().compute().to_numpy()
        found["class_weight"] = class_weights(args.class_weight, classes)
        if args.cost_matrix is not None:
            costs = cost_matrix(read_table(args.cost_matrix), classes)
            found["objective"] = cost_objective(vars(args), costs)
    return found


def _is_regression(args: argparse.Namespace, y: np.ndarray) -> bool:
    """Tell whether numbers are to be predicted; say so where the targets decide it."""
    from evotree.cli.table import AUTO, REGRESSION, is_many_numbers

    is_regression = is_many_numbers(y) if args.task == AUTO else args.task == REGRESSION
    _check_options_of_task(args, is_regression)
    if is_regression and args.task == AUTO:
        _say(
            f"regression: {args.target!r} has {len(set(y.tolist()))} different numbers; "
            "--task classification takes them for classes"
        )
    return is_regression


def _check_options_of_task(args: argparse.Namespace, is_regression: bool) -> None:
    """Refuse options of classes where numbers are predicted, and of numbers where classes are."""
    for option in ("class_weight", "cost_matrix"):
        if is_regression and getattr(args, option) is not None:
            name = option.replace("_", "-")
            raise UsageError(f"--{name} is for classes, which --task classification predicts")
    if not is_regression and args.leaves is not None:
        raise UsageError("--leaves is for numbers, which --task regression predicts")


def _predict(args: argparse.Namespace) -> None:
    import pandas as pd

    from evotree.model_file import load_model
    from evotree.tables.readers import read_table

    if args.out:
        check_writable(args.out)
    model = load_model(args.model)
    if args.proba and model.labels is None:
        raise UsageError(f"--proba: {args.model} predicts numbers, not classes")
    frame = read_table(args.data)
    try:
        predicted = model.predict(frame)
        shares = model.predict_proba(frame) if args.proba else None
    except ValueError as error:
        raise ValueError(f"{args.data}: {error}") from error
    if shares is not None:
        table = pd.DataFrame(shares, columns=model.labels)
    else:
        table = pd.DataFrame({"prediction": predicted})
    table.to_csv(args.out or sys.stdout, index=False)
    if model.target in frame:
        _compare(predicted, frame[model.target].dropna(), are_numbers=model.labels is None)


def _explain(args: argparse.Namespace) -> None:
    from evotree.model_file import load_tree_model
    from evotree.tables.readers import read_table

    for path in filter(None, (args.out, args.plot)):
        check_writable(path)
    model, frame = load_tree_model(args.model), read_table(args.data)
    try:
        explanation = model.explain(frame)
    except ValueError as error:
        raise ValueError(f"{args.model}, {args.data}: {error}") from error
    explanation.terms.to_csv(args.out or sys.stdout, index=False)
    if args.plot:
        ax = _plotting().plot_explanation(explanation)
        _say(f"wrote {_save_figure(ax, Path(args.plot))}")


def _compare(predicted: np.ndarray, truth: pd.Series, are_numbers: bool) -> None:
    """Say how well the rows are predicted whose target is known."""
    from evotree.cli.training import errors
    from evotree.model_file import errors_text
    from evotree.tables.columns import numbers_of, text_of

    if are_numbers:
        truth = numbers_of(truth).dropna()
        if len(truth) > 1:
            text = errors_text(*errors(truth.to_numpy(), predicted[truth.index]))
            _say(f"{text} ({len(truth)} rows)")
        return
    pairs = zip(predicted[truth.index], truth, strict=True)
    n_right = sum(text_of(label) == text_of(value) for label, value in pairs)
    if len(truth):
        _say(f"accuracy {n_right / len(truth):.4f} ({n_right} of {len(truth)} rows)")


def _warm_up(args: argparse.Namespace) -> None:
    from evotree.cli.warmup import warm_up

    warm_up()


def _show(args: argparse.Namespace) -> None:
    from evotree.model_file import load_model, load_tree_model

    model = load_model(args.model)
    if args.plot:
        check_writable(args.plot)
    print(f"{model.rules()}\n{model.summary()}")
    if args.plot:
        ax = _plotting().plot_tree(load_tree_model(args.model))
        print(f"wrote {_save_figure(ax, Path(args.plot))}")


def _export(args: argparse.Namespace) -> None:
    from evotree import export
    from evotree.model_file import load_model

    forms = {
        "rules": lambda model: model.rules(export.export_rules),
        "dot": export.export_graphviz,
        "python": export.export_python,
        "c": export.export_c,
        "sql": export.export_sql,
    }
    model = load_model(args.model)
    if args.to not in forms:
        raise UsageError(f"--to {args.to!r}: allowed are {', '.join(forms)}")
    out = check_writable(args.out) if args.out else None
    text = forms[args.to](model)
    out.write_text(text, "utf-8") if out else print(text, end="")


def _report(args: argparse.Namespace) -> None:
    from evotree.cli.report import report_of_model
    from evotree.model_file import load_model
    from evotree.tables.readers import read_table

    out = check_writable(args.out)
    model = load_model(args.model)
    frame = read_table(args.data) if args.data else None
    try:
        page = report_of_model(model, frame)
    except ValueError as error:
        raise ValueError(f"{args.data}: {error}") from error
    page.save(out)
    for note in page.data["notes"]:
        _say(note)
    print(f"wrote {args.out}")


# ---- results -------------------------------------------------------------------------------------


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


def _save_figure(ax: Any, path: Path) -> Path:
    from matplotlib import pyplot

    ax.figure.savefig(path, dpi=150, bbox_inches="tight")
    pyplot.close(ax.figure)
    return path


def _draw(
    model: Model,
    estimator: EvoTreeClassifier | EvoTreeRegressor,
    X: pd.DataFrame,
    y: np.ndarray,
    folder: Path,
) -> None:
    """Draw what there is to see of a run, and name the files."""
    plotting = _plotting()
    names = model.feature_names
    axes = {"learning-curve.png": plotting.plot_learning_curve(estimator)}
    if len(names) == 2 and model.labels is not None:
        axes["decision-regions.png"] = plotting.plot_decision_regions(
            estimator, X, y, class_names=model.labels
        )
    axes["tree.png"] = plotting.plot_tree(model)
    for name, ax in axes.items():
        print(f"wrote {_save_figure(ax, folder / name)}")
