"""The command line: ``evotree fit``, ``predict``, ``report`` and others.

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from evotree._version import __version__
from evotree.cli import arguments
from evotree.cli.arguments import add_command, evolution_parameters, example, number
from evotree.files import check_writable

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from evotree.model_file import Model


RETRIED = ("failed", "timeout", "crashed")  # statuses of fits that may be done again


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message} (see {self.prog} --help)")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    argv = sys.argv[1:] if argv is None else argv
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: _say(
                f"evotree: warning: {' '.join(str(message).split())}"
            )
            args = _make_parser(_defaults(argv)).parse_args(argv)
            for path in filter(
                None, (getattr(args, name, None) for name in args.files)
            ):
                check_writable(path)
            args.run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes standard output once more at exit, which would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt as error:
        _say(f"evotree: interrupted, {str(error) or 'nothing was written'}")
        return 130
    except (ValueError, OSError, MemoryError) as error:
        missing = isinstance(error, FileNotFoundError) and error.filename
        message = f"no such file: {missing}" if missing else str(error)
        _say(f"evotree: error: {' '.join(message.split())}")
        return 2
    return 0


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def _defaults(argv: Sequence[str]) -> dict[str, Any]:
    """Return the classifier's parameters where the help of a command shows them."""
    if argv[:1] != ["fit"] or not {"-h", "--help"} & set(argv):
        return {}
    from evotree.estimators import EvoTreeClassifier

    return EvoTreeClassifier().get_params()


def _make_parser(defaults: Mapping[str, Any]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="evotree",
        description="Evolve small oblique decision trees, use them and read them.",
        **example("evotree fit --help"),
    )
    parser.add_argument("--version", action="version", version=f"evotree {__version__}")
    table = "a table: CSV with a header row (.csv, .csv.gz), .npz, .arff or .libsvm"
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_fits(commands, table, defaults)
    _add_uses(commands, table)
    _add_experiments(commands)
    return parser


def _add_fits(commands: Any, table: str, defaults: Mapping[str, Any]) -> None:
    """Add the commands that compile and evolve."""
    add_command(
        commands,
        "warmup",
        _warm_up,
        "compile everything now, so that no fit has to",
        "evotree warmup",
    )

    fit = add_command(
        commands,
        "fit",
        _fit,
        "evolve a tree for a table and write a model file",
        'python -c "from sklearn.datasets import load_iris as iris; '
        "iris(as_frame=True).frame.to_csv('iris.csv', index=False)\"",
        "evotree fit iris.csv --target target --out iris.json --report iris.html",
    )
    fit.set_defaults(files=("out", "report"))
    option = fit.add_argument
    option("data", metavar="DATA", help=table)
    option("--target", metavar="COLUMN", required=True, help="the column to predict")
    option("--out", metavar="MODEL.json", required=True, help="the model file to write")
    option(
        "--task",
        choices=("auto", "classification", "regression"),
        default="auto",
        help="predict classes or numbers; by default numbers where the target has many (auto)",
    )
    option(
        "--leaves",
        choices=("auto", "linear", "constant"),
        help="what leaves of regression hold: lines where they can be (auto), lines, or means",
    )
    option(
        "--test-size",
        metavar="SHARE",
        type=arguments.share,
        default=0.0,
        help="share of the rows to hold out and test on, such as 0.2 (none)",
    )
    option(
        "--drop",
        metavar="COLUMN",
        nargs="+",
        action="extend",
        default=[],
        help="leave columns out",
    )
    option(
        "--class-weight",
        metavar="WEIGHT",
        nargs="+",
        help="weights of rows: 'balanced', for classes of equal weight, or CLASS=NUMBER each (1)",
    )
    option(
        "--cost-matrix",
        metavar="FILE",
        help="a table of what errors cost: the class, then a column for each predicted class",
    )
    option("--plots", metavar="DIR", help="draw learning curve and tree into a folder")
    option(
        "--report",
        metavar="FILE.html",
        help="write a page about the tree, the others of its front and the run",
    )
    arguments.add_evolution(fit, defaults)


