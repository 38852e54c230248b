"""The script of a page runs, by Node: what it says of rows."""

import json
import shutil
import subprocess
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

from evotree.cli.commands import report_of_model
from evotree.model_file import Model
from tests.export.languages import Answer

NODE = shutil.which("node")


def page(cases):
    """Run the script of the page about a model, for all cases at once."""
    pages = []
    for case in cases:
        model = Model("y", case.members)
        data = report_of_model(model, None).data
        frame = pd.DataFrame(case.rows, columns=model.schema.names)
        cells = [frame[column["name"]].tolist() for column in data["columns"]]
        pages.append(
            data | {"rows": {"numbers": list(range(len(frame))), "cells": cells}}
        )
    rows = run_page(
        pages,
        """data.forest ? [null, model.vote(x)]
        : [model.predict(model.own, x), data.classes && model.probabilities(model.own, x)]""",
    )
    found = []
    for case, answers in zip(cases, rows, strict=True):
        predicted, said = map(list, zip(*answers, strict=True))
        if len(case.trees) > 1:  # the page draws the vote by its numbers
            shares = np.array(said)
            predicted = shares[:, 0] if case.classes is None else shares.argmax(axis=1)
        found.append(Answer(predicted, said if case.classes is not None else None))
    return found


def run_page(pages, expression):
    """Return what the script of pages says of their rows ``x``, as a browser would run it."""
    if NODE is None:
        pytest.skip("there is no node")
    script = (files("evotree.report") / "templates" / "model.js").read_text("utf-8")
    script += f"""
    const pages = JSON.parse(require("fs").readFileSync(0, "utf-8"));
    console.log(JSON.stringify(pages.map((data) => {{
        const model = Model(data);
        const rows = data.rows.numbers.map((_, i) =>
            model.encode(data.rows.cells.map((column) => column[i])));
        return rows.map((x) => {expression});
    }})));"""
    options = {"capture_output": True, "text": True, "check": True}
    done = subprocess.run([NODE, "-e", script], input=json.dumps(pages), **options)
    return json.loads(done.stdout)
