"""The page of a report in a real browser, where there is one: Chromium, driven by Selenium."""

import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from evotree import EvoTreeRegressor
from evotree.cli.commands import report_of_model
from evotree.fitted import fitted_of
from evotree.report import report
from evotree.report.page import measures
from evotree.tables.columns import encode
from tests.quick_models import brief
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
select = pytest.importorskip("selenium.webdriver.support.select")
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
    return model, frame, report(make_subject(model), frame, y)


def forest_page():
    model, frame = make_forest("classes"), table()
    return report_of_model(model, frame.assign(**{model.target: model.predict(frame)}))


def all_of(driver, selector):
    return driver.find_elements("css selector", selector)


def said(driver, selector):
    """Return the text of the one element of a selector."""
    (one,) = all_of(driver, selector)
    return one.text.replace("−", "-")


def nodes(driver):
    return all_of(driver, "#tree g.node")


def selected(driver):
    (chosen,) = all_of(driver, "#tree g.node[aria-selected=true]")
    return int(chosen.get_attribute("data-node"))


def click(driver, selector):
    event = "dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    driver.execute_script(f"document.querySelector(arguments[0])?.{event}", selector)


def test_a_forest_votes_in_the_page(open_page):
    model, driver = make_forest("classes"), open_page(forest_page())
    click(driver, "#members button[aria-label='Show tree 2']")
    assert said(driver, "#tree-title") == "Tree 2, of 0 to 3"
    driver.execute_script("window.evotreeReport.followRow(5)")
    assert said(driver, "#vote strong") == str(model.predict(table())[5])
    assert len(nodes(driver)) == model.trees[2].n_nodes
    assert not driver.find_element("id", "front-section").is_displayed()


def press(driver, key):
    driver.switch_to.active_element.send_keys(getattr(keys.Keys, key))


def type_cell(driver, field, cell):
    """Type a number, or choose a level, in a field of the form."""
    is_missing = cell is None or cell != cell
    if field.tag_name == "select":
        select.Select(field).select_by_visible_text("(missing)" if is_missing else cell)
    else:
        field.clear()
        field.send_keys("" if is_missing else str(cell))


