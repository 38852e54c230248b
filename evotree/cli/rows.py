"""What the command line makes of a table: rows to learn from, and rows to predict.

What is left out of a table and what is taken for missing is told; whether a tree can be learned
from the rest is checked. A DataFrame as read from a file, its rows numbered from 1, gives features
and classes or numbers to predict, or a `ValueError` that names the column and what is wrong with
it.
"""

import argparse
import math
import re
import shlex
from collections import Counter
from collections.abc import Collection, Mapping
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from pandas.api.types import is_float_dtype, is_numeric_dtype
from sklearn.model_selection import (
    GroupShuffleSplit,
    ShuffleSplit,
    StratifiedShuffleSplit,
)

from evotree.cli import say
from evotree.model_file import Model
from evotree.schema import NUMBERS, TRUTH, CategoricalColumn, quoted, text_of
from evotree.tables.columns import (
    MANY_CATEGORIES,
    numbers_of,
    numbers_or_codes,
)
from evotree.tables.frames import are_many_numbers
from evotree.tables.readers import NA_VALUES, read_table
from evotree.words import counted, did_you_mean, listed

# Words that stand for a missing number, however many cells they are in; of other words a column of
# numbers has few.
GAPS = {
    *("", "?", "-", "--", ".", "*", "#", "na", "n/a", "#n/a", "nan", "nil", "none"),
    *("null", "missing", "unknown"),
}
FEW = 0.1  # share of the cells
# Names of columns that say which row it is; "" is that of pandas' own index.
ROW_NAMES = re.compile(
    r"(?i:#?|id|index|row|unnamed: \d+|(row|case|sample|record)[ _.-]?(id|no|nr|number|index)"
    r"|.*[ _.-]id|id[ _.-].*)|.*[a-z]I[dD]"
)
# Options that name a column of what rows have beside features, and what its cells are.
_FOR_ROWS = {
    "sample_weight": "number",
    "exposure": "number",
    "group": "name of a group",
    "time": "number, or date such as 2026-01-31 (of others --read parse_dates= and dayfirst= tell)",
    "event": "0 or 1, false or true",
}
_SHOWN_COLUMNS = 50
_SHOWN_WORDS = 5


class TableRows(NamedTuple):
    """Rows to learn from, or to test on."""

    X: pd.DataFrame
    y: np.ndarray  # classes or numbers; of times a column of events, and one of times
    beside: pd.DataFrame  # arguments of a fit, and the time
    task: Any  # classification, regression or survival

    def take(self, positions: np.ndarray) -> Self:
        """Return some of the rows."""
        parts = (self.X.iloc[positions], self.y[positions], self.beside.iloc[positions])
        return type(self)(*parts, self.task)


def read(
    path: str, args: argparse.Namespace, texts: Collection[str] = ()
) -> pd.DataFrame:
    """Read a table as the options of a command say, some columns as texts."""
    if bad := [one for one in args.read if not isinstance(one, tuple)]:
        raise ValueError(f"--read {bad[0]!r}: allowed is NAME=VALUE")
    options: dict[str, Any] = dict(args.read)
    if "na_values" in options:
        more = np.atleast_1d(options["na_values"]).tolist()
        options["na_values"] = [*NA_VALUES, *map(str, more)]
    frame = read_table(path, texts, say, **options)
    # Parts of the table know which of its rows they have.
    return frame.set_axis(pd.RangeIndex(1, len(frame) + 1, name="data row"))


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


def read_training_rows(args: argparse.Namespace) -> TableRows:
    """Read the rows of a table to learn from."""
    if args.group and args.time:
        raise ValueError("--time is not allowed with --group: it holds rows out, too")
    codes = {args.target, *args.categorical, *filter(None, [args.group])}
    return training_rows(read(args.data, args, texts=codes), args)


