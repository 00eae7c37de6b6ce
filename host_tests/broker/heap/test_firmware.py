"""deploy's check of the heap on 32-bit MicroPython: what it accepts starts, with the firmware's
modules, and it does not demand much more than that takes."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from slotmq_tools import boards, micropython
from slotmq_tools.deploy import steps
from slotmq_tools.pack import mpy, native
from slotmq_tools.ports import free_port

FIRMWARE = Path(__file__).parents[3] / "firmware"
SPARE = 14 * 1024  # that it may demand too much: Wi-Fi's module, and fragments
WHAT_IS_FREE = "import gc\ngc.collect()\nprint(gc.mem_free())\n"
TIMEOUT_S = 20


def start(board: str, folder: Path, heap: int, program: str) -> str:
    """What it prints, in a heap of that size, until it listens or ends."""
    target = micropython.find(32)
    main = folder / "main.py"
    main.write_text(program)
    started = subprocess.Popen(
        [*target.start, "-X", f"heapsize={heap}", main.name],
        cwd=folder,
        env=micropython.environment(Path("lib"), Path("firmware")),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert started.stdout
    said = ""
    for line in started.stdout:
        said += line
        if "listening on" in line:
            break
    started.kill()
    started.wait(TIMEOUT_S)
    started.stdout.close()
    return said


def native_code(board: boards.Board, way: str) -> int:
    """The bytes of native code that a board would load."""
    sizes = native.in_folder(mpy.build(board.mpy_arch))
    loaded = ["slotmq.viper"]
    loaded += ["slotmq.journal_viper"] if "kept" in way else []
    loaded += ["slotmq.record_viper"] if "recorded" in way else []
    return sum(sizes[name] for name in loaded)


@pytest.fixture
def flash(tmp_path: Path) -> Path:
    """A folder with what deploy writes, for the unix port."""
    (tmp_path / "lib").symlink_to(mpy.build_for(micropython.find(32)))
    (tmp_path / "firmware").mkdir()
    for source in (FIRMWARE / "slotmq_run").glob("*.py"):
        mpy.compile_file(source, f"slotmq_run/{source.name}", tmp_path / "firmware")
    return tmp_path


WAYS = {
    "": "",
    "kept": "persistence true\n",
    "3": "mqtt_versions 3\n",
    "3 kept": "mqtt_versions 3\npersistence true\n",
    "recorded": "record room/#\n",
    "kept and recorded": "persistence true\nrecord room/#\n",
    "a clock": "",
    "rules": "acl_file rules\n",
    "long rules": "acl_file rules\n",
}
RULES = b"user alice\n" + b"topic readwrite home/kitchen/#\n" * 20 + b"pattern read inbox/%u\n"
COMMENT = b"# The next ones are for the kitchen.\n"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["RPI_PICO_W", "ESP32_GENERIC", "W5500_EVB_PICO"])
def test_what_deploy_accepts_starts_and_it_demands_little_more(
    name: str, way: str, flash: Path
) -> None:
    board = boards.load(name)
    conf = flash / "slotmq.conf"
    conf.write_text(f"listener {free_port()}\nallow_anonymous true\n{WAYS[way]}")
    (flash / "rules").write_bytes(RULES + COMMENT * 150 * ("long" in way))
    network = {"board": name, "link": "host"} | ({"time": "127.0.0.1"} if "clock" in way else {})
    (flash / "network.json").write_text(json.dumps(network))
    need, _ = steps.heap_needed(board, conf, clock="clock" in way)
    conf.write_text(conf.read_text().replace("\n", " 127.0.0.1\n", 1))
    if board.mcu.startswith("rp2"):  # the unix port keeps native code beside its heap
        need -= native_code(board, way)
    heap = need
    while (free := int(start(name, flash, heap, WHAT_IS_FREE))) < need:
        heap += need - free
    main = (FIRMWARE / "main.py").read_text()
    said = start(name, flash, heap, main)
    assert re.search(f"board {name}, .* listening on", said), said
    for kept in ("slotmq.boots", "slotmq.db", "slotmq.db.reserve"):
        (flash / kept).unlink(missing_ok=True)
    said = start(name, flash, heap - SPARE, main)
    assert "listening on" not in said
    assert any(text in said for text in ("lower limit", "MemoryError", "allocation", "not fit")), (
        said
    )
