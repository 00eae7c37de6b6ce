"""Windows of messages by a load generator in C (windows.c), which needs a C compiler."""

import hashlib
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from slotmq_tools import cache
from slotmq_tools.errors import ToolError

from .client import Address, Silent
from .numbered import Violation

_SOURCE = Path(__file__).with_suffix(".c")


@dataclass(frozen=True)
class Windows:
    """How many messages a publisher sends at once, and how many pairs there are."""

    qos: int
    window: int = 200
    payload: int = 64
    pairs: int = 10


class Generator:
    """The running program, with its clients connected."""

    def __init__(self, windows: Windows, address: Address) -> None:
        shape = (address[1], windows.qos, windows.window, windows.payload, windows.pairs)
        self._child = subprocess.Popen(
            [_program(), *map(str, shape)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, seconds: float) -> int:
        """Publish for so long, and until all is delivered; -> the number of deliveries."""
        child = self._child
        assert child.stdin and child.stdout and child.stderr
        try:
            child.stdin.write(f"{seconds}\n")
            child.stdin.flush()
        except BrokenPipeError:
            pass  # stderr says why
        line = child.stdout.readline()
        if not line:
            why = child.stderr.read().strip() or f"it ended with status {child.wait()}"
            raise (Violation if "message" in why else Silent)(why)
        return int(line)

    def close(self) -> None:
        """End the program."""
        self._child.communicate()


def _program() -> Path:
    """The compiled program, from the cache. ToolError: there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        raise ToolError("windows.c needs a C compiler, and there is neither cc, gcc nor clang")

    def build(folder: Path) -> None:
        command = [compiler, "-O2", "-Wall", "-o", str(folder / "windows"), str(_SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ToolError(f"{compiler} cannot compile windows.c: {done.stderr[:200]}")

    name = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]
    return cache.folder(f"windows/{name}", build) / "windows"
