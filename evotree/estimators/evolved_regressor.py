"""The regressor whose tree is evolved."""

from evotree.estimators.base import TreeRegressor
from evotree.estimators.evolved import EvolvedTree


class EvoTreeRegressor(TreeRegressor, EvolvedTree):
    """A regressor that is one small oblique tree, found by evolving a population of whole trees.

    The fitness of a tree is the share of the targets' variance that the means of its leaves
    explain, 1 less the relative squared error, less `size_penalty` for each node. A dipole is mixed
    where its targets differ by more than those of two rows drawn from the same node.

    Parameters
    ----------
    size_penalty : float, at least 0, or "auto", default="auto"
        What one node costs, as a share of the training weight: the papers' alpha. Smaller values
        give larger trees. ``"auto"`` is the highest of
        `evotree.engine.hyperparameters.SIZE_PENALTIES` that no smaller one beats clearly on rows
        held out.
    population_size : int, at least 2, default=64
        Number of trees that evolve.
    max_generations : int, at least 0, default=50
        The evolution stops after so many generations.
    patience : int or None, default=20
        It stops after so many generations without a better tree.
    time_limit : float or None, default=None
        It stops at the end of the generation in which so many seconds have passed; of these,
        cross-validation takes no more than about half.
    mutation_probability : float in [0, 1], default=0.1
        Chance that a node of an offspring mutates.
    crossover_probability : float in [0, 1], default=0.2
        Chance that two offspring exchange parts.
    dipolar_probability : float in [0, 1], default=0.5
        Share of the changes of a test that the dipolar operator makes; the others add noise.
    min_samples_split : int, at least 2, default=5
        A leaf with fewer distinct rows is not split; those that `noise` or `teacher` add count too.
    scaling : {"standard", "common", "minmax"}, default="standard"
        Whether trees evolve over features in units of their standard deviations, in their own
        units, or scaled to [-1, 1]. A fitted tree is over raw features in every case.
    seeding : str, list of str, dict of str to float or None, default="tao"
        What makes a part of the first population: ``"tao"``, deep trees that are optimized and cut
        in turn until their nodes pay (`evotree.operators.initialization.tao_seeds`), or splitters
        that grow trees greedily, by name. ``("tao", "oc1")`` makes a fifth of it by each,
        ``{"dipole": 0.8, "wodt": 0.2}`` gives the shares. The rest is random, ``"dipole"``.
    initial_trees : list or None, default=None
        Trees over raw features that join the first population: `ObliqueTree`, fitted estimators of
        this package or scikit-learn's fitted decision trees; in searches wrapped by
        `sklearn.frozen.FrozenEstimator`, since copies are not fitted.
    refinement : str, list, dict of str to float, Refinement or None, default="tao"
        What polishes some of the offspring: ``"tao"``, a sweep of tree alternating optimization;
        the name of a splitter, which re-splits one node; ``"centre"``, ``"prune"``; several of
        them, with or without their shares; or an `evotree.Refinement`, which says also how many,
        which and when, its `C` and `penalty` being those below.
    weight_penalty : float, at least 0, default=0.0
        What a test on all features costs; one on a part of them costs as large a part. Zeros come
        from `penalty` "l1" and from tests of one feature, which the seeds ``"axis"`` have.
    C : float above 0, tuple of two, or "auto", default="auto"
        Cost of a row's loss in the linear classifiers that refine trees; of two numbers, each
        refinement draws one between them, log-uniformly.
    penalty : {"l2", "l1", "auto"}, default="auto"
        Penalty of their weights; "l1" makes hyperplanes sparse.
    noise : float, at least 0, or "auto", default="auto"
        The fitness is measured also on rows with normal noise of this standard deviation, in units
        of the features' own, so that hyperplanes keep away from rows. 0: on the rows alone, as in
        the paper. Where this, `C` or `penalty` is "auto", cross-validation chooses among
        `evotree.estimators.settings.SETTINGS`.
    teacher : None, "ensemble", "auto" or estimator, default="auto"
        A model whose predictions, on the training rows and on rows drawn between them, the tree is
        evolved to agree with: ``"ensemble"`` is one of randomized and of alternately optimized
        trees (`evotree.estimators.teachers.make_teacher`). ``"auto"``: none or that one, as
        cross-validation finds. A fitted one wrapped by `sklearn.frozen.FrozenEstimator` is used as
        it is.
    max_origin_share : float in (0, 1], default=1.0
        Greatest share of the offspring that descendants of one kind of first individuals are
        expected to have, so that seeds do not take the population over.
    keep_duplicates : bool, default=False
        Whether equal trees may stand in a generation, as in the paper; otherwise parents take
        their places.
    algorithm : {"penalized", "nsga2"}, default="penalized"
        Whether the fitness charges for nodes, or NSGA-II evolves the whole front of quality against
        size, from which the charge then chooses.
    max_samples : int, float in (0, 1] or None, default=None
        Where rows are many: the evolution begins on a stratified sample of so many rows, or of this
        share of them, which grows by up to four times until it is all rows. Each sample has an
        equal share of the generations and of the time, and `patience` leads on to the next;
        settings are chosen and seeds made on the first.
    n_islands : int, at least 1, default=1
        So many populations evolve apart and exchange their best. Callbacks are then called, and
        limits looked at, when the generations between two exchanges are over.
    migration_interval : int, at least 1, default=10
        Generations between two exchanges.
    migration_size : int, at least 0, default=2
        How many arrive at each island, in the places of its worst.
    topology : {"ring", "complete"}, default="ring"
        Where they come from: the island before, or all others.
    checkpoint : path-like or None, default=None
        A file, data and never code, that the evolution is written to as it goes on.
    checkpoint_every : int, at least 1, default=10
        Generations between two writings.
    resume_from : path-like or None, default=None
        Such a file: its evolution goes on, to the end that it would have reached. The rows and all
        parameters must be the same, but for limits, threads and files.
    warm_start : bool, default=False
        Whether `fit` goes on with the evolution of the fit before, where the rows and the
        parameters are the same, up to `max_generations` in all.
    keep_on_interrupt : bool, default=False
        Whether Ctrl-C ends `fit` with the best tree so far, instead of raising KeyboardInterrupt;
        either way at the end of the present generation.
    random_state : int, RandomState, Generator or None, default=None
        Source of all random draws. The same number gives the same tree for any `n_jobs`.
    n_jobs : int or None, default=None
        Number of threads that make seeds and breed offspring, used where rows are many; -1 means
        all cores.
    executor : concurrent.futures.Executor or None, default=None
        Where islands evolve: processes, ``Client().get_executor()`` of Dask and the like; by
        default `n_jobs` threads. The tree is the same.
    verbose : int, default=0
        Above 0, a progress bar is shown.
    callbacks : list of callable or None, default=None
        Each is called with the `evotree.Evolution` after every generation; one that returns True
        stops the evolution. Where one fails, its exception is raised, and the estimator is fitted
        with what was evolved until then. Clones share them.

    Attributes
    ----------
    tree_ : ObliqueTree
        The tree, over features in their own units; its values are mean targets.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where `X` had names.
    history_ : deap.tools.Logbook
        One record a generation: evaluations, diversity, seconds, and in its chapters best, mean
        and std of fitness, quality and size, and in ``origin`` which share of the population
        descends from which splitter. `evotree.to_frame` makes a table of it.
    hall_of_fame_ : deap.tools.HallOfFame
        The ten fittest individuals that ever lived, over standardized features.
    pareto_front_ : ParetoFront
        The best tree of each size that the run met, over standardized features.
    size_penalty_ : float
        The charge for a node.
    setting_ : Setting
        `C`, `penalty`, `noise` and `teacher`, given or chosen.
    dataset_ : Dataset
        The training rows as the evolution saw them; ``dataset_.to_raw(individual)`` maps a member
        of the hall of fame to features in their own units.
    n_generations_ : int
        How many generations were bred.
    stop_reason_ : str
        Which rule ended the evolution.

    References
    ----------
    Krętowski M., Grześ M. (2005). Global induction of oblique decision trees: an evolutionary
    approach. Intelligent Information Processing and Web Mining, 309-318.

    Examples
    --------
    >>> from evotree import EvoTreeRegressor
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> tree = EvoTreeRegressor(max_generations=200, random_state=0).fit(X, y)
    >>> tree.predict(X).shape
    (442,)
    """
