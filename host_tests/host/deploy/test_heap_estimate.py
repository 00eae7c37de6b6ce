"""deploy's check of the heap, by what the configuration asks for. What its figures are worth is
measured in host_tests/broker/heap/test_firmware.py."""

from pathlib import Path

import pytest

from host_tests.host.deploy.fake_repl import BOARD, HEADLINE, FakeRepl, deployed, probe
from slotmq_tools import boards
from slotmq_tools.deploy import board_files, configuration, heap_estimate, steps
from slotmq_tools.errors import ToolError

NAMES = [name for name in boards.names() if boards.load(name).mpy_arch]
PAGE = (Path(__file__).parents[3] / "boards/ESP32_GENERIC/README.md").read_text()
USED = 5000  # bytes of heap at an ESP32's prompt, and the system's pieces beside the first area
PIECES = (3344, 4344, 14656, 112968)  # (micropython/micropython, pull request 12952)
FROZEN = ("slotmq", "slotmq_run")


def need(name: str, *lines: str, frozen: tuple[str, ...] = (), clock: bool = False) -> int:
    text = "\n".join(["listener 1883", "allow_anonymous true", *lines])
    conf = configuration.make(configuration.Source("x", text.encode()), name)
    return heap_estimate.needed(boards.load(name), conf, frozen, clock)[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_journal_a_recorder_and_a_clock_take_more_and_version_3_less(name: str) -> None:
    left = boards.load(name).tables_bytes
    plain = need(name)
    assert need(name, "persistence true") - plain > left[""] - left["kept"] > 0
    assert need(name, "record #") > plain
    assert need(name, "record #", "persistence true") > need(name, "persistence true")
    assert plain > need(name, "mqtt_versions 3")
    assert need(name, clock=True) > plain


@pytest.mark.parametrize("name", NAMES)
def test_so_they_do_where_the_code_is_in_the_firmware(name: str) -> None:
    plain = need(name, frozen=FROZEN)
    assert need(name, "persistence true", frozen=FROZEN) > plain
    assert need(name, "record #", frozen=FROZEN) > plain
    rows = heap_estimate.tables(
        configuration.make(configuration.Source("x", b"listener 1\nmqtt_versions 3\n"), name)
    )
    tables = sum(row[1] for row in rows)  # and that code takes no heap that would be free
    assert need(name, "mqtt_versions 3", frozen=FROZEN) > tables + 40_000


@pytest.mark.usefixtures("tried")
def test_a_journal_for_which_there_is_no_room_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board_files, "code", lambda *_: {"/lib/slotmq/core.mpy": b"new"})
    board = FakeRepl([HEADLINE, "wifi home: up, 192.168.1.7"])
    board.probe = probe(heap=need(BOARD))
    deployed(board)
    board.files["/slotmq.conf"] += b"persistence true\n"
    with pytest.raises(ToolError, match=r"are needed: .* Lower a limit in the configuration"):
        deployed(board)
    board.files["/slotmq.conf"] += b"mqtt_versions 3\n"
    deployed(board)


def of_an_esp32(first: int, *system: int) -> int:
    """What deploy counts at the prompt of one with such a first area and such pieces beside it."""
    board = FakeRepl()
    areas = [(size + 1000, size, size, 0) for size in system]
    free = first * 128 // 131 - USED + max(system)
    board.probe = (*probe(heap=free), USED, areas)
    return steps.probe(board).heap  # type: ignore[arg-type]


def test_an_esp32_takes_the_preset_and_counts_no_memory_that_wifi_needs() -> None:
    counted = of_an_esp32(56 * 1024, *PIECES)
    assert need("ESP32_GENERIC") <= counted < 119_900
    assert of_an_esp32(64 * 1024, 60_000, 50_000) > need("ESP32_GENERIC_C3", clock=True)
    psram = of_an_esp32(64 * 1024, 4_000_000, 90_000, 15_000)
    assert psram > 3_900_000


def test_what_the_page_of_an_esp32_offers_with_a_journal_fits() -> None:
    """In what is free of the heap that is counted on; the collector has its own tables in it."""
    board = boards.load("ESP32_GENERIC")
    offered = PAGE.split("```conf\npersistence true\n")[1].partition("```")[0].splitlines()
    assert need(board.name, "persistence true", *offered) < board.heap_kb * 1024 * 128 // 131