def _add_uses(commands: Any, table: str) -> None:
    """Add the commands that take a model file."""

    def add(
        name: str, run: Callable[[argparse.Namespace], None], about: str, rest: str
    ) -> Any:
        command = add_command(
            commands, name, run, about, f"evotree {name} iris.json {rest}"
        )
        command.set_defaults(files=("out", "plot"))
        command.add_argument("model", metavar="MODEL.json", help="a model file")
        return command.add_argument

    option = add(
        "predict",
        _predict,
        "predict the target of a table's rows",
        "iris.csv --out predictions.csv",
    )
    option("data", metavar="DATA", help=f"{table}, with the model's columns")
    option("--out", metavar="FILE.csv", help="(standard output)")
    option(
        "--proba",
        action="store_true",
        help="write the shares of all classes, a column each",
    )

    option = add("show", _show, "print a model's tree as rules", "--plot tree.png")
    option("--plot", metavar="FILE.png", help="draw the tree as well")

    option = add(
        "export",
        _export,
        "write a model's tree as rules, drawing or code",
        "--to sql --out iris.sql",
    )
    option(
        "--to",
        metavar="FORM",
        required=True,
        help="rules, dot, python or c (over encoded features), or sql (over the table's columns)",
    )
    option("--out", metavar="FILE", help="(standard output)")

    option = add(
        "report",
        _report,
        "write a page about a model, to look at and to ask",
        "--data iris.csv --out iris.html",
    )
    option(
        "--data",
        metavar="DATA",
        help=f"rows to follow and to measure on: {table} (none)",
    )
    option("--out", metavar="FILE.html", required=True, help="the page to write")


def _add_experiments(commands: Any) -> None:
    """Add the commands that run what a file defines, and report it."""
    run_small = "evotree experiment run docs/experiments/small.toml --out results"
    report_it = "evotree experiment report results --reference EvoTree"
    experiment = commands.add_parser(
        "experiment",
        help="run methods on data sets, and compare them",
        **example(run_small, report_it),
    )
    parts = experiment.add_subparsers(
        title="commands", metavar="COMMAND", required=True
    )
    run = add_command(
        parts,
        "run",
        _run_experiment,
        "do the fits that a file defines and that are missing",
        run_small,
    )
    run.add_argument(
        "file", metavar="FILE.toml", type=Path, help="defines the experiment"
    )
    run.add_argument(
        "--out", metavar="RESULTS", type=Path, required=True, help="folder of results"
    )
    run.add_argument(
        "--data-home", metavar="DIR", type=Path, help="folder of the data sets"
    )
    run.add_argument(
        "--n-jobs", metavar="N", type=number(int, 1), default=1, help="processes (1)"
    )
    limit = number(float, 0.0, strict=True)
    run.add_argument(
        "--time-limit", metavar="S", type=limit, help="seconds that a fit may take"
    )
    run.add_argument(
        "--retry",
        metavar="STATUS",
        nargs="+",
        choices=RETRIED,
        default=[],
        help=f"do fits again that ended so: {', '.join(RETRIED)}",
    )
    report = add_command(
        parts,
        "report",
        _report_experiment,
        "write tables, tests and pictures of the results",
        report_it,
    )
    report.add_argument(
        "out", metavar="RESULTS", type=Path, help="folder of the results"
    )
    for command in (run, report):
        command.add_argument(
            "--reference", metavar="METHOD", help="compare the others with it"
        )
        command.add_argument(
            "--pictures",
            choices=("png", "pdf"),
            default="png",
            help="their format (png)",
        )


