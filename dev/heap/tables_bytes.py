"""Measures how much of a board's heap is free for the tables.

The broker is started with tables that do not fit. The error message has the number of bytes that
are free for them, besides code and clients. board.json has these numbers by configuration, for
`slotmq sim` and `slotmq deploy`, which choose limits without a start.
"""

import json
import re
import subprocess
import tempfile
from pathlib import Path

from slotmq_tools import boards, micropython
from slotmq_tools.errors import ToolError
from slotmq_tools.pack import mpy, native
from slotmq_tools.run.launcher import BOOT

# Name in board.json: configuration
CONFIGURATIONS = {
    "": "",
    "kept": "persistence true",
    "3": "mqtt_versions 3",
    "3 kept": "mqtt_versions 3\npersistence true",
}
_TOO_LARGE = "limit message_bytes 8000000\nlimit message_block 256\nlistener 1 127.0.0.1\n"
_LEFT = re.compile(r"and (\d+) are left for them")
_NATIVE_IN_HEAP = "armv"
_JOURNAL = "slotmq.journal_viper"
_RECORDER = "slotmq.record_viper"
_FACT = "tables_bytes"


def heap_of(board: str, *, persistence: bool = False) -> int:
    """Bytes of heap for the unix port: the board's, less the native code that a Cortex-M keeps in
    its heap."""
    facts = boards.load(board)
    heap = facts.heap_kb * 1024
    if facts.mpy_arch.startswith(_NATIVE_IN_HEAP):
        code = native.in_folder(mpy.build(facts.mpy_arch))
        others = {_RECORDER, native.WEB} | (set() if persistence else {_JOURNAL})
        heap -= sum(n for name, n in code.items() if name not in others)
    return heap


def measure(board: str) -> dict[str, int]:
    """Free bytes for the tables, by name of the configuration; nothing for a computer."""
    if boards.load(board).network == "host":
        return {}
    return {
        name: _left(board, heap_of(board, persistence="kept" in name), conf)
        for name, conf in CONFIGURATIONS.items()
    }


def _left(board: str, heap: int, conf: str) -> int:
    target = micropython.find(32)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "conf").write_text(_TOO_LARGE + conf)
        Path(folder, "lib").symlink_to(mpy.build_for(target))
        options = ["-X", f"heapsize={heap}", str(BOOT), "--board", board, "-c", "conf"]
        run = subprocess.run(
            [*target.start, *options],
            cwd=folder,
            env=micropython.environment(Path("lib")),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    found = _LEFT.search(run.stderr + run.stdout)
    if not found:
        raise ToolError(f"{board}: {run.stderr or run.stdout or 'no output'}")
    return int(found[1])


def write(folder: Path) -> None:
    """Measure all boards, and write the results into their board.json in this folder."""
    for name in boards.names():
        file = folder / name / "board.json"
        facts = json.loads(file.read_text())
        facts[_FACT] = measure(name)
        file.write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
