"""The Python of the README and of the documentation's pages runs as it stands."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parent.parent
README, DOCS = ROOT / "README.md", ROOT / "docs"
GUIDE = sorted(
    page for page in (DOCS / "guide").glob("*.md") if "```python" in page.read_text()
)


def run_blocks(path):
    """Run the blocks of a page one after the other, as a reader does; return their names."""
    blocks = re.findall(
        r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL
    )
    assert blocks
    names = {}
    for block in blocks:
        exec(block, names)
    return names


def fences(path, language):
    """Return the blocks of a page in some language."""
    text = path.read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize(
    "page", [README, DOCS / "getting_started.md"], ids=lambda page: page.stem
)
def test_the_first_pages_run_and_print_what_they_say(
    page, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    names = run_blocks(page)
    printed = capsys.readouterr().out.split()
    assert printed == " ".join(fences(page, "text")).split()
    assert names["model"].tree_.n_leaves == 4
    plt.close("all")


@pytest.mark.slow
@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.stem)
def test_the_guide_runs(page, tmp_path, monkeypatch):
    if page.stem == "dask":
        pytest.importorskip("dask.array")
    monkeypatch.chdir(tmp_path)
    names = run_blocks(page)
    if page.stem == "search":
        assert len(names["table"]) == names["seeded"].n_generations_ + 1
        assert (tmp_path / "evolution.gif").stat().st_size > 0
    if page.stem == "experiments":
        assert set(names["runs"].method) == {"CART", "TAO"}
    if page.stem == "toolbox":
        assert names["run"].generation == 300
        assert names["shifted"].generation == 5
        assert names["scored"].best.fitness.values[0] > -85.0  # always on, or off: -780
        assert names["islands"].n_generations_ >= 20
    plt.close("all")


@pytest.mark.parametrize("folder", ["guide", "results"])
def test_every_page_is_listed_and_linked(folder):
    listed = (DOCS / "index.md").read_text(encoding="utf-8")
    pages = {page.stem for page in (DOCS / folder).glob("*.md")}
    assert set(re.findall(rf"^{folder}/(\w+)$", listed, re.MULTILINE)) == pages
    assert set(re.findall(rf"\({folder}/(\w+)\.md\)", listed)) == pages


@pytest.mark.slow
def test_the_tutorial_says_what_its_models_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = (DOCS / "examples" / "plot_00_tutorial.py").read_text(encoding="utf-8")
    names = {}
    exec(code, names)
    chosen, front = names["model"]._chosen, names["model"].pareto_front_
    assert chosen.n_terms > names["model"].tree_.n_terms == 6
    assert any(tree == chosen for tree in front)
    columns = names["model"].feature_names_
    uses_region = chosen.weights.any(axis=0)
    assert uses_region[[name.startswith("region") for name in columns]].any()
    of_rule = names["rounder"].tree_.weights.any(axis=0)
    assert not of_rule[[name.startswith(("region", "age")) for name in columns]].any()
    assert names["further"].tree_.n_terms == 6  # nothing was added
    shown = names["figures"]["the edited tree"]
    assert shown["accuracy"] > names["figures"].loc["accuracy"].drop(shown.name).max()
    plt.close("all")
