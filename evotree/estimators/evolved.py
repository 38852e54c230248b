"""The estimators whose tree is evolved: translation between scikit-learn and `search`."""

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin, is_classifier
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from evotree.configuration import StrOptions, check_parameters, documented
from evotree.dataset import EXPOSURE, Dataset
from evotree.engine.choice import Choice, penalties_of_rows
from evotree.engine.config import (
    Evolution,
    Regularization,
    SearchConfig,
    Variation,
    evolution_of,
    is_auto,
    plain_config,
)
from evotree.engine.evolution import Run
from evotree.engine.finish import Result, finish_run
from evotree.engine.problem import Penalties, Problem, make_constraints, prepare
from evotree.engine.search import RowSearch
from evotree.engine.state import continuation
from evotree.estimators import base
from evotree.estimators.editing import Editor, refit
from evotree.estimators.rows import CLASS_WEIGHT, Beside
from evotree.estimators.warmup import compiling_beside
from evotree.fitness.base import FeatureCosts, costs_of_rows, prices_of
from evotree.fitness.objectives import ExpectedCost, name_of_objective
from evotree.fitted import Fitted
from evotree.front import CHOSEN, select
from evotree.log import is_shown
from evotree.operators.losses import quality_on
from evotree.parallel import one_blas_thread
from evotree.rng import seed_from
from evotree.schema import NumericColumn, Schema
from evotree.tables.columns import positions_of
from evotree.tree import ObliqueTree

_SHAPE = """max_depth : int, at least 1, or None, default=None
        Greatest depth of a tree; None for any.
    max_leaf_nodes : int, at least 2, or None, default=None
        Greatest number of leaves; None for any.
    min_samples_leaf : int, at least 1, or float in (0, 0.5], default=1
        Least number of training rows in a leaf, or share of all, whatever their weights; rows of
        weight 0 do not count, copies with noise neither.
    max_split_terms : int, float in (0, 1] or None, default=None
        Greatest number of features of a split, or share of all features; None for any. 1 gives
        axis-parallel trees, 2 splits that a plane shows.
    max_terms : int, at least 0, or None, default=None
        Greatest number of terms of a tree, those of lines in its leaves included; None for any.
    size_penalty : float, at least 0, or "auto", default="auto"
        Penalty for a node in the fitness, the papers' alpha. Smaller values give larger trees.
        ``"auto"`` takes the penalties of the least complex trees that are not clearly worse than
        the best on held-out rows.
    term_penalty : float, at least 0, or "auto", default="auto"
        Penalty in the fitness for each term after a split's first. Larger values give splits of
        fewer features. ``"auto"`` chooses it together with `size_penalty`.
    precision : int from 1 to 17, "auto" or None, default="auto"
        Significant digits of the numbers of each split of the fitted trees, which are scaled so
        that their strongest term has the weight 1. ``"auto"`` takes as few as leave each training
        row in its leaf; with a number of digits rows may change sides, and the leaves predict by
        the rows that reach them then. None leaves splits as they were found.
        Linear models of leaves are rounded likewise. See `evotree.round_tree`.
    monotonic_cst : array-like of shape (n_columns,), dict or None, default=None
        1 for columns that the prediction may not fall with, -1 for those that it may not rise with,
        0 for others; or these numbers by names of columns. For two classes the share of the second
        is meant, and with it the label. It holds for all rows, as trees are made so
        (`evotree.operators.constraints`). Objectives are ``"accuracy"``,
        ``"balanced_accuracy"``, ``"cost"``, ``"squared_error"`` and, with constant leaves,
        ``"poisson"`` then.
    interaction_cst : "no_interactions", "pairwise", list of sets or None, default=None
        Which columns may share a split: one alone, any two, or those of one of these sets, given by
        positions or names of columns; those of no set form another one, as in scikit-learn's
        `HistGradientBoostingClassifier`. All features of a column belong to its sets. Unlike there,
        different splits of one path may be of different sets."""

