"""What the command line makes of a table: rows to learn from, and rows to predict.

What is left out of a table and what is taken for missing is told; whether a tree can be learned
from the rest is checked. A DataFrame as read from a file, its rows numbered from 0, gives features
and classes or numbers to predict, or a `ValueError` that names the column and what is wrong with
it.
"""

import argparse
import math
import re
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import (
    is_float_dtype,
    is_numeric_dtype,
    is_string_dtype,
)
from sklearn.model_selection import GroupShuffleSplit, train_test_split

from evotree.cli import say
from evotree.fitness.objectives import CLASS_OBJECTIVES, LOSSES, TARGET_OBJECTIVES
from evotree.model_file import Model
from evotree.schema import NUMBERS, CategoricalColumn, quoted, text_of
from evotree.tables.columns import numbers_of, numbers_spelled
from evotree.tables.labels import are_many_numbers
from evotree.tables.readers import NA_VALUES, TextFormat, read_table

MANY_NUMBERS = 10  # a column of text with more distinct numbers was meant to be numeric
# More distinct values than this, in most rows a new one, are no categories and no classes.
MANY_CATEGORIES = 50
# Words that stand for a missing number, however many cells they are in; of other words a column of
# numbers has few.
GAPS = {
    "",
    "?",
    "-",
    "--",
    ".",
    "*",
    "#",
    "na",
    "n/a",
    "#n/a",
    "nan",
    "nil",
    "none",
    "null",
}
GAPS |= {"missing", "unknown"}
FEW = 0.1  # share of the cells
# Names of columns that say which row it is; "" is that of pandas' own index.
ROW_NAMES = re.compile(
    r"(?i:#?|id|index|row|unnamed: \d+|(row|case|sample|record)[ _.-]?(id|no|nr|number|index)"
    r"|.*[ _.-]id|id[ _.-].*)|.*[a-z]I[dD]"
)
_SHOWN = 1000  # characters of the names of columns
_SHOWN_WORDS = 5


def read(
    path: str, args: argparse.Namespace, texts: Collection[str] = ()
) -> pd.DataFrame:
    """Read a table as the options of a command say, some columns as texts."""
    return read_table(
        path,
        TextFormat(
            sep=args.sep,
            decimal=args.decimal,
            encoding=args.encoding,
            na_values=(*NA_VALUES, *args.na_values),
            texts=texts,
            say=say,
        ),
    )


def read_for_model(path: str, args: argparse.Namespace, model: Model) -> pd.DataFrame:
    """Read a table for a model: what were numbers or words when it was fitted are so again."""
    words = {c.name for c in model.schema if isinstance(c, CategoricalColumn)}
    frame = read(path, args, texts={*words, model.target})
    numeric = {
        column.name: column.holds
        for column in model.schema
        if column.name in frame and column.name in {*model.used_columns} - words
    }
    return words_as_gaps(frame, numeric, are_numbers=True)


