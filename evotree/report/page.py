"""The page of a report: data, script and styles in one file of HTML that asks for nothing else."""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from evotree.files import PathLike, write_whole
from evotree.report.data import collect, short
from evotree.report.subject import Subject

# What would end the element of the data, or the line of a script.
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


class Report:
    """A page about a model. A notebook shows it, `save` writes it.

    Parameters
    ----------
    data : dict
        What the page shows, from `evotree.report.data.collect`.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    @property
    def html(self) -> str:
        """The page: one document of HTML with everything that it needs."""
        folder = files("evotree.report") / "templates"
        parts = {
            name: (folder / path).read_text(encoding="utf-8")
            for name, path in (
                ("style", "report.css"),
                ("model", "model.js"),
                ("script", "report.js"),
                ("d3", "d3/d3.min.js"),
                ("licence", "d3/LICENSE"),
            )
        }
        page = Template((folder / "report.html").read_text(encoding="utf-8"))
        data = json.dumps(self.data, separators=(",", ":"), allow_nan=False)
        for sign, code in _UNSAFE.items():
            data = data.replace(sign, code)
        title = escape(f"Report: {short(self.data['target'])}")
        return page.substitute(parts, title=title, data=data)

    def save(self, path: PathLike) -> Path:
        """Write the page to a file."""
        content = self.html.encode("utf-8", "xmlcharrefreplace")
        write_whole(path, lambda file: file.write(content))
        return Path(path)

    def __repr__(self) -> str:
        n_trees, rows = len(self.data["trees"]), self.data["rows"]
        n_rows = 0 if rows is None else rows["total"]
        return f"Report({n_trees} trees, {n_rows} rows); save(path) writes it"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the page in a frame, which sees nothing outside of it."""
        return (
            f'<iframe srcdoc="{escape(self.html)}" sandbox="allow-scripts" title="Report" '
            'style="width:100%;height:900px;border:1px solid #8884"></iframe>'
        )


def report(subject: Subject, cells: Any = None, y: Any = None) -> Report:
    """Make the report of a model."""
    return Report(collect(subject, cells, y))
