"""The command line: ``evotree demo``, ``fit``, ``predict``, ``show`` and ``export``.

Results go to standard output, messages and the progress bar to standard error. A mistake of the
user's ends with one line there and exit status 2. Modules are imported by the command that uses
them, so that ``evotree --help`` answers at once.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from evotree import __version__
from evotree.cli.arguments import add_evolution, evolution_parameters, share
from evotree.cli.experiment_commands import add_commands
from evotree.files import check_writable

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from evotree.cli.model_file import Model
    from evotree.estimators import EvoTreeClassifier

STOP_REASONS = {
    "max_generations": "all generations done",
    "patience": "no better tree for long",
    "time_limit": "time is up",
    "interrupt": "interrupted",
}


class UsageError(Exception):
    """A command line that cannot be understood."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        Exit status: 0, or 2 after a mistake of the user's, 130 after an interrupt that left
        nothing, 1 where the reader of standard output has gone.
    """
    try:
        args = _make_parser().parse_args(argv)
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


def _make_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="evotree",
        description="Evolve small oblique decision trees, use them and read them.",
    )
    parser.add_argument("--version", action="version", version=f"evotree {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    warmup = commands.add_parser("warmup", help="compile everything now, so that no fit has to")
    warmup.set_defaults(run=_warm_up)

    demo = commands.add_parser("demo", help="evolve a tree for a synthetic problem and draw it")
    demo.set_defaults(run=_demo)
    demo.add_argument("--problem", metavar="NAME", default="chessboard2", help="(%(default)s)")
    demo.add_argument("--out", metavar="DIR", default="demo-output", help="(%(default)s)")

    fit = commands.add_parser("fit", help="evolve a tree for a table and write a model file")
    fit.set_defaults(run=_fit)
    fit.add_argument("data", metavar="DATA.csv[.gz]", help="a table with a header row")
    fit.add_argument("--target", metavar="COLUMN", required=True, help="the column of the classes")
    fit.add_argument("--out", metavar="MODEL.json", required=True, help="the model file to write")
    fit.add_argument(
        "--test-size",
        metavar="SHARE",
        type=share,
        default=0.0,
        help="share of the rows to hold out and test on, such as 0.2 (none)",
    )
    fit.add_argument("--plots", metavar="DIR", help="draw learning curve and tree into a folder")
    for command in (demo, fit):
        add_evolution(command)

    predict = commands.add_parser("predict", help="predict the classes of a table's rows")
    predict.set_defaults(run=_predict)
    predict.add_argument("model", metavar="MODEL.json", help="a model file")
    predict.add_argument("data", metavar="DATA.csv[.gz]", help="a table with the model's columns")
    predict.add_argument("--out", metavar="FILE.csv", help="(standard output)")
    predict.add_argument(
        "--proba", action="store_true", help="write the shares of all classes, a column each"
    )

    show = commands.add_parser("show", help="print a model's tree as rules")
    show.set_defaults(run=_show)
    show.add_argument("model", metavar="MODEL.json", help="a model file")
    show.add_argument("--plot", metavar="FILE.png", help="draw the tree as well")

    export = commands.add_parser("export", help="write a model's tree as rules, drawing or code")
    export.set_defaults(run=_export)
    export.add_argument("model", metavar="MODEL.json", help="a model file")
    about = "rules, dot, python or c (over encoded features), or sql (over the table's columns)"
    export.add_argument("--to", metavar="FORM", required=True, help=about)
    export.add_argument("--out", metavar="FILE", help="(standard output)")

    add_commands(commands)
    return parser


# ---- commands ------------------------------------------------------------------------------------


def _demo(args: argparse.Namespace) -> None:
    import numpy as np
    import pandas as pd

    from evotree.experiments.problems import PROBLEMS, make_problem

    if args.problem not in PROBLEMS:
        raise UsageError(f"--problem {args.problem}: there are {', '.join(PROBLEMS)}")
    problem, folder = PROBLEMS[args.problem], _make_folder(args.out)
    names = [f"x{j + 1}" for j in range(problem.n_features)]
    samples = []
    for part in (0, 1):
        X, y = make_problem(args.problem, random_state=np.random.default_rng([args.seed, part]))
        samples.append((pd.DataFrame(X, columns=names), y))
    train, test = samples
    print(f"{problem.name}: {problem.description}; the best tree has {problem.optimal_nodes} nodes")
    model, classifier = _train(*train, "class", args, test)
    print(_figures(model) + "\n\n" + model.rules())
    _draw(model, classifier, *train, folder, with_tree=problem.n_features != 2)


def _fit(args: argparse.Namespace) -> None:
    from evotree.cli.model_file import save_model
    from evotree.cli.table import check_features, features_and_target, hold_out, without_constants
    from evotree.experiments.datasets import read_csv

    check_writable(args.out)
    folder = _make_folder(args.plots) if args.plots else None
    frame = read_csv(args.data)
    X, y = features_and_target(frame, args.target)
    if len(y) < len(frame):
        _say(f"left out, without {args.target!r}: {len(frame) - len(y)} of {len(frame)} rows")
    check_features(X)
    test = None
    if args.test_size:
        X, y, test = hold_out(X, y, args.test_size, args.seed)
    X, constant = without_constants(X)
    if constant:
        _say(f"left out, the same in all rows: {', '.join(constant)}")
    model, classifier = _train(X, y, args.target, args, test)
    save_model(args.out, model)
    if model.training["stop_reason"] == "interrupt":
        _say("evotree: interrupted; the model is the best tree so far")
    print(_figures(model) + "\n\n" + model.rules())
    print(f"wrote {args.out}")
    if folder:
        _draw(model, classifier, X, y, folder, with_tree=True)


def _predict(args: argparse.Namespace) -> None:
    import pandas as pd

    from evotree.cli.model_file import load_model
    from evotree.experiments.datasets import read_csv
    from evotree.tables.columns import text_of

    if args.out:
        check_writable(args.out)
    model = load_model(args.model)
    frame = read_csv(args.data)
    try:
        shares = model.predict_proba(frame)
    except ValueError as error:
        raise ValueError(f"{args.data}: {error}") from error
    labels = model.classes[shares.argmax(axis=1)]
    if args.proba:
        table = pd.DataFrame(shares, columns=[text_of(label) for label in model.classes])
    else:
        table = pd.DataFrame({"prediction": labels})
    table.to_csv(args.out or sys.stdout, index=False)
    if model.target in frame:
        truth = frame[model.target].dropna()
        pairs = zip(labels[truth.index], truth, strict=True)
        n_right = sum(text_of(label) == text_of(value) for label, value in pairs)
        if len(truth):
            _say(f"accuracy {n_right / len(truth):.4f} ({n_right} of {len(truth)} rows)")


def _warm_up(args: argparse.Namespace) -> None:
    from evotree.cli.warmup import warm_up

    warm_up()


def _show(args: argparse.Namespace) -> None:
    from evotree.cli.model_file import load_model

    model = load_model(args.model)
    if args.plot:
        check_writable(args.plot)
    print(f"target    {model.target}: {', '.join(_labels(model))}")
    print(f"columns   {len(model.columns)}, encoded as {len(model.feature_names)} features")
    print(_figures(model) + "\n\n" + model.rules(), end="")
    if args.plot:
        plotting = _plotting()
        ax = plotting.plot_tree(
            model.tree, feature_names=model.feature_names, class_names=_labels(model)
        )
        print(f"\nwrote {_save_figure(ax, Path(args.plot))}")


def _export(args: argparse.Namespace) -> None:
    from evotree.cli.model_file import load_model
    from evotree.export.table import export_for_table

    model = load_model(args.model)
    out = check_writable(args.out) if args.out else None
    text = export_for_table(args.to, model.tree, model.columns, model.classes, model.spreads)
    out.write_text(text, "utf-8") if out else print(text, end="")


# ---- training ------------------------------------------------------------------------------------


def _train(
    X: pd.DataFrame,
    y: np.ndarray,
    target: str,
    args: argparse.Namespace,
    test: tuple[pd.DataFrame, np.ndarray] | None,
) -> tuple[Model, EvoTreeClassifier]:
    """Evolve a tree, and make a model of it that knows its accuracy."""
    from evotree.cli.model_file import Model
    from evotree.estimators import EvoTreeClassifier
    from evotree.experiments.datasets import make_preprocessor
    from evotree.tables.columns import describe_columns, encode

    columns = describe_columns(make_preprocessor(X).fit(X))
    matrix = encode(columns, X)
    classifier = EvoTreeClassifier(
        **evolution_parameters(args), keep_on_interrupt=True, verbose=int(sys.stderr.isatty())
    )
    begin = time.perf_counter()
    classifier.fit(matrix, y)
    training: dict[str, Any] = {
        "rows": len(y),
        "accuracy": float((classifier.predict(matrix) == y).mean()),
        "size_penalty": classifier.size_penalty_,
        "generations": classifier.n_generations_,
        "stop_reason": classifier.stop_reason_,
        "seconds": round(time.perf_counter() - begin, 3),
    }
    spreads = tuple(matrix.std(axis=0).tolist())
    model = Model(target, classifier.classes_, columns, classifier.tree_, spreads, training)
    if test is not None:
        training["test_rows"] = len(test[1])
        training["test_accuracy"] = float((model.predict(test[0]) == test[1]).mean())
    return model, classifier


# ---- results -------------------------------------------------------------------------------------


def _figures(model: Model) -> str:
    """Return size and accuracy of a model in lines of words."""
    tree, figures = model.tree, model.training
    lines = [f"tree      {tree.n_nodes} nodes, {tree.n_leaves} leaves, depth {tree.depth}"]
    for name, word in (("", "training"), ("test_", "test")):
        if f"{name}accuracy" in figures:
            rows = f"{name}rows"
            of = f" on {figures[rows]} rows" if rows in figures else ""
            lines.append(f"{word:9} accuracy {figures[f'{name}accuracy']:.4f}{of}")
    if "generations" in figures and "seconds" in figures:
        reason = STOP_REASONS.get(figures.get("stop_reason", ""), "")
        lines.append(
            f"evolution {figures['generations']} generations in {figures['seconds']:.1f} s"
            + (f" ({reason})" if reason else "")
        )
    return "\n".join(lines)


def _labels(model: Model) -> list[str]:
    return [str(label) for label in model.classes]


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
    classifier: EvoTreeClassifier,
    X: pd.DataFrame,
    y: np.ndarray,
    folder: Path,
    with_tree: bool,
) -> None:
    """Draw what there is to see of a run, and name the files."""
    from evotree.tables.columns import encode

    plotting = _plotting()
    names = model.feature_names
    axes = {"learning-curve.png": plotting.plot_learning_curve(classifier)}
    if len(names) == 2:
        axes["decision-regions.png"] = plotting.plot_decision_regions(
            classifier,
            encode(model.columns, X),
            y,
            feature_names=names,
            class_names=_labels(model),
        )
    if with_tree:
        labels = _labels(model)
        axes["tree.png"] = plotting.plot_tree(model.tree, feature_names=names, class_names=labels)
    for name, ax in axes.items():
        print(f"wrote {_save_figure(ax, folder / name)}")
