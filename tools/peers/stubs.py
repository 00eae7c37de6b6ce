"""What the boards' own modules look like to a type checker: MicroPython's stubs, from PyPI.

Each port's go into a folder of their own, since all define the same modules, and in
place of CPython's standard library.
"""

import subprocess
import sys
from pathlib import Path

from .. import cache
from ..errors import ToolError
from ..fetch.retry import retry

# The Pico W's are the rp2 port's with the modules for its network.
PACKAGES = {
    "rp2": "micropython-rp2-rpi_pico_w-stubs>=1.25,<1.26",
    "esp32": "micropython-esp32-stubs>=1.25,<1.26",
}


def folder(port: str) -> Path:
    """Where the stubs of that port are."""

    def install(target: Path) -> None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target)]
        done = subprocess.run([*pip, PACKAGES[port]], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ToolError(f"pip cannot install {PACKAGES[port]}")

    return cache.folder(f"stubs/{port}-1.25", lambda target: retry(lambda: install(target)))