_RUN = """max_generations : int, at least 0, default=50
        Maximum number of generations.
    time_limit : float or None, default=None
        Seconds that `fit` may take. Three quarters are for the search, of which cross-validation
        takes half at most; then trees are finished, the fittest first, and those that there is no
        time for are left out.
    evolution : Evolution or None, default=None
        How the population evolves: its size, first trees, variation, refinement, regularization,
        islands; None takes the defaults.
    checkpoint : path-like, Checkpoint or None, default=None
        File that the search is written to; a `Checkpoint` with ``resume=True`` continues it.
    warm_start : bool, default=False
        Whether `fit` continues the previous search, where rows and parameters are the same, up to
        `max_generations` in all. The estimator then keeps the rows of that search.
    callbacks : list of callable or None, default=None
        Each is called with the `evotree.Run` after every generation, or migration of islands;
        one that returns True stops the search. If one fails, `fit` raises its exception, and the
        estimator is fitted with what was found until then. Clones share them.
    random_state : int, RandomState, Generator or None, default=None
        Source of the random draws of evolution. The same number gives the same tree for any
        `n_jobs`; what is chosen by cross-validation depends on the rows alone.
    n_jobs : int or None, default=None
        Number of threads, used where rows are many; -1 means all cores.
    verbose : int or "auto", default="auto"
        Above 0 shows a progress bar, 0 none; ``"auto"`` shows one after two seconds on a terminal
        or in a notebook.
    categorical_features : array-like, "from_dtype" or None, default="from_dtype"
        Which columns are categories: a mask, positions or names; ``"from_dtype"`` for those of text
        in tables, and those whose dtype is `category` in pandas, `Categorical` or `Enum` in polars;
        None for none. Each level
        makes a feature of 0 and 1, two levels make one; at `predict` levels that are not known are
        0 throughout."""

_ATTRIBUTES = """Attributes
    ----------
    fitted_ : Fitted
        All that is known of `tree_`, which pages, printers and model files take.
    tree_ : ObliqueTree
        The tree, over features in their own units: what cross-validation chose (`choice_`); where
        it compared nothing, the fittest of `pareto_front_`, or, if `term_penalty` is 0, of the run.
    <ONE_TREE>
    history_ : deap.tools.Logbook
        One record for each generation: evaluations, diversity, seconds; in its chapters best, mean,
        standard deviation, quartiles and median of fitness, quality, size (nodes), terms and
        complexity; and in ``origin`` the share of the population that descends from each kind of
        first trees.
        `evotree.to_frame` makes a table.
    hall_of_fame_ : list of ObliqueTree
        The ten fittest trees of the search, the best first, over raw features.
    best_trees_ : dict of int to ObliqueTree
        Every tree that became the best of its generation, by the generation, over raw features;
        kept where `evotree.keep_best_trees` is among the callbacks, else empty.
    pareto_front_ : FittedFront
        The best trees of rising complexity that the search met, over raw features, at most 100.
        Their qualities are those of the finished trees on the training rows, and no tree is better
        than a more complex one, but for `tree_`. Printed, an arrow is at `tree_`.
    size_penalty_ : float
        The penalty for a node, given or chosen.
    term_penalty_ : float
        The penalty for each term after a split's first.
    regularization_ : Regularization
        The regularization, with the noise that ``"auto"`` stands for.
    choice_ : TreeChoice or None
        What cross-validation compared, and what it chose (`evotree.front.TreeChoice`);
        printed, it says so in a line. None where there was nothing to choose, and where a search
        continues another one.
    edit_cost_ : pandas.Series or None
        What the last edit of the tree cost, `edit`.
    objective_ : Objective or None
        What the tree was evolved for; None for the accuracy, and for the squared error.
    n_generations_ : int
        Number of generations bred.
    stop_reason_ : str
        Which rule ended the search.
    seconds_ : dict of str to float
        Seconds of each phase: compiling, choosing hyperparameters, evolving."""


