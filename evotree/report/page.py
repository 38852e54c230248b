"""The page of a report: data, script and styles in one file of HTML that asks for nothing else."""

import json
from dataclasses import replace
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from sklearn.utils.validation import check_is_fitted

from evotree.files import PathLike, write_whole
from evotree.report.data import Subject, collect, short

# What would end the element of the data, or the line of a script.
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


class Report:
    """A page about a model, of `evotree.report.data.collect`. A notebook shows it."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    @property
    def html(self) -> str:
        """The page: one document of HTML with everything that it needs."""
        folder = files("evotree.report") / "templates"
        paths = {"style": "report.css", "model": "model.js", "script": "report.js"}
        paths |= {"d3": "d3/d3.min.js", "licence": "d3/LICENSE"}
        parts = {
            name: (folder / path).read_text("utf-8") for name, path in paths.items()
        }
        page = Template((folder / "report.html").read_text("utf-8"))
        data = json.dumps(self.data, separators=(",", ":"), allow_nan=False)
        for sign, code in _UNSAFE.items():
            data = data.replace(sign, code)
        return page.substitute(
            parts, title=escape(f"Report: {short(self.data['target'])}"), data=data
        )

    def save(self, path: PathLike) -> Path:
        """Write the page to a file."""
        content = self.html.encode("utf-8", "xmlcharrefreplace")
        write_whole(path, lambda file: file.write(content))
        return Path(path)

    def __repr__(self) -> str:
        n_trees = len(self.data["trees"])
        rows = self.data["rows"]
        n_rows = 0 if rows is None else rows["total"]
        return f"Report({n_trees} trees, {n_rows} rows); save(path) writes it"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the page in a frame, which sees nothing outside of it."""
        return (
            f'<iframe srcdoc="{escape(self.html)}" sandbox="allow-scripts" title="Report" '
            'style="width:100%;height:900px;border:1px solid #8884"></iframe>'
        )


def report(
    model: Any, X: Any = None, y: Any = None, *, stability: Any = None
) -> Report:
    """Return a page about a model, one file of HTML that needs no network.

    It draws the tree and those of the Pareto front, follows single rows through them, and shows
    figures, importances and the records of the search. Of a forest it shows how the trees vote and
    how far they agree, and each tree. A notebook shows the page; ``save(path)`` writes it.

    Parameters
    ----------
    model : fitted estimator of a tree or forest, or Subject
        The model; a `Subject` is what is known of one.
    X : array-like of shape (n_samples, n_features), optional
        Rows to follow and to measure on, best such as `fit` has not seen. The page holds a sample
        of them, at most 1,000; figures are of all. Those of a `Subject` are a DataFrame of just its
        columns, in their order.
    y : array-like of shape (n_samples,), optional
        Their labels or targets.
    stability : Stability, optional
        Of `evotree.inspection.stability.stability`, for a line about it.
    """
    if isinstance(model, Subject):
        return Report(collect(model, X, y))
    check_is_fitted(model)
    subject = Subject.of(model, getattr(y, "name", None))
    if subject.named.targets:
        n_outputs = len(subject.named.targets)
        raise ValueError(f"report: the tree has {n_outputs} outputs; a page shows one.")
    if stability is not None:
        subject = replace(
            subject,
            facts={
                **subject.facts,
                stability.summary.name: ", ".join(
                    f"{name} {value:.2f}" for name, value in stability.summary.items()
                ),
            },
        )
    return Report(collect(subject, None if X is None else model._cells(X), y))