def test_a_typed_row_ends_in_the_leaf_of_apply(open_page):
    model, frame, page = make_page("soft")
    driver = open_page(page)
    names = [column["name"] for column in page.data["columns"]]
    fields = [driver.find_element("id", f"cell-{j}") for j in range(len(names))]
    some = frame.iloc[:: len(frame) // 12]
    leaves = model.tree.apply(encode(model.schema, some))
    for row, leaf in zip(some[names].to_numpy().tolist(), leaves, strict=True):
        for field, cell in zip(fields, row, strict=True):
            type_cell(driver, field, cell)
        click(driver, "#row-trace")
        (told,) = all_of(driver, "#trace [data-leaf]")
        assert int(told.get_attribute("data-leaf")) == leaf == selected(driver)
        steps = all_of(driver, "#trace .steps > li")
        assert len(steps) == len(all_of(driver, "#tree g.node.passed"))
    number = fields[names.index("a")]
    type_cell(driver, number, "0x10")
    click(driver, "#row-trace")
    assert number.get_attribute("aria-invalid") == "true"
    assert "a: type a number" in said(driver, "#row-message")


def test_clicks_and_keys_fold(open_page):
    driver = open_page(make_page("classes")[2])
    click(driver, "#unfold")
    n_nodes = len(driver.execute_script("return evotreeReport.model.own.nodes"))
    for close, is_open in (("", "true"), ("g.node[data-node='0'] .fold", "false")):
        click(driver, close or "#unfold")
        (root,) = all_of(driver, "#tree g.node[data-node='0']")
        assert root.get_attribute("aria-expanded") == is_open
        assert len(nodes(driver)) == (1 if close else n_nodes)
    assert driver.switch_to.active_element == root
    moves = {
        "SPACE": 0,
        "ARROW_RIGHT": 1,
        "ARROW_DOWN": 2,
        "END": n_nodes - 1,
        "HOME": 0,
    }
    for key, node in moves.items():
        press(driver, key)
        assert len(nodes(driver)) == n_nodes and selected(driver) == node
    press(driver, "ARROW_LEFT")
    assert len(nodes(driver)) == 1 and "Split [0]" in said(driver, "#panel")


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


def moved_to(driver, number):
    """Type a threshold for the split that is edited."""
    field = tab_to(driver, "bench-number")
    all_signs = keys.Keys.CONTROL, "a", keys.Keys.NULL
    field.send_keys(*all_signs, repr(number), keys.Keys.ENTER)


@pytest.mark.parametrize("kind", ["classes", "lines"])
def test_edits_by_keys_do_what_python_does(open_page, kind):
    model, frame, page = make_page(kind)
    driver, rows = open_page(page), encode(model.schema, frame)
    named, truth = fitted_of(model), np.array(page.data["rows"]["y"])

    def check(before, after, n_moved):
        scores = [
            f"{measures(replace(named, tree=one), rows, truth)['figures'][0][1]:.4g}"
            for one in (before, after)
        ]
        predict = "predict_label" if kind == "classes" else "predict_value"
        first, second = (getattr(one, predict)(rows).ravel() for one in (before, after))
        told = (
            f" {scores[0]} before, {scores[1]} after; complexity {before.complexity} before, "
            f"{after.complexity} after; of 300 rows {n_moved} change leaf, "
            f"{(first != second).sum()} are predicted otherwise."
        )
        assert told in said(driver, "#bench-status")
        assert len(nodes(driver)) == len(after)

    click(driver, "#unfold")
    edit_split(driver, 4)
    texts, pruned = [all_texts(driver)], edited(model.tree, 4)
    press(driver, "ENTER")
    check(model.tree, pruned, model.tree.decision_path(rows)[:, 5:7].max(axis=1).sum())
    edit_split(driver, 8, keys.Keys.SHIFT)  # which was 12
    texts.append(all_texts(driver))
    wanted = 0.7 * float(tab_to(driver, "bench-number").get_attribute("max"))
    moved_to(driver, wanted)
    scale = model.members[0].by_influence(12)[0][0]
    moved = edited(pruned, 8, wanted * scale)
    check(pruned, moved, (moved.apply(rows) != pruned.apply(rows)).sum())
    texts.append(all_texts(driver))
    tab_to(driver, "bench-copy", keys.Keys.SHIFT)
    press(driver, "ENTER")
    assert "copied" in said(driver, "#bench-status")
    first, second = said(driver, "#bench-code").splitlines()[2:]
    assert first == "edited = model.edit(X, y).prune(4)"
    assert second.startswith(
        f"edited = edited.edit(X, y).set_threshold(8, {wanted!r})  # "
    )
    back, again = (keys.Keys.CONTROL, "z"), (keys.Keys.CONTROL, keys.Keys.SHIFT, "z")
    undone = [(back, 1), (back, 0), (again, 1), ((keys.Keys.CONTROL, "y"), 2)]
    for held, at in [*undone, (back, 1), (back, 0)]:
        driver.switch_to.active_element.send_keys(*held, keys.Keys.NULL)
        assert all_texts(driver) == texts[at]
    moved_to(driver, 1e9)
    status = said(driver, "#bench-status")
    assert re.search(r"no row of the page reaches \[\d+\]", status)
    assert len(nodes(driver)) == len(model.tree)


@pytest.mark.parametrize("kind", ["soft", "lines"])
def test_the_slider_draws_another_tree(open_page, kind):
    _, _, page = make_page(kind)
    driver = open_page(page)
    (slider,) = all_of(driver, "#front-slider")
    assert int(slider.get_attribute("value")) == page.data["own"]
    for at, one in enumerate(page.data["trees"]):
        driver.execute_script("arguments[0].focus()", slider)
        press(driver, "ARROW_RIGHT" if at else "HOME")
        click(driver, "#unfold")
        assert len(nodes(driver)) == len(one["nodes"])
        assert f"complexity {one['complexity']}:" in said(driver, "#front-text")
        shown = float(all_of(driver, "#measures td")[0].text.replace("−", "-"))
        assert shown == pytest.approx(one["measures"]["figures"][0][1], rel=1e-3)
    click(driver, "#front-own")
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


PAGES = {
    "soft": lambda: make_page("soft")[2],
    "bends": bent_page,
    "forest": forest_page,
}


@pytest.mark.skipif(
    not AXE.exists(), reason="there is no axe-core: make test-all installs it"
)
@pytest.mark.parametrize("kind", PAGES)
def test_the_page_keeps_the_rules_of_axe(open_page, screen, kind):
    """Contrast, names and focus, by axe-core."""
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
        texts = [text.rect for text in node.find_elements("tag name", "text")]
        for inner, outer in ((card, box), *((text, card) for text in texts)):
            assert inner["x"] >= outer["x"]
            assert inner["x"] + inner["width"] <= outer["x"] + outer["width"]
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
    cards = all_of(driver, "#tree-paper svg")
    own = page.data["trees"][page.data["own"]]["nodes"]
    assert len(cards) == len(own) >= n_shown
    for card, node in zip(cards, own, strict=True):
        texts = card.find_elements("css selector", ".node text")
        drawn = "".join(one.get_attribute("textContent") for one in texts)
        assert "more" not in drawn
        for j in node.get("f", ()):
            names = {page.data["operands"][j], page.data["negations"][j]} - {None}
            squeezed = [re.sub(r"\s", "", name) for name in names]
            assert any(name in re.sub(r"\s", "", drawn) for name in squeezed)
    over = """return [...document.querySelectorAll('body *')].filter((one) =>
        !one.closest('svg, pre, .unseen') && one.getBoundingClientRect().right > 691
        ).map((one) => `${one.tagName} ${one.id} ${one.className}`)"""
    assert driver.execute_script(over) == []
    driver.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert all_of(driver, "#tree-paper svg") == []
    assert len(nodes(driver)) == n_shown
