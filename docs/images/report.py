"""Draw the pictures of the guide that show a report: ``python docs/images/report.py``.

Needs Chromium with its driver, and Selenium.
"""

import base64
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
from selenium import webdriver
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from evotree import EvoTreeClassifier, Regularization

HERE = Path(__file__).resolve().parent


def fitted_page(path: Path) -> None:
    """Write the page of a tree for breast cancer cells."""
    data = load_breast_cancer(as_frame=True)
    y = pd.Series(data.target_names[data.target], name="diagnosis")
    X, X_test, y, y_test = train_test_split(data.data, y, random_state=0, stratify=y)
    model = EvoTreeClassifier(
        size_penalty=0.001,
        term_penalty=0.0005,
        max_features_per_split=2,
        regularization=Regularization(noise=0.0),
        random_state=0,
    ).fit(X, y)
    model.report(X_test, y_test, path)


def shoot(driver: Any, name: str, scheme: str, element: str | None = None) -> None:
    """Take a picture of the window, or of an element of the page."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    if element is None:
        taken = driver.get_screenshot_as_png()
    else:
        box = driver.find_element("id", element).rect
        clip = {"x": box["x"], "y": box["y"], "width": box["width"], "height": box["height"]}
        asked = {"captureBeyondViewport": True, "clip": {**clip, "scale": 1}}
        answer = driver.execute_cdp_cmd("Page.captureScreenshot", asked)
        taken = base64.b64decode(answer["data"])
    (HERE / name).write_bytes(taken)
    print(f"wrote {HERE / name}")


def main() -> None:
    """Write ``report_wdbc.png``, ``report_wdbc_dark.png`` and ``report_trace.png``."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):
        options.add_argument(argument)
    options.add_argument("--window-size=1280,1000")
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        fitted_page(page)
        with webdriver.Chrome(options=options, service=service) as driver:
            driver.get(page.as_uri())
            shoot(driver, "report_wdbc.png", "light")
            driver.execute_script("evotreeReport.followRow(3)")
            shoot(driver, "report_wdbc_dark.png", "dark")
            shoot(driver, "report_trace.png", "light", "trace")


if __name__ == "__main__":
    main()
