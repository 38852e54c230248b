"""What evolved estimators choose: from the front, by teachers, by noise, by cross-validation."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from evotree import Dataset, EvoTreeClassifier, EvoTreeRegressor, Refinement, evolve, make_toolbox
from evotree.engine.hyperparameters import SIZE_PENALTIES
from evotree.estimators import EVOLUTION_PRESETS
from evotree.operators.pruning.penalized import prune

FIXED = {"size_penalty": 0.002, "C": 1.0, "penalty": "l2", "noise": 0.1, "teacher": None}


def quick(kind=EvoTreeClassifier, **parameters):
    """Return an estimator that fits in a moment."""
    return kind(**({"max_generations": 40, "random_state": 0} | FIXED | parameters))


@pytest.fixture(scope="module")
def cancer():
    """Rows to fit and rows to hold out."""
    return train_test_split(*load_breast_cancer(return_X_y=True), test_size=0.4, random_state=0)


# ---- the front -----------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["penalized", "nsga2"])
@pytest.mark.parametrize("kind", [EvoTreeClassifier, EvoTreeRegressor])
def test_the_front_rises_strictly(kind, algorithm):
    load = load_wine if kind is EvoTreeClassifier else load_diabetes
    model = quick(kind, algorithm=algorithm).fit(*load(return_X_y=True))
    sizes = [len(member) for member in model.pareto_front_]
    qualities = [member.quality for member in model.pareto_front_]
    assert sizes[0] == 1 and len(sizes) >= 3
    assert (np.diff(sizes) > 0).all() and (np.diff(qualities) > 0.0).all()
    assert all(member.fitness.valid for member in model.pareto_front_)
    if algorithm == "nsga2":
        front = [best.fitness for best in model.pareto_front_]
        assert not any(one.fitness.dominates(best) for one in model.hall_of_fame_ for best in front)
    charged = np.array(qualities) - model.size_penalty_ * np.array(sizes)
    best = model.pareto_front_[int(charged.argmax())]
    if algorithm == "nsga2":
        assert model.tree_.n_nodes <= len(best)
    else:
        assert model.hall_of_fame_[0].fitness.values[0] <= charged.max() + 1e-12


def test_trees_are_selected_by_size(cancer):
    X, _, y, _ = cancer
    model = quick().fit(X, y)
    scores = []
    for leaves in (1, 2, 3, 5):
        assert model.select_tree(f"leaves<={leaves}") is model
        assert model.get_n_leaves() <= leaves
        scores.append(model.score(X, y))
    assert model.select_tree("size<=3").tree_.n_nodes == 3
    assert scores[0] == pytest.approx(max(y.mean(), 1.0 - y.mean()))
    assert scores[1] > 0.9
    assert model.select_tree("size <= 1").predict(X).std() == 0.0


def test_trees_are_selected_by_rows_held_out(cancer):
    X, held_out, y, truth = cancer
    model = quick(size_penalty=0.0).fit(X, y)
    best = model.select_tree("validation", held_out, truth).tree_
    score = model.score(held_out, truth)
    sizes = [len(member) for member in model.pareto_front_]
    for size in sizes:
        assert model.select_tree(f"size<={size}").score(held_out, truth) <= score + 1e-12
    smaller = model.select_tree("1se", held_out, truth).tree_
    assert smaller.n_nodes <= best.n_nodes
    error = np.sqrt(score * (1.0 - score) / len(truth))
    assert model.score(held_out, truth) >= score - error - 1e-12


def test_labels_held_out_are_the_users_and_targets_in_their_units():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = quick().fit(X[::2], names[::2])
    assert model.select_tree("validation", X[1::2], names[1::2]).score(X, names) > 0.9
    with pytest.raises(ValueError, match="y has the label .*'rose'"):
        model.select_tree("validation", X[:3], ["setosa", "rose", "setosa"])
    X, y = load_diabetes(return_X_y=True)
    shifted = 1e4 + 100.0 * y
    model = quick(EvoTreeRegressor).fit(X[::2], shifted[::2])
    scores = {
        rule: model.select_tree(rule, X[1::2], shifted[1::2]).score(X[1::2], shifted[1::2])
        for rule in ("validation", "leaves<=1")
    }
    assert scores["validation"] > 0.2 > scores["leaves<=1"]


def test_the_fitness_selects_what_fit_found(cancer):
    X, _, y, _ = cancer
    model = quick().fit(X, y)
    found = model.tree_
    model.select_tree("size<=1")
    again = model.select_tree("fitness").tree_
    assert again.n_nodes <= found.n_nodes
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("best", "rule='best': allowed are 'validation', '1se', 'fitness'"),
        ("size<=0", "rule='size<=0'"),
        ("size<9", "rule='size<9'"),
        (3, "rule=3"),
        ("validation", "held_out=None: rule='validation' needs"),
        ("1se", "held_out=None: rule='1se' needs"),
    ],
)
def test_rules_that_are_none_are_named(rule, message):
    X, y = load_iris(return_X_y=True)
    model = quick(max_generations=2).fit(X, y)
    before = model.tree_
    with pytest.raises(ValueError, match=message):
        model.select_tree(rule)
    assert model.tree_ is before
    with pytest.raises(ValueError, match="features"):
        model.select_tree("validation", X[:, :2], y)


# ---- the fitness ---------------------------------------------------------------------------------


def by_hand(X, y, task, **parameters):
    """Return the raw tree of a run of the loop on the rows as they are."""
    dataset = Dataset.from_arrays(X, y, scaling=parameters.pop("scaling"), task=task)
    limits = {name: parameters.pop(name) for name in ("max_generations", "patience")}
    n, crossover = parameters.pop("population_size"), parameters.pop("crossover_probability")
    toolbox = make_toolbox(dataset, **parameters)
    run = evolve(toolbox.population(n=n), toolbox, crossover_probability=crossover, **limits)
    best = run.best.clone()
    return dataset.to_raw(prune(best, dataset, 0.0)[0].to_tree())


@pytest.mark.parametrize(
    ("kind", "load"), [(EvoTreeClassifier, load_wine), (EvoTreeRegressor, load_diabetes)]
)
def test_the_preset_is_the_papers_loop_on_the_rows_alone(kind, load):
    X, y = load(return_X_y=True)
    given = {"max_generations": 60, "patience": 30}
    model = kind.from_preset("gea_odt", random_state=5, **given).fit(X, y)
    settings = dict(EVOLUTION_PRESETS["gea_odt"]) | given
    assert settings.pop("refinement") is None and settings.pop("teacher") is None
    assert settings.pop("noise") == 0.0
    del settings["C"], settings["penalty"]  # of the classifiers that refine
    task = "classification" if kind is EvoTreeClassifier else "regression"
    expected = by_hand(X, y, task, random_state=5, **settings)
    assert model.tree_ == expected
    np.testing.assert_array_equal(model.tree_.values, expected.values)
    assert "refinement" not in model.history_.chapters


def test_the_fitness_is_measured_on_more_rows_than_the_leaves():
    X, y = load_wine(return_X_y=True)
    n = len(y)
    n_rows = {
        name: len(quick(max_generations=1, **given).fit(X, y).hall_of_fame_[0].order)
        for name, given in (
            ("plain", {"noise": 0.0}),
            ("blurred", {"noise": 0.3}),
            ("taught", {"teacher": LogisticRegression(max_iter=500), "noise": 0.0}),
        )
    }
    assert n_rows["plain"] == n and n_rows["blurred"] > 2 * n and n_rows["taught"] > 2 * n
    model = quick(noise=0.5).fit(X, y)
    assert model.hall_of_fame_[0].quality < model.score(X, y)
    leaf_sums = model.tree_.values[model.tree_.is_leaf].sum(axis=1)
    np.testing.assert_allclose(leaf_sums, 1.0)
    leaves = model.apply(X)
    for leaf in np.unique(leaves):
        share = np.bincount(y[leaves == leaf], minlength=3) / (leaves == leaf).sum()
        np.testing.assert_allclose(model.tree_.values[leaf], share)


def test_a_price_of_weights_makes_tests_sparse(cancer):
    X, _, y, _ = cancer
    used = [
        (model.tree_.weights[~model.tree_.is_leaf] != 0.0).mean()
        for model in (quick(weight_penalty=p, seeding={"axis": 0.2}).fit(X, y) for p in (0.0, 0.05))
    ]
    assert used[0] > 0.9 and used[1] < 0.5


def test_refinement_is_recorded_and_its_costs_are_the_estimators(cancer):
    X, _, y, _ = cancer
    model = quick(refinement=Refinement("tao", probability=0.2, max_evaluations=15)).fit(X, y)
    assert sum(model.history_.chapters["refinement"].select("tao_tried")) == 15
    plain = quick(refinement=None).fit(X, y)
    assert "refinement" not in plain.history_.chapters
    several = quick(refinement={"tao": 1.0, "centre": 1.0}).fit(X, y)
    fields = several.history_.chapters["refinement"][1]
    assert {"tao_tried", "centre_tried"} <= set(fields)


def test_nsga2_evolves_the_front(cancer):
    X, held_out, y, truth = cancer
    model = quick(algorithm="nsga2").fit(X, y)
    assert model.score(held_out, truth) > 0.9
    assert len(model.hall_of_fame_[0].fitness.values) == 2
    assert model.tree_ == clone(model).fit(X, y).tree_
    costly = quick(algorithm="nsga2", size_penalty=0.3).fit(X, y)
    assert costly.get_n_leaves() <= 2 <= model.get_n_leaves()


# ---- teachers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("teacher", [KNeighborsClassifier(5), LogisticRegression(), "ensemble"])
def test_trees_agree_with_a_teacher(teacher):
    X, y = load_iris(return_X_y=True)
    model = quick(teacher=teacher, max_generations=15).fit(X, y)
    assert model.score(X, y) > 0.93
    if not isinstance(teacher, str):
        assert not hasattr(teacher, "classes_")  # a clone was fitted
    assert model.tree_ == clone(model).fit(X, y).tree_


def test_leaves_predict_by_the_training_rows():
    """A teacher that is always wrong places hyperplanes, but does not say what leaves predict."""

    class Contrary(LogisticRegression):
        def predict(self, X):
            return 1 - super().predict(X)

    X, y = load_breast_cancer(return_X_y=True)
    model = quick(teacher=Contrary(max_iter=500), max_generations=15).fit(X, y)
    assert model.score(X, y) > 0.9
    leaves = model.apply(X)
    for leaf in np.unique(leaves):
        share = (y[leaves == leaf] == 1).mean()
        assert model.tree_.values[leaf] == pytest.approx([1.0 - share, share])


def test_regressors_have_teachers_too():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:120], y[:120]
    model = quick(EvoTreeRegressor, teacher="ensemble", max_generations=8).fit(X, y)
    assert model.score(X, y) > 0.3


@pytest.mark.parametrize("teacher", [None, "ensemble"])
def test_awkward_rows(teacher):
    model = quick(teacher=teacher, max_generations=3, size_penalty="auto")
    assert clone(model).fit([[1.0, 2.0]], [3]).predict([[9.0, 9.0]]) == [3]
    two = clone(model).fit([[0.0], [1.0]], ["a", "b"])
    assert set(two.predict([[0.0], [1.0]])) <= {"a", "b"}
    one_class = clone(model).fit(np.random.default_rng(0).random((12, 2)), ["a"] * 12)
    assert one_class.tree_.n_nodes == 1
    constant = clone(model).fit(np.ones((20, 3)), [0] * 15 + [1] * 5)
    assert constant.tree_.n_nodes == 1


# ---- cross-validation ----------------------------------------------------------------------------


def test_the_charge_follows_the_data():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 4.0, (1500, 2))
    board = np.floor(X).sum(axis=1).astype(int) % 2
    parameters = {"size_penalty": "auto", "noise": 0.0, "max_generations": 30, "seeding": "axis"}
    many = quick(**parameters).fit(X, board)
    assert many.size_penalty_ in SIZE_PENALTIES and many.size_penalty_ < SIZE_PENALTIES[0]
    few = quick(**parameters).fit(X[:300], (X[:300, 0] > 2.0).astype(int))
    assert few.size_penalty_ == SIZE_PENALTIES[0]
    assert quick(size_penalty=0.03, max_generations=1).fit(X, board).size_penalty_ == 0.03


def test_only_the_last_evolution_is_shown(capsys):
    X, y = load_iris(return_X_y=True)
    seen = []
    model = quick(
        size_penalty="auto",
        C="auto",
        noise="auto",
        max_generations=4,
        population_size=16,
        callbacks=[lambda run: seen.append(run.generation)],
        verbose=1,
    ).fit(X, y)
    assert seen == [0, 1, 2, 3, 4] and model.n_generations_ == 4
    assert capsys.readouterr().err.count("4/4") == 1


def test_the_same_seed_chooses_the_same():
    X, y = load_iris(return_X_y=True)
    model = quick(
        size_penalty="auto", C="auto", penalty="auto", max_generations=6, population_size=16
    )
    first, second = clone(model).fit(X, y), clone(model).fit(X, y)
    assert first.tree_ == second.tree_ and first.size_penalty_ == second.size_penalty_