def read_training_rows(
    args: argparse.Namespace,
) -> tuple[Any, Any, pd.DataFrame, bool]:
    """Return features and targets of a table, what is beside, and whether targets are numbers.

    Beside are, as far as they are asked for, the columns ``"weight"``, ``"group"``, ``"time"`` and
    ``"event"``. What is left out is said.
    """
    codes = {args.target, *args.categorical, *filter(None, [args.group])}
    frame = read(args.data, args, texts=codes)
    named = {
        "target": [args.target],
        "drop": args.drop,
        "keep": args.keep,
        "categorical": args.categorical,
        "monotonic-cst": [name for name, _ in args.monotonic_cst or ()],
        "sample-weight": [args.sample_weight] if args.sample_weight else [],
        "group": [args.group] if args.group else [],
        "time": [args.time] if args.time else [],
        "event": [args.event] if args.event else [],
    }
    check_names(frame, named)
    of_rows = [
        name
        for key in ("sample-weight", "group", "time", "event")
        for name in named[key]
    ]
    if args.target in of_rows:
        raise ValueError(f"column {args.target!r} is the target: it says nothing else")
    out = {*args.drop, *of_rows}
    chosen = {name for names in named.values() for name in names}
    if numbering := row_numbers(frame.drop(columns=[*chosen])):
        say(
            f"left out, whole numbers that only tell rows apart: {', '.join(map(repr, numbering))}"
            f"; --keep {shlex.join(numbering)} keeps them"
        )
    X, y = features_and_target(frame, args.target, [*out, *numbering])
    y = numbers_or_codes(y)
    if len(y) < len(frame):
        say(
            f"left out, without {args.target!r}: {len(frame) - len(y)} of {len(frame)} rows"
        )
    is_regression = args.task == "regression" or bool(args.event)
    if args.task == "auto" and not args.event and are_many_numbers(y):
        is_regression = True
        say(
            f"regression: {args.target!r} has {y.nunique()} different numbers; "
            "--task classification takes them for classes"
        )
    check_task(args, "regression" if is_regression else "classification")
    y = (as_numbers if is_regression else as_classes)(y.to_numpy(), args.target)
    categories = [name for name in X if name in args.categorical]
    numbers = {name: NUMBERS for name in X if name not in args.categorical}
    X = words_as_gaps(X, numbers)
    check_features(X.drop(columns=categories))
    texts = {
        name: X[name].map(text_of, na_action="ignore").astype(object)
        for name in categories
    }
    return X.assign(**texts), y, _beside(args, frame.loc[X.index]), is_regression


