"""docs/firmware.md tells what the emulated board's second image was built with."""

from pathlib import Path

from slotmq_tools.emulator import image

GUIDE = (Path(__file__).parents[2] / "docs/firmware.md").read_text()


def test_the_guides_lines_for_lwip_are_those_of_the_image() -> None:
    assert f"```c\n{image.MORE_SOCKETS}```\n" in GUIDE


def test_the_guides_raw_flash_is_the_boards_pages() -> None:
    page = Path(__file__).parents[2] / "boards/RPI_PICO_W/README.md"
    line = next(line for line in GUIDE.splitlines() if line.startswith("bdev = "))
    assert line in page.read_text()
