"""The journal in a board's raw flash, read and written over its REPL.

The board itself tells where that is: its region.py, as the broker asks it. The bytes are
those of the region, which `slotmq inspect` reads; erased parts are not sent.
"""

from binascii import a2b_base64, b2a_base64
from importlib import resources

from ..errors import ToolError
from .repl import Repl

_ERASE = 6  # of a block device's ioctl
_PIECE = 1024
_MAGIC = b"slotmqJ"  # of a block's header, of which there are two
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


def read(repl: Repl) -> bytes | None:
    """The region as it is; None: the board has none."""
    there = repl.value(_FIND)
    if there is None:
        return None
    blocks, size = there
    repl.run(_READ)
    whole = bytearray()
    for block in range(blocks):
        try:
            lines = repl.run(f"read({block}, {size})").splitlines()
            content = b"".join(a2b_base64(each) if each else b"\xff" * _PIECE for each in lines)
        except ValueError:
            content = b""
        if len(content) != size:
            raise ToolError(f"block {block} of the journal's flash came in part: try again")
        whole += content
    return bytes(whole)


def write(repl: Repl, content: bytes) -> None:
    """Write a region that read() has read; ToolError: the board has none of that size."""
    there = repl.value(_FIND)
    blocks, size = there or (0, 0)
    if blocks * size != len(content):
        raise ToolError(
            f"the copy of the journal has {len(content):,} bytes, and the board's raw flash for"
            f" it {blocks * size:,}: deploy to a board with the same firmware, or remove the copy"
        )
    for block in range(blocks):
        repl.run(f"region.ioctl({_ERASE}, {block})")
        for at in range(0, size, _PIECE):
            piece = content[block * size + at :][:_PIECE]
            if piece.strip(b"\xff"):
                text = b2a_base64(piece, newline=False)
                repl.run(f"region.writeblocks({block}, a2b_base64({text!r}), {at})")


def erase(repl: Repl, board: str) -> int:
    """Erase a journal's blocks, and nothing of anybody else's; -> how many there were.

    `board` says where they lie: what is on the board may be of no use."""
    source = resources.files("slotmq_boards").joinpath(board, "region.py").read_text()
    repl.run(f"{source}\ntry:\n region = region()\nexcept (ImportError, OSError):\n region = None")
    count: int = repl.value(_CLEAR)
    return count
