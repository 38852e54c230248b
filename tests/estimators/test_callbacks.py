"""Callbacks of the evolved estimators: what they see, how they stop a run."""

from itertools import pairwise

from sklearn.base import clone

from evotree import keep_best_trees
from tests.quick_models import assert_same, every_evolved, rows_for


@every_evolved
def test_callbacks_see_the_logbook_and_stop_the_run(model):
    X, y = rows_for(model)
    seen = []

    def watch(run):
        assert (
            len(run.logbook) == run.generation + 1
            and run.logbook[-1]["gen"] == run.generation
        )
        assert run.best.fitness.values == run.population[0].fitness.values
        best = run.logbook.chapters["quality"].select("best")
        assert best[-1] == run.best.quality
        seen.append(best[-1])
        return len(seen) > 2

    last = []
    stopped = clone(model).set_params(callbacks=[watch, lambda run: last.append(run)])
    stopped.fit(X, y)
    assert stopped.n_generations_ == 2 and stopped.stop_reason_ == "callback"
    assert stopped.history_.chapters["quality"].select("best") == seen
    assert len(last) == 3  # those behind the one that stops are called too
    assert len(stopped.hall_of_fame_) == len(last[-1].hall_of_fame)
    assert_same(stopped, clone(model).set_params(max_generations=2).fit(X, y), X)
    whole = clone(model).set_params(callbacks=[lambda run: "stop?"]).fit(X, y)
    assert whole.stop_reason_ == "max_generations" and whole.n_generations_ == 4


@every_evolved
def test_best_trees_are_kept_where_they_change(model):
    X, y = rows_for(model)
    bare = clone(model).fit(X, y)
    assert bare.best_trees_ == {}
    runs = []
    kept = clone(model).set_params(callbacks=[keep_best_trees, runs.append]).fit(X, y)
    assert_same(bare, kept, X)
    history, trees = kept.history_, runs[-1].best_trees
    best = dict(
        zip(
            history.select("gen"),
            history.chapters["fitness"].select("best"),
            strict=True,
        )
    )
    assert min(trees) == 0 and [*kept.best_trees_] == [*trees] == sorted(trees)
    assert all(a != b for a, b in pairwise(trees.values()))
    for gen, value in best.items():
        assert (
            trees[max(one for one in trees if one <= gen)].fitness.wvalues[0] == value
        )
    assert [*trees.values()][-1] == runs[-1].best
