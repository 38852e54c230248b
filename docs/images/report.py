"""Draw the pictures of reports in the guide: ``python docs/images/report.py DATA``.

DATA is the folder of the data sets of the benchmark (``docs/results/benchmark.md``), which has
sick, vehicle and concrete; the others come with scikit-learn. Needs Chromium with its driver,
Selenium, and Pillow, which makes the files small.
"""

import base64
import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
from PIL import Image
from selenium import webdriver
from selenium.webdriver.common.keys import Keys
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import train_test_split

from evotree import Evolution, EvoTreeClassifier, EvoTreeRegressor, Regularization
from evotree.experiments.datasets import load
from evotree.report import report

HERE = Path(__file__).resolve().parent
WIDTH, MARGIN = 1280, 16
SHARED = {
    "size_penalty": 0.001,
    "term_penalty": 0.0005,
    "evolution": Evolution(regularization=Regularization(noise=0.0)),
    "random_state": 0,
}
PARAMETERS = {
    "wdbc": {"max_split_terms": 2},
    "sick": {"max_split_terms": 2},
    "vehicle": {
        "size_penalty": 0.003,
        "max_split_terms": 3,
        "evolution": Evolution(regularization=Regularization(noise=0.1)),
    },
    "digits": {"max_split_terms": 4, "max_generations": 200},
    "concrete": {"size_penalty": 0.002, "max_split_terms": 2},
}
"""What differs from one model to the next."""


def rows_of(name: str, data_home: str) -> tuple[pd.DataFrame, pd.Series]:
    """Return features, and the target with its name."""
    if name == "wdbc":
        data = load_breast_cancer(as_frame=True)
        return data.data, pd.Series(data.target_names[data.target], name="diagnosis")
    if name == "digits":
        data = load_digits(as_frame=True)
        return data.data, data.target.rename("digit")
    loaded = load(name, data_home)
    texts = loaded.X.select_dtypes("object").columns
    X = loaded.X.astype(dict.fromkeys(texts, "category"))
    names = {"sick": "thyroid", "vehicle": "vehicle", "concrete": "strength"}
    return X, pd.Series(loaded.y, name=names[name])


def write_page(name: str, data_home: str, path: Path) -> None:
    """Fit a tree, and write its page with rows that it has not seen."""
    X, y = rows_of(name, data_home)
    is_regression = name == "concrete"
    rows = train_test_split(X, y, random_state=0, stratify=None if is_regression else y)
    X_train, X_test, y_train, y_test = rows
    kind = EvoTreeRegressor if is_regression else EvoTreeClassifier
    model = kind(**SHARED | PARAMETERS[name]).fit(X_train, y_train)
    report(model, X_test, y_test).save(path)


def shoot(driver: Any, name: str, scheme: str, first: str, last: str) -> None:
    """Take a picture of a page from one of its elements to another one below."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    top = driver.find_element("id", first).rect["y"] - MARGIN
    end = driver.find_element("id", last).rect
    height = end["y"] + end["height"] + MARGIN - top
    clip = {"x": 0, "y": top, "width": WIDTH, "height": height, "scale": 1}
    options = {"captureBeyondViewport": True, "clip": clip}
    answer = driver.execute_cdp_cmd("Page.captureScreenshot", options)
    picture = Image.open(io.BytesIO(base64.b64decode(answer["data"]))).convert("RGB")
    picture.quantize(256).save(HERE / name, optimize=True)
    print(f"wrote {HERE / name}, {(HERE / name).stat().st_size / 1e3:.0f} kB")


def move_threshold(driver: Any) -> None:
    """Edit the root of the page: its threshold grows by a tenth."""
    root = driver.find_element("css selector", "#tree .node")
    driver.execute_script("arguments[0].dispatchEvent(new Event('click'))", root)
    field = driver.find_element("id", "bench-number")
    moved = f"{1.1 * float(field.get_attribute('value')):.4g}"
    field.send_keys(Keys.CONTROL, "a", Keys.NULL, moved, Keys.ENTER)


def main(data_home: str, *names: str) -> None:
    """Write the pictures of some models, by default of all."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):
        options.add_argument(argument)
    options.add_argument(f"--window-size={WIDTH},1000")
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    with (
        tempfile.TemporaryDirectory() as folder,
        webdriver.Chrome(options=options, service=service) as driver,
    ):
        for name in names or PARAMETERS:
            page = Path(folder) / f"{name}.html"
            write_page(name, data_home, page)
            driver.get(page.as_uri())
            shoot(driver, f"report_{name}.png", "light", "title", "legend")
            if name == "wdbc":
                driver.execute_script("evotreeReport.followRow(3)")
                shoot(driver, "report_wdbc_dark.png", "dark", "title", "legend")
                shoot(driver, "report_trace.png", "light", "trace", "trace")
                move_threshold(driver)
                shoot(driver, "workbench.png", "light", "tree-title", "bench")


if __name__ == "__main__":
    main(*sys.argv[1:])
