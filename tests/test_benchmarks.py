"""The benchmarks run, their tables are whole, and the plain twin of the loop is a fair one."""

import sys

import numpy as np
import pytest

from benchmarks import (
    criteria,
    default_fit,
    explain,
    gate,
    greedy,
    growth,
    islands,
    linear_fit,
    loop,
    memory,
    million,
    sparse,
    threads,
    workers,
)
from benchmarks.__main__ import main
from benchmarks.inputs import make_rows
from benchmarks.plain import make_plain_toolbox, plain_copies
from evotree import Dataset, ObliqueTree, evolve, make_toolbox
from evotree.operators.structure.splice import make_individual

SIZE_PENALTY = 0.003


@pytest.fixture(scope="module")
def dataset():
    """Make rows that need some tests, with weights that differ."""
    X, y = make_rows(300, 4, 3)
    return Dataset.from_arrays(X, y, np.random.default_rng(1).integers(1, 4, size=300))


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
    tables = main(["--only", "change", "predict", "--quick", "--out", str(out)])
    assert [table.name for table in tables] == ["change", "predict"]
    check(tables[0], 3 + 4)
    text = out.read_text(encoding="utf-8")
    assert text.startswith("# Speed")
    assert all(table.to_markdown() in text for table in tables)


def test_plain_evolution_is_a_fair_twin(dataset):
    """The same trees have the same fitness; after some generations they are better, and valid."""
    toolbox = make_toolbox(dataset, size_penalty=SIZE_PENALTY, random_state=0)
    plain = make_plain_toolbox(dataset, SIZE_PENALTY)
    population = evolve(
        toolbox.population(n=32), toolbox, max_generations=20
    ).population
    copies = plain_copies(population, plain)
    assert len({len(individual) for individual in population}) > 1
    for individual, copy in zip(population, copies, strict=True):
        assert copy.quality == pytest.approx(individual.quality, abs=1e-12)
        assert copy.fitness.values == pytest.approx(
            individual.fitness.values, abs=1e-12
        )
        assert np.array_equal(copy.subtree_size, individual.subtree_size)
        assert np.array_equal(copy.leaves, individual.apply(dataset.X))
    first = plain_copies(toolbox.population(n=32), plain)
    run = evolve(first, plain, max_generations=40)
    assert run.best.fitness.values > max(copy.fitness.values for copy in first)
    for copy in run.population:
        values = np.zeros((len(copy), 1))
        tree = ObliqueTree(
            copy.weights, copy.thresholds, copy.subtree_size, values
        ).validate()
        arrays = tree.weights, tree.thresholds, tree.subtree_size.astype(np.int32)
        again = make_individual(dataset, *arrays)
        assert copy.quality == pytest.approx(again.quality, abs=1e-12)
        assert len(copy) == len(again)


QUICK = {loop.run: 1, sparse.run: 1, explain.run: 5, criteria.run: 10}
QUICK |= {greedy.run_axis: 2, greedy.run_oc1: 1}
SLOW = {
    linear_fit.run: 4,
    workers.run: 1,
    islands.run: 1,
    million.run: 1,
    growth.run: 3,
    threads.run: 2,
    default_fit.run: 1,
}
SLOW = [pytest.param(*item, marks=pytest.mark.slow) for item in SLOW.items()]


@pytest.mark.parametrize(("run", "n_rows"), [*QUICK.items(), *SLOW])
def test_quick_runs_have_their_rows(run, n_rows):
    """Rows are those that are promised, and what has to be equal is."""
    table = run(quick=True)
    check(table, n_rows)
    for row in table.rows:
        assert row.get("equal", "yes") == "yes"
        assert float(row.get("times plain", 2.0)) > 1.0
        assert float(str(row.get("test", 1.0))) > 0.5  # better than chance


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
