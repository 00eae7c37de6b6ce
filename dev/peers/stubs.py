"""Type stubs of MicroPython's modules, from PyPI, to check the types of firmware/.

Each port's stubs have a folder of their own, since all define the same modules. They replace
CPython's standard library.
"""

import subprocess
import sys
from pathlib import Path

from slotmq_tools import cache
from slotmq_tools.errors import ToolError
from slotmq_tools.fetch.retry import retry

# rp2: the Pico W's stubs, which include the modules for its network
PACKAGES = {
    "rp2": "micropython-rp2-rpi_pico_w-stubs>=1.25,<1.26",
    "esp32": "micropython-esp32-stubs>=1.25,<1.26",
}


def folder(port: str) -> Path:
    """The folder with the stubs of a port, a key of PACKAGES. ToolError: pip failed."""

    def install(target: Path) -> None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target)]
        done = subprocess.run([*pip, PACKAGES[port]], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ToolError(f"pip cannot install {PACKAGES[port]}")

    return cache.folder(f"stubs/{port}-1.25", lambda target: retry(lambda: install(target)))
