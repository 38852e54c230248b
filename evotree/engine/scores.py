"""A score with curves: a regression of few terms, which are columns and hinges of them.

The coefficients are penalized by their absolute values (Tibshirani 1996), so that most are 0, along
a path of penalties by coordinate descent on quadratic approximations (Friedman, Hastie and
Tibshirani 2010). Of the penalties the one is taken whose score loses least on rows held out. More
than two classes have a score each, of one class against the others; that of targets is linear.

References
----------
Tibshirani R. (1996). Regression shrinkage and selection via the lasso. Journal of the Royal
Statistical Society B 58(1), 267-288.
Friedman J., Hastie T., Tibshirani R. (2010). Regularization paths for generalized linear models
via coordinate descent. Journal of Statistical Software 33(1).
Zou H. (2006). The adaptive lasso and its oracle properties. Journal of the American Statistical
Association 101(476), 1418-1429.
Tibshirani R. et al. (2012). Strong rules for discarding predictors in lasso-type problems. Journal
of the Royal Statistical Society B 74(2), 245-266.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax

from evotree._jit import kernel
from evotree.dataset import Dataset, fold_count, make_folds, split_folds
from evotree.engine.bends import bends_of, correlations
from evotree.fitness.linear_leaves import leaf_of, rows_of_counts
from evotree.fitness.probabilities import HALVINGS, LEAST, Strength
from evotree.front import FrontTree
from evotree.leaf_models import (
    LARGEST_SCORE,
    LeafModels,
    ScoreModels,
    SharedModels,
)
from evotree.operators.initialization.logistic import SoftTree, tree_of_model
from evotree.operators.structure.rounding import round_models
from evotree.rng import as_generator, own_streams
from evotree.schema import TRUTH, Bend, NumericColumn
from evotree.tree import ObliqueTree

OCTILES = tuple(k / 8 for k in range(1, 8))
"""Quantiles of the rows at which hinges have their knots."""

PENALTIES = tuple(np.geomspace(1.0, 0.01, 11)[1:].tolist())
"""Shares of the least penalty that leaves no term; so a score has one, however shrunk."""

PENALTIES_OF_TARGETS = tuple(np.geomspace(1.0, 0.001, 16)[1:].tolist())
"""The same for targets, of which a line may tell nearly all."""

PENALTIES_OF_RATES = tuple(np.geomspace(1.0, 0.01, 13)[1:].tolist())
"""The same for rates, at shares of the L1 norm that are halved up to `HALVINGS` times."""

PENALTIES_AGAIN = tuple(np.geomspace(1.0, 0.0001, 24)[1:].tolist())
"""The same for the second fit, whose terms are penalized by what the first one found."""

NEAR_BEST = 1.01
"""The largest penalty is taken whose loss is within this of the least."""

MOST_FEATURES, MOST_BENT = 2_000, 128
"""How many features may be terms, and how many of them may bend."""

MOST_ROWS = 10_000
"""A score is fitted to no more rows than this, divided by the number of scores."""

HALF = 0.5
"""The weight of a tree, and of a score, in their sum."""

LEAST_SHARE = 1e-3
"""No share of a class counts as less in the points of a leaf."""

LEAST_INFLUENCE = 0.02
"""A term of less influence than this share of the strongest one's is left out."""

LEAST_OF_REST = 0.03
"""Of targets, than this share of the standard deviation that the score leaves."""

IDENTITY, LOGIT, LOG = range(3)
"""How the sum of terms is what a regression says: itself, log-odds, or the logarithm of a rate."""

_HELD_OUT_ROWS, _MAX_FOLDS = 600, 5
_MAX_ROUNDS, _MAX_SWEEPS, _ALL_EVERY = 20, 100, 10
_TOLERANCE = 1e-5  # change of the loss of a row, in a sweep
_LEAST_CURVATURE = 1e-5
_LEAST_SPREAD = 1e-12
_LARGEST_LOG_RATE = 30.0  # of rates in units of their mean, on the way
_DECIMALS = 2  # of points


