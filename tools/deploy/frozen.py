"""Code of slotmq that a board has in its firmware, frozen as docs/firmware.md has it.

MicroPython looks into its firmware before it looks into /lib, so what is frozen is what runs,
whatever lies there: none of it is copied, and a firmware of another version is refused.
"""

from collections.abc import Collection

from slotmq import __version__

from ..errors import ToolError
from .repl import Repl

PACKAGES = ("slotmq", "slotmq_run")
_ASK = f"""
import sys
path, found = sys.path[:], {{}}
sys.path[:] = [".frozen"]
for name in {PACKAGES}:
    try:
        found[name] = getattr(__import__(name), "__version__", "")
    except ImportError:
        pass
sys.path[:] = path
for name in list(sys.modules):
    if name.split(".")[0] in found:
        del sys.modules[name]
print(found)
"""


def packages(repl: Repl) -> dict[str, str]:
    """Those of PACKAGES that are in the board's firmware, with their versions."""
    found: dict[str, str] = repl.value(_ASK)
    return dict(sorted(found.items()))


def check(found: dict[str, str]) -> None:
    """ToolError: the firmware has another version, and would run that."""
    version = found.get("slotmq", __version__)
    if version != __version__:
        raise ToolError(
            f"the board's firmware has slotmq {version} frozen in it, which it would run, and this"
            f" is {__version__}: build the firmware anew (docs/firmware.md), or deploy with"
            f" slotmq {version}"
        )


def all_in(found: Collection[str]) -> bool:
    """Is everything that could be?"""
    return set(PACKAGES) <= set(found)


def without(files: dict[str, bytes], found: Collection[str]) -> dict[str, bytes]:
    """The files that the firmware has not."""
    there = tuple(f"/lib/{name}/" for name in found)
    return {path: content for path, content in files.items() if not path.startswith(there)}
