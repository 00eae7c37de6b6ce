"""A board's ring over MQTT: retained heads, requests for ranges of segments, and the time.

lib/FORMAT.md describes topics and bytes. Several requests are in flight at once. A request without
an answer is repeated, since a full table of the broker may have dropped it.
"""

import json
import math
import re
import struct
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from queue import Empty
from typing import Any

from slotmq_tools.deploy.mqtt_client import Client, Login
from slotmq_tools.errors import ToolError

ROOT = "$SLOTMQ/record"
TIME = "$SLOTMQ/time"
NONE = 0xFFFFFFFF
NOBODY = (
    "no board announces recordings here: does its configuration have `record` and"
    " `remote_admin true`? A board that has just started announces itself when its first records"
    " are flushed, after `record_flush_interval` (10 s)"
)
_ANSWER = struct.Struct("<III")
_NAME_AT, _NAME_LEN = 8, 8  # of the board, in the header of a segment
_WINDOW = 4
_ASKED = 16384  # the board gives at most what fits into a packet, and then sets the pace
_AGAIN_S = 2.0
_ATTEMPTS = 6
_QUIET_S = 0.5
_FIRST_S = 3.0  # a board that has just started tells of its ring a little later
_TIMEOUT_S = 15.0
SEGMENTS = 1 << 20  # of a ring; more is no ring
BOARDS = 10_000  # whose heads are kept
_LEAST = 256  # bytes of a segment that a board must give in the time of all attempts
_CLOCK_MS = 5  # how wrong this computer's own clock is thought to be, at the least


@dataclass(frozen=True)
class Head:
    """A head: what a board announces about its ring, or what another client published there."""

    board: str
    boot: int
    first: int  # the oldest segment
    segment: int  # the newest
    length: int  # bytes of the newest that are on flash
    next: int  # seq of the next record
    size: int


class Gone(Exception):
    """There is no such segment any more."""


