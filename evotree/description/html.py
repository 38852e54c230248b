"""A tree as HTML for a notebook or a page: branches that open and close, bars of class shares."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import numpy as np

from evotree.description.named import named_tree
from evotree.description.text import Wording, missing_lines
from evotree.description.words import walk

MAX_DEPTH = 100  # browsers nest elements no deeper than some hundred
OPEN_LEAVES = 32  # of larger trees, branches below some splits are closed at first
OPEN_DEPTH = 3  # of these splits
SHOWN_LEAVES = 256  # that notebooks show
SHOWN_TERMS = 10  # of a split or line, that notebooks show

_WHOLE = "font-family:sans-serif;font-size:13px;line-height:1.5;overflow-wrap:anywhere"
_BRANCH = "margin-left:1.3em;border-left:1px solid #ccc;padding-left:0.6em"
_BAR = "display:inline-flex;width:6em;height:0.7em;margin-right:0.6em;background:#ddd"
_NOTE = "color:#888;font-size:85%"


def export_html(
    tree: Any,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | np.ndarray | None = None,
    decimals: int | None = None,
    max_terms: int | None = None,
) -> str:
    """Return a tree as an element of HTML, a ``div`` without scripts.

    Splits, numbers of nodes, rows, class shares and linear models are those of `export_text`; a bar
    shows the class shares of a leaf, in the same order. A tree of more than 32 leaves is open down
    to its third level. ``IPython.display.HTML`` shows it.

    Parameters
    ----------
    tree, feature_names, class_names, decimals, max_terms
        As for `export_text`.

    Raises
    ------
    ValueError
        If an argument does not fit the tree, or that is deeper than 100 splits.
    """
    named = named_tree(tree, feature_names, class_names)
    if named.tree.depth > MAX_DEPTH:
        raise ValueError(
            f"the tree has depth {named.tree.depth}: HTML nests up to {MAX_DEPTH}."
        )
    body = "".join(_elements(Wording(named, decimals, max_terms)))
    if missing := " ".join(missing_lines(named)):
        body += f'<div style="{_NOTE}">{escape(missing)}</div>'
    return f'<div style="{_WHOLE}">{body}</div>\n'


def notebook_html(tree: Any) -> str:
    """Return what a notebook shows of a tree."""
    shown = getattr(tree, "tree_", tree)
    if shown.n_leaves > SHOWN_LEAVES or shown.depth > MAX_DEPTH:
        return f"<div><code>{escape(repr(shown))}</code></div>"
    return export_html(tree, max_terms=SHOWN_TERMS)


def _elements(words: Wording) -> Iterator[str]:
    """Yield the elements of all nodes, each branch inside of its split."""
    named = words.named
    n_open = OPEN_DEPTH if named.tree.n_leaves > OPEN_LEAVES else MAX_DEPTH
    inside = 0
    for k, depth, is_right in walk(named.tree):
        yield "</div></details>" * (inside - depth)
        yield "<div>else</div>" if is_right else ""
        rows = named.rows(k)
        note = f'<span style="{_NOTE}">[{k}]{f" {rows}" if rows else ""}</span> '
        inside = depth + named.is_split(k)
        if named.is_split(k):
            split = escape(" ".join(words.split(named.split(k))))
            yield f"<details{' open' if depth < n_open else ''}><summary>{note}{split}</summary>"
            yield f'<div style="{_BRANCH}">'
        elif named.classes is None:
            yield f"<div>{note}{escape(' '.join(words.predicted(k)))}</div>"
        else:
            values = named.row_shares[k]
            hues = (0.6 + np.arange(len(values)) / len(values)) % 1.0
            bars = "".join(
                f'<span style="height:100%;width:{100.0 * values[c]:.1f}%;'
                f'background:hsl({360.0 * hues[c]:.0f},60%,60%)"></span>'
                for c in named.class_order(k)
                if values[c] > 0.0
            )
            first, *others = map(escape, words.leaf_lines(k))
            said = ", ".join(
                [f'<span style="{_BAR}">{bars}</span><b>{first}</b>', *others]
            )
            yield f"<div>{note}{said}</div>"
    yield "</div></details>" * inside
