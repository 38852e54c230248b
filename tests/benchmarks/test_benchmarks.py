"""The benchmarks run, their tables are whole, and a fit keeps its bound of memory."""

import sys

import numpy as np
import pytest

from benchmarks import default_fit, gate, loop, memory, scale
from benchmarks.__main__ import main


def check(table, n_rows):
    """Check that a table has its rows, the same columns in each, and no figure of 0 or less."""
    assert len(table.rows) == n_rows
    for row in table.rows:
        assert list(row) == list(table.rows[0])
        numbers = [value for value in row.values() if isinstance(value, float)]
        assert all(np.isfinite(numbers))
        assert min(numbers) > 0.0
    lines = table.to_markdown().splitlines()
    assert lines[0].startswith(f"## {table.name}")
    bars = {line.count("|") for line in lines if line.startswith("|")}
    assert bars == {len(table.rows[0]) + 1}


@pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere the peak is that of the process"
)
@pytest.mark.slow
@pytest.mark.parametrize(
    "size",
    [
        memory.Size(200_000, 8, population_size=8),
        memory.Size(200_000, 8, population_size=48, n_threads=2),
        memory.Size(500, 1_000, n_classes=2, seconds=20),
        memory.Size(500, 20_000, n_classes=2, seconds=20),
        memory.Size(500, 20_000, n_classes=0, seconds=20),
        memory.Size(50_000, 4, n_classes=1, seconds=20),
        memory.Size(3_000, 20, n_classes=300, seconds=20),
    ],
)
def test_a_fit_keeps_its_bound_of_memory(size):
    """What a fit takes is below the bound that the page of speed states, and not by far.

    What a fit with a limit of seconds takes depends on how far the machine gets in them.
    """
    figures = memory.in_new_process(size)
    most = memory.bound(size, int(figures["front"]), int(figures["nodes"]))
    assert (0.0 if size.seconds else 0.2 * most) < figures["megabytes"] < most


@pytest.mark.slow
def test_command_line_writes_the_tables(tmp_path):
    """``--out`` makes the folder and the file; ``--only`` chooses."""
    out = tmp_path / "results" / "speed.md"
    tables = main(["--only", "start", "loop", "--quick", "--out", str(out)])
    assert [table.name for table in tables] == ["start", "loop"]
    check(tables[0], 3)
    text = out.read_text(encoding="utf-8")
    assert text.startswith("# Speed")
    assert all(table.to_markdown() in text for table in tables)


@pytest.mark.parametrize(
    ("run", "n_rows"),
    [
        (loop.run, 1),
        pytest.param(default_fit.run, 1, marks=pytest.mark.slow),
        pytest.param(scale.run, 2, marks=pytest.mark.slow),
    ],
)
def test_quick_runs_have_their_rows(run, n_rows):
    check(run(quick=True), n_rows)


def test_the_gate_counts_pairs_until_a_ratio_passes():
    """A ratio that was chance is measured again; one that stays fails."""
    slow_once = iter([2.0, *2 * [2.0], *6 * [1.0]])
    sides = {"base": lambda: 1.0, "now": lambda: next(slow_once)}
    row = gate.compare("loop", sides, 2)
    assert row["pairs"] == 6 and row["ratio"] == 1.0
    row = gate.compare("loop", {"base": lambda: 1.0, "now": lambda: 2.0}, 2)
    assert row["pairs"] == 2 * gate.TRIES and row["ratio"] == 2.0
    row = gate.compare("loop", {"base": lambda: 2.0, "now": lambda: 1.0}, 2)
    assert row["pairs"] == 2 and row["ratio"] == 0.5


def test_the_gate_is_skipped_where_there_is_nothing_to_compare(capsys, monkeypatch):
    monkeypatch.setattr(gate, "run", None)
    assert gate.main(["--base", "no-such-commit"]) == 0
    assert "skipped" in capsys.readouterr().out


@pytest.mark.slow
def test_the_gate_measures_both_trees(monkeypatch):
    """The package beside itself: every measure has its pairs."""
    monkeypatch.setattr(gate, "TRIES", 1)
    table = gate.run(gate.ROOT, {"loop": 2, gate.FIRST: 1})
    check(table, 2)
    assert [row["pairs"] for row in table.rows] == [2, 1]
