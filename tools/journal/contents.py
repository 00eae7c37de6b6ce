"""What a journal contains: the last row of each slot, from the generation that a start would use.

The broker's own reader reads the records; lib/FORMAT.md describes their bytes.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from slotmq.journal.reader import Reader, last_commit, signed, u16, u32
from slotmq.journal.writer import VERSION

from ..errors import ToolError
from .image import Image

_NONE = 0xFFFF
_NEVER = 0x3FFFFFFF
_CLEAN, _CONNECTED, _WILL, _OWNED = 1, 2, 4, 16


class Message(NamedTuple):
    topic: str
    payload: bytes
    qos: int
    retain: bool
    expires: int  # tenths of a second of the broker's clock; 0: never
    properties: bytes  # of MQTT 5.0, as on the wire


@dataclass
class Contents:
    """The last row of each slot; the keys are slots."""

    generation: int = 0
    version: int = 0
    commits: int = 0
    bytes: int = 0  # up to the last COMMIT
    tail: int = 0  # what follows it: 0 nothing, 1 an incomplete record, 2 a damaged one
    newer: str = ""  # why newer generations were not used; "": there are none
    now: int = 0  # tenths of a second since the broker's start
    clients: dict[int, dict[str, Any]] = field(default_factory=dict)
    subs: dict[int, dict[str, Any]] = field(default_factory=dict)
    deliveries: dict[int, dict[str, Any]] = field(default_factory=dict)
    received: dict[int, list[tuple[int, Message | None]]] = field(default_factory=dict)
    messages: dict[int, Message] = field(default_factory=dict)
    retained: dict[int, Message] = field(default_factory=dict)


def read(path: Path) -> Contents:
    """Read a journal file, or a copy of a flash region, up to its last COMMIT.

    ToolError: it cannot be read, is no journal, or is damaged."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ToolError(f"{path}: {error.strerror}") from None
    medium = Image(data)
    found = medium.generations()
    if not found:
        newer = _newer(medium.version, 1)
        why = "it is " + newer if newer else "its header is not a journal's, or damaged"
        raise ToolError(f"{path}: {why}")
    contents, reader = _newest(path, medium, found, len(data))
    try:
        _read_records(contents, reader, contents.bytes)
    except (IndexError, KeyError, UnicodeDecodeError):
        raise ToolError(f"{path}: its records contradict each other") from None
    return contents


def _newest(path: Path, medium: Image, found: list[int], longest: int) -> tuple[Contents, Reader]:
    """The newest generation with a whole commit, which a start would use, without its rows."""
    wrong = ["has damaged headers"] * medium.has_rotted
    versions = []
    for generation in found:
        reader = Reader(medium, generation, longest)  # a buffer for any record
        end, tail = last_commit(reader, VERSION)
        if end:
            contents = Contents(
                generation=generation, bytes=end, tail=tail, newer=", ".join(wrong)
            )
            return contents, reader
        versions.append(tail)
        wrong.append(f"generation {generation} is {_newer(tail, VERSION) or 'damaged'}")
    newer = _newer(max(versions), VERSION)
    raise ToolError(f"{path}: it {'is ' + newer if newer else 'has no whole commit'}")


def _newer(version: int, known: int) -> str:
    if version <= known:
        return ""
    return f"of version {version}; this program reads up to {known}"


def _read_records(contents: Contents, reader: Reader, end: int) -> None:
    at = 0
    while at < end:
        at = reader.after(at)
        reader.find(at)
        body = bytes(reader.buf[: reader.read_body()])
        _STEPS[reader.kind](contents, body)
        at = reader.next


def _head(contents: Contents, body: bytes) -> None:
    contents.version = body[0]


