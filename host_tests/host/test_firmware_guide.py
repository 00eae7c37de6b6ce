"""docs/firmware.md describes the firmware that the emulator's second image is built as."""

import re
from pathlib import Path

from slotmq_dev.emulator import image
from slotmq_tools import boards

GUIDE = (Path(__file__).parents[2] / "docs/firmware.md").read_text()


def test_the_lwip_options_are_those_of_the_image() -> None:
    assert f"```c\n{image.MORE_SOCKETS}```\n" in GUIDE


def test_the_flash_region_is_that_of_the_boards_readme() -> None:
    page = Path(__file__).parents[2] / "boards/RPI_PICO_W/README.md"
    line = next(line for line in GUIDE.splitlines() if line.startswith("bdev = "))
    assert line in page.read_text()


def test_the_file_for_an_esp32_is_read_for_every_board() -> None:
    """In MicroPython 1.25 mpconfigboard.cmake of ESP32_GENERIC and ESP32_GENERIC_C3 does not name
    sdkconfig.board, so it would not be read. All boards name sdkconfig.base."""
    named = set(re.findall(r"ports/esp32/\S*sdkconfig[^`\s]*", GUIDE))
    assert named == {"ports/esp32/boards/sdkconfig.base"}
    assert "sdkconfig.board" not in GUIDE


def test_clients_are_three_less_than_sockets() -> None:
    page = (Path(__file__).parents[2] / "boards/ESP32_GENERIC/README.md").read_text()
    assert "ten sockets" in page
    stock = boards.load("ESP32_GENERIC").sockets
    found = re.search(r"CONFIG_LWIP_MAX_SOCKETS=(\d+)", GUIDE)
    clients = re.search(r"reserve leave (\d+) clients", GUIDE)
    assert found and clients and int(found[1]) > stock
    assert int(found[1]) - int(clients[1]) == stock - 7