class Score(NamedTuple):
    """Linear scores of classes, or of targets, over features and bends of these, in raw units.

    Of two classes there is one, the log-odds of the second; of more there is one for each.
    """

    features: np.ndarray  # of each term, of shape (n_terms,)
    bends: tuple[Bend | None, ...]  # of each term, None for the feature itself
    coefficients: np.ndarray  # (n_scores, n_terms)
    intercepts: np.ndarray  # (n_scores,)
    lowest: float = -LARGEST_SCORE  # of what targets are predicted
    highest: float = LARGEST_SCORE

    @property
    def n_terms(self) -> int:
        """Number of coefficients other than 0."""
        return int(np.count_nonzero(self.coefficients))

    def log_odds(self, raw: np.ndarray) -> np.ndarray:
        """Return the scores of rows for each class, of shape (n_rows, n_classes).

        Of two classes the first has 0.
        """
        scores = self.coefficients @ terms_of(raw, self.features, self.bends)
        return with_first_class(scores.T + self.intercepts)

    def predict(self, raw: np.ndarray) -> np.ndarray:
        """Return the targets of rows, of shape (n_rows,), within the range of those trained on."""
        sums = self.coefficients[0] @ terms_of(raw, self.features, self.bends)
        return np.clip(sums + self.intercepts[0], self.lowest, self.highest)

    def joined(self, tree: ObliqueTree, raw: np.ndarray) -> np.ndarray:
        """Return the probabilities of the sum of this and a tree over raw features, both halved."""
        points = points_of(tree)[tree.apply(raw)]
        return softmax(HALF * self.log_odds(raw) + points, axis=1)


def with_first_class(scores: np.ndarray) -> np.ndarray:
    """Return scores of all classes: of two classes the first has 0."""
    if scores.shape[1] > 1:
        return scores
    return np.hstack([np.zeros_like(scores), scores])


def terms_of(
    raw: np.ndarray, features: np.ndarray, bends: Sequence[Bend | None]
) -> np.ndarray:
    """Return the terms of rows, of shape (n_terms, n_rows)."""
    columns = np.empty((len(features), len(raw)))
    for column, j, bend in zip(columns, features.tolist(), bends, strict=True):
        column[:] = raw[:, j] if bend is None else bend.of(raw[:, j])
    return columns


