"""Forests of small sparse oblique trees that vote: translation only."""

import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from sklearn.ensemble import BaseEnsemble
from sklearn.utils.validation import check_is_fitted

from evotree.configuration import (
    LEAVES,
    N_JOBS,
    Interval,
    LinearLeaves,
    StrOptions,
    check_parameters,
    documented,
)
from evotree.dataset import Dataset
from evotree.engine.toolbox import feature_bound
from evotree.estimators.base import SHARED, TreeEstimator
from evotree.estimators.local import TAOClassifier, TAORegressor
from evotree.estimators.rows import (
    CLASS_WEIGHT,
    Beside,
    ClassReader,
    NumberReader,
    RowEncoder,
)
from evotree.fitted import Fitted
from evotree.forests.growing import (
    Grower,
    grow_forest,
    rows_of_choice,
    score_out_of_bag,
)
from evotree.log import log_begin, log_end
from evotree.rng import seed_from
from evotree.tree import ObliqueTree, mean_of_trees

# The share of the trees that have means in their leaves, where others have lines.
_MEANS_SHARE = 0.5
_SHARE = Interval(Real, 0.0, 1.0, closed="right")
_COUNT = Interval(Integral, 1, None, closed="left")

_PARAMETERS = """Parameters
    ----------
    n_estimators : int, at least 1, default=30
        Number of trees.
    max_samples : int, float in (0, 1] or None, default=0.8
        How many rows are drawn for a tree, without replacement, or which share of them; None for
        as many as there are. All are as likely, and keep their weights in the tree.
    max_split_terms : int, float in (0, 1] or None, default=None
        Greatest number of features of a split, or share of them; None for any.
    max_depth : int, at least 1, or None, default=None
        Greatest depth of a tree; None for any.
    oob_score : bool, default=False
        Whether each training row is predicted by the trees whose bags lack it, for a score.
    n_jobs : int or None, default=None
        Number of trees that are made at a time, by threads, or what `joblib.parallel_config`
        names, such as processes or Dask; -1 means as many as there are cores.
    random_state : int, RandomState, Generator or None, default=None
        Source of all random draws. The same number gives the same forest for any `n_jobs`.
    categorical_features : array-like, "from_dtype" or None, default="from_dtype"
        Which columns are categories, as for `EvoTreeClassifier`."""

_ATTRIBUTES = """Attributes
    ----------
    estimators_ : list of TAOClassifier or TAORegressor
        The trees as fitted estimators, which explain and export themselves as all others do.
    trees_ : list of ObliqueTree
        The trees alone, over features in their own units.
    <READS>
    feature_importances_ : ndarray of shape (`n_features_in_`,)
        Mean of those of the trees.
    oob_score_ : float
        With `oob_score`, what `score` is on training rows that are predicted out of bag, with the
        weights of rows and classes. Rows by which a classifier chooses the kind of its trees are
        left out, if there are others."""


@dataclass(eq=False, repr=False)
class ObliqueForest(RowEncoder, BaseEnsemble):
    """An estimator whose model is several small trees, the mean of which predicts."""

    _kind: ClassVar[type[Any]]  # of the trees
    _make_dataset: ClassVar[Callable[..., Dataset]]

    n_estimators: Annotated[int, _COUNT] = 30
    _: KW_ONLY
    max_samples: Annotated[float | None, _COUNT, _SHARE, None] = 0.8
    max_split_terms: Annotated[float | None, _COUNT, _SHARE, None] = None
    max_depth: Annotated[int | None, _COUNT, None] = None
    oob_score: Annotated[bool, "boolean"] = False
    n_jobs: Annotated[int | None, *N_JOBS, None] = None
    random_state: Annotated[Any, "random_state", np.random.Generator] = None

    @property
    def fitted_(self) -> Fitted:  # type: ignore[override]
        """What is known of the first tree, which has the columns and classes of all."""
        return self.estimators_[0].fitted_

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None
    ) -> Self:
        """Make the trees, each of rows and features of its own.

        Rows may have missing values, encoded as by `EvoTreeClassifier`; a row has one label or
        target. Bags are drawn of the rows as they are given, or of whole `groups` of them, labels
        of shape (n_samples,): these are what `max_samples` counts, and are out of bag whole.
        """
        check_parameters(self)
        with self._unchanged_on_failure():
            beside = Beside(sample_weight, groups=groups)
            dataset = self._make_dataset(X, y, beside)
            if dataset.outputs is not None:
                raise ValueError(
                    f"y has {dataset.n_outputs} outputs: a forest predicts one."
                )
            log_begin(dataset, kind="forest")
            begin = time.perf_counter()
            dataset = dataset.evolved_for(self._objective(dataset))
            seed = seed_from(self.random_state)
            n_drawn = _amount(self.max_samples, dataset.n_groups)
            if self.oob_score and n_drawn == dataset.n_groups:
                raise ValueError(
                    f"oob_score=True with max_samples={self.max_samples}: no tree lacks a row of "
                    "those given. Allowed are fewer max_samples, more rows, and oob_score=False."
                )
            grower = Grower(
                n_drawn,
                feature_bound(self.max_split_terms, dataset.X.shape[1]),
                self.max_depth,
                _MEANS_SHARE if getattr(self, "leaves", None) == "auto" else 0.0,
            )
            members = grow_forest(grower, dataset, self.n_estimators, seed, self.n_jobs)
            self.estimators_ = [self._member(one.tree, dataset) for one in members]
            log_end(self, time.perf_counter() - begin)
            if self.oob_score:
                asked = rows_of_choice(dataset, self.n_estimators, seed)
                self.oob_score_ = score_out_of_bag(members, dataset, asked)
        return self

    def _member(self, tree: ObliqueTree, dataset: Dataset) -> TreeEstimator:
        """Return a tree as a fitted estimator that reads rows as the forest does."""
        member = self._kind()
        for name in {"n_features_in_", "feature_names_in_"} & vars(self).keys():
            setattr(member, name, getattr(self, name))
        member.fitted_ = member._fitted_of(tree, dataset)
        return member

    @property
    def trees_(self) -> list[ObliqueTree]:
        """The trees, over features in their own units."""
        check_is_fitted(self)
        return [one.tree_ for one in self.estimators_]

    @property
    def feature_importances_(self) -> np.ndarray:
        """Mean of the importances of the trees, of shape (`n_features_in_`,), with a sum of 1."""
        check_is_fitted(self)
        found = np.mean([one.feature_importances_ for one in self.estimators_], axis=0)
        total = found.sum()
        return found / total if total > 0.0 else found

    def _vote(self, X: Any) -> np.ndarray:
        """Return the mean of what the trees predict for rows, of shape (n_samples, n_outputs)."""
        return mean_of_trees(self.trees_, self._features(X))


