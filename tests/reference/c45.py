"""A naive twin of C4.5 for numbers: recursion over lists of rows ``(values, class, weight)``.

Quinlan (1993, chapters 2 to 4; 1996). Missing values are None. A node is a list: ``[counts]``, or
``[counts, feature, threshold, left, right]``.
"""

from math import log, log2, sqrt

TABLE = ((0, 4.0), (0.001, 3.09), (0.005, 2.58), (0.01, 2.33), (0.05, 1.65), (0.1, 1.28),
         (0.2, 0.84), (0.4, 0.25), (1.0, 0.0))  # fmt: skip


def count(rows, n_classes):
    """Return the weight of each class."""
    return [sum(w for _, y, w in rows if y == c) for c in range(n_classes)]


def information(parts):
    """Return the entropy of weights in bits."""
    total = sum(parts)
    return -sum(p / total * log2(p / total) for p in parts if p > 0)


def test_of_feature(rows, j, n_classes):
    """Return the gain with the price of the threshold, the split information and the middle."""
    total = sum(w for *_, w in rows)
    known = [row for row in rows if row[0][j] is not None]
    n_known = sum(w for *_, w in known)
    if not known:
        return None
    least = 0.1 * n_known / n_classes
    least = 2.0 if least <= 2.0 else min(25.0, least)
    whole = information(count(known, n_classes))
    best, tried = (1e-6, None), 0
    values = sorted({x[j] for x, *_ in known})
    for low, high in zip(values, values[1:], strict=False):
        left = count([row for row in known if row[0][j] <= low], n_classes)
        right = count([row for row in known if row[0][j] > low], n_classes)
        if min(sum(left), sum(right)) < least - 1e-6:
            continue
        tried += 1
        after = (
            sum(left) * information(left) + sum(right) * information(right)
        ) / n_known
        gain = n_known / total * (whole - after)
        if gain > best[0] + (1e-6 if best[1] else 0.0):
            parts = [p for p in (sum(left), sum(right), total - n_known) if p > 1e-12]
            best = gain, (information(parts), (low + high) / 2)
    if best[1] is None:
        return None
    gain = best[0] - log2(tried) / total
    return (gain, *best[1]) if gain > 1e-6 else None


def best_test(rows, n_classes):
    """Return the feature and threshold of the highest gain ratio of at least average gain."""
    tests = {j: test_of_feature(rows, j, n_classes) for j in range(len(rows[0][0]))}
    tests = {j: test for j, test in tests.items() if test}
    if not tests:
        return None
    average = sum(gain for gain, *_ in tests.values()) / len(tests)
    best, chosen = 0.0, None
    for j, (gain, split, middle) in tests.items():
        if gain >= average - 1e-3 and gain / split > best + 1e-6:
            best, chosen = gain / split, (j, middle)
    return chosen


def part(rows, j, threshold):
    """Return the rows of both sides; those that miss the value have a share of each."""
    left = [row for row in rows if row[0][j] is not None and row[0][j] <= threshold]
    right = [row for row in rows if row[0][j] is not None and row[0][j] > threshold]
    on_left, on_right = sum(w for *_, w in left), sum(w for *_, w in right)
    share = on_left / (on_left + on_right) if on_left + on_right > 0 else 0.5
    for x, y, w in rows:
        if x[j] is None:
            left += [(x, y, w * share)] * (share > 0)
            right += [(x, y, w * (1 - share))] * (share < 1)
    return left, right


def grow(rows, everyone, n_classes):
    """Return the tree of rows, collapsed where it gets no more training rows right."""
    counts = count(rows, n_classes)
    classes = {y for _, y, _ in rows}
    test = None
    if len(classes) > 1 and sum(counts) >= 4.0:
        test = best_test(rows, n_classes)
    if test is None:
        return [counts]
    j, middle = test
    known = [x[j] for x, *_ in everyone if x[j] is not None]
    threshold = max(value for value in known if value <= middle + 1e-13 * abs(middle))
    left, right = part(rows, j, threshold)
    node = [
        counts,
        j,
        threshold,
        grow(left, everyone, n_classes),
        grow(right, everyone, n_classes),
    ]
    wrong = sum(sum(leaf) - max(leaf) for leaf in leaves(node))
    return [counts] if wrong >= sum(counts) - max(counts) - 1e-3 else node


def leaves(node):
    """Return the class weights of the leaves."""
    return [node[0]] if len(node) == 1 else leaves(node[3]) + leaves(node[4])


def deviation(confidence):
    """Return the number of standard deviations of a confidence, between two entries of a table."""
    for (low, high), (after, then) in zip(TABLE, TABLE[1:], strict=False):
        if low < confidence <= after:
            return high + (then - high) * (confidence - low) / (after - low)
    raise ValueError(confidence)


def added(n, e, confidence):
    """Return the errors that are added to those of a leaf."""
    none = n * (1 - 2.718281828459045 ** (log(confidence) / n))
    if e < 1e-6:
        return none
    if e < 0.9999:
        return none + e * (added(n, 1.0, confidence) - none)
    if e + 0.5 >= n:
        return 0.67 * (n - e)
    c = deviation(confidence) ** 2
    share = (e + 0.5 + c / 2 + sqrt(c * ((e + 0.5) * (1 - (e + 0.5) / n) + c / 4))) / (
        n + c
    )
    return n * share - e


def expected(counts, confidence):
    """Return the errors to be expected of a leaf."""
    n = sum(counts)
    return n - max(counts) + added(n, n - max(counts), confidence) if n > 0 else 0.0


def refill(node, rows, n_classes):
    """Return a subtree with other rows."""
    counts = count(rows, n_classes)
    if len(node) == 1:
        return [counts]
    left, right = part(rows, node[1], node[2])
    return [
        counts,
        *node[1:3],
        refill(node[3], left, n_classes),
        refill(node[4], right, n_classes),
    ]


def prune(node, rows, n_classes, confidence):
    """Return the pruned tree, subtrees raised, and the errors to be expected of it."""
    leaf = expected(node[0], confidence)
    if len(node) == 1:
        return node, leaf
    sides = part(rows, node[1], node[2])
    pruned = [prune(node[3 + s], sides[s], n_classes, confidence) for s in (0, 1)]
    both = pruned[0][1] + pruned[1][1]
    weights = [sum(branch[0]) for branch, _ in pruned]
    largest = pruned[1 if weights[1] >= weights[0] else 0][0]
    raised = refill(largest, rows, n_classes)
    of_raised = sum(expected(counts, confidence) for counts in leaves(raised))
    if leaf <= min(of_raised, both) + 0.1:
        return [node[0]], leaf
    if of_raised <= both + 0.1:
        return prune(raised, rows, n_classes, confidence)
    return [*node[:3], pruned[0][0], pruned[1][0]], both


def c45(X, y, n_classes, confidence=0.25):
    """Return the tree of C4.5; NaN is missing."""
    rows = [
        ([None if value != value else value for value in x], c, 1.0)
        for x, c in zip(X.tolist(), y.tolist(), strict=True)
    ]
    return prune(grow(rows, rows, n_classes), rows, n_classes, confidence)[0]


def shares_of(node, x):
    """Return the class shares of a row, which goes both ways where a value is missing."""
    counts = node[0]
    if len(node) == 1:
        return [count / sum(counts) for count in counts]
    _, j, threshold, left, right = node
    if x[j] == x[j]:
        return shares_of(left if x[j] <= threshold else right, x)
    share = sum(left[0]) / (sum(left[0]) + sum(right[0]))
    pairs = zip(shares_of(left, x), shares_of(right, x), strict=True)
    return [share * a + (1 - share) * b for a, b in pairs]
