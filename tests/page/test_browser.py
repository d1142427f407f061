"""The page in a browser: a person clicks, searches, folds and turns the lights off.

These tests need the extra `browser`, Chromium and its driver, and are left out without them.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.page.pages import LAYERS, layered, page_of, run_of
from tests.page.test_page import hostile
from tests.support.transformer import transformer

webdriver: Any = pytest.importorskip("selenium.webdriver", reason="needs the extra `browser`")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = [pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs Chromium and its driver"), pytest.mark.timeout(120)]

GONE = "\N{MINUS SIGN} "
IDLE = 'return document.documentElement.dataset.ready === "yes" && !document.querySelector("svg[aria-busy]")'


class Page:
    """A page in the browser."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, path: Path) -> Page:
        self.driver.get(path.as_uri())
        self.wait(lambda: self.run(IDLE))
        return self

    def run(self, code: str, *arguments: Any) -> Any:
        return self.driver.execute_script(code, *arguments)

    def wait(self, done: Callable[[], Any], seconds: float = 30) -> None:
        end = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < end, "the page does not get there"
            time.sleep(0.02)

    def click(self, selector: str) -> None:
        # SVG elements have no click(), and a zoomed one may be outside of the window.
        self.run("document.querySelector(arguments[0]).dispatchEvent(new MouseEvent('click', {bubbles: true}))", selector)
        self.wait(lambda: self.run(IDLE))

    def texts(self, selector: str) -> list[str]:
        return self.run("return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)", selector)

    def count(self, selector: str) -> int:
        return len(self.texts(selector))

    def search(self, text: str) -> list[str]:
        self.run("const field = document.getElementById('search'); field.value = arguments[0]; field.dispatchEvent(new Event('input'))", text)
        return self.texts("#found button")


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--window-size=1600,1000"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    made = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield made
    made.quit()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    found = {"layers": layered(), "hostile": hostile()}
    for name, model in found.items():
        (folder / f"{name}.html").write_text(page_of(run_of(model)), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in found}


@pytest.fixture
def page(driver: Any, files: dict[str, Path]) -> Iterator[Page]:
    driver.get_log("browser")
    yield Page(driver).open(files["layers"])
    assert [entry["message"] for entry in driver.get_log("browser")] == []


def test_both_graphs_are_drawn(page: Page) -> None:
    assert page.texts("figcaption") == [f"original: {6 * LAYERS} nodes", f"written: {3 * LAYERS} nodes"]
    for side in ("before", "after"):
        assert page.count(f"#{side} .item") >= LAYERS and page.count(f"#{side} .lines path") >= LAYERS
    sizes = page.run("return [...document.querySelectorAll('.item > rect')].map((one) => [+one.getAttribute('width'), +one.getAttribute('height')])")
    assert all(width > 10 and height > 10 for width, height in sizes)


def test_a_click_on_a_change_shows_its_counterpart(page: Page) -> None:
    page.click("#unfold")
    page.click('#before [data-id="n2"]')  # the second Relu of the first layer
    assert page.texts("#before .lit .label") == [f"{GONE}Relu"]
    assert page.texts("#after .lit .label") == ["Relu"]
    assert page.texts("#details h3") == [f"{GONE}Relu"] and "/model/layer.0/act/Relu_1" in page.texts("#details .name")
    assert any("come from nodes that stayed" in text for text in page.texts("#details .region p"))
    where = page.run("""
        const [item, pane] = ["#after .lit", "#after svg"].map((one) => document.querySelector(one).getBoundingClientRect());
        return [item.left > pane.left, item.right < pane.right, item.top > pane.top, item.bottom < pane.bottom];
    """)
    assert all(where), "the counterpart is not in view"


def test_a_node_that_stayed_shows_its_twin_and_its_price(page: Page) -> None:
    page.click("#unfold")
    page.click('#after [data-id="n0"]')
    assert page.texts("#before .lit .label") == ["MatMul"]
    details = page.texts("#details")[0]
    assert "float32[4, 4]" in details and "launches1" in details and "by the launch of the kernel" in details


def test_folds_open_and_close_on_both_sides(page: Page) -> None:
    page.click("#fold")
    assert page.count("#before .item.fold") == page.count("#after .item.fold") == LAYERS
    assert page.count("#before .node:not(.end)") == 0
    page.click('#before [data-id="f2"]')
    assert page.count("#before .item.fold") == page.count("#after .item.fold") == LAYERS - 1
    assert (page.count("#before .node:not(.end)"), page.count("#after .node:not(.end)")) == (6, 3)
    page.click('#after [data-title="f2"]')
    assert page.count("#before .item.fold") == LAYERS
    page.click("#unfold")
    assert page.count("#before .node:not(.end)") == 6 * LAYERS and page.count("#before .item.fold") == 0


