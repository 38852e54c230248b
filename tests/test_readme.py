"""The Python of the README and of the guide runs as it stands."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parent.parent
README, GUIDE = ROOT / "README.md", ROOT / "docs" / "guide.md"


def run_blocks(path):
    """Run the blocks of a page one after the other, as a reader does; return their names."""
    blocks = re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 3
    names = {}
    for block in blocks:
        exec(block, names)
    return names


def test_the_readme_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_blocks(README)
    printed = capsys.readouterr().out
    assert "petal" in printed and "setosa" not in printed
    assert names["run"].generation == 300
    assert names["tree"].n_features == 4
    assert names["shifted"].generation == 5
    assert len(plt.get_fignums()) == 3
    assert (tmp_path / "evolution.gif").stat().st_size > 0
    plt.close("all")


@pytest.mark.slow
def test_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_blocks(GUIDE)
    assert len(names["table"]) == names["model"].n_generations_ + 1
    assert names["islands"].n_generations_ >= 20
    assert set(names["runs"].method) == {"CART", "TAO"}
    plt.close("all")


@pytest.mark.parametrize("page", [README, GUIDE, ROOT / "docs" / "design.md"])
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []
