"""slotmq.conf for a board: which one it gets, and whether the broker could start with it.

It is read here by the broker's own parser, as the board will read it, but for what only the
board can tell: nothing that it names is opened or made on this computer. The file of users
that it may name is copied beside it. No content of either is ever shown.
"""

import io
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

from slotmq.config import mosquitto_conf as parser
from slotmq.config.settings import ConfError
from slotmq.fast.bytes_cpython import filter_ok
from slotmq.recorder import start
from slotmq.v5 import scram

from ..errors import ToolError
from .board_files import APP, BOOTS, CONF, NETWORK, NEW, OWN
from .copying import MARKS

# Names that a file of users cannot have
_OURS = (CONF, NETWORK, APP, BOOTS, "/main.py", "/main.own.py", "/slotmq_main.py")
_TAKEN = (*MARKS, *_OURS, *(name + NEW for name in _OURS))
_OPEN = b"# No configuration was given: anybody on the network may come in.\n"
_OPEN += b"listener 1883\nallow_anonymous true\n"
_ONE_MORE = b"\n# One more, for the program on the board itself\n"
# That, and the lines of _room_for_one() behind it; an editor may have changed how lines end.
_ONE_MORE_THERE = re.compile(
    rb"(?:(?:^|\r?\n)" + _ONE_MORE.strip() + rb"(?:\r?\n|$)"
    rb"(?:limit connections (\d+)(?:\r?\n|$)(?:limit sessions \1(?:\r?\n|$))?"
    rb"(?:limit route_entries \1(?:\r?\n|$))?)?)+"
)
_LOOPBACK = ("127.", "::1", "localhost")
_IS_OPEN = (
    "no configuration: anybody on the network may come in, on port 1883 (-c FILE brings one)"
)
_NO_LISTENER = (
    "{}: no listener for the network: only the board itself would reach its broker. Add"
    " `listener 1883`, and `allow_anonymous true` if anybody may come in"
)


@dataclass(frozen=True)
class Source:
    """Where the configuration comes from; nowhere: anybody may come in."""

    name: str = ""  # as complaints name it
    text: bytes = _OPEN
    folder: Path | None = None  # where files lie that it names; None: on the board

    def refused(self, why: object) -> ToolError:
        """What is said of one that a broker could not start with."""
        way = "" if self.folder else " (-c FILE brings another one, --no-config none)"
        return ToolError(f"{why}: the board would not start with it{way}")


@dataclass(frozen=True)
class Configuration:
    """What the board gets, and what the broker makes of it."""

    text: bytes
    limits: Any
    settings: Any
    files: dict[str, bytes] = field(default_factory=dict)  # that it names, by path on the board
    there: str = ""  # one that it names, and that the board has already

    @property
    def told(self) -> str:
        """What the user ought to know of it, if anything."""
        return _IS_OPEN if _without_one_more(self.text) == _OPEN else ""


def given(conf: Path) -> Source:
    """The user's file, without what deploy has added to it: it may come from a backup."""
    try:
        return Source(str(conf), _without_one_more(conf.read_bytes()), conf.parent)
    except OSError as error:
        raise ToolError(f"{conf}: {error.strerror}") from None


def kept(text: bytes) -> Source:
    """The board's own, without what deploy has added to it."""
    return Source(f"{CONF} of the board", _without_one_more(text))


def _without_one_more(text: bytes) -> bytes:
    # What stands before and behind it is the user's, and no two lines of it become one.
    def between(found: re.Match[bytes]) -> bytes:
        before, behind = text[: found.start()], text[found.end() :]
        return b"\n" if before and behind and not before.endswith(b"\n") else b""

    return _ONE_MORE_THERE.sub(between, text)


def make(
    source: Source, board: str, one_more: bool = False, there: Collection[str] = ()
) -> Configuration:
    """The configuration as the board will have it; ToolError: the broker would not start.

    `one_more`: a connection for the program on the board; `there`: the board's files."""
    limits, settings = read(source, board)
    if one_more:
        text = source.text + _ONE_MORE + _room_for_one(limits)
        source = Source(source.name, text, source.folder)
        limits, settings = read(source, board)
    _check(source, settings, limits)
    users = settings.scram_file
    if not users:
        return Configuration(source.text, limits, settings)
    path = _on_board(source.name, users)
    file = source.folder / users.lstrip("/") if source.folder else None
    if file and file.is_file():
        found = {path: _users(file)}
        return Configuration(source.text, limits, settings, found)
    if path not in there:
        lack = f"neither is {file} there, nor has the board" if file else "the board has no"
        raise ToolError(f"{source.name}: scram_file {users}: {lack} {path}")
    return Configuration(source.text, limits, settings, there=path)


def preset(board: str) -> Any:
    """The board's limits, with as many connections as its stock firmware has sockets for."""
    return import_module(f"slotmq_boards.{board}.limits").LIMITS


def read(source: Source, board: str) -> tuple[Any, Any]:
    """The board's limits as the configuration changes them, and the settings."""
    reader: Any = parser._Reader(source.name, preset(board))
    reader.dest = _unopened(reader.dest)
    try:
        for line in io.BytesIO(source.text):
            reader.line += 1
            reader.take(line)
        reader.resize()
        return reader.limits, reader.finish()
    except (ConfError, ValueError) as error:
        raise source.refused(error) from None


def _unopened(dest: Any) -> Any:
    # The parser's kind of a log's destination; a file is the board's, and is not opened here.
    def checked(bounds: Any, value: str) -> Any:
        if not value.startswith("file "):
            return dest(bounds, value)
        if not value[5:].strip():
            raise ValueError("a file that can be written")
        return (*dest(bounds, "stderr")[:-1], value)

    return checked


def _room_for_one(limits: Any) -> bytes:
    # A connection and its session; each limit is at least the one before it.
    text, least = b"", limits.connections + 1
    for name in ("connections", "sessions", "route_entries"):
        if getattr(limits, name) < least:
            text += b"limit %s %d\n" % (name.encode(), least)
        least = max(getattr(limits, name), least)
    return text


def _check(source: Source, settings: Any, limits: Any) -> None:
    # What the parser leaves to the broker, and what no board has a use for
    listeners = [host or "" for host, _, _ in settings.listeners]
    if all(host.startswith(_LOOPBACK) for host in listeners):
        raise ToolError(_NO_LISTENER.format(source.name))
    try:
        settings.check(limits)
        if hasattr(settings, "record"):
            _check_record(settings, limits)
    except ValueError as error:
        raise source.refused(f"{source.name}: {error}") from None


def _check_record(settings: Any, limits: Any) -> None:
    size, budget = start._sizes(SimpleNamespace(limits=limits), settings)
    if not all(filter_ok(text, 0, len(text)) for text in settings.record):
        raise ValueError("record: expected a topic filter")
    if size % 256:
        raise ValueError("record_segment_size: expected a multiple of 256")
    if budget < 2 * size:
        raise ValueError("record_budget: expected at least two times record_segment_size")


def _on_board(name: str, file: str) -> str:
    # Where a file that the configuration names lies on the board, which starts in /
    path = PurePosixPath("/", file)
    if ".." in path.parts or str(path) in _TAKEN or str(path).startswith(OWN):
        raise ToolError(f"{name}: scram_file {file}: expected a name that no file of ours has")
    return str(path)


def _users(file: Path) -> bytes:
    """Its content; ToolError: the broker cannot use it. No part of it is shown."""
    try:
        content = file.read_bytes()
        scram.Scram(str(file))
    except OSError as error:
        raise ToolError(f"{file}: {error.strerror}") from None
    except ValueError as error:
        raise ToolError(str(error)) from None
    return content
