"""The program's files on a board, as a dict from path to content: compiled modules and main.py.

The broker and the firmware's modules are compiled for the board's processor. network.json is
made by network.py, slotmq.conf by configuration.py.
"""

import hashlib
import re
import tempfile
from importlib import resources
from pathlib import Path

from ..errors import ToolError
from ..pack import mpy

APP = "/app.py"  # an application beside the broker, see docs/embed.md
CONF, NETWORK, BOOTS = "/slotmq.conf", "/network.json", "/slotmq.boots"
MAIN = "/main.py"
NEW = ".new"  # appended to a file's name while it is written
# Folders that belong to deploy: it removes any other file from them.
OWN = ("/lib/slotmq/", "/lib/slotmq_boards/", "/lib/slotmq_run/")
_FIRMWARE = Path(str(resources.files("slotmq_firmware")))
_MAIN_SOURCE = _FIRMWARE / "main.py"
_RUN = "slotmq_run"
# SHA-256 of main.py in earlier versions
_EARLIER_MAINS = (
    "704fc428bb05823927888498a0cfb9f33168dcd61ce92a7d922c57ea6ad3d2e2",
    "4abcb6237db2b47738051f85d9daeacacdee242437919888965a9737bd218b13",
)


def code(board: str, arch: str) -> dict[str, bytes]:
    """The broker, this board's limits, the firmware's modules and main.py.

    `arch` is mpy-cross's name of the processor."""
    folder = mpy.build(arch)
    files = {f"/lib/{name}": (folder / name).read_bytes() for name in mpy.for_board(folder, board)}
    with tempfile.TemporaryDirectory() as temporary:
        for source in sorted((_FIRMWARE / _RUN).glob("*.py")):
            compiled = mpy.compile_file(source, f"{_RUN}/{source.name}", Path(temporary))
            files[f"/lib/{_RUN}/{compiled.name}"] = compiled.read_bytes()
    files[MAIN] = _MAIN_SOURCE.read_bytes()
    return files


def known_mains() -> tuple[str, ...]:
    """SHA-256 of every main.py that deploy has ever written, the current one first."""
    return (hashlib.sha256(_MAIN_SOURCE.read_bytes()).hexdigest(), *_EARLIER_MAINS)


def application(file: Path) -> bytes:
    """The content of an app.py. ToolError: a syntax error, or without start()."""
    text = file.read_bytes()
    with tempfile.TemporaryDirectory() as temporary:
        mpy.compile_file(file, file.name, Path(temporary))
    if not re.search(rb"\bstart\b", text):
        raise ToolError(f"{file} has no start(broker): see docs/embed.md")
    return text


def changed(wanted: dict[str, bytes], on_board: dict[str, str]) -> list[str]:
    """Paths whose content the board does not have, main.py last, since it starts the program.

    `on_board`: the SHA-256 of each of the board's files, by path."""
    found = [
        path
        for path, content in wanted.items()
        if on_board.get(path) != hashlib.sha256(content).hexdigest()
    ]
    return sorted(found, key=lambda path: (path == MAIN, path))


def obsolete(wanted: dict[str, bytes], on_board: dict[str, str]) -> list[str]:
    """Files of other versions in deploy's folders, and files that were not written completely."""
    unfinished = {path + NEW for path in wanted}
    return [
        path
        for path in on_board
        if path not in wanted and (path.startswith(OWN) or path in unfinished)
    ]
