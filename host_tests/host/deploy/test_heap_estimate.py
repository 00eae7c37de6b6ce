"""deploy's estimate of the heap that a start needs, for several configurations.

host_tests/broker/heap/test_firmware.py compares its figures with measurements."""

import re
from pathlib import Path

import pytest

from host_tests.host.deploy.fake_repl import FakeRepl, deployed, probe
from slotmq.config import budget
from slotmq_tools import boards
from slotmq_tools.deploy import configuration, heap_estimate, steps
from slotmq_tools.errors import ToolError

NAMES = [name for name in boards.names() if boards.load(name).mpy_arch]
PAGE = (Path(__file__).parents[3] / "boards/ESP32_GENERIC/README.md").read_text()
USED = 5000  # bytes of heap in use at an ESP32's prompt
# Free areas of an ESP32's system memory (micropython/micropython, pull request 12952)
AREAS = (3344, 4344, 14656, 112968)
FROZEN = ("slotmq", "slotmq_run")


def need(name: str, *lines: str, frozen: tuple[str, ...] = (), clock: bool = False) -> int:
    text = "\n".join(["listener 1883", "allow_anonymous true", *lines])
    conf = configuration.make(configuration.Source("x", text.encode()), name)
    return heap_estimate.needed(boards.load(name), conf, frozen, clock)[0]


@pytest.mark.parametrize("name", NAMES)
def test_journal_recorder_and_clock_need_more_and_mqtt_3_less(name: str) -> None:
    left = boards.load(name).tables_bytes
    plain = need(name)
    assert need(name, "persistence true") - plain > left[""] - left["kept"] > 0
    assert need(name, "record #") > plain
    assert need(name, "record #", "persistence true") > need(name, "persistence true")
    assert plain > need(name, "mqtt_versions 3")
    assert need(name, clock=True) > plain


@pytest.mark.parametrize("name", NAMES)
def test_websocket_needs_more_for_code_and_connections(name: str) -> None:
    plain = need(name)
    web = "listener 8080", "protocol websockets"
    more = need(name, *web) - plain
    assert more > 5_000 + 700 * 4
    assert need(name, *web, frozen=FROZEN) > need(name, frozen=FROZEN)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_with_code_in_the_firmware(name: str) -> None:
    plain = need(name, frozen=FROZEN)
    assert need(name, "persistence true", frozen=FROZEN) > plain
    assert need(name, "record #", frozen=FROZEN) > plain
    rows = heap_estimate.tables(
        configuration.make(configuration.Source("x", b"listener 1\nmqtt_versions 3\n"), name)
    )
    tables = sum(row[1] for row in rows)
    assert need(name, "mqtt_versions 3", frozen=FROZEN) > tables + 40_000


@pytest.mark.parametrize("name", NAMES)
def test_an_acl_file_needs_more_for_code_tables_and_its_lines(name: str, tmp_path: Path) -> None:
    text = b"listener 1883\nallow_anonymous true\n"

    def with_rules(rules: bytes, *lines: bytes) -> int:
        (tmp_path / "rules").write_bytes(rules)
        source = configuration.Source(
            "x", text + b"\n".join([b"acl_file rules", *lines]), tmp_path
        )
        return heap_estimate.needed(boards.load(name), configuration.make(source, name))[0]

    few = with_rules(b"topic read #\n")
    limits = configuration.make(configuration.Source(), name).limits
    tables = sum(row[1] for row in (budget.owners_row(limits), budget.acl_row(limits)))
    assert few - need(name) >= tables
    assert with_rules(b"topic read #\n", b"limit acl_bytes 1640") - few == 1000
    comments = b"# what is for whom\n" * 500
    longer = with_rules(b"topic read #\n" + comments)
    assert with_rules(b"topic read #\n" + 2 * comments) - longer == len(comments)


@pytest.mark.usefixtures("tested", "one_module")
def test_a_journal_that_does_not_fit_is_refused() -> None:
    board = FakeRepl()
    board.probe = probe(heap=160_000)
    deployed(board)
    board.files["/slotmq.conf"] += b"persistence true\n"
    with pytest.raises(ToolError) as refused:
        deployed(board)
    free, needed, *_ = [
        int(n.replace(",", "")) for n in re.findall(r"\d[\d,]+", str(refused.value))
    ]
    assert free == 160_000
    assert 165_000 < needed < 175_000  # test_firmware.py measures it
    board.probe = probe(heap=needed - 1)
    with pytest.raises(ToolError):
        deployed(board)
    board.probe = probe(heap=needed)
    deployed(board)
    board.probe = probe(heap=160_000)
    board.files["/slotmq.conf"] += b"mqtt_versions 3\n"
    deployed(board)


def heap_of_an_esp32(first: int, *system: int) -> int:
    """What deploy counts as free, with this first heap area and these free areas of the system."""
    board = FakeRepl()
    areas = [(size + 1000, size, size, 0) for size in system]
    free = first * 128 // 131 - USED + max(system)
    board.probe = (*probe(heap=free), USED, areas)
    return steps.probe(board).heap  # type: ignore[arg-type]


def test_on_an_esp32_the_preset_fits_beside_wifis_memory() -> None:
    counted = heap_of_an_esp32(56 * 1024, *AREAS)
    assert need("ESP32_GENERIC") <= counted < 119_900
    assert heap_of_an_esp32(64 * 1024, 60_000, 50_000) > need("ESP32_GENERIC_C3", clock=True)
    psram = heap_of_an_esp32(64 * 1024, 4_000_000, 90_000, 15_000)
    assert psram > 3_900_000


def test_the_limits_for_a_journal_on_an_esp32s_page_fit() -> None:
    """MicroPython's collector uses 3 of 131 bytes of the heap for its own tables."""
    board = boards.load("ESP32_GENERIC")
    offered = PAGE.split("```conf\npersistence true\n")[1].partition("```")[0].splitlines()
    assert need(board.name, "persistence true", *offered) < board.heap_kb * 1024 * 128 // 131
