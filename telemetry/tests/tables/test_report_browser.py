"""The report of the greenhouse in Chromium, on a screen and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from host_tests.support import browser
from slotmq_telemetry import report
from slotmq_telemetry.season import greenhouse

from .rows import greenhouse_tables

pytestmark = pytest.mark.nightly
WIDTHS = (1200, 400)
# Scrolls to each chart, which is drawn then.
DRAW = """(async () => {
  document.querySelectorAll("details").forEach((each) => { each.open = true; });
  for (const chart of document.querySelectorAll(".chart")) {
    while (!chart.dataset.drawn) {
      chart.scrollIntoView({ block: "center" });
      await new Promise((done) => setTimeout(done, 20));
    }
  }
  scrollTo(0, 0);
  return document.querySelectorAll(".chart svg").length;
})()"""
# What sticks out of the page.
OUTSIDE = """[...document.querySelectorAll("body *")].filter((each) => {
  const box = each.getBoundingClientRect();
  return each.tagName !== "SCRIPT" && !each.closest("svg") && box.width
    && (box.right > innerWidth + 1 || box.left < -1);
}).map((each) => each.outerHTML.slice(0, 200))"""
CUT_OFF = """[...document.querySelectorAll(".chart svg text")].filter((each) => {
  const box = each.getBoundingClientRect();
  const all = each.closest("svg").getBoundingClientRect();
  return box.width && (box.right > all.right + 1 || box.left < all.left - 1);
}).map((each) => each.textContent)"""
TITLED = "[...document.querySelectorAll('section')].find((s) => s.textContent.includes({!r}))"
CLIENTS, READINGS = TITLED.format("All that have connected"), TITLED.format("What was measured")
CELLS = "[...{}.querySelectorAll('tbody tr')].map((row) => row.cells[{}].textContent)"
VISIBLE = "[...{}.querySelectorAll('tbody tr')].filter((row) => row.offsetHeight).length"


def choose(page: browser.Page, boards: str) -> None:
    """Boards as the value of an option names them."""
    page.run(f"document.getElementById('who').value = {boards!r}")
    page.run("document.getElementById('choice').dispatchEvent(new Event('change'))")


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    report.write(greenhouse_tables(folder), folder / "page.html")
    return folder / "page.html"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[browser.Page]:
    with browser.page(tmp_path_factory.mktemp("browser")) as page:
        yield page


@pytest.fixture(params=WIDTHS)
def page(chromium: browser.Page, html: Path, request: pytest.FixtureRequest) -> browser.Page:
    chromium.open(html, request.param)
    return chromium


def test_charts_are_drawn_and_nothing_overflows(page: browser.Page) -> None:
    assert page.run(DRAW) == 8  # the map, six readings, traffic
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
    assert page.run(OUTSIDE) == [] and page.run(CUT_OFF) == []
    heights = page.run("[...document.querySelectorAll('.chart svg')].map((s) => s.clientHeight)")
    assert all(100 < height < 300 for height in heights), heights
    lines = ".chart svg .mark-line path[d*='L']"
    assert page.run(f'document.querySelectorAll("{lines}").length') >= 8
    marks = "[...document.querySelectorAll('.chart svg')[0].querySelectorAll('[aria-label]')]"
    told = " ".join(page.run(f"{marks}.map((each) => each.getAttribute('aria-label'))"))
    for state in ("recorded", "lost", "off or restarted", "harvested"):
        assert f"state: {state}" in told


def test_a_gap_is_no_line(page: browser.Page) -> None:
    """soil/1 of the tunnel ends at night when the power goes, and begins anew in the morning."""
    page.run(DRAW)
    figure = (
        "[...document.querySelectorAll('figure')].find((f) => f.textContent.includes('soil/1'))"
    )
    assert page.run(f"{figure}.querySelectorAll('.mark-line path').length") == 3


def test_tables_sort_by_a_click(page: browser.Page) -> None:
    click = (
        f"[...{CLIENTS}.querySelectorAll('th button')].find((b) => b.innerText === {{!r}}).click()"
    )
    page.run(click.format("messages"))
    counts = [int(text.replace(",", "")) for text in page.run(CELLS.format(CLIENTS, 7))]
    assert counts == sorted(counts) and counts[0] < counts[-1]
    page.run(click.format("messages"))
    assert page.run(CELLS.format(CLIENTS, 7))[0] == f"{counts[-1]:,}"
    page.run(click.format("client"))
    names = page.run(CELLS.format(CLIENTS, 1))
    assert names == sorted(names)
    page.run(
        f"{CLIENTS}.querySelectorAll('tbody tr').forEach((row, i) => {{ row.cells[7].textContent ="
        " i % 2 ? `${i} min 30 s` : `${i + 1} d`; })"
    )
    page.run(click.format("messages"))
    units = [text.split()[1] for text in page.run(CELLS.format(CLIENTS, 7))]
    assert units == sorted(units, reverse=True) and {*units} == {"min", "d"}, "by how long"


def test_a_long_list_unfolds(page: browser.Page) -> None:
    """On a phone three rows are shown of a table, elsewhere ten."""
    page.run("""(() => { const body = document.querySelector("table").tBodies[0];
      for (let i = 0; i < 12; i++) body.append(body.rows[0].cloneNode(true)); })()""")
    choose(page, "[]")
    boards = TITLED.format("most connected")
    few = page.run(VISIBLE.format(boards))
    assert few == (3 if page.run("innerWidth") == 400 else 10)
    button = f"{boards}.querySelector('.more')"
    assert page.run(f"{button}.textContent") == "show all 15"
    page.run(f"{button}.click()")
    assert page.run(VISIBLE.format(boards)) == 15
    page.run(f"{button}.click()")
    assert page.run(VISIBLE.format(boards)) == few


def test_a_site_and_a_time_are_chosen(page: browser.Page) -> None:
    page.run(DRAW)
    choose(page, '["tunnel"]')
    rows = f"[...{CLIENTS}.querySelectorAll('tbody tr')].filter((row) => row.offsetHeight)"
    assert {*page.run(f"{rows}.map((row) => row.cells[0].textContent)")} == {"tunnel"}
    titles = f"[...{READINGS}.querySelectorAll('figure')].filter((f) => f.offsetHeight)"
    assert page.run(f"{titles}.map((f) => f.querySelector('h3').textContent)") == [
        "air humidity", "air temperature", "soil/1",
    ]  # fmt: skip
    page.wait(f"{titles}[2].querySelectorAll('.mark-line path').length === 2")
    page.run("document.getElementById('since').value = '2026-05-06T00:00'")
    choose(page, '["beds","door"]')
    page.wait(f"{titles}.at(-1).querySelectorAll('.mark-line path').length === 1")
    labels = (
        f"[...{titles}[0].querySelectorAll('.role-axis-label text')].map((t) => t.textContent)"
    )
    page.wait(f"{labels}.every((text) => text >= '06 May')")
    assert greenhouse.SITES["beds"] == greenhouse.SITES["door"]


def test_a_mouse_chooses_a_time_and_all_takes_it_back(chromium: browser.Page, html: Path) -> None:
    """From a third to two thirds of a chart: some three of ten days, in all charts."""
    chromium.open(html, 1200)
    chromium.run(DRAW)
    chart, other = (f"document.querySelectorAll('.chart')[{at}]" for at in (1, 3))
    event = (
        f"new PointerEvent({{!r}}, {{{{ bubbles: true, pointerType: 'mouse', button: 0,"
        f" clientX: {chart}.getBoundingClientRect().left + {chart}.clientWidth * {{}} }}}})"
    )
    chromium.run(f"{chart}.dispatchEvent({event.format('pointerdown', 1 / 3)})")
    chromium.run(f"window.dispatchEvent({event.format('pointermove', 1 / 2)})")
    assert 150 < chromium.run("document.querySelector('.band').offsetWidth") < 200
    chromium.run(f"window.dispatchEvent({event.format('pointerup', 2 / 3)})")
    assert chromium.run("document.querySelector('.band')") is None
    since, until = (chromium.run(f"document.getElementById('{end}').value")[:10]
                    for end in ("since", "until"))  # fmt: skip
    assert (since, until) == ("2026-05-04", "2026-05-07")
    labels = f"[...{other}.querySelectorAll('.role-axis-label text')].map((t) => t.textContent)"
    chromium.wait(f"{labels}.includes('05 May') && !{labels}.includes('09 May')")
    chromium.run("document.querySelector('#choice [type=reset]').click()")
    chromium.wait(f"{labels}.includes('09 May')")