def _fit(args: argparse.Namespace) -> None:
    from evotree.cli import table, training
    from evotree.model_file import save_model

    begin = time.perf_counter()
    folder = _make_folder(args.plots) if args.plots else None
    X, y, is_regression = _read_rows(args)
    test = None
    if args.test_size:
        X, y, test = table.hold_out(
            X, y, args.test_size, args.random_state, not is_regression
        )
    if constant := table.constant_columns(X):
        _say(f"left out, the same in all rows: {', '.join(map(str, constant))}")
        X = X.drop(columns=constant)
    parameters = {**evolution_parameters(args), **_parameters_of_task(args, y)}
    if "time_limit" in parameters:
        # What reading has taken is gone; the least time still gives a tree.
        spent = time.perf_counter() - begin
        parameters["time_limit"] = max(parameters["time_limit"] - spent, 1e-3)
    model, estimator = training.train(
        X, y, args.target, parameters, is_regression, test
    )
    reported = test or (X, y)
    if estimator.stop_reason_ == "interrupt":
        _say("evotree: interrupted; the model is the best tree so far")
    save_model(args.out, model)
    # Rules may be many: the summary stands where a reader of a terminal looks, below.
    print(f"{model.rules()}\n{model.summary()}")
    if not args.test_size:
        figure = "R² and RMSE" if model.classes is None else "the accuracy"
        print(f"no rows were held out: --test-size 0.2 measures {figure} on new ones")
    print(f"wrote {args.out}")
    if folder:
        _draw(model, estimator, X, y, folder)
    if args.report:
        import pandas as pd

        from evotree.report import report

        X, y = reported
        report(estimator, X, pd.Series(y, name=args.target)).save(args.report)
        print(f"wrote {args.report}")


def _read_rows(args: argparse.Namespace) -> tuple[Any, Any, bool]:
    """Return features and targets of a table, and whether these are numbers."""
    from evotree.cli import table
    from evotree.tables.readers import read_table

    frame = read_table(args.data)
    X, y = table.features_and_target(frame, args.target, args.drop)
    if len(y) < len(frame):
        _say(
            f"left out, without {args.target!r}: {len(frame) - len(y)} of {len(frame)} rows"
        )
    is_regression = args.task == "regression"
    if args.task == "auto" and (n := table.distinct_numbers(y)) > table.MANY_TARGETS:
        is_regression = True
        held = f"regression: {args.target!r} has {n} different numbers"
        _say(f"{held}; --task classification takes them for classes")
    for option in ("class_weight", "cost_matrix"):
        if is_regression and getattr(args, option) is not None:
            name = option.replace("_", "-")
            raise ValueError(
                f"--{name} is for classes, which --task classification predicts"
            )
    if not is_regression and args.leaves is not None:
        raise ValueError("--leaves is for numbers, which --task regression predicts")
    y = (table.as_numbers if is_regression else table.as_classes)(
        y.to_numpy(), args.target
    )
    table.check_features(X)
    return X, y, is_regression


def _parameters_of_task(args: argparse.Namespace, y: Any) -> dict[str, Any]:
    """Return the parameters that classes or numbers have."""
    from evotree.cli.training import class_weights, cost_matrix
    from evotree.objectives import Cost
    from evotree.tables.readers import read_table

    parameters: dict[str, Any] = {}
    if args.leaves is not None:
        parameters["leaves"] = args.leaves
    if args.class_weight is not None or args.cost_matrix is not None:
        parameters["class_weight"] = class_weights(args.class_weight, y)
        if args.cost_matrix is not None:
            parameters["objective"] = Cost(cost_matrix(read_table(args.cost_matrix), y))
            if (named := vars(args).get("objective", "cost")) != "cost":
                raise ValueError(
                    f"--objective {named}: with --cost-matrix allowed is 'cost'"
                )
    return parameters


