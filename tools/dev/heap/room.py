"""What a start leaves of a board's heap for the tables: asked of the program itself.

It is started with tables that fit nowhere; the line with which it refuses them says how much
is left beside the code and what clients need. board.json keeps the answers, by how it is
started, for those who choose limits without a start (`slotmq sim`).
"""

import json
import re
import subprocess
import tempfile
from pathlib import Path

from ... import boards, micropython
from ...errors import ToolError
from ...pack import mpy, native
from ...run.launcher import BOOT

# How it is started: what the configuration says
WAYS = {
    "": "",
    "kept": "persistence true",
    "3": "mqtt_versions 3",
    "3 kept": "mqtt_versions 3\npersistence true",
}
_TOO_MUCH = "limit message_bytes 8000000\nlimit message_block 256\nlistener 1 127.0.0.1\n"
_LEFT = re.compile(r"and (\d+) are left for them")
_NATIVE_IN_HEAP = "armv"
_OF_JOURNAL = "slotmq.journal_viper"
_OF_RECORDER = "slotmq.record_viper", "slotmq.record_words_viper"
_FACT = "tables_bytes"


def heap_of(board: str, keeping: bool = False) -> int:
    """Bytes of the unix port's heap that stand for a board's: a Cortex-M keeps native code in
    its own, which the unix port does not."""
    facts = boards.load(board)
    heap = facts.heap_kb * 1024
    if facts.mpy_arch.startswith(_NATIVE_IN_HEAP):
        code = native.in_folder(mpy.build(facts.mpy_arch))
        others = {*_OF_RECORDER} if keeping else {_OF_JOURNAL, *_OF_RECORDER}
        heap -= sum(n for name, n in code.items() if name not in others)
    return heap


def measure(board: str) -> dict[str, int]:
    """Bytes that are left for the tables, by WAYS; none for a computer."""
    if boards.load(board).network == "host":
        return {}
    return {way: _left(board, heap_of(board, "kept" in way), conf) for way, conf in WAYS.items()}


def _left(board: str, heap: int, conf: str) -> int:
    target = micropython.find(32)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "conf").write_text(_TOO_MUCH + conf)
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
        raise ToolError(f"{board}: {run.stderr or run.stdout or 'the start says nothing'}")
    return int(found[1])


def write(folder: Path) -> None:
    """Measure all boards, and put the answers into their board.json in this folder."""
    for name in boards.names():
        file = folder / name / "board.json"
        facts = json.loads(file.read_text())
        facts[_FACT] = measure(name)
        file.write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
