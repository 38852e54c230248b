"""The page of a report in a real browser, where there is one: Chromium, driven by Selenium."""

import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from evotree import EvoTreeRegressor, EvoTreeSurvival
from evotree.cli.commands import report_of_model
from evotree.fitted import fitted_of
from evotree.report import report
from evotree.report.page import measures
from evotree.tables.columns import encode
from tests.quick_models import BRIEF, brief, evolved
from tests.report.models import (
    edited,
    make_forest,
    make_model,
    make_subject,
    table,
    truth_of,
)
from tests.survival.times import seen_until

webdriver = pytest.importorskip("selenium.webdriver")
keys = pytest.importorskip("selenium.webdriver.common.keys")
ROOT = Path(__file__).resolve().parents[2]
AXE = (
    Path(os.environ.get("AXE_CORE", ROOT / "node_modules" / "axe-core")) / "axe.min.js"
)
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
    leaves = model.tree.apply(encode(model.schema, some))
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
    driver, rows = open_page(page), encode(model.schema, frame)
    named, truth = fitted_of(model), np.array(page.data["rows"]["y"])
    assert not driver.find_element("id", "bench-prune").is_enabled()

    def check(before, after, is_moved):
        each = (
            measures(replace(named, tree=one), rows, truth) for one in (before, after)
        )
        scores = [f"{one['figures'][0][1]:.4g}" for one in each]
        predict = "predict_label" if kind == "classes" else "predict_value"
        first, second = (getattr(one, predict)(rows).ravel() for one in (before, after))
        n_changed = (first != second).sum()
        told = f" {scores[0]} before, {scores[1]} after; complexity {before.complexity} before, "
        told += f"{after.complexity} after; of 300 rows {is_moved.sum()} change leaf, "
        told += f"{n_changed} are predicted otherwise."
        assert told in driver.find_element("id", "bench-status").text.replace("−", "-")
        assert len(nodes(driver)) == len(after)
        return n_changed

    driver.find_element("id", "unfold").click()
    edit_split(driver, 4)
    texts, pruned = [all_texts(driver)], edited(model.tree, 4)
    press(driver, "ENTER")
    leaves, inside = model.tree.apply(rows), range(5, 4 + model.tree.subtree_size[4])
    n_changed = check(model.tree, pruned, np.isin(leaves, inside))
    edit_split(driver, 8, keys.Keys.SHIFT)  # which was 12
    texts.append(all_texts(driver))
    field = tab_to(driver, "bench-number")
    wanted, scale = (
        0.7 * float(field.get_attribute("max")),
        model.members[0].by_influence(12)[0][0],
    )
    field.send_keys(
        keys.Keys.CONTROL, "a", keys.Keys.NULL, repr(wanted), keys.Keys.ENTER
    )
    moved = edited(pruned, 8, wanted * scale)
    n_changed += check(pruned, moved, moved.apply(rows) != pruned.apply(rows))
    assert n_changed > 0
    texts.append(all_texts(driver))
    tab_to(driver, "bench-copy", keys.Keys.SHIFT)
    press(driver, "ENTER")
    assert "copied" in driver.find_element("id", "bench-status").text
    first, second = driver.find_element("id", "bench-code").text.splitlines()[2:]
    call = f"edited = edited.edit(X, y).set_threshold(8, {wanted!r})  # "
    assert first == "edited = model.edit(X, y).prune(4)" and second.startswith(call)
    for shift, key, at in (
        ("", "z", 1),
        ("", "z", 0),
        (keys.Keys.SHIFT, "z", 1),
        ("", "y", 2),
        ("", "z", 1),
        ("", "z", 0),
    ):
        driver.switch_to.active_element.send_keys(
            keys.Keys.CONTROL, shift, key, keys.Keys.NULL
        )
        assert all_texts(driver) == texts[at]
    field = tab_to(driver, "bench-number")
    field.send_keys(keys.Keys.CONTROL, "a", keys.Keys.NULL, "1e9", keys.Keys.ENTER)
    status = driver.find_element("id", "bench-status").text
    assert re.search(r"no row of the page reaches \[\d+\]", status)
    assert len(nodes(driver)) == len(model.tree)
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
        summary = driver.find_element("id", "summary").text
        assert re.search(rf": {one['leaves']} lea.*, {one['terms']} term", summary)
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


