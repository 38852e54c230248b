"""Readers of tables: CSV, Parquet, NumPy's arrays, ARFF and the format of LIBSVM.

In: a file, whose name says what it holds:

- ``.csv``, ``.csv.gz``: a header row, then rows of as many cells (`TextFormat`);
- ``.parquet``: columns of any type, read by pandas, which needs pyarrow;
- ``.npz``: arrays ``data`` of shape (n_rows, n_features) and ``target`` of shape (n_rows,);
- ``.arff``, ``.arff.gz``: numeric and nominal attributes in dense rows, in UTF-8;
- ``.libsvm``, ``.svm``, ``.txt``, also with ``.gz`` or ``.bz2`` behind: the format of LIBSVM.

Out: a DataFrame of numeric columns and object columns of strings, missing values being NaN. Where a
file has no names, the columns are x1, x2, ... and ``target``. What cannot be read raises
`ValueError`, naming the file and the reason. Files are data: no object in them is loaded.
"""

import bz2
import csv
import gzip
import os
import re
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import accumulate, islice, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from sklearn.datasets import load_svmlight_file

# SciPy's reader knows no letters but those of ASCII; liac-arff, by which scikit-learn reads
# OpenML's files, has no public name there.
from sklearn.externals import _arff

TARGET = "target"  # the column of classes in files that do not name their columns
_LIBSVM = tuple(map("".join, product((".libsvm", ".svm", ".txt"), ("", ".gz", ".bz2"))))
ENDINGS = (".csv.gz", ".csv", ".parquet", ".npz", ".arff", ".arff.gz", *_LIBSVM)
"""Endings of the files that are read."""
# A line of a sparse file may name any feature; more of them would not fit into any memory.
_MAX_FEATURES = 1_000_000
# What is compressed may be many times as large; tables that are more are made to fill the memory.
_MAX_RATIO = 100
_ALWAYS_READ_BYTES = 2**27
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
    b"PK\x03\x04": "it is a workbook of Excel, or another archive: save the table as CSV",
    b"\xd0\xcf\x11\xe0": "it is a workbook of Excel (.xls): save the table as CSV",
    b"\x1f\x8b": "it is compressed by gzip: its name must end with .gz",
    b"PAR1": "it is Parquet: its name must end with .parquet",
}


@dataclass(frozen=True)
class TextFormat:
    """How a text is written, CSV or, of its encoding, ARFF, in the words of pandas' ``read_csv``.

    Where it is None, the separator is guessed from the first lines, the decimal sign from the cells
    of a file that commas do not separate, and the encoding is UTF-8. A guess is told to `say`.
    Columns that are named by `texts` are not taken for numbers: codes such as 01 stay so.
    """

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    na_values: Sequence[str] = NA_VALUES
    texts: Collection[str] = ()
    say: Callable[[str], None] = lambda _: None


def read_table(
    path: str | os.PathLike[str], form: TextFormat = TextFormat()
) -> pd.DataFrame:
    """Read a table from a file, in the way of the ending of its name."""
    path = Path(path)
    readers: dict[tuple[str, ...], Callable[[Path, TextFormat], pd.DataFrame]] = {
        (".npz",): _read_npz,
        (".parquet",): _read_parquet,
        (".arff", ".arff.gz"): _read_arff,
        _LIBSVM: _read_libsvm,
        ("",): _read_csv,
    }
    read = next(readers[ends] for ends in readers if path.name.endswith(ends))
    with reading(path):
        _check_inflated(path)
        try:
            frame = read(path, form)
        except UnicodeError as error:
            # Windows' programs write so in Western Europe.
            name = form.encoding or "UTF-8; --encoding cp1252 may read it"
            raise ValueError(f"it is not written in {name}: {error}") from error
        if frame.empty:
            raise ValueError("it has no data rows")
    return frame


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn whatever a reader raises into an error that names the file."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    if not path.is_file():
        raise ValueError(f"{path} is not a file")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", pd.errors.ParserWarning)
            yield
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        reason = (
            reason
            if len(reason) <= _SHOWN_ERROR_CHARACTERS
            else f"{reason[:_SHOWN_ERROR_CHARACTERS]}..."
        )
        raise ValueError(f"{path} cannot be read: {reason}") from error