def _session(contents: Contents, body: bytes) -> None:
    slot, flags = u16(body, 0), body[2]
    user, start = None, 25
    if flags & _OWNED:
        start = 27 + u16(body, 25)
        user = body[27:start].decode()
    client_id = body[start:].decode()
    # As journal/restore.py: a clean session has no rows, and a new client in a slot does not
    # inherit the rows of the last one.
    before = contents.clients.get(slot)
    if flags & _CLEAN or not before or (before["client_id"], before["user"]) != (client_id, user):
        _session_gone(contents, body)
    will = contents.messages[u16(body, 11)] if flags & _WILL else None
    contents.clients[slot] = {
        "client_id": client_id,
        "user": user,
        "expiry_s": 0 if flags & _CLEAN else _seconds(u32(body, 7)),
        "was_connected": bool(flags & _CONNECTED),
        "left": None if flags & _CONNECTED else signed(u32(body, 3)),
        "will": will,
        "will_delay_s": u32(body, 13) if will else None,
        "will_due": signed(u32(body, 17)) if will and not flags & _CONNECTED else None,
    }


def _session_gone(contents: Contents, body: bytes) -> None:
    slot = u16(body, 0)
    contents.clients.pop(slot, None)
    contents.received.pop(slot, None)
    for rows in (contents.subs, contents.deliveries):
        for key in [key for key, row in rows.items() if row["session"] == slot]:
            del rows[key]


def _subscription(contents: Contents, body: bytes) -> None:
    share = body[12]
    contents.subs[u16(body, 0)] = {
        "session": u16(body, 2),
        "filter": body[13 + share :].decode(),
        "qos": body[4],
        "options": body[5],
        "identifier": u32(body, 6) or None,
        "share": body[13 : 13 + share].decode() or None,
    }


def _subscription_gone(contents: Contents, body: bytes) -> None:
    contents.subs.pop(u16(body, 0), None)


def _message(contents: Contents, body: bytes) -> None:
    text = 13 + u16(body, 11)
    payload = text + int.from_bytes(body[8:11], "big")
    contents.messages[u16(body, 0)] = Message(
        body[13:text].decode(),
        body[payload:],
        body[2] >> 1 & 3,
        bool(body[2] & 1),
        signed(u32(body, 3)) + body[7] * (10 << 25),
        body[text:payload],
    )


def _delivery(contents: Contents, body: bytes) -> None:
    msg = u16(body, 4)
    contents.deliveries[u16(body, 0)] = {
        "session": u16(body, 2),
        "message": None if msg == _NONE else contents.messages[msg],
        "qos": body[6] >> 1 & 3,
        "retain": bool(body[6] & 1),
        "state": "released" if msg == _NONE else "sent" if body[6] & 8 else "queued",
        "identifier": u32(body, 9) or None,
    }


def _delivery_released(contents: Contents, body: bytes) -> None:
    contents.deliveries[u16(body, 0)].update(message=None, state="released")


def _delivery_gone(contents: Contents, body: bytes) -> None:
    contents.deliveries.pop(u16(body, 0), None)


def _received(contents: Contents, body: bytes) -> None:
    held = [(u16(body, at), u16(body, at + 2)) for at in range(2, len(body), 4)]
    contents.received[u16(body, 0)] = [
        (packet_id, None if msg == _NONE else contents.messages[msg]) for packet_id, msg in held
    ]


def _retained(contents: Contents, body: bytes) -> None:
    contents.retained[u16(body, 0)] = contents.messages[u16(body, 2)]


def _retained_gone(contents: Contents, body: bytes) -> None:
    contents.retained.pop(u16(body, 0), None)


def _commit(contents: Contents, body: bytes) -> None:
    contents.now = u32(body, 0)
    contents.commits += 1


def _skip(contents: Contents, body: bytes) -> None:
    """No record has that type."""


_STEPS = (
    _skip,
    _head,
    _session,
    _session_gone,
    _subscription,
    _subscription_gone,
    _message,
    _delivery,
    _delivery_released,
    _delivery_gone,
    _received,
    _retained,
    _retained_gone,
    _commit,
)


def _seconds(value: int) -> int | None:
    return None if value >= _NEVER else value
