"""The journal in a board's raw flash, read, written and erased over its REPL.

The board's own region.py says where the region is, as for the broker. The bytes are those of the
region, which `slotmq inspect` reads. Erased pieces are not transferred.
"""

from binascii import a2b_base64, b2a_base64
from importlib import resources
from typing import Any

from ..errors import ToolError
from .repl import Repl

_ERASE = 6  # MP_BLOCKDEV_IOCTL_BLOCK_ERASE
_PIECE = 1024  # bytes of one line
_LARGEST = 256 << 20
_MAGIC = b"slotmqJ"  # at the beginning of a block's header; each block has two headers
_FIND = """
import json
from binascii import a2b_base64, b2a_base64
region = None
try:
    with open("network.json") as file:
        board = json.load(file)["board"]
    module = __import__("slotmq_boards.%s.region" % board, None, None, ["region"])
    region = module.region()
except (ImportError, OSError, KeyError, ValueError):
    pass
print((region.ioctl(4, 0), region.ioctl(5, 0)) if region else None)
"""
_READ = f"""
buf = bytearray({_PIECE})
erased = b"\\xff" * {_PIECE}
def read(block, size):
    for at in range(0, size, {_PIECE}):
        region.readblocks(block, buf, at)
        print("" if buf == erased else b2a_base64(buf).decode().strip())
"""
_CLEAR = f"""
head = bytearray(256)
count = 0
for block in range(region.ioctl(4, 0) if region else 0):
    region.readblocks(block, head, 0)
    if {_MAGIC!r} in (bytes(head[:{len(_MAGIC)}]), bytes(head[128:{128 + len(_MAGIC)}])):
        region.ioctl({_ERASE}, block)
        count += 1
print(count)
"""


def _is_region(found: Any) -> bool:
    """None, or a number of blocks and their size, of no more flash than there are chips with."""
    if found is None:
        return True
    numbers = isinstance(found, tuple) and len(found) == 2 and {*map(type, found)} == {int}
    return numbers and min(found) > 0 and found[0] * found[1] <= _LARGEST


def read(repl: Repl) -> bytes | None:
    """The whole region; None: the board has none. ToolError: the transfer was damaged."""
    found = repl.value(_FIND, _is_region)
    if found is None:
        return None
    blocks, size = found
    repl.run(_READ)
    region = bytearray()
    for block in range(blocks):
        try:
            lines = repl.run(f"read({block}, {size})").splitlines()
            content = b"".join(a2b_base64(each) if each else b"\xff" * _PIECE for each in lines)
        except ValueError:
            content = b""
        if len(content) != size:
            raise ToolError(f"block {block} of the journal's flash arrived incomplete: try again")
        region += content
    return bytes(region)


def write(repl: Repl, content: bytes) -> None:
    """Write what read() has read. ToolError: the board has no region of this size."""
    blocks, size = repl.value(_FIND, _is_region) or (0, 0)
    if blocks * size != len(content):
        raise ToolError(
            f"the copy of the journal has {len(content):,} bytes, the board's region in raw flash"
            f" {blocks * size:,}: restore to a board with the same firmware, or remove the copy"
        )
    for block in range(blocks):
        repl.run(f"region.ioctl({_ERASE}, {block})")
        for at in range(0, size, _PIECE):
            piece = content[block * size + at :][:_PIECE]
            if piece.strip(b"\xff"):
                text = b2a_base64(piece, newline=False)
                repl.run(f"region.writeblocks({block}, a2b_base64({text!r}), {at})")


def erase(repl: Repl, board: str) -> int:
    """Erase the blocks that begin as a journal's do, and no others; -> how many there were.

    Uses this computer's region.py of `board`, since the board's own one may be unusable."""
    source = resources.files("slotmq_boards").joinpath(board, "region.py").read_text()
    repl.run(f"{source}\ntry:\n region = region()\nexcept (ImportError, OSError):\n region = None")
    count: int = repl.value(_CLEAR, lambda found: isinstance(found, int))
    return count
