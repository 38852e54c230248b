"""The benchmarks run, their tables are whole, and the plain twin of the loop is a fair one."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import (
    change,
    criteria,
    default_fit,
    explain,
    greedy,
    islands,
    linear_fit,
    loop,
    memory,
    million,
    samples,
    sparse,
    start,
    workers,
)
from benchmarks.__main__ import main
from benchmarks.inputs import balanced_tree, make_rows
from benchmarks.measure import Table, by_turns, show, stopwatch
from benchmarks.plain import PlainIndividual, make_plain_toolbox, plain_copies
from evotree import Dataset, ObliqueTree, evolve, make_toolbox
from evotree.operators.splitters.sparse import WIDTHS
from evotree.operators.structure.splice import make_individual

SIZE_PENALTY = 0.003


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    """Make rows that need some tests, with weights that differ."""
    X, y = make_rows(300, 4, 3)
    return Dataset.from_arrays(X, y, np.random.default_rng(1).integers(1, 4, size=300))


def check(table: Table, n_rows: int) -> None:
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


def test_loop_measures_engine_and_plain_twin() -> None:
    """The quick run of the loop gives a row with the rates of both."""
    table = loop.run(quick=True)
    check(table, 1)
    (row,) = table.rows
    assert row["evaluated /s"] <= row["bred /s"]
    assert row["times plain"] > 1.0


def test_change_measures_every_place() -> None:
    """The quick run has a row for each place; deeper places have fewer rows."""
    table = change.run(quick=True)
    check(table, 3 + 4)
    for n_nodes in (7, 31):
        n_rows = [row["rows"] for row in table.rows if row["nodes"] == n_nodes]
        assert n_rows == sorted(n_rows, reverse=True)


def test_a_fit_is_profiled() -> None:
    """The stages of the quick run are within its seconds, and kinds of work within the whole.

    In a process of its own: a profiler changes how the interpreter runs all that is around it.
    """
    code = (
        "import json; from benchmarks import default_fit;"
        "table = default_fit.run(quick=True); print(table.to_markdown(), json.dumps(table.rows))"
    )
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("## fit")
    (row,) = json.loads(done.stdout.splitlines()[-1])
    assert row["settings"] + row["seeds"] + row["evolution"] < row["seconds"]
    shares = [share for kind, share in row.items() if kind.endswith("%")]
    assert len(shares) == len(default_fit.KINDS) and 30.0 < sum(shares) < 100.0


def test_linear_fits_are_measured() -> None:
    """The quick run has a row for each loss and penalty."""
    check(linear_fit.run(quick=True), 4)


def test_splits_on_few_features_are_measured() -> None:
    """The quick run has a row for one node, with all ways to choose the width."""
    table = sparse.run(quick=True)
    check(table, 1)
    assert {f"{widths} / dense" for widths in WIDTHS} <= set(table.rows[0])


def test_explain_measures_explanations_of_all_kinds() -> None:
    """The quick run has a row for paths, two for Shapley values, and one for each norm."""
    check(explain.run(quick=True), 6)


def test_workers_are_measured() -> None:
    """The quick run finds the same rows with one worker and with two."""
    table = workers.run(quick=True)
    check(table, 1)
    assert table.rows[0]["equal"] == "yes" and table.rows[0]["fits"] == 10


def test_islands_are_measured() -> None:
    """The quick run finds the same tree on one thread, on two threads and on two processes."""
    table = islands.run(quick=True)
    check(table, 1)
    assert table.rows[0]["equal"] == "yes"


def test_large_data_are_measured() -> None:
    """The quick runs have their rows, and trees that are better than chance."""
    check(million.run(quick=True), 1)
    table = samples.run(quick=True)
    check(table, 2)
    assert all(float(str(row["test"])) > 0.5 for row in table.rows)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the peak is that of the process")
@pytest.mark.slow
@pytest.mark.parametrize("size", [(200_000, 8, 8, 1), (200_000, 8, 48, 2)])
def test_a_fit_keeps_its_bound_of_memory(size: tuple[int, int, int, int]) -> None:
    """What a fit takes is below the bound that the guide states, and not by far."""
    found = memory.in_new_process(*size)
    most = memory.bound(*size, int(found["front"]))
    assert 0.3 * most < found["megabytes"] < most


def test_splitters_are_measured() -> None:
    """The quick runs have a row for each criterion, and trees of about scikit-learn's size."""
    check(criteria.run(quick=True), 10)
    table = greedy.run_axis(quick=True)
    check(table, 2)
    for row in table.rows:
        ours, theirs = map(int, str(row["leaves"]).split(" / "))
        assert abs(ours - theirs) < 0.05 * theirs
    check(greedy.run_oc1(quick=True), 1)


