"""Commands with tables and models of all kinds, hostile ones among them."""

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evotree import save_model
from evotree.cli import rows as command_line
from evotree.cli.main import main, make_parser
from tests.kinds import expected, kind_of, one_output, rows

# ---- tables as the model has them ----------------------------------------------------------------


def test_files_of_codes_keep_them(tmp_path):
    text = "code,y\n" + "01,01\n02,02\n03,03\n" * 9
    args = make_parser().parse_args(
        ["fit", str(tmp_path / "t.csv"), "--target", "y", "--categorical", "code"]
        + ["--out", str(tmp_path / "m.json")]
    )
    Path(args.data).write_text(text)
    rows = command_line.read_training_rows(args)
    assert sorted({*rows.y}) == sorted({*rows.X["code"]}) == ["01", "02", "03"]
    Path(args.data).write_text(text.replace("0", ""))
    assert sorted({*command_line.read_training_rows(args).y}) == [1, 2, 3]


# ---- every kind of leaf --------------------------------------------------------------------------


without_warnings = pytest.mark.filterwarnings("error")


@without_warnings
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


# ---- tables as strangers may send them -----------------------------------------------------------


# What ``evotree fit`` is told where nothing but the target is.
# ---- nothing is written but where it was asked ---------------------------------------------------


ROOT = Path(__file__).resolve().parents[2]


COMMANDS = """
import os, sys
from pathlib import Path
allowed = [os.path.realpath(path) for path in sys.argv[1].split(os.pathsep)]
data, out = Path(sys.argv[2]), Path(sys.argv[3])
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
CHANGES = {"os.mkdir": 1, "os.remove": 1, "os.rmdir": 1, "os.rename": 2, "os.truncate": 1,
           "os.chmod": 1, "os.utime": 1, "os.link": 2, "os.symlink": 2, "shutil.move": 2}
strays = set()
def watch(event, arguments):
    paths = arguments[:CHANGES.get(event, 0)]
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING:
        paths = arguments[:1]
    for path in paths:
        if isinstance(path, str | bytes | os.PathLike):
            real = os.path.realpath(os.fsdecode(path))
            if not any(os.path.commonpath([real, home]) == home for home in allowed):
                strays.add(f"{event} {real}")
sys.addaudithook(watch)
from evotree.cli.main import main
quick = ["--max-generations", "2", "--population-size", "4", "--size-penalty", "0.01"]
table, model = data / "table.csv", out / "model.json"
for command in (
    ["fit", table, "--target", "target", "--out", model, *quick],
    ["predict", model, table],
    ["predict", model, table, "--out", out / "predictions.csv", "--proba"],
    ["show", model, "--plot", out / "tree.png"],
    ["experiment", "run", data / "experiment.toml", "--data-home", data, "--out", out / "results"],
    ["experiment", "report", out / "results"],
):
    status = main([str(word) for word in command])
    assert status == 0, (status, command)
assert not strays, sorted(strays)
"""
EXPERIMENT = """
name = "small"
datasets = ["table"]
protocol.n_folds = 2
methods.CART.estimator = "sklearn.tree.DecisionTreeClassifier"
methods.EvoTree = {preset = "gea_odt", max_generations = 2}
"""


@pytest.mark.slow
def test_nothing_is_written_outside_the_paths_that_were_given(tmp_path):
    # The path is too long for sockets.
    names = (
        "work",
        "home",
        "data",
        "out",
        "matplotlib",
        "tmp" + 90 * "-",
    )
    work, home, data, out, matplotlib, temporary = (tmp_path / name for name in names)
    for folder in (work, home, data, out, matplotlib, temporary):
        folder.mkdir()
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    frame = pd.DataFrame(
        y[:, None] + 0.4 * rng.normal(size=(40, 2)), columns=["a", "b"]
    )
    frame.assign(target=np.array(["x", "y"])[y]).to_csv(data / "table.csv", index=False)
    frame.assign(target=y).to_csv(data / "iris.csv", index=False)
    (data / "experiment.toml").write_text(EXPERIMENT)
    allowed = (
        out,
        matplotlib,
        temporary,
        os.environ["NUMBA_CACHE_DIR"],
        "/dev",
        "/proc",
    )
    environment = {"HOME": home, "TMPDIR": temporary, "MPLCONFIGDIR": matplotlib}
    environment |= {"PYTHONPATH": ROOT, "PYTHONDONTWRITEBYTECODE": 1}
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, os.pathsep.join(map(str, allowed)), data, out],
        env=os.environ | {name: str(value) for name, value in environment.items()},
        cwd=work,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    written = {path.relative_to(out).parts[0] for path in out.rglob("*")}
    assert {"model.json", "predictions.csv", "tree.png", "results"} <= written