def test_search_finds_a_node_in_a_closed_fold(page: Page) -> None:
    page.click("#fold")
    assert page.search("nothing like this") == [] and page.texts("#found .type") == ["no node"]
    assert len(page.search("relu")) == 3 * LAYERS
    found = page.search("layer.4/Transpose_1")
    assert len(found) == 1 and found[0].startswith(f"{GONE}Transpose")
    page.click("#found button")
    page.wait(lambda: page.count("#before .chosen"))
    assert page.texts("#before .chosen .label") == [f"{GONE}Transpose"]
    assert page.run("return document.getElementById('found').hidden")


def test_the_next_change_walks_through_all(page: Page) -> None:
    total = int(page.texts("#position")[0].split()[0])
    seen: list[str] = []
    for _ in range(total):
        page.click("#next")
        page.wait(lambda: page.count("#before .lit") > 0)
        seen += page.texts("#position")
    assert seen == [f"{number} of {total}" for number in range(1, total + 1)]
    page.click("#previous")
    assert page.texts("#position") == [f"{total - 1} of {total}"]


def test_light_and_dark(page: Page) -> None:
    def ground() -> list[int]:
        return [int(part) for part in page.run("return getComputedStyle(document.body).backgroundColor").strip("rgb()").split(",")]

    bright = page.run("return document.documentElement.dataset.theme") == "light"
    for _ in range(2):
        assert (min(ground()) > 200) if bright else (max(ground()) < 60)
        page.click("#theme")
        bright = not bright
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
    page.wait(lambda: max(ground()) < 60)
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_every_section_has_something(page: Page) -> None:
    sections = page.run("return [...document.querySelectorAll('main > section')].map((one) => [one.id, one.children.length])")
    empty = [name for name, children in sections if children < 2]
    assert empty == []
    assert page.count("#changes tbody tr") >= 1 and page.count("#rules tbody tr") >= 2
    heads = page.texts("#rules th")
    used = heads.index("used") + 1
    assert heads[used] == "why not" and set(page.texts(f"#rules td:nth-child({used})")) <= {"yes", "no"}
    assert page.texts(f"#rules td:nth-child({used})")[0] == "yes"
    assert page.count("#growth circle") > 2
    assert "Relu" in page.texts("#operators tbody td") and f"{2 * LAYERS} → {LAYERS}" in page.texts("#operators tbody td")
    page.click("#changes button.show")
    page.wait(lambda: page.count("#before .lit") > 0)


def test_a_click_on_a_heading_sorts(page: Page) -> None:
    page.click("#rules th:nth-child(3) button")
    fired = [int(text) for text in page.texts("#rules tbody td:nth-child(3)")]
    assert fired == sorted(fired, reverse=True)


def test_keys_do_what_clicks_do(page: Page) -> None:
    page.click("#fold")
    page.run("""document.querySelector('#before [data-id="f1"]').dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}))""")
    page.wait(lambda: page.count("#before .node:not(.end)") == 6)


def test_nothing_is_loaded_from_a_network(page: Page) -> None:
    loaded = page.run("return performance.getEntriesByType('resource').map((one) => one.name)")
    assert [name for name in loaded if not name.startswith("blob:")] == []


def test_a_layout_that_fails_still_shows_all_nodes(page: Page) -> None:
    laid = page.run("""
        const kept = dagre.layout;
        dagre.layout = () => { throw new RangeError("too deep"); };
        try { return layoutTree(treeOf("before", new Set([0, 1]))); } finally { dagre.layout = kept; }
    """)
    assert len(laid["nodes"]) == 6 + LAYERS - 1 + 2 and laid["height"] > 6 * 26


def test_texts_of_a_model_do_nothing(driver: Any, files: dict[str, Path]) -> None:
    page = Page(driver).open(files["hostile"])
    for selector in ("#unfold", '#before [data-id="n2"]', "#next"):
        page.click(selector)
    assert len(page.search("</script>")) >= 4
    page.click("#found button")
    assert page.run("return document.title") != "owned" and page.count("img") == 0 and page.count("body > script:not([id])") == 0
    assert any("<img src=x onerror=alert(1)>" in text for text in page.texts("#details"))


@pytest.mark.slow
def test_two_thousand_nodes_do_not_freeze_the_page(driver: Any, tmp_path: Path) -> None:
    place = tmp_path / "large.html"
    place.write_text(page_of(run_of(transformer(29))), encoding="utf-8")
    page = Page(driver).open(place)
    assert 20 <= page.count("#before .item") <= 60, "a reader sees the folds first"
    # The longest time between two frames, while everything is laid out and drawn.
    page.run("""
        window.longest = 0;
        let last = performance.now();
        const tick = (now) => { longest = Math.max(longest, now - last); last = now; requestAnimationFrame(tick); };
        requestAnimationFrame(tick);
    """)
    page.click("#unfold")
    page.wait(lambda: page.count("#before .node:not(.end)") > 2000)
    longest = page.run("return longest")
    assert longest < 5000
    assert len(page.search("Softmax")) == 2 * 29
    page.click("#found button")
    page.wait(lambda: page.count("#after .lit") == 1)