@contextmanager
def _naming(*files: Any) -> Iterator[None]:
    """Name the files that are at fault in errors."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{', '.join(map(str, files))}: {error}") from error


def _predict(args: argparse.Namespace) -> None:
    import pandas as pd

    from evotree.model_file import errors_text, load_model
    from evotree.tables.columns import numbers_of, text_of
    from evotree.tables.readers import read_table

    model = load_model(args.model)
    if args.proba and model.labels is None:
        raise ValueError(f"--proba: {args.model} predicts numbers, not classes")
    frame = read_table(args.data)
    with _naming(args.data):
        predicted = model.predict(frame)
        table = pd.DataFrame({"prediction": predicted})
        if args.proba:
            table = pd.DataFrame(model.predict_proba(frame), columns=model.labels)
    table.to_csv(args.out or sys.stdout, index=False)
    truth = frame[model.target].dropna() if model.target in frame else pd.Series()
    if model.labels is None:
        truth = numbers_of(truth).dropna()
        if len(truth) > 1:
            from evotree.cli.training import errors

            text = errors_text(*errors(truth.to_numpy(), predicted[truth.index]))
            _say(f"{text} ({len(truth)} rows)")
    elif len(truth):
        pairs = zip(predicted[truth.index], truth, strict=True)
        n_right = sum(text_of(label) == text_of(value) for label, value in pairs)
        _say(f"accuracy {n_right / len(truth):.4f} ({n_right} of {len(truth)} rows)")


def _warm_up(args: argparse.Namespace) -> None:
    from evotree.estimators.warmup import warmup

    warmup()


def _show(args: argparse.Namespace) -> None:
    from evotree.model_file import load_model, load_tree_model

    model = load_model(args.model)
    print(f"{model.rules()}\n{model.summary()}")
    if args.plot:
        print(_drawn(_plotting().plot_tree(load_tree_model(args.model)), args.plot))


def _export(args: argparse.Namespace) -> None:
    from evotree import export
    from evotree.model_file import load_model

    forms: dict[str, Callable[[Any], str]] = {
        "rules": lambda model: model.rules(export.export_rules),
        "dot": export.export_graphviz,
        "python": export.export_python,
        "c": export.export_c,
        "sql": export.export_sql,
    }
    model = load_model(args.model)
    if args.to not in forms:
        raise ValueError(f"--to {args.to!r}: allowed are {', '.join(forms)}")
    text = forms[args.to](model)
    Path(args.out).write_text(text, "utf-8") if args.out else print(text, end="")


def _report(args: argparse.Namespace) -> None:
    from evotree.cli.report import report_of_model
    from evotree.model_file import load_model
    from evotree.tables.readers import read_table

    model = load_model(args.model)
    frame = read_table(args.data) if args.data else None
    with _naming(args.data):
        page = report_of_model(model, frame)
    page.save(args.out)
    for note in page.data["notes"]:
        _say(note)
    print(f"wrote {args.out}")


def _run_experiment(args: argparse.Namespace) -> None:
    from evotree.experiments.execution import run_experiment
    from evotree.experiments.experiment import read_experiment

    experiment = read_experiment(args.file)
    out = args.out
    _check_reference(args.reference, experiment.methods)
    try:
        runs = run_experiment(
            experiment,
            out,
            args.data_home,
            jobs=args.n_jobs,
            time_limit=args.time_limit,
            retry=tuple(args.retry),
        )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"what was done is kept in {out}") from None
    counts = runs["status"].value_counts()
    print(", ".join(f"{count:,} {status}" for status, count in counts.items()))
    for status in [status for status in RETRIED if status in counts]:
        first = runs[runs["status"] == status].iloc[0]
        *_, last_line = (first["error"] or "").strip().splitlines() or [""]
        print(f"first {status}: {first['dataset']}, {first['method']}: {last_line}")
    if len(counts) and "done" not in counts:
        raise ValueError(f"no fit was done; the tracebacks are in {out}.")
    _report_experiment(args)


def _report_experiment(args: argparse.Namespace) -> None:
    from evotree.experiments.execution import read_runs
    from evotree.experiments.report import write_report

    _check_reference(args.reference, read_runs(args.out)["method"].unique())
    for path in write_report(args.out, args.reference, args.pictures):
        print(f"wrote {path}")


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


def _drawn(ax: Any, path: str | Path) -> str:
    """Write a picture to a file, and say so."""
    return f"wrote {_plotting().style.save_picture(ax, Path(path))}"


def _draw(
    model: Model, estimator: Any, X: pd.DataFrame, y: np.ndarray, folder: Path
) -> None:
    """Draw what there is to see of a run, and name the files."""
    plotting = _plotting()
    axes = {"learning-curve.png": plotting.plot_learning_curve(estimator)}
    if len(model.feature_names) == 2 and model.labels is not None:
        axes["decision-regions.png"] = plotting.plot_decision_regions(
            estimator, X, y, class_names=model.labels
        )
    axes["tree.png"] = plotting.plot_tree(model)
    for name, ax in axes.items():
        print(_drawn(ax, folder / name))
