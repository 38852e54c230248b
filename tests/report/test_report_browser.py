"""The page of a report in a real browser, where there is one: Chromium, driven by Selenium."""

import shutil

import pytest

from evotree.cli.report import report_of_model
from evotree.report import report
from evotree.tables.columns import encode
from tests.report.models import make_forest, make_model, make_subject, table, truth_of

webdriver = pytest.importorskip("selenium.webdriver")
keys = pytest.importorskip("selenium.webdriver.common.keys")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="there is no Chromium with its driver"),
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


def test_a_forest_votes_in_the_page(open_page):
    model, frame = make_forest("classes"), table()
    page = report_of_model(model, frame.assign(**{model.target: model.predict(frame)}))
    driver = open_page(page)
    driver.find_element("css selector", "#members button[aria-label='Show tree 2']").click()
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
                next(one for one in options if one.get_attribute("textContent") == text).click()
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
    press(driver, "ENTER")
    assert len(nodes(driver)) == n_nodes
    for key, node in (("ARROW_RIGHT", 1), ("ARROW_DOWN", 2), ("END", n_nodes - 1), ("HOME", 0)):
        press(driver, key)
        assert selected(driver) == node
    press(driver, "ARROW_LEFT")
    assert len(nodes(driver)) == 1
    assert "Split [0]" in driver.find_element("id", "panel").text


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
        assert f"complexity {one['complexity']}:" in driver.find_element("id", "front-text").text
        leaf = driver.find_element("css selector", "#trace [data-leaf]").get_attribute("data-leaf")
        cells = "model.encode(data.rows.cells.map((column) => column[0]))"
        apply = f"return model.apply(data.trees[arguments[0]], {cells})"
        script = f"const {{ data, model }} = evotreeReport; {apply}"
        assert driver.execute_script(script, at) == int(leaf)
        shown = driver.find_element("css selector", "#measures td").text.replace("−", "-")
        assert float(shown) == pytest.approx(one["measures"]["figures"][0][1], rel=1e-3)
    driver.find_element("id", "front-own").click()
    assert int(slider.get_attribute("value")) == page.data["own"]


def test_all_controls_have_names(open_page):
    """Chromium's own tree for screen readers has a name for whatever can be operated."""
    driver = open_page(make_page("soft")[3])
    driver.execute_cdp_cmd("Accessibility.enable", {})
    found = driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    roles = ("button", "slider", "combobox", "textbox", "treeitem", "tree", "image", "region")
    seen = [one for one in found if one.get("role", {}).get("value") in roles]
    assert {one["role"]["value"] for one in seen} >= {"button", "slider", "treeitem", "tree"}
    assert [one for one in seen if not one.get("name", {}).get("value")] == []