@pytest.fixture
def screen(browser):
    """Set the width of the window, the colours, and whether it is for paper; reset at the end."""

    def set_screen(width=1280, scheme="light", media=""):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"media": media, "features": features}
        )

    yield set_screen
    set_screen()
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def with_all_shown(page, open_page):
    """Open a page in which a row is followed, an edit done, and all that folds is open."""
    driver = open_page(page)
    driver.execute_script("evotreeReport.followRow(3)")
    click(driver, "#tree g.node[data-node='0']")
    click(driver, "#bench-prune")
    click(driver, "#bench-undo")
    driver.execute_script(
        "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
    )
    return driver


def bent_page():
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    shapes = {"bmi": [("above", 25.0)], "bp": [("log", 60.0)]}
    model = brief(EvoTreeRegressor, shapes=shapes).fit(X[::2], y[::2])
    return report(model, X[1::2], y[1::2])


def forest_page():
    model, frame = make_forest("classes"), table()
    return report_of_model(model, frame.assign(**{model.target: model.predict(frame)}))


PAGES = {
    "soft": lambda: make_page("soft")[3],
    "bends": bent_page,
    "forest": forest_page,
}


@pytest.mark.skipif(
    not AXE.exists(), reason="there is no axe-core: make test-all installs it"
)
@pytest.mark.parametrize("kind", PAGES)
def test_the_page_keeps_the_rules_of_axe(open_page, screen, kind):
    """Contrast, names and focus, by axe-core, and the contrast of pictures, which it leaves."""
    page = PAGES[kind]()
    for width, scheme in ((1280, "light"), (1280, "dark"), (400, "light")):
        screen(width, scheme)
        driver = with_all_shown(page, open_page)
        driver.execute_script(AXE.read_text("utf-8"))
        found = driver.execute_async_script("axe.run().then(arguments[0])")
        assert len(found["passes"]) > 20
        assert [
            (one["id"], [node["target"] for node in one["nodes"]], width, scheme)
            for one in found["violations"]
        ] == []
        painted = driver.execute_script(
            """return [...document.querySelectorAll('svg text')].map((one) =>
            getComputedStyle(one).fill).concat(['card', 'back'].map((name) => {
            document.body.style.color = `var(--${name})`;
            return getComputedStyle(document.body).color; }))"""
        )
        *texts, card, back = (luminance(color) for color in painted)
        for one in set(texts):
            for below in (card, back):
                assert (max(one, below) + 0.05) / (min(one, below) + 0.05) >= 4.5


def luminance(color):
    """Return the relative luminance of a colour, as WCAG 2 has it."""
    parts = np.array([int(part) for part in re.findall(r"\d+", color)[:3]]) / 255.0
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("kind", PAGES)
def test_a_narrow_page_cuts_nothing(open_page, screen, kind):
    screen(400)
    driver = with_all_shown(PAGES[kind](), open_page)
    click(driver, "#unfold")
    wide = "return document.documentElement.scrollWidth"
    assert driver.execute_script(wide) <= 400
    box = driver.find_element("id", "tree-box").rect
    for node in nodes(driver):
        card = node.find_element("css selector", ".card").rect
        assert card["x"] >= box["x"]
        assert card["x"] + card["width"] <= box["x"] + box["width"]
        for text in node.find_elements("tag name", "text"):
            assert text.rect["x"] + text.rect["width"] <= card["x"] + card["width"]
    last = nodes(driver)[-1].rect
    assert last["y"] + last["height"] <= box["y"] + box["height"]


@pytest.mark.parametrize("kind", PAGES)
def test_paper_has_the_whole_tree_and_cuts_nothing(open_page, screen, kind):
    page = PAGES[kind]()
    driver = with_all_shown(page, open_page)
    click(driver, "#fold")
    n_shown = len(nodes(driver))
    screen(690, media="print")
    driver.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    cards = driver.find_elements("css selector", "#tree-paper svg")
    own = page.data["trees"][page.data["own"]]["nodes"]
    assert len(cards) == len(own) >= n_shown
    for card, node in zip(cards, own, strict=True):
        drawn = " ".join(
            one.get_attribute("textContent")
            for one in card.find_elements("css selector", ".node text")
        )
        assert "more" not in drawn
        for j in node.get("f", ()):
            name = page.data["operands"][j]
            negation = page.data["negations"][j] or name
            squeezed = re.sub(r"\s", "", drawn)
            assert any(re.sub(r"\s", "", one) in squeezed for one in (name, negation))
    over = """return [...document.querySelectorAll('body *')].filter((one) =>
        !one.closest('svg, pre, .unseen') && one.getBoundingClientRect().right > 691
        ).map((one) => `${one.tagName} ${one.id} ${one.className}`)"""
    assert driver.execute_script(over) == []
    driver.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert driver.find_elements("css selector", "#tree-paper svg") == []
    assert len(nodes(driver)) == n_shown