def _beside(args: argparse.Namespace, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of a table that are no features."""
    beside = pd.DataFrame(index=frame.index)
    if args.sample_weight:
        beside["weight"] = numbers_of(frame[args.sample_weight])
    if args.group:
        beside["group"] = frame[args.group]
    if args.event:
        beside["event"] = events_of(frame[args.event])
    if args.time:
        times = frame[args.time]
        numbers = numbers_of(times)
        if numbers.notna().sum() < times.notna().sum():
            try:
                numbers = pd.to_datetime(times)
            except ValueError as error:
                raise ValueError(
                    f"--time {args.time!r}: the column has no numbers, and no dates such as "
                    f"2026-01-31: {error}"
                ) from error
        beside["time"] = numbers
    for name in beside.columns.intersection(["group", "time"]):
        is_missing = beside[name].isna()
        if is_missing.any():
            raise ValueError(
                f"--{name}: {is_missing.sum()} rows have none, the first is data row "
                f"{beside.index[is_missing.argmax()] + 1}"
            )
    return beside


def events_of(cells: pd.Series) -> pd.Series:
    """Return whether events were seen, as 0 and 1."""
    words = cells.map(text_of, na_action="ignore").str.casefold()
    events = words.map({"0": 0.0, "1": 1.0, "false": 0.0, "true": 1.0})
    if events.isna().any():
        at = events.isna().argmax()
        raise ValueError(
            f"--event: data row {cells.index[at] + 1} has {quoted(cells.iloc[at])}: allowed are 0 "
            "and 1, false and true"
        )
    return events


def check_task(args: argparse.Namespace, task: str) -> None:
    """Raise for an option that is not for the task, where this is known."""
    if args.event and args.task == "classification":
        raise ValueError(
            "--event is for times, which --task classification does not predict"
        )
    if args.event and vars(args).get("objective") is not None:
        raise ValueError(f"--objective {args.objective}: with --event allowed is none")
    for option in ("class_weight", "cost_matrix"):
        if task == "regression" and getattr(args, option) is not None:
            raise ValueError(
                f"--{option.replace('_', '-')} is for classes, which "
                "--task classification predicts"
            )
    named = vars(args).get("objective")
    allowed = {
        "auto": tuple(LOSSES),
        "classification": CLASS_OBJECTIVES,
        "regression": TARGET_OBJECTIVES,
    }[task]
    if args.cost_matrix is not None:
        allowed = ("cost",)
    if named is not None and named not in allowed:
        what = "--cost-matrix" if args.cost_matrix else f"--task {task}"
        raise ValueError(
            f"--objective {named}: with {what} allowed are {', '.join(allowed)}"
        )


def check_names(frame: pd.DataFrame, named: dict[str, list[str]]) -> None:
    """Raise for an option that names no column; `named` has the names by option."""
    for option, names in named.items():
        for name in names:
            if name not in frame.columns:
                there = ", ".join(map(str, frame.columns))
                there = there if len(there) <= _SHOWN else f"{there[:_SHOWN]}..."
                raise ValueError(
                    f"--{option} {name!r}: there is no such column; the columns are {there}"
                )


def row_numbers(frame: pd.DataFrame) -> list[str]:
    """Return the columns that only tell rows apart, from which a tree would learn noise.

    They count the rows from 0 or 1, in the order of the file, or are whole numbers, all of them
    different, in a column that is called so.
    """
    found = []
    for name in frame.select_dtypes("number"):
        cells = frame[name].to_numpy(dtype=np.float64, na_value=np.nan)
        # An infinite or a missing cell is no whole number either.
        if len(cells) < 2 or not (np.abs(cells) < 2.0**53).all():
            continue
        steps = cells - np.arange(len(cells))
        counts = steps[0] in (0.0, 1.0) and (steps == steps[0]).all()
        is_whole = (cells == np.trunc(cells)).all()
        is_named = ROW_NAMES.fullmatch(name) and np.unique(cells).size == len(cells)
        if counts or (is_whole and is_named):
            found.append(name)
    return found


def numbers_or_codes(cells: pd.Series) -> pd.Series:
    """Return texts as numbers where all are, and as they are where some are codes such as 01."""
    texts = cells if is_string_dtype(cells.dtype) else pd.Series(dtype=object)
    numbers = numbers_spelled(texts)
    if not len(texts) or numbers.isna().any() or texts.str.match(r"[+-]?0\d").any():
        return cells
    return numbers


def words_as_gaps(
    frame: pd.DataFrame, names: Mapping[str, str], are_numbers: bool = False
) -> pd.DataFrame:
    """Return a table whose columns of numbers with a few words have gaps there, and say so.

    Words for a missing number may be many, and all there is in columns that are known to be
    numbers. `names` says by the names of columns what they hold.
    """
    numbers = {}
    for name, holds in names.items():
        if is_numeric_dtype(frame[name].dtype):
            continue
        cells = frame[name].dropna()
        read_as = numbers_of(cells, holds)
        words = cells[read_as.isna()].astype(str)
        others = words[~words.str.strip().str.casefold().isin(GAPS)]
        n_numbers = read_as.nunique() + are_numbers
        are_few = len(others) <= FEW * len(cells) and others.nunique() < n_numbers
        if len(words) and are_few:
            numbers[name] = numbers_of(frame[name], holds)
            shown = [
                f"{quoted(word)} ({n})" for word, n in Counter(words).most_common()
            ]
            say(
                f"missing in the numbers of {name!r}: {', '.join(shown[:_SHOWN_WORDS])}"
                f"{', ...' if len(shown) > _SHOWN_WORDS else ''}"
            )
    return frame.assign(**numbers)


def features_and_target(
    frame: Any, target: str, drop: Sequence[str] = ()
) -> tuple[Any, Any]:
    """Split a table; rows without a target are left out."""
    frame = frame.dropna(subset=[target])
    X = frame.drop(columns=[target, *drop])
    if X.shape[1] == 0:
        raise ValueError(
            f"{target!r} is the only column left: there is nothing to predict it from"
        )
    return X, frame[target]


def as_numbers(y: np.ndarray, target: str) -> np.ndarray:
    """Return targets as numbers to predict."""
    numbers = numbers_of(pd.Series(y)).to_numpy(np.float64)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        raise ValueError(
            f"column {target!r} has {quoted(y[bad[0]])}, which is not a finite "
            "number: regression predicts numbers; --na-values tells what is missing"
        )
    if pd.unique(numbers).size < 2:
        held = f"one value only, {y[0]}" if len(y) else "no value"
        raise ValueError(f"column {target!r} has {held}: at least two are needed")
    return numbers


def as_classes(y: np.ndarray, target: str) -> np.ndarray:
    """Return targets as classes."""
    if is_float_dtype(y):
        # Of larger floats none is known to be the number that the file has.
        broken = y[(y != np.trunc(y)) | ~(np.abs(y) <= 2.0**53)]
        if broken.size:
            raise ValueError(
                f"column {target!r} has numbers such as {broken[0]}: classes are "
                "words or whole numbers; --task regression predicts numbers"
            )
        # Missing values had made floats of whole numbers.
        y = y.astype(np.int64)
    n_classes = pd.unique(y).size
    if n_classes < 2:
        held = f"one value only, {y[0]}" if n_classes else "no value"
        raise ValueError(
            f"column {target!r} has {held}: at least two classes are needed"
        )
    if n_classes > max(MANY_CATEGORIES, len(y) / 2):
        raise ValueError(
            f"column {target!r} has {n_classes} different values in {len(y)} rows: "
            "these are no classes"
        )
    return y


def check_features(X: pd.DataFrame) -> None:
    """Raise for a column of text that is numbers with some text, or names of the rows."""
    for name in [
        name for name, dtype in X.dtypes.items() if not is_numeric_dtype(dtype)
    ]:
        column = X[name].dropna()
        numbers = numbers_of(column)
        if numbers.isna().mean() <= 0.5 and numbers.nunique() > MANY_NUMBERS:
            bad = column[~np.isfinite(numbers)]
            if len(bad):
                raise ValueError(
                    f"column {name!r}: {quoted(bad.iloc[0])} in data row "
                    f"{bad.index[0] + 1} is no finite number, as the column's others "
                    "are; --na-values tells what is a missing value"
                )
        elif column.nunique() > max(MANY_CATEGORIES, len(column) / 2):
            raise ValueError(
                f"column {name!r} has {column.nunique()} different texts in "
                f"{len(column)} rows: these are no categories; leave it out by --drop "
                f"{shlex.quote(name)}"
            )


def constant_columns(X: pd.DataFrame) -> list[str]:
    """Return the columns of one value, which no tree can use, or raise if there is no other."""
    constant = [name for name in X.columns if X[name].nunique(dropna=False) <= 1]
    if len(constant) == X.shape[1]:
        raise ValueError("every column but the target has the same value in all rows")
    return constant


def hold_out(
    X: pd.DataFrame,
    y: np.ndarray,
    share: float,
    seed: int,
    is_classes: bool = True,
    beside: pd.DataFrame | None = None,
) -> tuple[pd.DataFrame, np.ndarray, tuple[pd.DataFrame, np.ndarray]]:
    """Draw test rows, each class in its share where every class has rows for both parts.

    Where rows have groups, a share of these is drawn, where they have times, the last rows are
    taken, and all of one time together.
    """
    n_rows = len(y)
    n_test = math.ceil(share * n_rows)
    counts = np.unique(y, return_counts=True)[1]
    is_enough = counts.min() >= 2 and min(n_test, n_rows - n_test) >= counts.size
    seed %= 2**32
    if beside is not None and "time" in beside:
        times = beside["time"].to_numpy()
        is_test = times >= np.sort(times)[n_rows - n_test]
        train, test = np.flatnonzero(~is_test), np.flatnonzero(is_test)
    elif beside is not None and "group" in beside:
        draw = GroupShuffleSplit(1, test_size=share, random_state=seed)
        train, test = next(draw.split(X, y, beside["group"].astype(str)))
    else:
        train, test = train_test_split(
            np.arange(n_rows),
            test_size=share,
            random_state=seed,
            stratify=y if is_classes and is_enough else None,
        )
    if pd.unique(y[train]).size < 2:
        raise ValueError(
            f"a test share of {share:g} leaves {len(train)} rows, with fewer than two "
            f"{'classes' if is_classes else 'numbers'} to train on"
        )
    if not is_classes and len(test) < 2:
        raise ValueError(
            f"a test share of {share:g} leaves one row to test on, of {n_rows}"
        )
    return X.iloc[train], y[train], (X.iloc[test], y[test])