def test_command_line_writes_the_tables(tmp_path: Path) -> None:
    """``--out`` makes the folder and the file; ``--only`` chooses."""
    out = tmp_path / "results" / "speed.md"
    tables = main(["--only", "change", "predict", "--quick", "--out", str(out)])
    assert [table.name for table in tables] == ["change", "predict"]
    text = out.read_text(encoding="utf-8")
    assert text.startswith("# Speed")
    assert all(table.to_markdown() in text for table in tables)


def test_new_process_runs_code() -> None:
    """Code in a new process reports its seconds."""
    assert start.in_new_process("print(0.25)") == 0.25


def test_plain_evaluation_agrees_with_the_engine(dataset: Dataset) -> None:
    """The same trees have the same quality, fitness, size and leaves."""
    toolbox = make_toolbox(dataset, size_penalty=SIZE_PENALTY, random_state=0)
    population = evolve(toolbox.population(n=32), toolbox, max_generations=20).population
    copies = plain_copies(population, make_plain_toolbox(dataset, SIZE_PENALTY))
    assert len({len(individual) for individual in population}) > 1
    for individual, copy in zip(population, copies, strict=True):
        assert copy.quality == pytest.approx(individual.quality, abs=1e-12)
        assert copy.fitness.values == pytest.approx(individual.fitness.values, abs=1e-12)
        assert np.array_equal(copy.subtree_size, individual.subtree_size)
        assert np.array_equal(copy.leaves, individual.apply(dataset.X))


def test_plain_evaluation_drops_what_no_row_reaches(dataset: Dataset) -> None:
    """Dead parts are dropped as the engine drops them."""
    weights, thresholds, subtree_size = balanced_tree(dataset.X, 4, np.random.default_rng(0))
    thresholds[[1, 9, 20]] = [1e9, -1e9, 1e9]
    expected = make_individual(dataset, weights, thresholds, subtree_size)
    copy = PlainIndividual(weights, thresholds, subtree_size)
    copy.fitness.values = make_plain_toolbox(dataset, SIZE_PENALTY).evaluate(copy)
    assert len(expected) < len(subtree_size)
    assert np.array_equal(copy.weights, expected.weights)
    assert np.array_equal(copy.subtree_size, expected.subtree_size)
    assert copy.quality == pytest.approx(expected.quality, abs=1e-12)
    assert np.array_equal(copy.leaves, expected.apply(dataset.X))


def test_plain_evolution_keeps_trees_valid_and_evaluations_true(dataset: Dataset) -> None:
    """After some generations every tree is one, is better, and a new evaluation agrees."""
    plain = make_plain_toolbox(dataset, SIZE_PENALTY)
    seeds = make_toolbox(dataset, size_penalty=SIZE_PENALTY, random_state=0).population(n=32)
    first = plain_copies(seeds, plain)
    run = evolve(first, plain, max_generations=40)
    assert run.best.fitness.values > max(copy.fitness.values for copy in first)
    for copy in run.population:
        values = np.zeros((len(copy), 1))
        tree = ObliqueTree(copy.weights, copy.thresholds, copy.subtree_size, values).validate()
        again = make_individual(
            dataset, tree.weights, tree.thresholds, tree.subtree_size.astype(np.int32)
        )
        assert copy.quality == pytest.approx(again.quality, abs=1e-12)
        assert len(copy) == len(again)


def test_plain_rates_are_those_of_the_engine(dataset: Dataset) -> None:
    """From one population, both loops change about the same share of the offspring."""
    toolbox = make_toolbox(dataset, size_penalty=SIZE_PENALTY, random_state=0)
    population = evolve(toolbox.population(n=64), toolbox, max_generations=20).population
    plain = make_plain_toolbox(dataset, SIZE_PENALTY)
    runs = [
        evolve(population, toolbox, max_generations=20),
        evolve(plain_copies(population, plain), plain, max_generations=20),
    ]
    engine, twin = (np.mean(run.logbook.select("nevals")[1:]) for run in runs)
    assert twin == pytest.approx(engine, rel=0.15)


def test_turns_are_counted_without_the_first() -> None:
    """Alternatives run by turns, once more than counted; a ratio is taken round by round."""
    calls = []
    seconds = {"a": iter([9.0, 1.0, 2.0, 3.0]), "b": iter([9.0, 2.0, 4.0, 9.0])}

    def alternative(name: str) -> float:
        calls.append(name)
        return next(seconds[name])

    rounds = by_turns({"a": lambda: alternative("a"), "b": lambda: alternative("b")}, 3)
    assert calls == ["a", "b"] * 4
    assert rounds.median("a") == 2.0
    assert rounds.ratio("b", "a") == 2.0
    assert stopwatch(lambda: None, 10)() >= 0.0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (12345.6, "12,300"),
        (999.9, "1,000"),
        (0.98765, "0.988"),
        (12.0, "12.0"),
        (104.4, "104"),
        (7, "7"),
        (60_000, "60,000"),
        ("yes", "yes"),
    ],
)
def test_numbers_are_shown_with_three_digits(value: object, text: str) -> None:
    """A figure has three digits that matter."""
    assert show(value) == text
