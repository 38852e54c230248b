"""Every kind of leaf in every command."""

import io

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from evotree import save_model
from evotree.cli.main import main
from tests.kinds import expected, kind_of, one_output, rows

pytestmark = pytest.mark.filterwarnings("error")


@one_output
def test_commands_of_models(name, tmp_path, capsys):
    kind, X = kind_of(name), rows(1, 30)
    model, data = str(tmp_path / "model.json"), str(tmp_path / "data.csv")
    save_model(model, kind.model, "target")
    X.assign(target=expected(kind, X)).to_csv(data, index=False)

    def run(*arguments):
        assert main([*map(str, arguments)]) == 0, capsys.readouterr().err
        out, err = capsys.readouterr()
        assert out and "warning" not in err
        return out, err

    out, err = run("predict", model, data)
    predicted = pd.read_csv(io.StringIO(out), dtype=str).prediction
    if kind.classes is None:
        np.testing.assert_allclose(predicted.astype(float), kind.model.predict(X))
    else:
        assert predicted.tolist() == [*map(str, kind.model.predict(X))]
        shares = pd.read_csv(io.StringIO(run("predict", model, data, "--proba")[0]))
        np.testing.assert_allclose(shares, kind.model.predict_proba(X))
    assert ("R² 1.0000" if kind.classes is None else "accuracy 1.0000") in err
    assert "target" in run("show", model, "--plot", tmp_path / "tree.png")[0]
    for form in ("rules", "python", "c", "sql"):
        run("export", model, "--to", form)
    run("report", model, "--data", data, "--out", tmp_path / "page.html")
    assert "</html>" in (tmp_path / "page.html").read_text("utf-8")
    plt.close("all")
