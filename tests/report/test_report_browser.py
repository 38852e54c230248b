"""The page of a report in a real browser, where there is one: Chromium, driven by Selenium."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from evotree import EvoTreeSurvival
from evotree.cli.commands import report_of_model
from evotree.description.named import named_tree
from evotree.report import report
from evotree.report.page import measures
from evotree.tables.columns import encode
from tests.quick_models import BRIEF, evolved, seen_until
from tests.report.models import (
    edited,
    make_forest,
    make_model,
    make_subject,
    table,
    truth_of,
)

webdriver = pytest.importorskip("selenium.webdriver")
keys = pytest.importorskip("selenium.webdriver.common.keys")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (CHROMIUM and DRIVER), reason="there is no Chromium with its driver"
    ),
]


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.add_argument("--window-size=1280,900")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def open_page(browser, tmp_path):
    """Open a page; at the end nothing has failed in it, and nothing was fetched."""

    def opened(page):
        page.save(tmp_path / "page.html")
        browser.get((tmp_path / "page.html").as_uri())
        return browser

    yield opened
    assert browser.get_log("browser") == []
    fetched = "return performance.getEntriesByType('resource').map((one) => one.name)"
    assert browser.execute_script(fetched) == []
    assert browser.execute_script("return window.broken") is None


def make_page(kind):
    model, frame = make_model(kind), table()
    y = truth_of(model, frame)
    return model, frame, y, report(make_subject(model), frame, y)


def test_leaves_of_times_show_their_survival(open_page):
    X, y = seen_until()
    model = evolved(EvoTreeSurvival, leaves="constant", **BRIEF).fit(X, y)
    driver = open_page(report(model, X, y))
    leaves = list(model.leaf_notes_)
    assert len(leaves) > 1
    for k in leaves:
        click(driver, f"g.node[data-node='{k}']")
        panel = driver.find_element("id", "panel")
        assert model.leaf_notes_[k] in panel.text
        assert panel.find_elements("css selector", "figure path[stroke]")
    said = driver.find_element("id", "measures").text
    assert "concordance" in said and "Residuals" not in said


def test_a_forest_votes_in_the_page(open_page):
    model, frame = make_forest("classes"), table()
    page = report_of_model(model, frame.assign(**{model.target: model.predict(frame)}))
    driver = open_page(page)
    driver.find_element(
        "css selector", "#members button[aria-label='Show tree 2']"
    ).click()
    assert driver.find_element("id", "tree-title").text == "Tree 2, of 0 to 3"
    driver.execute_script("window.evotreeReport.followRow(5)")
    said = str(model.predict(frame)[5])
    assert driver.find_element("css selector", "#vote strong").text == said
    assert len(nodes(driver)) == model.trees[2].n_nodes
    assert not driver.find_element("id", "front-section").is_displayed()


def nodes(driver):
    return driver.find_elements("css selector", "#tree g.node")


def selected(driver):
    chosen = driver.find_elements("css selector", "#tree g.node[aria-selected=true]")
    assert len(chosen) == 1
    return int(chosen[0].get_attribute("data-node"))


def click(driver, selector):
    event = "dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    driver.execute_script(f"document.querySelector(arguments[0])?.{event}", selector)


def press(driver, key):
    driver.switch_to.active_element.send_keys(getattr(keys.Keys, key))


def test_a_typed_row_ends_in_the_leaf_of_apply(open_page):
    model, frame, _, page = make_page("soft")
    driver = open_page(page)
    some = frame.iloc[:: len(frame) // 12]
    leaves = model.tree.apply(encode(model.columns, some))
    for (_, row), leaf in zip(some.iterrows(), leaves, strict=True):
        for j, column in enumerate(page.data["columns"]):
            field = driver.find_element("id", f"cell-{j}")
            cell = row[column["name"]]
            is_missing = cell is None or cell != cell
            if "options" in column:
                text = "(missing)" if is_missing else cell
                options = field.find_elements("tag name", "option")
                next(
                    one for one in options if one.get_attribute("textContent") == text
                ).click()
            else:
                field.clear()
                field.send_keys("" if is_missing else repr(float(cell)))
        press(driver, "TAB")
        driver.find_element("id", "row-trace").click()
        told = driver.find_element("css selector", "#trace [data-leaf]")
        assert int(told.get_attribute("data-leaf")) == leaf == selected(driver)
        passed = driver.find_elements("css selector", "#tree g.node.passed")
        depth = len(driver.find_elements("css selector", "#trace .steps > li"))
        assert len(passed) == depth
    names = [column["name"] for column in page.data["columns"]]
    number = driver.find_element("id", f"cell-{names.index('a')}")
    number.clear()
    number.send_keys("0x10")
    driver.find_element("id", "row-trace").click()
    assert number.get_attribute("aria-invalid") == "true"
    assert "a: type a number" in driver.find_element("id", "row-message").text


def test_clicks_and_keys_fold(open_page):
    driver = open_page(make_page("classes")[3])
    driver.find_element("id", "unfold").click()
    n_nodes = len(driver.execute_script("return evotreeReport.model.own.nodes"))
    assert len(nodes(driver)) == n_nodes
    root = driver.find_element("css selector", "#tree g.node[data-node='0']")
    assert root.get_attribute("aria-expanded") == "true"
    click(driver, "g.node[data-node='0'] .fold")
    assert len(nodes(driver)) == 1
    root = driver.find_element("css selector", "#tree g.node[data-node='0']")
    assert root.get_attribute("aria-expanded") == "false"
    assert driver.switch_to.active_element == root
    press(driver, "SPACE")
    assert len(nodes(driver)) == n_nodes
    for key, node in (
        ("ARROW_RIGHT", 1),
        ("ARROW_DOWN", 2),
        ("END", n_nodes - 1),
        ("HOME", 0),
    ):
        press(driver, key)
        assert selected(driver) == node
    press(driver, "ARROW_LEFT")
    assert len(nodes(driver)) == 1
    assert "Split [0]" in driver.find_element("id", "panel").text


def tab_to(driver, name, *held):
    """Press Tab, perhaps with Shift, until an element of this id or class has the focus."""
    active = driver.switch_to.active_element
    if name in f"{active.get_attribute('id')} {active.get_attribute('class')}".split():
        return active
    active.send_keys(*held, keys.Keys.TAB)
    return tab_to(driver, name, *held)


def edit_split(driver, k, *held):
    """Go to a split of the drawing and on to its edits, by keys."""
    tab_to(driver, "node", *held)
    press(driver, "HOME")
    while selected(driver) != k:
        press(driver, "ARROW_DOWN")
    press(driver, "ENTER")


def all_texts(driver):
    """Return all that the page says, but for what the last edit did."""
    driver.execute_script("document.getElementById('bench-status').textContent = ''")
    every = "[...document.querySelectorAll('main, [aria-label], input')]"
    said = "[one.textContent, one.getAttribute('aria-label'), one.value]"
    return driver.execute_script(f"return {every}.map((one) => {said})")


@pytest.mark.parametrize("kind", ["classes", "lines"])
def test_edits_by_keys_do_what_python_does(open_page, kind):
    model, frame, _, page = make_page(kind)
    page.data["features"] = [f"{name}\n1" for name in page.data["features"]]
    page.data["trees"][page.data["own"]]["nodes"][0]["v"] = [None]
    driver, rows = open_page(page), encode(model.columns, frame)
    named, truth = named_tree(model), np.array(page.data["rows"]["y"])
    assert not driver.find_element("id", "bench-prune").is_enabled()

    def check(before, after):
        each = (
            measures(replace(named, tree=one), rows, truth) for one in (before, after)
        )
        scores = [f"{one['figures'][0][1]:.4g}" for one in each]
        predict = "predict_label" if kind == "classes" else "predict_value"
        first, second = (getattr(one, predict)(rows).ravel() for one in (before, after))
        n_changed = (first != second).sum()
        told = f" {scores[0]} before, {scores[1]} after; complexity {before.complexity} before, "
        told += f"{after.complexity} after; {n_changed} of 300 rows are predicted otherwise."
        assert told in driver.find_element("id", "bench-status").text.replace("−", "-")
        assert len(nodes(driver)) == len(after)
        return n_changed

    edit_split(driver, 4)
    texts, pruned = [all_texts(driver)], edited(model.tree, 4)
    press(driver, "ENTER")
    n_changed = check(model.tree, pruned)
    edit_split(driver, 8, keys.Keys.SHIFT)  # which was 12
    texts.append(all_texts(driver))
    field = tab_to(driver, "bench-number")
    wanted, scale = (
        0.7 * float(field.get_attribute("max")),
        model.named[0].by_influence(12)[0][0],
    )
    field.send_keys(
        keys.Keys.CONTROL, "a", keys.Keys.NULL, repr(wanted), keys.Keys.ENTER
    )
    assert n_changed + check(pruned, edited(pruned, 8, wanted * scale)) > 0
    texts.append(all_texts(driver))
    tab_to(driver, "bench-copy", keys.Keys.SHIFT)
    press(driver, "ENTER")
    assert "copied" in driver.find_element("id", "bench-status").text
    first, second = driver.find_element("id", "bench-code").text.splitlines()[2:]
    call = f"edited = edited.edit(X, y).set_threshold(8, {wanted!r})  # "
    assert first == "edited = model.edit(X, y).prune(4)" and second.startswith(call)
    for button, at in (
        ("undo", 1),
        ("undo", 0),
        ("redo", 1),
        ("redo", 2),
        ("reset", 0),
    ):
        driver.execute_script(f"document.getElementById('bench-{button}').focus()")
        press(driver, "ENTER")
        assert all_texts(driver) == texts[at]
    assert driver.switch_to.active_element.get_attribute("id") == "bench-redo"
    for _ in range(5):  # of a slider are one edit
        tab_to(driver, "bench-range").send_keys(keys.Keys.ARROW_RIGHT)
    assert len(driver.find_elements("css selector", "#bench-table tbody tr")) == 2


@pytest.mark.parametrize("kind", ["soft", "lines"])
def test_the_slider_draws_another_tree(open_page, kind):
    model, _, _, page = make_page(kind)
    driver = open_page(page)
    driver.execute_script("evotreeReport.followRow(0)")
    slider = driver.find_element("id", "front-slider")
    assert int(slider.get_attribute("value")) == page.data["own"]
    driver.execute_script("arguments[0].focus()", slider)
    press(driver, "HOME")
    assert len(nodes(driver)) == 1
    for at in range(1, len(page.data["trees"])):
        press(driver, "ARROW_RIGHT")
        driver.find_element("id", "unfold").click()
        driver.execute_script("arguments[0].focus()", slider)
        one = page.data["trees"][at]
        assert len(nodes(driver)) == len(one["nodes"])
        assert (
            f"complexity {one['complexity']}:"
            in driver.find_element("id", "front-text").text
        )
        leaf = driver.find_element("css selector", "#trace [data-leaf]").get_attribute(
            "data-leaf"
        )
        cells = "model.encode(data.rows.cells.map((column) => column[0]))"
        apply = f"return model.apply(data.trees[arguments[0]], {cells})"
        script = f"const {{ data, model }} = evotreeReport; {apply}"
        assert driver.execute_script(script, at) == int(leaf)
        shown = driver.find_element("css selector", "#measures td").text.replace(
            "−", "-"
        )
        assert float(shown) == pytest.approx(one["measures"]["figures"][0][1], rel=1e-3)
    driver.find_element("id", "front-own").click()
    assert int(slider.get_attribute("value")) == page.data["own"]


def test_all_controls_have_names(open_page):
    """Chromium's own tree for screen readers has a name for whatever can be operated."""
    driver = open_page(make_page("soft")[3])
    driver.execute_cdp_cmd("Accessibility.enable", {})
    found = driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    roles = (
        "button",
        "slider",
        "spinbutton",
        "combobox",
        "textbox",
        "treeitem",
        "tree",
        "image",
        "region",
    )
    seen = [one for one in found if one.get("role", {}).get("value") in roles]
    assert {one["role"]["value"] for one in seen} >= {
        "button",
        "slider",
        "treeitem",
        "tree",
    }
    assert [one for one in seen if not one.get("name", {}).get("value")] == []