EVOLUTION_PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "card": {
            "max_split_terms": 2,
            "max_leaf_nodes": 6,
            "min_samples_leaf": 0.03,
            "precision": 2,
            "leaves": "constant",
        },
        "gea_odt": {
            "size_penalty": 0.005,
            "term_penalty": 0.0,
            "precision": None,
            "max_generations": 10_000,
            "evolution": Evolution(
                population_size=64,
                patience=1_000,
                init=None,
                scaling="common",
                variation=Variation(
                    term_mutation_probability=0.0,
                    sparse_dipoles=False,
                    published_operators=True,
                    survival="generational",
                    keep_duplicates=True,
                ),
                refinement=None,
                regularization=Regularization(C=1.0, noise=0.0),
            ),
        },
    }
)
"""Parameters of `evotree.EvoTreeClassifier.from_preset`."""


class EvolvedTree(base.TreeEstimator, SearchConfig):
    """An estimator whose tree is found by evolving a population of whole trees."""

    # What each preset has besides its own parameters.
    _of_presets: ClassVar[Mapping[str, Any]] = {}

    @classmethod
    def from_preset(cls, name: str, **parameters: Any) -> Self:
        """Make an estimator with the hyperparameters of a preset.

        `name` is a key of `evotree.estimators.EVOLUTION_PRESETS`: ``"card"``, a rule to be signed,
        of at most six leaves with 3 % of the rows each, splits of at most two columns and numbers
        of two digits; or ``"gea_odt"``, the published algorithm. `parameters` differ from the
        preset, as `set_params` takes them.
        """
        return cls(
            **{**cls._of_presets, **base.preset(EVOLUTION_PRESETS, name)}
        ).set_params(**parameters)

    @classmethod
    def from_run(cls, run: Run, dataset: Dataset, **parameters: Any) -> Self:
        """Make a fitted estimator of a run of `evotree.evolve`; its tree is the best of the run.

        `dataset` has the rows that it evolved on; `parameters` are those of the estimator, such as
        the penalties that the toolbox had.
        """
        estimator = cls(**parameters)
        check_parameters(estimator)
        n_features = dataset.X.shape[1]
        is_regressor = isinstance(estimator, RegressorMixin)
        if run.best.n_features != n_features or is_regressor == (dataset.n_classes > 0):
            kinds = ("classes", "targets")
            raise ValueError(
                f"run has trees over {run.best.n_features} features, for "
                f"{kinds[dataset.n_classes == 0]}: {cls.__name__} takes those over {n_features} "
                f"features, for {kinds[is_regressor]}."
            )
        if not dataset.schema.is_table:
            means = np.average(dataset.raw, axis=0, weights=dataset.sample_weight)
            columns = map(NumericColumn, dataset.feature_names, means.tolist())
            dataset = replace(dataset, schema=Schema(tuple(columns)))
        estimator.n_features_in_ = n_features
        if dataset.feature_names != tuple(f"x{j}" for j in range(n_features)):
            # The rows were a table.
            estimator.feature_names_in_ = np.array(dataset.feature_names, dtype=object)
        given = (estimator.size_penalty, estimator.term_penalty)
        penalties = Penalties(*(0.0 if is_auto(one) else float(one) for one in given))
        config = plain_config(estimator)
        constraints = make_constraints(config, evolution_of(config), dataset)
        estimator._keep(
            finish_run(
                Problem(dataset, config, constraints),
                run,
                dataset,
                Choice(seed_from(estimator.random_state), penalties),
                has_own_fitness=True,
            )
        )
        return estimator

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        sensitive: Any = None,
        *,
        groups: Any = None,
        cv: Any = None,
        exposure: Any = None,
    ) -> Self:
        """Evolve a tree.

        Ctrl-C raises KeyboardInterrupt once the present generation is over; the estimator is then
        fitted with the best tree until then. A `UserWarning` says where the tree is a single leaf,
        but a smaller `size_penalty` has others.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows, which may have missing values. A missing number becomes the median of its
            column; a further feature says where it was missing.
        y : array-like of shape (n_samples,), or (n_samples, n_outputs) for regression
            Class labels, or targets. Several outputs share one tree; they are standardized, each
            by its own mean and standard deviation, and count alike.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows. A row of weight 2 weighs as much as two rows, but is one where rows
            are counted, dealt out to folds or drawn; so the tree may be another one than that of
            the row given twice.
        sensitive : array-like of shape (n_samples,), optional
            A column that is not a feature, which a callable objective finds in
            ``leaves.extras["sensitive"]``.
        groups : array-like of shape (n_samples,), optional
            Labels of rows that belong together, such as those of one patient, machine or day.
            Samples and all that is held out are of whole groups, and standard errors count groups.
        cv : int, splitter or iterable of pairs, optional
            What is held out while a tree is chosen: a number of folds, by default 5 or fewer; a
            splitter of scikit-learn, such as ``TimeSeriesSplit()``; or pairs of positions of rows,
            to train on and to hold out. A row is held out once at most, and a pair parts no group.
        exposure : array-like of shape (n_samples,), optional
            For ``objective="poisson"``: how long, or at how much, the events of each row were
            counted, above 0. What is predicted is the rate, events by exposure: the sum of the
            events of a leaf by that of the exposures. A row is one row, whatever its exposure is.
        """
        begin = time.perf_counter()
        check_parameters(self)
        # Threads of BLAS would wait for each other, and the last digits would depend on how many.
        task = "classification" if is_classifier(self) else "regression"
        beside = Beside(sample_weight, sensitive, groups, cv, exposure)
        compiling = compiling_beside(task, is_shown(self.verbose))
        with self._unchanged_on_failure(), one_blas_thread(), compiling:
            dataset = self._make_dataset(X, y, beside, evolution_of(self).scaling)
            continues = getattr(self, "_last", None) if self.warm_start else None
            problem = self._problem(dataset, begin)
            is_one = len(penalties_of_rows(problem.config, dataset)) == 1
            if cv is not None and is_one and problem.has_one_kind:
                raise ValueError(
                    "cv is given, but nothing is chosen by rows held out, as size_penalty, "
                    "term_penalty and leaves are given, too: allowed is None."
                )
            result = RowSearch(problem).result(continues)
            self._keep(result)
        return self._ended(result)  # if it raises, the fit is whole all the same

    def _fit_schema(self, table: Any, weight: np.ndarray) -> Schema:
        """Learn how columns become features, with the bends that users ask for."""
        schema = super()._fit_schema(table, weight)
        shapes = evolution_of(self).shapes
        return schema.with_shapes(shapes) if isinstance(shapes, Mapping) else schema

    def _problem(self, dataset: Dataset, begin: float | None = None) -> Problem:
        """Return what a search for rows that this estimator has read is about."""
        return prepare(
            dataset,
            plain_config(self),
            begin,
            is_soft=getattr(self, "probability", "soft") == "soft",
            class_weight=getattr(self, "class_weight", None),
        )

    def _ended(self, result: Result) -> Self:
        """Return the estimator, or raise what ended the search before its time; called by `fit`."""
        n_trees = len(self.pareto_front_)
        if self.tree_.complexity == 1 and n_trees > 1:
            where = f"at size_penalty={self.size_penalty_:.3g}"
            if self.choice_ is not None:
                where = "on the rows held out"
            warnings.warn(
                f"no split pays {where}: the tree is one leaf. select_tree('tree') takes the best "
                f"with a split of the {n_trees} trees of pareto_front_.",
                stacklevel=3,
            )
        if result.failure is not None:
            result.failure.add_note(
                f"The search ended in generation {result.run.generation}; the estimator is fitted "
                "with the best tree until then."
            )
            raise result.failure
        if result.run.stop_reason == "interrupt":
            raise KeyboardInterrupt
        return self

    def _keep(self, result: Result) -> None:
        """Set the fitted attributes: trees and records, no rows."""
        run, problem = result.run, result.problem
        self._last = continuation(result) if self.warm_start else None
        penalties = result.choice.penalties
        # Edits fit the models of the leaves again, by this strength.
        self._strength = result.choice.winner.strength
        self.regularization_ = problem.evolution.regularization.set_params(
            noise=problem.noise
        )
        self.size_penalty_, self.term_penalty_ = penalties
        self.edit_cost_ = None
        # Which splits `refit` held, if it was called.
        self._refit_evolution: Evolution | None = None
        self.choice_ = result.candidates
        self.hall_of_fame_ = result.hall_of_fame
        self.best_trees_ = result.best_trees
        self.history_ = run.logbook
        self.n_generations_ = run.generation
        self.stop_reason_ = run.stop_reason
        self.seconds_ = result.seconds
        self._chosen = result.tree
        self.objective_ = problem.dataset.objective
        dataset, end = result.dataset, problem.ends.all
        self.fitted_ = own = self._fitted_of(result.tree, dataset, end=end)
        models = [
            own
            if tree == result.tree
            else self._fitted_of(tree, dataset, brief=True, end=end)
            for tree in result.front
        ]
        self.pareto_front_ = result.front.of_models(models).choosing(result.tree)

    def _fitted_of(
        self,
        tree: ObliqueTree,
        dataset: Dataset,
        *,
        brief: bool = False,
        end: float = math.inf,
    ) -> Fitted:
        """Return what training rows say of a tree, and what the fit was given and chose."""
        fitted = super()._fitted_of(tree, dataset, brief=brief, end=end)
        arguments = replace(
            fitted.arguments,
            objective=name_of_objective(self.objective),
            penalties=(self.size_penalty_, self.term_penalty_),
            signs=signs_of(self.monotonic_cst, fitted.schema.names),
        )
        return replace(
            fitted,
            arguments=arguments,
            choice=self.choice_,
            chosen=self._chosen,
        )

    def select_tree(
        self,
        rule: str,
        X: Any = None,
        y: Any = None,
        *,
        groups: Any = None,
        exposure: Any = None,
    ) -> Self:
        """Choose another tree of the Pareto front; it becomes `tree_`.

        What goes with it was fitted to the training rows, as all else: soft probabilities,
        deviations of leaves, and `training_rows_`. Intervals have to be calibrated again.

        Parameters
        ----------
        rule : str
            ``"chosen"``: what `fit` has chosen; ``"accurate"``: the most accurate one, on `X` and
            `y` where they are given, else on the training rows, where that is the most complex
            one; ``"tree"``: the best with a split, on `X` and `y`, else after the penalties for
            nodes and terms; ``"simplest"``: the least complex within one standard error of the
            best on `X` and `y`, which it needs; ``"complexity<=30"``, ``"terms<=12"``,
            ``"leaves<=5"``, ``"size<=9"``: the best with at most this many leaves and terms,
            terms, leaves, or nodes, on `X` and `y`, else on the training rows.
        X : array-like of shape (n_samples, n_features), optional
            Rows that `fit` has not seen.
        y : array-like of shape (n_samples,), optional
            Their labels or targets.
        groups : array-like of shape (n_samples,), optional
            Labels of rows that belong together: the standard error is that of groups.
        exposure : array-like of shape (n_samples,), optional
            What the events of these rows were counted at, as for `fit`.
        """
        check_is_fitted(self)
        if rule == CHOSEN:
            chosen: Any = self._chosen
        else:
            held_out = None
            if X is not None:
                self.fitted_.check_beside("select_tree", exposure, groups=groups)
                beside = Beside(groups=groups, exposure=exposure)
                held_out = self._held_out(X, y, beside.in_order(X, y))
            chosen = select(
                self.pareto_front_,
                rule,
                held_out,
                (self.size_penalty_, self.term_penalty_),
            )
        if chosen != self.tree_ or self.fitted_.by_hand:
            self.fitted_ = self.pareto_front_.models[self.pareto_front_.index(chosen)]
            self.edit_cost_ = None
        self.pareto_front_ = self.pareto_front_.choosing(chosen)
        return self

    def edit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        sensitive: Any = None,
        *,
        exposure: Any = None,
    ) -> Editor:
        """Return an editor of the tree, each method of which returns a new model.

        Leaves and all that goes with them are made again by the rows, which are as for `fit`
        (`evotree.estimators.editing.Editor`).
        """
        return Editor(self, X, y, Beside(sample_weight, sensitive, exposure=exposure))

    def refit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        sensitive: Any = None,
        *,
        hold: Any = None,
        groups: Any = None,
        cv: Any = None,
        exposure: Any = None,
    ) -> Self:
        """Return a model of a search that goes on from the tree, on rows that are as for `fit`.

        After the penalties of this model for nodes and terms its tree is worth no less on them than
        the present one. `hold` has splits that stay, as for `Evolution`; None are those that this
        model held. What leaves were made to predict by hand ends. The parameters of the new model
        are those of this one.
        """
        beside = Beside(sample_weight, sensitive, groups, cv, exposure)
        return refit(self, X, y, beside, hold)

    def _score_of(self, rows: Dataset, tree: ObliqueTree) -> float:
        """Return what `score` says of a tree on the rows of an edit."""
        return quality_on(rows.evolved_for(None), tree)

    def _with_labels(self, fitted: Fitted, tree: ObliqueTree) -> Fitted:
        """Return the same model with a tree whose leaves may predict otherwise."""
        return replace(fitted, tree=tree)

    def _held_out(self, X: Any, y: Any, beside: Beside) -> Dataset:
        """Return held-out rows in raw units, their labels as codes."""
        rows, y = self._check_targets(X, y)
        extras, _ = beside.columns(len(y))
        held_out = Dataset.in_raw_units(rows, y, self.fitted_.classes)
        return held_out.with_extras(extras).evolved_for(self.objective_)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; if `deep`, also those of the groups in them."""
        values: dict[str, Any] = base.TreeEstimator.get_params(self, deep)
        if deep and self.evolution is None:
            of_evolution = Evolution().get_params()
            values |= {f"evolution__{name}": one for name, one in of_evolution.items()}
        return values

    def __sklearn_clone__(self) -> Self:
        """Return a copy that is not fitted; it shares the callbacks."""
        bare = copy(self)
        bare.callbacks = None
        twin: Self = base.TreeEstimator.__sklearn_clone__(bare)
        return twin.set_params(callbacks=self.callbacks)


@documented(SHAPE=_SHAPE, RUN=_RUN, ATTRIBUTES=_ATTRIBUTES, **base.SHARED)
@dataclass(kw_only=True, eq=False, repr=False)
class EvoTreeClassifier(base.TreeClassifier, EvolvedTree):
    """A classifier that is one small oblique tree, found by evolving whole trees.

    Parameters
    ----------
    objective : str, Cost or callable, default="accuracy"
        What trees are evolved for: ``"accuracy"``, ``"balanced_accuracy"``, ``"f1"``,
        ``"f1_macro"``, ``"mcc"``, ``"log_loss"``, ``"brier"``, ``"roc_auc"``, or a `Cost`. The
        three before the last are those of soft probabilities. Leaves predict what is best for it.
        Also ``function(counts)``, of the class weights of the leaves, an array of
        shape (n_leaves, n_classes), or ``function(counts, leaves)``, where `leaves`
        also knows the rows (`evotree.fitness.objectives.Leaves`); it returns a number, the greater
        the better.
    leaves : {"auto", "constant", "score"}, default="auto"
        What leaves hold: ``"constant"`` is class shares, ``"score"`` points that are added to one
        score for all rows, a sum of few columns and hinges of these (`evotree.engine.scores`). Then
        the probability of a class is the softmax of its score and points, of two classes the
        logistic function of their sum. ``"auto"`` chooses on rows held out. A score alone, and a
        logistic regression, compete as trees of splits.
    <SHAPE>
    <RUN>
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn; ``"balanced"`` counts rows by their weights.
    probability : {"soft", "leaf"}, default="soft"
        What `predict_proba` is of: ``"soft"`` takes the distances of a row to the hyperplanes, with
        slopes that are fitted to the training rows once the tree is found; ``"leaf"`` takes the
        class shares of its leaf. `predict` is the same with both.

    <ATTRIBUTES>
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    probabilities_ : SoftSides or None
        Slopes, intercepts and class shares that `predict_proba` takes for `tree_`; None where it
        takes the shares of leaves.

    References
    ----------
    Krętowski M., Grześ M. (2005). Global induction of oblique decision trees: an evolutionary
    approach. Intelligent Information Processing and Web Mining, 309-318.

    Examples
    --------
    >>> from evotree import EvoTreeClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = EvoTreeClassifier(random_state=0).fit(X, y)
    >>> tree.score(X, y) > 0.9
    True
    """

    objective: Any = field(default="accuracy", kw_only=False)
    leaves: Any = "auto"
    class_weight: Annotated[Any, *CLASS_WEIGHT] = None
    probability: Annotated[str, StrOptions(set(base.PROBABILITIES))] = "soft"

    def cost_score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean cost of the predictions of some rows; the lower, the better.

        Of errors and of the features that the tree asks for by the `Cost` that it was evolved for;
        without one, 1 for each error.
        """
        rows = self._features(X)
        y, weight = self._judged(X, y, sample_weight)
        check_consistent_length(rows, y)
        codes = positions_of(self.classes_.tolist(), y)
        if (unknown := np.asarray(y)[codes < 0]).size:
            raise ValueError(
                f"y has the label {unknown.tolist()[0]!r}: allowed are "
                f"{self.classes_.tolist()}."
            )
        paid = costs_of_rows(self.fitted_, rows, codes)
        return float(np.average(paid, weights=weight))

    def _fitted_of(
        self,
        tree: ObliqueTree,
        dataset: Dataset,
        *,
        brief: bool = False,
        end: float = math.inf,
    ) -> Fitted:
        """Return what training rows say of a tree: also costs; soft sides keep `monotonic_cst`."""
        fitted = super()._fitted_of(tree, dataset, brief=brief, end=end)
        sides, objective = fitted.sides, self.objective_
        constraint = None if objective is None else objective.constraint
        if sides is not None and constraint is not None:
            shares = constraint.in_order(tree, sides.shares)
            fitted = replace(fitted, sides=replace(sides, shares=shares))
        if isinstance(objective, ExpectedCost):
            arguments = replace(
                fitted.arguments,
                cost_matrix=objective.costs,
                cost_of_columns=_cost_of_columns(objective.features, fitted.schema),
            )
            fitted = replace(fitted, arguments=arguments)
        return self._with_labels(fitted, tree)

    def _with_labels(self, fitted: Fitted, tree: ObliqueTree) -> Fitted:
        """Return the same model with a tree whose labels may differ, and what these cost."""
        fitted = replace(fitted, tree=tree)
        costs = _expected_costs(fitted) if fitted.is_of_costs else None
        return replace(fitted, costs=costs)