def training_rows(frame: pd.DataFrame, args: argparse.Namespace) -> TableRows:
    """Return the rows of a table to learn from; what is left out of them is said."""
    for_rows = {name: getattr(args, name) for name in _FOR_ROWS if getattr(args, name)}
    signs = getattr(args, "monotonic_cst", [])
    named = {
        "target": [args.target],
        "drop": args.drop,
        "keep": args.keep,
        "categorical": args.categorical,
        "monotonic-cst": [one[0] for one in signs if isinstance(one, tuple)],
        **{name.replace("_", "-"): [column] for name, column in for_rows.items()},
    }
    check_names(frame, named)
    if args.target in for_rows.values():
        raise ValueError(f"column {args.target!r} is the target: it says nothing else")
    numbering = row_numbers(frame.drop(columns=list(chain(*named.values()))))
    if numbering:
        say(
            f"left out, whole numbers that only tell rows apart: {', '.join(map(repr, numbering))}"
            f"; --keep {shlex.join(numbering)} keeps them"
        )
    known = frame.dropna(subset=[args.target])
    if len(known) < len(frame):
        say(
            f"left out, without {args.target!r}: {len(frame) - len(known)} of {len(frame)} rows"
        )
    X = known.drop(columns=[args.target, *args.drop, *numbering, *for_rows.values()])
    if X.shape[1] == 0:
        raise ValueError(
            f"{args.target!r} is the only column left: there is nothing to predict it from"
        )
    targets = numbers_or_codes(known[args.target])
    task = _task_of(targets, args)
    y = (classes_of if task == "classification" else numbers_to_predict)(targets)
    if pd.unique(y).size < 2:
        held = f"one value only, {y[0]}" if len(y) else "no value"
        raise ValueError(f"column {args.target!r} has {held}: at least two are needed")
    beside = {name: _beside(known[column], name) for name, column in for_rows.items()}
    if args.event:
        y = np.column_stack([beside.pop("event"), y])
    is_named = X.columns.isin(args.categorical)
    X = words_as_gaps(X, dict.fromkeys(X.columns[~is_named], NUMBERS))
    texts = X.loc[:, is_named].map(text_of, na_action="ignore").astype("category")
    beside = pd.DataFrame(beside, known.index).rename(columns={"group": "groups"})
    return TableRows(X.assign(**texts), y, beside, task)


def _beside(cells: pd.Series, name: str) -> pd.Series:
    """Return what rows have beside features and targets, of an option that names a column."""
    read = cells
    if name == "time" and not is_numeric_dtype(cells.dtype):
        # No order of day and month is guessed.
        read = pd.to_datetime(cells, format="ISO8601", errors="coerce")
    elif name != "group":
        read = numbers_of(cells, TRUTH if name == "event" else NUMBERS)
    is_wrong = ~read.isin([0.0, 1.0]) if name == "event" else read.isna()
    if is_wrong.any():
        first = is_wrong.argmax()
        raise ValueError(
            f"--{name.replace('_', '-')}: {is_wrong.sum()} rows have no {_FOR_ROWS[name]}, the "
            f"first is data row {cells.index[first]}, which has {quoted(cells.iloc[first])}"
        )
    return read


def _task_of(targets: pd.Series, args: argparse.Namespace) -> str:
    """Return what is asked for, or what targets look like, which is said."""
    if args.event or args.task != "auto":
        return "survival" if args.event else args.task
    if not are_many_numbers(targets):
        return "classification"
    say(
        f"regression: {targets.name!r} has {targets.nunique()} different numbers; "
        "--task classification takes them for classes"
    )
    return "regression"


def check_names(frame: pd.DataFrame, named: Mapping[str, Collection[str]]) -> None:
    """Raise for an option that names no column; `named` has the names by option."""
    columns = [*map(str, frame.columns)]
    for option, names in named.items():
        if absent := [name for name in names if name not in frame]:
            raise ValueError(
                f"--{option} {absent[0]!r}: there is no such column"
                f"{did_you_mean(absent[0], columns)}; the columns are "
                f"{listed(columns, _SHOWN_COLUMNS)}"
            )


