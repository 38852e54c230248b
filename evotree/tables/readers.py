"""Readers of tables, by pandas: Parquet, for which it needs pyarrow, and CSV, also gzipped.

In: a file; all whose name does not end with ``.parquet`` are CSV, a header row, then rows of as
many cells. Out: a DataFrame of numeric columns and object columns of strings, missing values being
NaN. What cannot be read raises `ValueError`, naming the file and the reason. Files are data: no
object in them is loaded.
"""

import csv
import gzip
import io
import os
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

ENDINGS = (".csv.gz", ".csv", ".parquet")
"""Endings of the names of tables."""
_SHOWN_ERROR_CHARACTERS = 200
NA_VALUES = ("", "NA", "NaN", "nan")
"""Cells of CSV that are missing values."""
EXACT_NUMBERS: dict[str, Any] = (
    {"float_precision": "round_trip"} if int(pd.__version__.split(".")[0]) < 3 else {}
)
"""Options of ``read_csv`` by which numbers are those of the text to the last bit."""
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_GUESSED_FROM_LINES = 100
_COMMA = r"^(\s*[-+]?\d*),(\d+(?:[eE][-+]?\d+)?\s*)$"  # a number with a decimal comma
# Numbers of decimal commas whose thousands have points.
_POINTS = r"\s*[-+]?[1-9]\d{0,2}(?:\.\d{3})+(?:,\d+)?\s*"
# How files begin that are not text, whatever their names say.
_OTHER_FORMS = {
    b"PK": "it is a workbook of Excel, or another archive: save the table as CSV",
    b"\xd0\xcf": "it is a workbook of Excel (.xls): save the table as CSV",
    b"\x1f\x8b": "it is compressed by gzip: its name must end with .gz",
    b"PAR1": "it is Parquet: its name must end with .parquet",
}


_Say = Callable[[str], object]


def read_table(
    path: str | os.PathLike[str],
    texts: Collection[str] = (),
    say: _Say = lambda _: None,
    **options: Any,
) -> pd.DataFrame:
    """Read a table from a file, in the way of the ending of its name.

    Columns that are named by `texts` are not taken for numbers: codes such as 01 stay so. Other
    options are those of pandas' ``read_csv`` or ``read_parquet``. What is not given is guessed of
    CSV: the separator from the first lines, and where it is not a comma the decimal sign from the
    cells. A guess is told to `say`.
    """
    path = Path(path)
    with reading(path):
        if path.suffix == ".parquet":
            frame = pd.read_parquet(path, **options).reset_index(drop=True)
            frame.columns = frame.columns.map(str)
        else:
            options = {"encoding": "utf-8-sig"} | options
            try:
                frame = _read_csv(path, texts, say, options)
            except UnicodeError as error:
                # Windows' programs write so in Western Europe, or in UTF-16.
                raise ValueError(
                    f"it is not written in {options['encoding']}; --read encoding=cp1252, or "
                    f"utf-16, may read it: {error}"
                ) from error
        if frame.empty:
            raise ValueError("it has no data rows")
        return frame.apply(plain_column)


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn whatever a reader raises into an error that names the file."""
    os.stat(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", pd.errors.ParserWarning)
            yield
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(
            f"{path} cannot be read: {reason[:_SHOWN_ERROR_CHARACTERS]}"
        ) from error


def _read_csv(
    path: Path, texts: Collection[str], say: _Say, given: dict[str, Any]
) -> pd.DataFrame:
    raw = path.read_bytes()
    if path.suffix == ".gz":
        raw = gzip.decompress(raw)
    for sign, reason in _OTHER_FORMS.items():
        if raw.startswith(sign):
            raise ValueError(reason)
    head = io.StringIO(raw[: 2**22].decode(given["encoding"], "replace"))
    lines = list(islice(filter(str.strip, head), _GUESSED_FROM_LINES))
    options: dict[str, Any] = {
        # Types are inferred from whole columns; the first column is never taken for row names.
        **{"low_memory": False, "index_col": False, "keep_default_na": False},
        **{"na_values": list(NA_VALUES), "dtype": dict.fromkeys(texts, str)},
        **EXACT_NUMBERS,
    }
    if "sep" not in given:
        options["sep"] = sep = _separator(lines)
        if sep != ",":
            say(
                f"{path}: read as separated by {_SEPARATORS[sep]}; --read sep=SIGN sets it"
            )
    options |= given

    names = next(csv.reader(lines, delimiter=options["sep"]), [])
    repeated = sorted(repr(name) for name, n in Counter(names).items() if n > 1)
    if repeated and not {"header", "names", "skiprows"} & {*given}:
        raise ValueError(
            f"column names must be distinct; repeated: {', '.join(repeated[:10])}"
        )
    if options["sep"] != "," and "decimal" not in options:
        some = options | {"nrows": 1000, "dtype": str}
        options["decimal"] = _decimal(pd.read_csv(io.BytesIO(raw), **some))
        if options["decimal"] == ",":
            say(f"{path}: read with decimal commas; --read decimal=. leaves them")
    try:
        frame = pd.read_csv(io.BytesIO(raw), **options)
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        raise ValueError(
            f"not every row has the {len(names)} columns of the header: {error}"
        ) from error
    if options.get("decimal") == ",":  # in numbers among text, as in columns of numbers
        words = frame.columns[[not _is_number(frame[name]) for name in frame]]
        frame[words] = frame[words].apply(_with_decimal_points)
    # As parsed, each column is a block of its own, by which whatever follows would be slow.
    return frame.copy()


def _separator(lines: Sequence[str]) -> str:
    """Return what separates the cells of most columns, rows as long as the header preferred."""

    def order(sep: str) -> tuple[bool, int]:
        header, *rows = [len(row) for row in csv.reader(lines, delimiter=sep)]
        # The last row may go on in a further line.
        rows = rows[:-1] if len(lines) == _GUESSED_FROM_LINES else rows
        return header > 1 and set(rows) <= {header}, header

    return max(_SEPARATORS, key=order) if lines else ","


def _decimal(texts: pd.DataFrame) -> str:
    """Return the decimal sign of most cells that have one."""
    cells = texts.stack().astype(str)
    of_commas = f"{_COMMA}|(?=.*,){_POINTS}"
    n_commas = cells.str.fullmatch(of_commas).sum()
    return (
        "," if n_commas > cells.str.fullmatch(_COMMA.replace(",", "[.]")).sum() else "."
    )


def _with_decimal_points(column: pd.Series) -> pd.Series:
    """Return a column of text whose numbers have decimal points, where no others have points."""
    cells = column.astype(object)
    pointed = cells[cells.notna()].astype(str)
    pointed = pointed[pointed.str.contains(".", regex=False)]
    if pointed.str.fullmatch(_POINTS).all():  # which part thousands
        cells[pointed.index] = pointed.str.replace(".", "", regex=False)
    return cells.replace(_COMMA, r"\1.\2", regex=True)


def plain_column(column: pd.Series) -> pd.Series:
    """Return a column of pandas' own types as numbers, or as strings and NaN."""
    if _is_number(column):
        return (
            column if isinstance(column.dtype, np.dtype) else column.astype(np.float64)
        )
    text = column.astype(object).map(str, na_action="ignore").astype(object)
    return text.where(text.notna(), np.nan)


def _is_number(column: pd.Series) -> bool:
    """Return whether cells are numbers, and no truth values."""
    return is_numeric_dtype(column) and not is_bool_dtype(column)