@kernel
def l1_path(columns, y, weight, penalties, share, link, coefficients, intercepts):
    """Write the coefficients and intercepts of regressions at falling penalties.

    The rows of `columns` are standardized terms; weights add up to 1. A share of a penalty is that
    of the absolute values of coefficients, the rest of half their squares (the elastic net). By
    `LOGIT` `y` is 0 or 1, and has both; by `LOG` it has rates, and loses Poisson's deviance; by
    `IDENTITY` it loses half the squared error.
    """
    m, n = columns.shape
    b = np.zeros(m)
    mean = 0.0
    for i in range(n):
        mean += weight[i] * y[i]
    intercept = mean
    if link == LOGIT:
        intercept = math.log(mean / (1.0 - mean))
    elif link == LOG:
        intercept = math.log(mean)
    sums = np.full(n, intercept)
    w, r = np.empty(n), np.empty(n)
    is_in = np.zeros(m, dtype=np.bool_)
    curvature = np.empty(m)
    last = np.inf
    for k in range(penalties.shape[0]):
        penalty = share * penalties[k]
        ridge = penalties[k] - penalty
        for rounds in range(_MAX_ROUNDS):
            total = 0.0
            for i in range(n):
                w[i], p = weight[i], sums[i]
                if link == LOGIT:
                    p = 1.0 / (1.0 + math.exp(-p))
                    w[i] = weight[i] * max(p * (1.0 - p), _LEAST_CURVATURE)
                elif link == LOG:
                    p = math.exp(min(p, _LARGEST_LOG_RATE))
                    w[i] = weight[i] * max(p, _LEAST_CURVATURE)
                r[i] = weight[i] * (y[i] - p)
                total += w[i]
            # The strong rule says which terms may enter; later rounds add what it has missed.
            is_first = rounds == 0 and last < np.inf
            bound = 2.0 * penalty - last if is_first else penalty
            for j in range(m):
                gradient = 0.0
                for i in range(n):
                    gradient += columns[j, i] * r[i]
                is_in[j] = b[j] != 0.0 or abs(gradient) >= bound
                if is_in[j]:
                    curvature[j] = ridge
                    for i in range(n):
                        curvature[j] += w[i] * columns[j, i] ** 2
            first_change = 0.0
            for sweep in range(_MAX_SWEEPS):
                step = 0.0
                for i in range(n):
                    step += r[i]
                step /= total
                intercept += step
                for i in range(n):
                    sums[i] += step
                    r[i] -= w[i] * step
                change = total * step * step
                for j in range(m):
                    if not is_in[j] or (sweep % _ALL_EVERY and b[j] == 0.0):
                        continue
                    gradient = 0.0
                    for i in range(n):
                        gradient += columns[j, i] * r[i]
                    goal = gradient + (curvature[j] - ridge) * b[j]
                    shrunk = max(abs(goal) - penalty, 0.0) / curvature[j]
                    step = math.copysign(shrunk, goal) - b[j]
                    if step != 0.0:
                        b[j] += step
                        for i in range(n):
                            sums[i] += step * columns[j, i]
                            r[i] -= w[i] * step * columns[j, i]
                        change = max(change, curvature[j] * step * step)
                if sweep == 0:
                    first_change = change
                if change < _TOLERANCE:
                    break
            if first_change < _TOLERANCE:
                break
        last = penalty
        coefficients[k] = b
        intercepts[k] = intercept