def row_numbers(frame: pd.DataFrame) -> list[str]:
    """Return the columns that only tell rows apart, from which a tree would learn noise.

    They count the rows from 0 or 1, in the order of the file, or have a name of rows, and whole
    numbers that are all different.
    """
    found = []
    for name in frame.select_dtypes("number"):
        numbers = frame[name].to_numpy(dtype=np.float64, na_value=np.nan)
        counts = len(numbers) > 1 and (np.diff(numbers) == 1.0).all()
        is_whole = np.isfinite(numbers) & (numbers == np.trunc(numbers))
        is_named = ROW_NAMES.fullmatch(str(name)) and frame[name].is_unique
        if (counts and numbers[0] in (0.0, 1.0)) or (is_named and is_whole.all()):
            found.append(name)
    return found


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
            counts = Counter(words).most_common()
            shown = listed(
                [f"{quoted(word)} ({n})" for word, n in counts], _SHOWN_WORDS
            )
            say(f"missing in the numbers of {name!r}: {shown}")
    return frame.assign(**numbers)


def numbers_to_predict(targets: pd.Series) -> np.ndarray:
    """Return targets as finite numbers."""
    numbers = numbers_of(targets).to_numpy()
    bad = targets[~np.isfinite(numbers)]
    if len(bad):
        raise ValueError(
            f"column {targets.name!r} has {quoted(bad.iloc[0])}, which is not a finite "
            "number: regression predicts numbers; --read na_values=WORD tells what is missing"
        )
    return numbers


def classes_of(targets: pd.Series) -> np.ndarray:
    """Return targets as classes: texts, or whole numbers."""
    y = targets.to_numpy()
    if is_float_dtype(y):
        # Of larger floats none is known to be the number that the file has.
        broken = y[(y != np.trunc(y)) | ~(np.abs(y) <= 2.0**53)]
        if broken.size:
            raise ValueError(
                f"column {targets.name!r} has numbers such as {broken[0]}: classes are "
                "words or whole numbers; --task regression predicts numbers"
            )
        # Missing values had made floats of whole numbers.
        y = y.astype(np.int64)
    if (n_classes := pd.unique(y).size) > max(MANY_CATEGORIES, len(y) / 2):
        raise ValueError(
            f"column {targets.name!r} has {n_classes} different values in {len(y)} rows: "
            "these are no classes"
        )
    return y


def hold_out(
    rows: TableRows, share: float, random_state: int
) -> tuple[TableRows, TableRows]:
    """Draw test rows, each class in its share where every class has rows for both parts.

    Where rows have groups, a share of these is drawn, where they have times, the last rows are
    taken, and all of one time together.
    """
    is_classes = rows.task == "classification"
    targets = rows.y.reshape(len(rows.y), -1)[:, -1]
    n_test = math.ceil(share * len(targets))
    if "time" in rows.beside:
        times = rows.beside["time"].to_numpy()
        is_test = times >= np.sort(times)[-n_test]
        train, test = np.flatnonzero(~is_test), np.flatnonzero(is_test)
    else:
        counts = np.unique(targets, return_counts=True)[1]
        least = min(n_test, len(targets) - n_test)
        kind = ShuffleSplit
        if "groups" in rows.beside:
            kind = GroupShuffleSplit
        elif is_classes and counts.min() >= 2 and least >= counts.size:
            kind = StratifiedShuffleSplit
        draw = kind(1, test_size=share, random_state=random_state)
        train, test = next(draw.split(targets, targets, rows.beside.get("groups")))
    n_known = pd.unique(targets[train]).size
    if n_known < 2 or (not is_classes and len(test) < 2):
        raise ValueError(
            f"a test share of {share:g} leaves {len(train)} rows to train on, which have "
            f"{counted(n_known, 'different target')}, and {len(test)} to test on: needed are two "
            "different targets to train on and, of numbers, two rows to test on"
        )
    return rows.take(train), rows.take(test)