@documented(SHAPE=_SHAPE, RUN=_RUN, ATTRIBUTES=_ATTRIBUTES, **base.SHARED)
@dataclass(kw_only=True, eq=False, repr=False)
class EvoTreeRegressor(base.TreeRegressor, EvolvedTree):
    """A regressor that is one small oblique tree, found by evolving whole trees.

    The fitness of a tree is the share of the targets' variance that the means or lines of its
    leaves explain, minus `size_penalty` for each node and `term_penalty` for each term of a line,
    and of a split after its first. A dipole is mixed where its targets differ by more than those of
    two rows drawn from the same node.

    Of several outputs the fitness takes the mean of these shares, so that all have equal weight;
    the leaves hold a mean, or a line, for each. They are for the squared error, without
    `monotonic_cst`.

    Parameters
    ----------
    objective : str or Quantile, default="squared_error"
        What trees are evolved for: ``"squared_error"``, ``"absolute_error"``, ``"poisson"``, or a
        `Quantile`; ``"quantile"`` is the median. Leaves predict what is best for it.
    leaves : {"auto", "linear", "constant", "score"} or LinearLeaves, default="auto"
        What leaves hold: a bounded linear model of few terms, or of none
        (`evotree.fitness.linear_leaves`), or the mean of their targets. With ``"score"`` such
        lines are added to one score for all rows, a sum of few columns and hinges of these
        (`evotree.engine.scores`), and trees evolve for what the score leaves of the targets. For
        the squared error ``"auto"`` chooses between lines with a score and without on rows held
        out, and for other objectives it is means. For ``"poisson"`` linear leaves are log-linear
        models, which are fitted once trees have evolved. A `LinearLeaves` also says which columns
        lines and splits may use.
    <SHAPE>
    <RUN>

    <ATTRIBUTES>
    <MEANS>

    References
    ----------
    Krętowski M., Grześ M. (2005). Global induction of oblique decision trees: an evolutionary
    approach. Intelligent Information Processing and Web Mining, 309-318.

    Examples
    --------
    >>> from evotree import EvoTreeRegressor
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> tree = EvoTreeRegressor(random_state=0).fit(X, y)
    >>> tree.score(X, y) > 0.3
    True
    """

    _of_presets = {"leaves": "constant"}  # those of the papers are means

    objective: Any = field(default="squared_error", kw_only=False)
    leaves: Any = "auto"

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, exposure: Any = None
    ) -> float:
        """Return R², of several outputs the mean of theirs.

        Where the model was fitted with exposures, `exposure` has those of these rows: the rates are
        predicted, each of which counts by its exposure.
        """
        check_is_fitted(self)
        self.fitted_.check_beside("score", exposure)
        if exposure is not None:
            beside = Beside(exposure=exposure).in_order(X, y)
            y, weight = self._judged(X, y, sample_weight)
            at = beside.columns(len(y))[0][EXPOSURE]
            y, sample_weight = y / at, at if weight is None else at * weight
        return super().score(X, y, sample_weight)


def _expected_costs(fitted: Fitted) -> np.ndarray:
    """Return what a row costs that ends at each node of a tree, in the mean."""
    matrix, spent = prices_of(fitted)
    tree = fitted.tree
    return (tree.values * matrix.T[tree.labels]).sum(axis=1) + spent


def signs_of(monotonic_cst: Any, names: Sequence[str]) -> dict[str, int]:
    """Return the signs of columns by their names, those that are not 0."""
    if monotonic_cst is None:
        return {}
    is_named = isinstance(monotonic_cst, Mapping)
    pairs = (
        monotonic_cst.items() if is_named else zip(names, monotonic_cst, strict=True)
    )
    return {str(name): int(sign) for name, sign in pairs if sign}


def _cost_of_columns(
    features: FeatureCosts | None, schema: Schema
) -> tuple[tuple[tuple[str, ...], float], ...]:
    """Return the columns that are paid for together, and what knowing them costs."""
    if features is None:
        return ()
    return tuple(
        (
            tuple(schema.names[c] for c in np.unique(schema.column_of[is_part])),
            float(price),
        )
        for is_part, price in zip(features.is_part.T, features.prices, strict=True)
    )
