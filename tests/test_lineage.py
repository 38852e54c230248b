"""The picture of the seeds that a population descends from."""

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from evotree.plotting import plot_lineage


def test_lineage_fills_the_picture():
    """The areas are the shares of the history, the survivor's at the bottom, and add up to 1."""
    shares = {"origin_dipole": [0.8, 0.5, 0.1], "origin_wodt": [0.2, 0.5, 0.9]}
    frame = pd.DataFrame({"gen": [0, 1, 2], "nevals": [10, 9, 8]} | shares)
    ax = plt.subplots()[1]
    assert plot_lineage(frame, ax=ax) is ax
    assert [area.get_label() for area in ax.collections] == ["wodt", "dipole"]
    tops = [area.get_paths()[0].vertices[:, 1].max() for area in ax.collections]
    assert tops == pytest.approx([0.9, 1.0])
    assert ax.get_ylim() == (0.0, 1.0)
    plot_lineage(frame, x="evaluations")
    with pytest.raises(ValueError, match="no chapter 'origin'"):
        plot_lineage(frame[["gen", "nevals"]])
