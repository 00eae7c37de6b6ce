"""docs/firmware.md tells what the emulated board's second image was built with."""

import re
from pathlib import Path

from slotmq_tools import boards
from slotmq_tools.emulator import image

GUIDE = (Path(__file__).parents[3] / "docs/firmware.md").read_text()


def test_the_guides_lines_for_lwip_are_those_of_the_image() -> None:
    assert f"```c\n{image.MORE_SOCKETS}```\n" in GUIDE


def test_the_guides_raw_flash_is_the_boards_pages() -> None:
    page = Path(__file__).parents[3] / "boards/RPI_PICO_W/README.md"
    line = next(line for line in GUIDE.splitlines() if line.startswith("bdev = "))
    assert line in page.read_text()


def test_the_guides_file_for_an_esp32_is_one_that_every_board_reads() -> None:
    """mpconfigboard.cmake of ESP32_GENERIC and of ESP32_GENERIC_C3 names no sdkconfig.board in
    MicroPython 1.25: one that is made there is never read. All name sdkconfig.base."""
    named = set(re.findall(r"ports/esp32/\S*sdkconfig[^`\s]*", GUIDE))
    assert named == {"ports/esp32/boards/sdkconfig.base"}
    assert "sdkconfig.board" not in GUIDE


def test_the_guides_clients_are_its_sockets_less_three() -> None:
    page = (Path(__file__).parents[3] / "boards/ESP32_GENERIC/README.md").read_text()
    assert "IDF has ten sockets in all, of which the listener, NTP and a\nreserve" in page
    stock = boards.load("ESP32_GENERIC").sockets
    found = re.search(r"CONFIG_LWIP_MAX_SOCKETS=(\d+)", GUIDE)
    clients = re.search(r"reserve leave (\d+) clients", GUIDE)
    assert found and clients and int(found[1]) > stock
    assert int(found[1]) - int(clients[1]) == stock - 7
