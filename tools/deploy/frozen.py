"""Packages of slotmq that are frozen in a board's firmware, as docs/firmware.md describes.

MicroPython imports frozen modules before those in /lib. So deploy does not copy what is frozen,
and refuses a firmware with another version.
"""

from collections.abc import Collection
from typing import Any

from slotmq import __version__

from ..errors import ToolError
from .repl import Repl

PACKAGES = ("slotmq", "slotmq_run")
_FIND = f"""
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


def _are_names(found: Any) -> bool:
    return isinstance(found, dict) and {*map(type, [*found, *found.values()])} <= {str}


def packages(repl: Repl) -> dict[str, str]:
    """The members of PACKAGES in the board's firmware, with their versions ("": it has none)."""
    found: dict[str, str] = repl.value(_FIND, _are_names)
    return dict(sorted(found.items()))


def check(found: dict[str, str]) -> None:
    """ToolError: the firmware contains another version than this one."""
    version = found.get("slotmq", __version__)
    if version != __version__:
        raise ToolError(
            f"the board's firmware has slotmq {version} frozen in it, which the board would run"
            f" instead of {__version__}: build the firmware anew (docs/firmware.md), or deploy"
            f" with slotmq {version}"
        )


def is_complete(found: Collection[str]) -> bool:
    """Are all PACKAGES in the firmware?"""
    return set(PACKAGES) <= set(found)


def without(files: dict[str, bytes], found: Collection[str]) -> dict[str, bytes]:
    """The files that are not part of the packages in `found`."""
    folders = tuple(f"/lib/{name}/" for name in found)
    return {path: content for path, content in files.items() if not path.startswith(folders)}