class Ring(Client):
    """The boards behind one broker."""

    def __init__(self, address: tuple[str, int], login: Login) -> None:
        super().__init__(address, login)
        self._reply = f"slotmq/harvest/{uuid.uuid4().hex[:12]}"  # none below $ is let
        self._heads: dict[str, Head] = {}
        self._has_asked = False
        self.subscribe(self._reply, 1)

    def received(self, message: Any) -> None:
        head = message.topic.endswith("/head") and _head(message.topic, message.payload)
        if head and (head.board in self._heads or len(self._heads) < BOARDS):
            self._heads = self._heads | {head.board: head}
        super().received(message)

    def heads(self, quiet: float = _QUIET_S) -> dict[str, Head]:
        """What every board has now, by its id. Boards announce what changes, so only the first
        call waits."""
        if not self._has_asked:
            self._ask_for_heads(quiet)
        return self._heads

    def _ask_for_heads(self, quiet: float) -> None:
        self._client.subscribe(f"{ROOT}/+/head", 1)
        left, answered = _TIMEOUT_S, False
        end = time.monotonic() + left
        while left > 0:
            try:
                kind, _ = self.events.get(timeout=left)
            except Empty:
                break
            answered = answered or kind == "subscribe"
            left = (quiet if self._heads else _FIRST_S) if answered else _TIMEOUT_S
            left = min(left, end - time.monotonic())
        if not answered:
            raise ToolError(self._unreachable("no answer"))
        self._has_asked = True

    def is_lost(self) -> bool:
        """Has the broker closed the connection since the last request? Drops other events."""
        kinds = {self.events.get()[0] for _ in range(self.events.qsize())}
        return not kinds.isdisjoint(("disconnect", "broken"))

    def fetch(self, board: str, segment: int, begin: int, end: int | None) -> Iterator[bytes]:
        """Its bytes from `begin` to `end` or as far as they go, in order; Gone. ToolError: they
        come too slowly."""
        yield from _Fetch(self, board, segment, begin, end).pieces()

    def read(self, board: str, segment: int, begin: int, end: int | None) -> bytes:
        """The same in one."""
        return b"".join(self.fetch(board, segment, begin, end))

    def ask(self, board: str, segment: int, offset: int, length: int) -> None:
        request = {"segment": segment, "offset": offset, "length": length, "reply": self._reply}
        self.publish(f"{ROOT}/{board}/get", json.dumps(request).encode(), 1)

    def answer(self, seconds: float) -> tuple[int, int, int, bytes] | None:
        """Segment, offset, bytes of the segment on flash, and bytes."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            try:
                kind, message = self.events.get(timeout=left)
            except Empty:
                return None
            if kind != "message" or message.topic != self._reply:
                continue
            if len(message.payload) >= _ANSWER.size:  # else it is no answer
                number, offset, total = _ANSWER.unpack_from(message.payload)
                return number, offset, total, message.payload[_ANSWER.size :]
        return None

    def silent(self, heads: Iterable[Head]) -> dict[str, str]:
        """The boards that do not answer, with a text for each; all are asked at once.

        Each is asked for its id in the header of its newest segment; no other request begins at
        that offset."""
        waiting = {head.board: head.segment for head in heads}
        for _ in range(_ATTEMPTS):
            for board, segment in waiting.items():
                self.ask(board, segment, _NAME_AT, _NAME_LEN)
            due = time.monotonic() + _AGAIN_S
            while waiting and (answer := self.answer(due - time.monotonic())):
                number, _, _, name = answer
                before = len(waiting)
                if waiting.pop(name.hex(), None) is None:  # overwritten, say: any that has it
                    waiting = {board: one for board, one in waiting.items() if one != number}
                if len(waiting) < before:
                    due = time.monotonic() + _AGAIN_S
        return {board: _silence(board) for board in waiting}

    def set_time(self) -> tuple[int, int]:
        """Send the time to the boards; -> the error bound in ms that was sent, and the bound that
        turned out to be right afterwards."""
        bound = 2 * max(self._there_and_back() for _ in range(3)) + _CLOCK_MS
        began = time.monotonic()
        # QoS 0: nothing sends it again when it is no longer true
        self.publish(TIME, f"{time.time():.3f} {bound} harvester".encode(), 0)
        self._there_and_back()  # behind it, so that it was there before
        return bound, math.ceil((time.monotonic() - began) * 1000) + _CLOCK_MS

    def _there_and_back(self) -> int:
        """How many ms that takes; there alone, it is less."""
        began = time.monotonic()
        self.subscribe(self._reply, 1)
        return math.ceil((time.monotonic() - began) * 1000)

    def _unreachable(self, why: str) -> str:
        host, port = self.address
        return f"no MQTT at {host}:{port} ({why}): is this computer on the board's network?"


class _Fetch:
    """One range on its way."""

    def __init__(self, ring: Ring, board: str, segment: int, begin: int, end: int | None) -> None:
        self._ring, self._board, self._segment = ring, board, segment
        self._at = self._asked = begin  # what is handed on so far, and what is asked for
        self._end = end
        self._known = False  # did the board answer, so that the end is one that it has?
        self._stride = _ASKED
        self._open: dict[int, int] = {}  # offset: length
        self._got: dict[int, bytes] = {}

    def pieces(self) -> Iterator[bytes]:
        counted, due = self._at, 0.0  # until when there must be more than that
        while not (self._known and self._at >= (self._end or 0)):
            if not due or self._at >= counted + _LEAST:
                counted, due = self._at, time.monotonic() + _ATTEMPTS * _AGAIN_S
            if time.monotonic() > due:
                raise ToolError(_silence(self._board))
            self._ask_more()
            answer = self._ring.answer(_AGAIN_S)
            if answer is None:
                self._again()
            elif self._take(*answer):
                while self._at in self._got:
                    piece = self._got.pop(self._at)
                    self._at += len(piece)
                    yield piece

    def _ask_more(self) -> None:
        window = _WINDOW if self._known else 1
        while len(self._open) < window and (not self._known or self._asked < (self._end or 0)):
            length = self._stride
            if self._end is not None:
                length = max(0, min(length, self._end - self._asked))
            self._ask(self._asked, length)
            self._asked += length
            if not self._known:
                return

    def _ask(self, offset: int, length: int) -> None:
        self._open[offset] = length
        self._ring.ask(self._board, self._segment, offset, length)

    def _again(self) -> None:
        for offset, length in list(self._open.items()):
            self._ask(offset, length)

    def _take(self, segment: int, offset: int, total: int, data: bytes) -> bool:
        """Was it an answer that was waited for?"""
        if segment != self._segment or offset not in self._open:
            return False
        if total == NONE:
            raise Gone(self._segment)
        length = self._open.pop(offset)
        self._end = min(total, total if self._end is None else self._end)
        self._known = True
        length = min(length, max(0, self._end - offset))
        data = data[:length]
        if not data and length:
            self._open[offset] = length  # nothing now: it is asked for again
            return False
        self._got[offset] = data
        if len(data) < length:
            self._stride = min(self._stride, len(data))
            self._ask(offset + len(data), length - len(data))
        return True


def _silence(board: str) -> str:
    return f"board {board} does not answer: does its configuration have `remote_admin true`?"


_NUMBERS = ("boot", "first", "segment", "length", "next", "size")
_is_board = re.compile("[0-9a-f]{16}").fullmatch


def _head(topic: str, payload: bytes) -> Head | None:
    """None for what no board says: other brokers than slotmq let any client publish there."""
    try:
        said: dict[str, Any] = json.loads(payload)
        head = Head(str(said["board"]), *(int(said[name]) for name in _NUMBERS))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    are_right = all(0 <= getattr(head, name) <= NONE for name in _NUMBERS)
    is_one = topic == f"{ROOT}/{head.board}/head" and 0 <= head.segment - head.first < SEGMENTS
    return head if is_one and are_right and _is_board(head.board) else None
