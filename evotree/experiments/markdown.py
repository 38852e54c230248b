"""Tables in Markdown."""

from __future__ import annotations

import pandas as pd


def markdown_table(rows: pd.DataFrame, n_left: int = 1) -> str:
    """Return a table in Markdown.

    Parameters
    ----------
    rows : DataFrame of str
        Cells, ready to be shown; the names of the columns head the table.
    n_left : int, default=1
        So many columns are aligned to the left, the others to the right.

    Returns
    -------
    str
        The table's lines.
    """
    rules = ["---" if k < n_left else "---:" for k in range(rows.shape[1])]
    lines = [f"| {' | '.join(rows.columns)} |", f"|{'|'.join(rules)}|"]
    lines += [f"| {' | '.join(cells)} |" for cells in rows.itertuples(index=False, name=None)]
    return "\n".join(lines)


def mean_and_std(values: pd.Series, decimals: int) -> str:
    """Return ``mean ± standard deviation`` as text; the mean alone where there is one value."""
    if len(values) < 2:
        return f"{values.mean():.{decimals}f}"
    return f"{values.mean():.{decimals}f} ± {values.std():.{decimals}f}"
