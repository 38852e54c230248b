"""A naive twin of C4.5 for numbers: recursion over lists of rows ``(values, class)``.

Quinlan (1993, chapters 2 and 4; 1996). A node is a list: ``[counts]``, or
``[counts, feature, threshold, left, right]``.
"""

from math import log, log2, sqrt

TABLE = ((0, 4.0), (0.001, 3.09), (0.005, 2.58), (0.01, 2.33), (0.05, 1.65), (0.1, 1.28),
         (0.2, 0.84), (0.4, 0.25), (1.0, 0.0))  # fmt: skip


def count(rows, n_classes):
    """Return the rows of each class."""
    return [sum(y == c for _, y in rows) for c in range(n_classes)]


def information(parts):
    """Return the entropy of counts in bits."""
    total = sum(parts)
    return -sum(p / total * log2(p / total) for p in parts if p > 0)


def test_of_feature(rows, j, n_classes):
    """Return the gain with the price of the threshold, the split information and the middle."""
    total = len(rows)
    least = 0.1 * total / n_classes
    least = 2.0 if least <= 2.0 else min(25.0, least)
    whole = information(count(rows, n_classes))
    best, tried = (1e-6, None), 0
    values = sorted({x[j] for x, _ in rows})
    for low, high in zip(values, values[1:], strict=False):
        left = count([row for row in rows if row[0][j] <= low], n_classes)
        right = count([row for row in rows if row[0][j] > low], n_classes)
        if min(sum(left), sum(right)) < least - 1e-6:
            continue
        tried += 1
        after = sum(sum(side) * information(side) for side in (left, right)) / total
        gain = whole - after
        if gain > best[0] + (1e-6 if best[1] else 0.0):
            best = gain, (information([sum(left), sum(right)]), (low + high) / 2)
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
    """Return the rows of both sides."""
    left = [row for row in rows if row[0][j] <= threshold]
    return left, [row for row in rows if row[0][j] > threshold]


def grow(rows, everyone, n_classes):
    """Return the tree of rows, collapsed where it gets no more training rows right."""
    counts = count(rows, n_classes)
    classes = {y for _, y in rows}
    test = None
    if len(classes) > 1 and sum(counts) >= 4.0:
        test = best_test(rows, n_classes)
    if test is None:
        return [counts]
    j, middle = test
    limit = middle + 1e-13 * abs(middle)
    threshold = max(x[j] for x, _ in everyone if x[j] <= limit)
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
    """Return the counts of the leaves."""
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
    if e == 0:
        return none
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
    return n - max(counts) + added(n, n - max(counts), confidence)


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
    """Return the tree of C4.5."""
    rows = list(zip(X.tolist(), y.tolist(), strict=True))
    return prune(grow(rows, rows, n_classes), rows, n_classes, confidence)[0]


def shares_of(node, x):
    """Return the class shares of the leaf of a row."""
    counts = node[0]
    if len(node) == 1:
        return [count / sum(counts) for count in counts]
    _, j, threshold, left, right = node
    return shares_of(left if x[j] <= threshold else right, x)