def _check_inflated(path: Path) -> None:
    """Raise for a compressed file that would be far larger than it is."""
    if path.suffix == ".npz":
        with zipfile.ZipFile(path) as packed:
            _check_size(path, sum(member.file_size for member in packed.infolist()))
    elif path.suffix in (".gz", ".bz2"):
        with (gzip if path.suffix == ".gz" else bz2).open(path) as file:
            blocks: Iterator[bytes] = iter(partial(file.read, 2**20), b"")
            for inflated in accumulate(map(len, blocks)):
                _check_size(path, inflated)


def _check_size(path: Path, inflated: int) -> None:
    """Raise for a compressed file that holds far more bytes than it has."""
    most = max(_ALWAYS_READ_BYTES, _MAX_RATIO * path.stat().st_size)
    if inflated > most:
        raise ValueError(
            f"it is compressed and holds more than {most} bytes, and more than {_MAX_RATIO} times "
            "its size: unpack it first"
        )


def _opened(path: Path, *how: Any, **options: Any) -> Any:
    """Open a file that may be compressed by gzip."""
    return (gzip.open if path.suffix == ".gz" else open)(path, *how, **options)


def _encoding(path: Path, given: str | None) -> str:
    """Return the encoding of a text, where that of UTF-8 skips a mark at the beginning."""
    with _opened(path, "rb") as file:
        begin = file.read(4)
    if reason := _OTHER_FORMS.get(begin) or _OTHER_FORMS.get(begin[:2]):
        raise ValueError(reason)
    if given is not None and given.lower() not in ("utf-8", "utf8"):
        return given
    # Of the two bytes of a letter of ASCII one is zero.
    if begin[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in begin:
        raise ValueError(
            "it looks like UTF-16: save it as UTF-8, or read it with --encoding utf-16"
        )
    return "utf-8-sig"


def _read_csv(path: Path, form: TextFormat) -> pd.DataFrame:
    encoding = _encoding(path, form.encoding)
    with _opened(path, "rt", encoding=encoding, newline="") as file:
        lines = list(islice(filter(str.strip, file), _GUESSED_FROM_LINES))
    # Excel's own way to say what separates cells.
    said = re.fullmatch(r"sep=(.)\s*", lines[0]) if lines else None
    lines = lines[1 if said else 0 :]
    sep = form.sep or (said[1] if said else _separator(lines))
    names = next(csv.reader(lines, delimiter=sep), [])
    if not names:
        raise ValueError("it is empty; a header row and data rows are needed")
    if repeated := [repr(name) for name, n in Counter(names).items() if n > 1]:
        raise ValueError(
            f"column names must be distinct; repeated: {', '.join(sorted(repeated)[:10])}"
        )

    # Types are inferred from whole columns; the first column is never taken for row names.
    parse = partial(
        pd.read_csv,
        path,
        sep=sep,
        names=names,
        header=0,
        skiprows=1 if said else 0,
        encoding=encoding,
        index_col=False,
        keep_default_na=False,
        na_values=list(form.na_values),
        low_memory=False,
        **EXACT_NUMBERS,
    )
    try:
        decimal = form.decimal or (
            "." if sep == "," else _decimal(parse(nrows=1000, dtype=str))
        )
        if form.sep is None and sep != ",":
            form.say(
                f"{path}: read as separated by {_SEPARATORS.get(sep, sep)}; see --sep"
            )
        if form.decimal is None and decimal != ".":
            form.say(f"{path}: read with decimal commas; see --decimal")
        frame = parse(decimal=decimal)
        # Texts are as they are written, also those for truth values and numbers among words.
        texts = [n for n in names if n in form.texts or not _is_number(frame[n])]
        if texts:
            frame[texts] = parse(usecols=texts, dtype=str).astype(object)
        if decimal == ",":  # in numbers among text, as in the columns of numbers
            frame[texts] = (
                frame[texts]
                .apply(_without_points)
                .replace(_COMMA, r"\1.\2", regex=True)
            )
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        raise ValueError(
            f"not every row has the {len(names)} columns of the header: {error}"
        ) from error
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
    n_commas, n_points = (
        cells.str.fullmatch(number).sum()
        for number in (f"{_COMMA}|(?=.*,){_POINTS}", _COMMA.replace(",", "[.]"))
    )
    return "," if n_commas > n_points else "."


def _without_points(column: pd.Series) -> pd.Series:
    """Return a column of text without points that part thousands, where no other points are."""
    cells = column.dropna().astype(str)
    pointed = cells[cells.str.contains(".", regex=False)]
    if pointed.empty or not pointed.str.fullmatch(_POINTS).all():
        return column
    return column.where(
        ~column.index.isin(pointed.index), pointed.str.replace(".", "", regex=False)
    )


def _read_parquet(path: Path, _: TextFormat) -> pd.DataFrame:
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError as error:
        raise ValueError(
            "Parquet needs pyarrow: install it, or save the table as CSV"
        ) from error
    size = parquet.read_metadata(path)
    _check_size(path, 8 * size.num_rows * size.num_columns)
    frame = pd.read_parquet(path, engine="pyarrow").reset_index(drop=True)
    return frame.set_axis(frame.columns.map(str), axis=1).apply(plain_column)


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


def _read_npz(path: Path, _: TextFormat) -> pd.DataFrame:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        data, target = arrays["data"], arrays[TARGET]
    if data.ndim != 2 or target.shape != data.shape[:1]:
        raise ValueError(
            f"'data' must have shape (n_rows, n_features) and '{TARGET}' (n_rows,), but the shapes "
            f"are {data.shape} and {target.shape}"
        )
    if data.dtype.kind not in "biuf" or target.dtype.kind not in "biufU":
        raise ValueError(
            f"'data' must hold numbers and '{TARGET}' numbers or text, but the types are "
            f"{data.dtype} and {target.dtype}"
        )
    return _numbered(
        data, target.astype(object) if target.dtype.kind == "U" else target
    )


def _read_arff(path: Path, form: TextFormat) -> pd.DataFrame:
    with _opened(path, "rt", encoding=_encoding(path, form.encoding)) as file:
        read = _ARFFDecoder().decode(_dense(file))
    names, kinds = zip(*read["attributes"], strict=True)
    if "STRING" in kinds:
        raise ValueError(
            f"attribute {names[kinds.index('STRING')]!r} is neither numeric nor nominal"
        )
    frame = pd.DataFrame(read["data"], columns=names, dtype=object)
    numeric = [name for name, kind in zip(names, kinds, strict=True) if kind == "REAL"]
    return frame.astype(dict.fromkeys(numeric, np.float64)).apply(plain_column)


class _ARFFDecoder(_arff.ArffDecoder):
    """Reads numbers of all kinds as they are written, where whole ones would lose decimals."""

    def _decode_attribute(self, s: str) -> tuple[str, Any]:
        name, kind = super()._decode_attribute(s)
        name = re.sub(r"\\(.)", r"\1", name)
        return name, "REAL" if kind in ("INTEGER", "NUMERIC") else kind


def _dense(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of an ARFF file, and refuse sparse rows."""
    for line in lines:
        if line.lstrip().startswith("{"):
            raise ValueError(
                "its rows are sparse ({INDEX VALUE, ...}): save them as dense ones, by Weka's "
                "filter SparseToNonSparse"
            )
        yield line


def _read_libsvm(path: Path, _: TextFormat) -> pd.DataFrame:
    data, target = load_svmlight_file(str(path))
    if data.shape[1] > _MAX_FEATURES:
        raise ValueError(
            f"it has {data.shape[1]} features; at most {_MAX_FEATURES} are read"
        )
    return _numbered(data.toarray(), target)


def _numbered(data: np.ndarray, target: np.ndarray) -> pd.DataFrame:
    """Return features and target without names as columns x1, x2, ... and ``target``."""
    frame = pd.DataFrame(data, columns=[f"x{m + 1}" for m in range(data.shape[1])])
    frame[TARGET] = target
    return frame