class _Terms:
    """The terms that the rows of a fit offer, standardized by these."""

    def __init__(self, rows: Dataset, bends: bool) -> None:
        self.weight = rows.sample_weight / rows.total_weight
        offered = list(_offered(rows, self.weight, bends))
        features = np.array([j for j, _ in offered], dtype=np.int64)
        of_terms = [bend for _, bend in offered]
        columns = terms_of(rows.raw, features, of_terms)
        mean = columns @ self.weight
        columns -= mean[:, None]
        spread = np.sqrt([self.weight @ column**2 for column in columns])
        kept = np.flatnonzero(spread > _LEAST_SPREAD * (1.0 + np.abs(mean)))
        self.features, self.bends = features[kept], tuple(of_terms[j] for j in kept)
        self.mean, self.spread = mean[kept], spread[kept]
        self.standardized = columns if len(kept) == len(columns) else columns[kept]
        self.standardized /= self.spread[:, None]

    def place(self, raw: np.ndarray) -> np.ndarray:
        """Return the terms of other rows, in the same standard units."""
        columns = terms_of(raw, self.features, self.bends)
        columns -= self.mean[:, None]
        columns /= self.spread[:, None]
        return columns

    def path(
        self,
        y: np.ndarray,
        shares: Sequence[float],
        freedom: np.ndarray,
        *,
        link: int,
        l1_share: float = 1.0,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients (n_penalties, n_terms) and intercepts, of standardized terms.

        The penalties are shares of the least one that leaves no term; that of a term is divided by
        its freedom, and terms without any stay out. A class that no row has, or all have, has none.
        """
        coefficients = np.zeros((len(shares), len(self.features)))
        intercepts = np.zeros(len(shares))
        if link == LOGIT and y.min() == y.max():
            odds = math.log(LEAST / (1.0 - LEAST))
            return coefficients, intercepts + (-odds if y.max() else odds)
        is_open = np.flatnonzero(freedom > 0.0)
        columns = self.standardized
        if len(is_open) < len(columns) or (freedom != 1.0).any():
            columns = columns[is_open] * freedom[is_open, None]
        rest = self.weight * (y - self.weight @ y)
        largest = np.abs(columns @ rest).max(initial=0.0)
        found = np.zeros((len(shares), len(is_open)))
        penalties = largest / l1_share * np.asarray(shares)
        l1_path(columns, y, self.weight, penalties, l1_share, link, found, intercepts)
        coefficients[:, is_open] = found * freedom[is_open]
        return coefficients, intercepts


def _offered(
    rows: Dataset, share: np.ndarray, bends: bool
) -> Iterator[tuple[int, Bend | None]]:
    """Yield features and their bends: columns of numbers have hinges at their octiles.

    Of many features those are offered that are most correlated with the classes.
    """
    schema = rows.schema
    order = np.argsort(-correlations(rows, share), kind="stable")
    bent = set(order[:MOST_BENT].tolist())
    for j in np.sort(order[:MOST_FEATURES]).tolist():
        yield j, None
        column = schema[schema.column_of[j]]
        is_number = schema.levels[j] is None and isinstance(column, NumericColumn)
        if bends and j in bent and is_number and column.holds != TRUTH:
            for bend in bends_of(rows.raw[:, j], share, OCTILES):
                yield j, bend


def fit_score(
    rows: Dataset, end: float = math.inf, *, bends: bool = True
) -> Score | None:
    """Return the score of rows; None where there is nothing to tell apart, or no time.

    Columns have hinges if `bends` is true. It is the same for all seeds.
    """
    if len(np.unique(rows.y)) < 2 or time.perf_counter() >= end:
        return None
    labels = [1] if rows.n_classes <= 2 else list(range(rows.n_classes))
    of_folds, _, of_rows, _ = own_streams()
    rows = _thinned(rows, MOST_ROWS // len(labels), of_rows)
    terms = _Terms(rows, bends)
    if not len(terms.features):
        return None
    folds = list(_folds_of(rows, of_folds, end, bends))
    fits = [_fitted(terms, rows, folds, label) for label in labels]
    coefficients = np.array([one for one, _ in fits])
    used = np.flatnonzero(coefficients.any(axis=0))
    coefficients = coefficients[:, used] / terms.spread[used]
    intercepts = np.array([one for _, one in fits]) - coefficients @ terms.mean[used]
    bends_used = tuple(terms.bends[j] for j in used.tolist())
    if rows.n_classes:
        return Score(terms.features[used], bends_used, coefficients, intercepts)
    return Score(
        terms.features[used],
        bends_used,
        rows.target_scale * coefficients,
        rows.target_mean + rows.target_scale * intercepts,
        lowest=float(rows.raw_targets.min()),
        highest=float(rows.raw_targets.max()),
    )


class _Fold(NamedTuple):
    """What a score is fitted to, and what judges its penalties."""

    terms: _Terms
    rows: Dataset
    held_out: Dataset
    columns: np.ndarray  # the terms of the rows held out, (n_terms, n_rows)


def _folds_of(
    rows: Dataset, stream: np.ndarray, end: float, bends: bool
) -> Iterator[_Fold]:
    """Yield folds until so many rows are held out as tell penalties apart."""
    n_folds = fold_count(rows, _MAX_FOLDS)
    if n_folds == 0:
        return
    folds = make_folds(rows, n_folds, stream)
    for fold in range(min(n_folds, math.ceil(_HELD_OUT_ROWS * n_folds / rows.n_rows))):
        others, held_out = split_folds(rows, folds, fold)
        if min(others.n_distinct, held_out.n_distinct) == 0:
            continue
        if time.perf_counter() >= end:
            return
        terms = _Terms(others, bends)
        yield _Fold(terms, others, held_out, terms.place(held_out.raw))


def _fitted(
    terms: _Terms, rows: Dataset, folds: Sequence[_Fold], label: int
) -> tuple[np.ndarray, float]:
    """Return the coefficients of standardized terms, and the intercept, of one score.

    That of targets is fitted twice: the second penalty of a term is the less, the stronger it was
    at first, so that half as many terms tell as much (the adaptive lasso, Zou 2006). Scores of
    classes rank worse then.
    """
    link = LOGIT if rows.n_classes else IDENTITY
    y = _target(rows, label)
    freedom = np.ones(len(terms.features))
    freedoms = [np.ones(len(one.terms.features)) for one in folds]
    shares = PENALTIES if rows.n_classes else PENALTIES_OF_TARGETS
    lost, found = _held_out_losses(folds, label, shares, freedoms)
    at = int(lost.argmin())
    path = terms.path(y, shares[: at + 1], freedom, link=link)
    strength = np.abs(path[0][-1])
    least = LEAST_INFLUENCE * strength.max()
    if not rows.n_classes:
        freedoms = [np.abs(several[at]) for several in found]
        lost, _ = _held_out_losses(folds, label, PENALTIES_AGAIN, freedoms)
        at = int((lost <= NEAR_BEST * lost.min()).argmax())
        path = terms.path(y, PENALTIES_AGAIN[: at + 1], strength, link=link)
        # Hinges of one column may be far stronger than what they add up to.
        rest = y - path[1][-1] - path[0][-1] @ terms.standardized
        least = LEAST_OF_REST * math.sqrt(terms.weight @ rest**2)
    coefficients, intercept = path[0][-1], float(path[1][-1])
    return np.where(np.abs(coefficients) < least, 0.0, coefficients), intercept


def _target(rows: Dataset, label: int) -> np.ndarray:
    """Return whether rows have a class, as 0 and 1, or their target in standard units."""
    return (rows.y == label).astype(np.float64) if rows.n_classes else rows.y


def _held_out_losses(
    folds: Sequence[_Fold],
    label: int,
    shares: Sequence[float],
    freedoms: Sequence[np.ndarray],
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return what a score loses on rows held out at each penalty, and its coefficients of folds."""
    losses, found = np.zeros(len(shares)), []
    for fold, freedom in zip(folds, freedoms, strict=True):
        is_logistic = fold.rows.n_classes > 0
        y = _target(fold.rows, label)
        link = LOGIT if is_logistic else IDENTITY
        coefficients, intercepts = fold.terms.path(y, shares, freedom, link=link)
        sums = coefficients @ fold.columns + intercepts[:, None]
        truth = _target(fold.held_out, label)
        if is_logistic:
            probability = np.clip(expit(sums), LEAST, 1.0 - LEAST)
            lost = -np.log(np.where(truth > 0.0, probability, 1.0 - probability))
        else:
            lost = (np.clip(sums, y.min(), y.max()) - truth) ** 2
        losses += lost @ fold.held_out.sample_weight
        found.append(coefficients)
    return losses, found


# ---- rates ---------------------------------------------------------------------------------------


def rate_models(
    rows: Dataset, used: np.ndarray | None = None, strength: Strength | None = None
) -> dict[Strength, np.ndarray]:
    """Return log-linear models of rates, scores (1, n_features + 1) of the features and 1.

    They are of all strengths, or of one; `used` is a mask of the features that have terms.
    """
    some = _thinned(rows, MOST_ROWS, own_streams()[2])
    terms = _Terms(some, bends=False)
    y = rows_of_counts(some).y
    is_used = np.ones(rows.X.shape[1], dtype=bool) if used is None else used
    freedom = is_used[terms.features].astype(np.float64)
    models: dict[Strength, np.ndarray] = {}
    for halvings in range(HALVINGS + 1) if strength is None else [strength.halvings]:
        costs = [1.0 / share for share in PENALTIES_OF_RATES]
        if strength is not None:
            costs = [*(C for C in costs if C < strength.C), strength.C]
        shares = [1.0 / C for C in costs]
        path = terms.path(y, shares, freedom, link=LOG, l1_share=0.5**halvings)
        for C, coefficients, intercept in zip(costs, *path, strict=True):
            raw = np.zeros((1, rows.X.shape[1] + 1))
            raw[0, terms.features] = coefficients / terms.spread
            raw[0, -1] = intercept - raw[0, terms.features] @ terms.mean
            raw[0, -1] += raw[0, :-1] @ rows.mean
            raw[0, :-1] *= rows.scale
            models[Strength(C, halvings)] = raw
    return models if strength is None else {strength: models[strength]}


def _thinned(rows: Dataset, most: int, stream: np.ndarray) -> Dataset:
    """Return some rows, drawn at random, where there are more."""
    if rows.n_rows <= most:
        return rows
    return rows.subsample(as_generator(stream).choice(rows.n_rows, most, replace=False))


# ---- trees on a score ----------------------------------------------------------------------------


class Widened(NamedTuple):
    """Rows that have the bends of a score as features."""

    rows: Dataset
    score: Score
    old: np.ndarray  # positions of the features that there were before
    coefficients: (
        np.ndarray
    )  # of the score over all features, (n_classes or 1, n_features)
    intercepts: np.ndarray  # (n_classes or 1,)

    @classmethod
    def of(cls, rows: Dataset, score: Score, scaling: str) -> "Widened":
        """Return rows with the features that a score has."""
        before = rows.schema
        of_feature = before.column_of[score.features].tolist()
        columns = list(before.columns)
        for c, bend in zip(of_feature, score.bends, strict=True):
            if bend is not None and bend not in columns[c].bends:
                columns[c] = replace(columns[c], bends=(*columns[c].bends, bend))
        schema = replace(before, columns=tuple(columns))
        place = {
            pair: k
            for k, pair in enumerate(
                zip(schema.column_of.tolist(), schema.levels, strict=True)
            )
        }
        pairs = list(zip(before.column_of.tolist(), before.levels, strict=True))
        old = np.array([place[pair] for pair in pairs])
        terms = [
            place[pairs[j] if bend is None else (pairs[j][0], bend)]
            for j, bend in zip(score.features.tolist(), score.bends, strict=True)
        ]
        wide = schema.with_bends(before.without_bends(rows.raw))
        coefficients = np.zeros((len(score.coefficients), wide.shape[1]))
        coefficients[:, terms] = score.coefficients
        return cls(
            rows.with_schema(schema, wide, scaling),
            score,
            old,
            with_first_class(coefficients.T).T if rows.n_classes else coefficients,
            with_first_class(score.intercepts[None])[0]
            if rows.n_classes
            else score.intercepts,
        )

    def tree(self, tree: Any) -> Any:
        """Return a tree over raw features, or a member of a front, over the wider ones."""
        models = tree.models
        if models is not None:
            models = models.with_each(
                [
                    one._replace(coefficients=self._wide(one.coefficients))
                    for one in models.each
                ]
            )
        wide = tree.replaced(
            weights=self._wide(tree.weights),
            models=models,
            spread=self.rows.spread * self.rows.scale,
        )
        if not isinstance(tree, FrontTree):
            return wide
        return FrontTree.of(wide, tree.quality, tree.origin, tree.scores, tree.sides)

    def _wide(self, weights: np.ndarray) -> np.ndarray:
        """Return weights of the features before over the wider ones."""
        wide = np.zeros((len(weights), self.rows.raw.shape[1]))
        wide[:, self.old] = weights
        return wide

    @property
    def line(self) -> LeafModels:
        """The score of targets as the model of one leaf."""
        bounds = np.array([[self.score.lowest], [self.score.highest]])
        return LeafModels(self.intercepts, self.coefficients, *bounds)

    def rounded(self, precision: Any) -> "Widened":
        """Return the same with a score of targets that is written in few digits."""
        leaf = one_leaf(self.rows).with_models(self.line)
        rows = self.rows
        line = round_models(leaf, rows.raw, precision, rows.sample_weight).models
        return self._replace(coefficients=line.coefficients, intercepts=line.intercepts)

    def on_score(self, tree: ObliqueTree) -> ObliqueTree:
        """Return a tree over the wider features that stands on the score.

        Of classes both are halved. That of targets has models of what the score leaves.
        """
        if self.rows.n_classes == 0:
            return on_line(tree, self.line, self.rows.refill(tree))
        points = points_of(tree) + HALF * self.intercepts
        return tree.with_models(ScoreModels.of(points, HALF * self.coefficients))

    def alone(self) -> ObliqueTree | SoftTree | None:
        """Return the score alone: a split for two classes, else a linear machine in one leaf."""
        if self.rows.n_classes == 2:
            rows = self.rows
            model = self.coefficients[1] * rows.scale
            intercept = self.intercepts[1] + self.coefficients[1] @ rows.mean
            return tree_of_model(rows, np.append(model, intercept))
        models = ScoreModels.of(self.intercepts[None], self.coefficients)
        return one_leaf(self.rows).with_models(models)


def again_on_score(tree: ObliqueTree, models: ScoreModels) -> ObliqueTree:
    """Return a tree with points of its rows on the score of an earlier one."""
    points = points_of(tree)
    made = ScoreModels.of(models.points[0] + points - points[0], models.score)
    return tree.with_models(made)


def points_of(tree: ObliqueTree) -> np.ndarray:
    """Return half the log-odds of the classes in each node, of shape (n_nodes, n_classes).

    A node has one row more, which has the class shares of all rows.
    """
    weight = tree.known_samples[:, None]
    shares = (tree.values * weight + tree.values[0]) / (weight + 1.0)
    points = HALF * np.log(np.maximum(shares, LEAST_SHARE))
    first = (
        points[:, :1] if points.shape[1] == 2 else points.mean(axis=1, keepdims=True)
    )
    return points - first


def rounded_score(tree: ObliqueTree, rows: Dataset, precision: Any) -> ObliqueTree:
    """Return a tree on a score that is written in few digits; points have two decimals."""
    if precision is None:
        return tree
    models = tree.models
    line = one_leaf(rows).with_models(ScoreModels.of(models.points[:1], models.score))
    score = round_models(line, rows.raw, precision, rows.sample_weight).models.score
    return tree.with_models(ScoreModels.of(np.round(models.points, _DECIMALS), score))


def on_line(tree: ObliqueTree, score: LeafModels, same: ObliqueTree) -> ObliqueTree:
    """Return a tree with models of what a score of targets leaves, on this score.

    The means of nodes are those of the same tree of the targets.
    """
    models = SharedModels.of(score, tree.models, tree.is_leaf)
    return tree.replaced(models=models, values=same.values)


def rest_of(rows: Dataset, score: LeafModels) -> Dataset:
    """Return rows with what a score over their features leaves of the targets."""
    told = score.predict(rows.raw, np.zeros(rows.n_distinct, dtype=np.int64))
    return rows.with_targets(rows.raw_targets - told)


def one_leaf(rows: Dataset) -> ObliqueTree:
    """Return a tree of one leaf over raw features."""
    leaf = leaf_of(rows.X.shape[1])
    return rows.refill(leaf.replaced(spread=rows.spread * rows.scale))


def blank_leaf(rows: Dataset) -> ObliqueTree:
    """Return a tree of one leaf over raw features, whose model predicts 0."""
    leaf = one_leaf(rows)
    zero = np.zeros(1)
    models = LeafModels(zero, np.zeros((1, leaf.n_features)), zero, zero)
    return leaf.with_models(models)