@documented(PARAMETERS=_PARAMETERS, ATTRIBUTES=_ATTRIBUTES, **SHARED)
@dataclass(kw_only=True, eq=False, repr=False)
class ObliqueForestClassifier(ClassReader, ObliqueForest):
    """A classifier that is the vote of small sparse oblique trees.

    The probabilities of a row are the means of the class shares of the leaves that it reaches. A
    few tens of trees of a few leaves vote as well as hundreds of deep axis-parallel ones where rows
    are few, and each of them can be read.

    Alternating optimization makes a deep tree of the rows that are drawn for it, and lets its terms
    and leaves go little by little; the fittest tree on the way is taken, for a penalty that is
    drawn. One tree of five is grown with axis-parallel splits instead.

    <PARAMETERS>
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn; ``"balanced"`` counts rows by their weights.

    <ATTRIBUTES>
    classes_ : ndarray of shape (n_classes,)
        Class labels.

    References
    ----------
    Breiman L. (2001). Random forests. Machine Learning 45(1), 5-32.

    Carreira-Perpiñán M. Á., Zharmagambetov A. (2020). Ensembles of bagged TAO trees consistently
    improve over random forests, AdaBoost and gradient boosting. Foundations of Data Science
    Conference.

    Examples
    --------
    >>> from evotree import ObliqueForestClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = ObliqueForestClassifier(10, oob_score=True, random_state=0).fit(X, y)
    >>> len(forest.trees_), forest.oob_score_ > 0.9
    (10, True)
    """

    _kind = TAOClassifier

    class_weight: Annotated[Any, *CLASS_WEIGHT] = None

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the means of the class shares of the leaves that rows reach, by `classes_`."""
        return self._vote(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row."""
        votes = self._vote(X)
        return self.classes_[votes.argmax(axis=1)]


@documented(PARAMETERS=_PARAMETERS, ATTRIBUTES=_ATTRIBUTES, **SHARED)
@dataclass(kw_only=True, eq=False, repr=False)
class ObliqueForestRegressor(NumberReader, ObliqueForest):
    """A regressor that is the mean of small sparse oblique trees, with lines or means in leaves.

    Each is the fittest tree on a path, as those of `ObliqueForestClassifier` with oblique splits.

    <PARAMETERS>
    leaves : {"auto", "linear", "constant"} or LinearLeaves, default="auto"
        What leaves hold: a bounded linear model of few terms, as for `EvoTreeRegressor`, or the
        mean of their targets; ``"auto"`` draws one or the other for each tree.

    <ATTRIBUTES>

    References
    ----------
    Breiman L. (2001). Random forests. Machine Learning 45(1), 5-32.

    Zharmagambetov A., Carreira-Perpiñán M. Á. (2020). Smaller, more accurate regression forests
    using tree alternating optimization. International Conference on Machine Learning.

    Examples
    --------
    >>> from evotree import ObliqueForestRegressor
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> ObliqueForestRegressor(5, random_state=0).fit(X, y).score(X, y) > 0.5
    True
    """

    _kind = TAORegressor

    leaves: Annotated[Any, StrOptions(set(LEAVES)), LinearLeaves] = "auto"

    def predict(self, X: Any) -> np.ndarray:
        """Return the mean of what the trees predict for each row."""
        return self._vote(X)[:, 0]


def _amount(given: float | None, n: int) -> int:
    """Return how many of n things a number, a share or None stands for, at least 1."""
    if given is None:
        return n
    return (
        min(n, int(given)) if isinstance(given, Integral) else max(1, round(given * n))
    )
