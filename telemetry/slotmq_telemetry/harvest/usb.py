"""A board's ring over its serial line, with mpremote's raw REPL. The broker is stopped meanwhile.

The board runs a few lines of code that print; nothing is installed or mounted.
"""

import ast
import posixpath
from binascii import a2b_base64
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Protocol

from slotmq_tools.deploy.listing import NO_LITERAL
from slotmq_tools.errors import ToolError

from .manifest import Copy
from .segments import HEADER_SIZE, Header, NotASegment, header, scan

_CONF = "/slotmq.conf"
_KEY = "record_location"
_DEFAULT = "record"  # of that key
_UNREADABLE = "its answer is unreadable, or other output is mixed into it: try again"
_PIECE = 6144  # bytes a call: what is printed has its place in a board's heap line by line
_LINE = 768
_WHERE = """
try:
    with open({conf!r}) as file:
        for line in file:
            if line.split(None, 1)[:1] == [{key!r}]:
                print(repr(line))
except OSError:
    pass
"""
_LIST = """
import os
try:
    names = os.listdir({folder!r})
except OSError:
    names = []
for name in sorted(names):
    if name.endswith(".seg"):
        path = {folder!r} + "/" + name
        with open(path, "rb") as file:
            print(repr((path, os.stat(path)[6], file.read({header}))))
"""
_READ = """
from binascii import b2a_base64
with open({path!r}, "rb") as file:
    file.seek({begin})
    left = {length}
    while left > 0:
        piece = file.read(min(left, {line}))
        if not piece:
            break
        left -= len(piece)
        print(b2a_base64(piece).decode(), end="")
"""


class Line(Protocol):
    """The methods of tools/deploy/repl.py that are used here."""

    def run(self, code: str) -> str: ...
    def remove(self, paths: list[str]) -> None: ...


class Files:
    """The segments of the board at the other end of the line; nobody writes to them now."""

    def __init__(self, line: Line, folder: str | None = None) -> None:
        """`folder`: where the ring lies, if not where the board's configuration says."""
        self._line, self._folder = line, folder or _location(line)
        self.paths: dict[Header, tuple[str, int]] = {}
        self.refused: list[str] = []
        self.unread: list[str] = []  # none: a line that fails is an error

    def headers(self) -> list[Header]:
        """The headers of all segments; what is none is told of in `refused`."""
        for printed in self._line.run(_LIST.format(folder=self._folder, header=HEADER_SIZE)
                                      ).splitlines():  # fmt: skip
            path, size, beginning = _literal(printed, str, int, bytes)
            try:
                self.paths[header(beginning)] = path, size
            except NotASegment as error:
                self.refused.append(f"{path}: {error}")
        if not self.paths:
            why = "; ".join(self.refused) or f"there is no {self._folder}/*.seg"
            raise ToolError(f"the board has no recordings ({why})")
        return sorted(self.paths, key=lambda one: one.segment)

    def fetch(self, segment: Header, begin: int) -> Iterator[bytes]:
        """A segment's bytes from `begin` on, in order."""
        path, size = self.paths[segment]
        size = min(size, segment.size + 1)  # a byte more than that tells that there is more
        while begin < size:
            code = _READ.format(path=path, begin=begin, length=_PIECE, line=_LINE)
            try:
                piece = b"".join(a2b_base64(text) for text in self._line.run(code).splitlines())
            except ValueError:
                raise ToolError(f"{path}: {_UNREADABLE}") from None
            if not piece:
                raise ToolError(f"{path}: ends at {begin} of {size} bytes")
            begin += len(piece)
            yield piece

    def is_new(self, _segment: Header, copy: Copy | None) -> bool:
        """Has it records, or may it have, that the folder of the harvest has not?"""
        return copy is None or copy.grown is not None

    def has_more(self, segment: Header, here: bytes) -> bool:
        """Has it anything behind the whole records of these bytes that they have not? What is
        erased is nothing."""
        end = scan(here).end
        rest = b"".join(self.fetch(segment, end))
        return not here[end:].startswith(rest.rstrip(b"\xff"))

    def grows(self, _segment: Header) -> bool:
        """No segment does: the board's next start begins a new one."""
        return False

    def remove(self, segments: list[Header]) -> None:
        """Away with them: their bundle is safe."""
        self._line.remove([self.paths[each][0] for each in segments])


def _literal(printed: str, *kinds: type) -> Any:
    """The values that a line prints, of these kinds; ToolError: it does not."""
    with suppress(*NO_LITERAL):
        found = ast.literal_eval(printed)
        found = found if isinstance(found, tuple) else (found,)
        if len(found) == len(kinds) and all(map(isinstance, found, kinds)):
            return found
    raise ToolError(f"the board: {_UNREADABLE}")


def _location(line: Line) -> str:
    """Where the board's broker records to; on a board the current folder is the root."""
    found = _DEFAULT
    for printed in line.run(_WHERE.format(conf=_CONF, key=_KEY)).splitlines():
        (text,) = _literal(printed, str)
        words = text.strip().split(None, 1)
        found = words[1] if len(words) > 1 else found
    return posixpath.join("/", found).rstrip("/")
