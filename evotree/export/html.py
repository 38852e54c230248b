"""A tree as HTML for a notebook or a page: branches that open and close, bars of class shares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import numpy as np

from evotree.export.named import NamedTree, check_shown, exact, named_tree
from evotree.export.text import missing_lines, model_pieces, output_pieces, split_pieces
from evotree.tree import node_depths

#: Browsers nest elements no deeper than some hundred.
MAX_DEPTH = 100

#: Of a tree of more leaves, branches below some splits are closed at first.
OPEN_LEAVES, OPEN_DEPTH = 32, 3

#: Leaves of a tree, and terms of a split or of a line, that notebooks show.
SHOWN_LEAVES, SHOWN_TERMS = 256, 10

_WHOLE = "font-family:sans-serif;font-size:13px;line-height:1.5;overflow-wrap:anywhere"
_BRANCH = "margin-left:1.3em;border-left:1px solid #ccc;padding-left:0.6em"
_BAR = "display:inline-flex;width:6em;height:0.7em;margin-right:0.6em;background:#ddd"
_PIECE = "height:100%"
_NOTE = "color:#888;font-size:85%"


def export_html(
    tree: Any,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | np.ndarray | None = None,
    decimals: int | None = None,
    max_terms: int | None = None,
) -> str:
    """Return a tree as an element of HTML, without scripts.

    Splits, numbers of nodes, rows, class shares and linear models are those of `export_text`; a bar
    shows the class shares of a leaf, in the same order. A tree of more than 32 leaves is open down
    to its third level. ``IPython.display.HTML`` shows it.

    Parameters
    ----------
    tree : ObliqueTree or fitted estimator
        As for `export_text`.
    feature_names : sequence of str, optional
        As for `export_text`.
    class_names : sequence, optional
        As for `export_text`.
    decimals : int, at least 0, or None, default=None
        As for `export_text`.
    max_terms : int, at least 1, or None, default=None
        As for `export_text`.

    Returns
    -------
    str
        A ``div``.

    Raises
    ------
    ValueError
        If the number of names does not fit the tree, `decimals` or `max_terms` is out of its range,
        or the tree is deeper than 100 splits.
    """
    check_shown(decimals, max_terms)
    named = named_tree(tree, feature_names, class_names)
    if named.tree.depth > MAX_DEPTH:
        raise ValueError(f"the tree has depth {named.tree.depth}: HTML nests up to {MAX_DEPTH}.")
    body = "".join(_elements(named, decimals, max_terms))
    if missing := " ".join(missing_lines(named)):
        body += f'<div style="{_NOTE}">{escape(missing)}</div>'
    return f'<div style="{_WHOLE}">{body}</div>\n'


def notebook_html(tree: Any) -> str:
    """Return what a notebook shows of a tree."""
    shown = getattr(tree, "tree_", tree)
    if shown.n_leaves > SHOWN_LEAVES or shown.depth > MAX_DEPTH:
        return f"<div><code>{escape(repr(shown))}</code></div>"
    return export_html(tree, max_terms=SHOWN_TERMS)


def _elements(named: NamedTree, decimals: int | None, max_terms: int | None) -> Iterator[str]:
    """Yield the elements of all nodes, each branch inside of its split."""
    tree = named.tree
    n_open = OPEN_DEPTH if tree.n_leaves > OPEN_LEAVES else MAX_DEPTH
    is_open = node_depths(tree.subtree_size) < n_open
    waiting: list[int | str] = [0]
    while waiting:
        k = waiting.pop()
        if isinstance(k, str):
            yield k
        elif tree.subtree_size[k] == 1:
            yield f"<div>{_note(named, k)}{_leaf(named, k, decimals, max_terms)}</div>"
        else:
            split = escape(" ".join(split_pieces(named, named.split(k), decimals, max_terms)))
            state = " open" if is_open[k] else ""
            yield f"<details{state}><summary>{_note(named, k)}{split}</summary>"
            inner = f'<div style="{_BRANCH}">'
            waiting += ["</div></details>", tree.right(k), "<div>else</div>"]
            waiting += [tree.left(k), inner]


def _note(named: NamedTree, k: int) -> str:
    """Return the number and the rows of a node, in grey."""
    rows = named.rows(k)
    return f'<span style="{_NOTE}">[{k}]{f" {rows}" if rows else ""}</span> '


def _leaf(named: NamedTree, k: int, decimals: int | None, max_terms: int | None) -> str:
    """Return what a leaf predicts, after a bar of its class shares."""
    if named.targets:
        return escape(" ".join(output_pieces(named, k, decimals, max_terms)))
    model = named.model(k)
    if model is not None:
        return escape(" ".join(model_pieces(named, model, decimals, max_terms)))
    if named.classes is None:
        return f"value: {exact(named.value(k), decimals)}"
    values = named.row_shares[k]
    hues = (0.6 + np.arange(len(values)) / len(values)) % 1.0
    bars = "".join(
        f'<span style="{_PIECE};width:{100.0 * values[c]:.1f}%;'
        f'background:hsl({360.0 * hues[c]:.0f},60%,60%)"></span>'
        for c in named.class_order(k)
        if values[c] > 0.0
    )
    shares = [*named.shares(k), *named.weighted(k)]
    first, *others = (f"{escape(name)}: {share}" for name, share in shares)
    bar = f'<span style="{_BAR}">{bars}</span>'
    return ", ".join([f"{bar}<b>{first}</b>", *others])
