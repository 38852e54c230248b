"""Databases read the columns of a model as it does."""

import sqlite3
from contextlib import closing

import duckdb
import pyarrow as pa
from hypothesis import given, settings

from evotree.export import export_sql
from tests.test_doors import tables, tree_of


@settings(max_examples=25, deadline=None)
@given(tables())
def test_databases_read_tables_as_the_model_does(drawn):
    frame, y, named = drawn
    model = tree_of(named).fit(frame, y)
    expected = model.predict(frame).tolist()
    expression = export_sql(model)
    question = f"SELECT {expression} FROM t"
    # PostgreSQL makes whole numbers alone of truth values.
    assert expression.count('"flag"') == expression.count('CAST("flag" AS INTEGER)')
    with closing(sqlite3.connect(":memory:")) as base:
        frame.to_sql("t", base, index=False)
        assert [row[0] for row in base.execute(question)] == expected
        # An expression has no type, by which SQLite makes numbers of texts.
        cast = ", ".join(
            f'"{name}" || \'\' AS "{name}"' if name == "grade" else f'"{name}"'
            for name in frame
        )
        untyped = question.replace("FROM t", f"FROM (SELECT {cast} FROM t)")
        assert [row[0] for row in base.execute(untyped)] == expected
    arrow = pa.table(  # whose missing numbers are NaN, not null
        {
            name: pa.array(cells.to_numpy(), from_pandas=cells.dtype.kind != "f")
            for name, cells in frame.items()
        }
    )
    with duckdb.connect() as base:
        for table in (frame, arrow):
            base.register("t", table)
            assert [row[0] for row in base.sql(question).fetchall()] == expected
        base.execute("CREATE SCHEMA s; CREATE TABLE s.u AS SELECT * FROM t")
        question = f"SELECT {export_sql(model, ('s', 'u'))} FROM s.u"
        assert [row[0] for row in base.sql(question).fetchall()] == expected
