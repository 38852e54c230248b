"""The README's Python runs as it stands."""

import re
from pathlib import Path

import matplotlib.pyplot as plt

README = Path(__file__).parent.parent / "README.md"


def test_python_blocks_run_one_after_the_other(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 3
    names = {}
    for block in blocks:
        exec(block, names)  # the blocks build on each other, as a reader's session does
    printed = capsys.readouterr().out
    assert "petal" in printed and "class" in printed
    assert names["run"].generation == 300
    assert names["tree"].n_features == 4
    assert len(names["table"]) == names["model"].n_generations_ + 1
    assert len(plt.get_fignums()) == 7
    plt.close("all")


def test_links_lead_somewhere():
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert targets
    assert [target for target in targets if not (README.parent / target).exists()] == []
