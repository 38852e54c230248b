"""Exported trees run: what each language says of rows, in as few processes as can be.

A language takes cases, trees of one kind and rows, and returns for each what it predicts, and its
probabilities where it has some.
"""

import ctypes
import math
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pytest

from evotree.export import export_c, export_python, export_sql, to_onnx

GCC = shutil.which("gcc")
FLAGS = [
    "-std=c99",
    "-pedantic",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-overlength-strings",
    "-O1",
]


class Answer(NamedTuple):
    """What a language says of rows: classes by position or numbers, and any probabilities."""

    predicted: Any
    probabilities: Any = None


def python(case):
    """Run functions in Python; those of one tree need no builtins, but for exponentials."""
    models = case.trees[0].models
    # A vote is taken by ``max``.
    is_vote = len(case.trees) > 1 or (models and (case.classes or models.is_log))
    is_vote = is_vote or case.columns
    predict = python_function(case.estimator, {} if is_vote else None)
    predicted, shares = [predict(row) for row in case.rows.tolist()], None
    if case.has_probabilities:
        chances = python_function(case.estimator, {}, probability=True)
        shares = [chances(row) for row in case.rows.tolist()]
    return Answer(by_position(case, predicted), shares)


def python_function(tree, space=None, **options):
    """Return the exported function ``predict``; in an empty space it has those builtins alone."""
    few = {"len": len, "ValueError": ValueError}
    space = {"__builtins__": few} if space is None else space
    exec(export_python(tree, **options), space)
    return space["predict"]


def by_position(case, predicted):
    """Return predicted labels as their positions; numbers as they are."""
    return (
        predicted
        if case.classes is None
        else [case.classes.index(label) for label in predicted]
    )


def sql(case):
    """Run an expression in SQLite, which reads a table of the rows."""
    names = [column.name for column in case.estimator.columns_]
    answers = query(case.estimator, case.rows, names)
    predicted = [row[0] if len(row) == 1 else list(row) for row in answers]
    shares = None
    if case.has_probabilities and case.sides is None:
        shares = query(case.estimator, case.rows, names, probability=True)
    return Answer(by_position(case, predicted), shares)


def exponential(number):
    """Return an exponential as databases do, infinity where it overflows."""
    return math.exp(number) if number < 709.0 else math.inf


def query(tree, rows, names, **options):
    """Return what the expression of a tree says of the rows of a table, by SQLite."""
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    with closing(sqlite3.connect(":memory:")) as base:
        # Which not every SQLite has.
        base.create_function("LN", 1, math.log)
        base.create_function("EXP", 1, exponential)
        base.execute(
            f"CREATE TABLE data ({', '.join(f'{name} REAL' for name in quoted)})"
        )
        marks = ", ".join("?" * len(names))
        base.executemany(f"INSERT INTO data VALUES ({marks})", rows.tolist())
        expression = export_sql(tree, "data", **options)
        return base.execute(f"SELECT {expression} FROM data ORDER BY rowid").fetchall()


def c(cases):
    """Run functions in C, all of one library; every warning of its compiler is an error."""
    if GCC is None:
        pytest.skip("there is no gcc")
    sources, found = [], []
    for at, case in enumerate(cases):
        sources.append(export_c(case.estimator, f"f{at}"))
        if case.has_probabilities:
            sources.append(export_c(case.estimator, f"p{at}", probability=True))
    library = compiled(sources)
    for at, case in enumerate(cases):
        n_outputs, shares = case.trees[0].values.shape[1], None
        if case.classes is None and n_outputs > 1:
            predicted = written(library[f"f{at}"], case.rows, n_outputs)
        else:
            predicted = returned(library[f"f{at}"], case.rows, case.classes is not None)
        if case.has_probabilities:
            shares = written(library[f"p{at}"], case.rows, n_outputs)
        found.append(Answer(predicted, shares))
    return found


def compiled(sources):
    """Compile programs, each a file of its own, into one library."""
    with TemporaryDirectory() as folder:
        names = [f"tree{at}.c" for at in range(len(sources))]
        for name, source in zip(names, sources, strict=True):
            Path(folder, name).write_text(source, "utf-8")
        command = [
            str(GCC),
            *FLAGS,
            "-ffp-contract=off",
            "-shared",
            "-fPIC",
            "-o",
            "trees.so",
        ]
        done = subprocess.run(
            [*command, *names, "-lm"], cwd=folder, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return ctypes.CDLL(str(Path(folder, "trees.so")))


POINTER = ctypes.POINTER(ctypes.c_double)


def returned(function, rows, is_class):
    """Return what a function in C returns for rows."""
    function.restype = ctypes.c_int if is_class else ctypes.c_double
    rows = np.ascontiguousarray(rows, dtype=np.float64)
    return [function(row.ctypes.data_as(POINTER)) for row in rows]


def written(function, rows, n):
    """Return what a function in C writes for rows, so many numbers for each."""
    function.restype = None
    rows, found = np.ascontiguousarray(rows, dtype=np.float64), np.empty((len(rows), n))
    for row, out in zip(rows, found, strict=True):
        function(row.ctypes.data_as(POINTER), out.ctypes.data_as(POINTER))
    return found


def onnx(case):
    """Run an ONNX model."""
    pytest.importorskip("onnx")
    predicted, *shares = run_onnx(to_onnx(case.estimator), case.rows)
    return Answer(by_position(case, predicted.tolist()), *shares)


def run_onnx(model, rows):
    """Return the outputs of an ONNX model for rows."""
    runtime = pytest.importorskip("onnxruntime")
    providers = ["CPUExecutionProvider"]
    session = runtime.InferenceSession(model.SerializeToString(), providers=providers)
    return session.run(None, {session.get_inputs()[0].name: rows})


def each(language):
    """Let a language that answers one case answer several."""
    return lambda cases: [language(case) for case in cases]


LANGUAGES = {
    "python": each(python),
    "sql": each(sql),
    "c": c,
    "onnx": each(onnx),
}
