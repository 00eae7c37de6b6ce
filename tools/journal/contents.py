"""What a journal holds: the last row of each slot, of the generation a broker would take over.

The records are read by the broker's own reader; lib/FORMAT.md has them byte by byte.
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
_CLEAN, _CONNECTED, _WILL = 1, 2, 4


class Message(NamedTuple):
    topic: str
    payload: bytes
    qos: int
    retain: bool
    expires: int  # tenths of a second of the broker's clock; 0: never
    properties: bytes  # of MQTT 5.0, as on the wire


@dataclass
class Kept:
    """The last row of each slot, by slot."""

    generation: int = 0
    version: int = 0
    commits: int = 0
    bytes: int = 0
    torn: int = 0
    newer: str = ""  # what is wrong with what was newer
    now: int = 0  # tenths of a second since the broker's start
    clients: dict[int, dict[str, Any]] = field(default_factory=dict)
    subs: dict[int, dict[str, Any]] = field(default_factory=dict)
    deliveries: dict[int, dict[str, Any]] = field(default_factory=dict)
    received: dict[int, list[tuple[int, Message | None]]] = field(default_factory=dict)
    messages: dict[int, Message] = field(default_factory=dict)
    retained: dict[int, Message] = field(default_factory=dict)


def read(path: Path) -> Kept:
    """What a journal's file holds up to its last COMMIT. ToolError: it is none."""
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
    kept, reader = _newest(path, medium, found, len(data))
    try:
        _read_records(kept, reader, kept.bytes)
    except (IndexError, KeyError, UnicodeDecodeError):
        raise ToolError(f"{path}: its records contradict one another") from None
    return kept


def _newest(path: Path, medium: Image, found: list[int], longest: int) -> tuple[Kept, Reader]:
    """The newest generation that has a whole commit, as a start chooses; nothing read yet."""
    wrong = ["has rotted"] * medium.has_rotted
    versions = []
    for generation in found:
        reader = Reader(medium, generation, longest)  # each record in one piece
        end, torn = last_commit(reader, VERSION)
        if end:
            kept = Kept(generation=generation, bytes=end, torn=torn, newer=", ".join(wrong))
            return kept, reader
        versions.append(torn)
        wrong.append(f"generation {generation} is {_newer(torn, VERSION) or 'damaged'}")
    newer = _newer(max(versions), VERSION)
    raise ToolError(f"{path}: it {'is ' + newer if newer else 'has no whole commit'}")


def _newer(version: int, known: int) -> str:
    if version <= known:
        return ""
    return f"of version {version}, this program knows {known}"


def _read_records(kept: Kept, reader: Reader, end: int) -> None:
    at = 0
    while at < end:
        at = reader.after(at)
        reader.find(at)
        body = bytes(reader.buf[: reader.read_body()])
        _STEPS[reader.kind](kept, body)
        at = reader.next


def _head(kept: Kept, body: bytes) -> None:
    kept.version = body[0]


def _session(kept: Kept, body: bytes) -> None:
    slot, flags = u16(body, 0), body[2]
    client_id = body[25:].decode()
    # Whose rows are these? A clean one has none, nor what the slot's last one had: as Restorer.
    before = kept.clients.get(slot)
    if flags & _CLEAN or not before or before["client_id"] != client_id:
        _session_gone(kept, body)
    will = kept.messages[u16(body, 11)] if flags & _WILL else None
    kept.clients[slot] = {
        "client_id": client_id,
        "expiry_s": 0 if flags & _CLEAN else _seconds(u32(body, 7)),
        "was_connected": bool(flags & _CONNECTED),
        "left": None if flags & _CONNECTED else signed(u32(body, 3)),
        "will": will,
        "will_delay_s": u32(body, 13) if will else None,
        "will_due": signed(u32(body, 17)) if will and not flags & _CONNECTED else None,
    }


def _session_gone(kept: Kept, body: bytes) -> None:
    slot = u16(body, 0)
    kept.clients.pop(slot, None)
    kept.received.pop(slot, None)
    for rows in (kept.subs, kept.deliveries):
        for key in [key for key, row in rows.items() if row["session"] == slot]:
            del rows[key]


def _subscription(kept: Kept, body: bytes) -> None:
    share = body[12]
    kept.subs[u16(body, 0)] = {
        "session": u16(body, 2),
        "filter": body[13 + share :].decode(),
        "qos": body[4],
        "options": body[5],
        "identifier": u32(body, 6) or None,
        "share": body[13 : 13 + share].decode() or None,
    }


def _subscription_gone(kept: Kept, body: bytes) -> None:
    kept.subs.pop(u16(body, 0), None)


def _message(kept: Kept, body: bytes) -> None:
    text = 13 + u16(body, 11)
    payload = text + int.from_bytes(body[8:11], "big")
    kept.messages[u16(body, 0)] = Message(
        body[13:text].decode(),
        body[payload:],
        body[2] >> 1 & 3,
        bool(body[2] & 1),
        signed(u32(body, 3)) + body[7] * (10 << 25),
        body[text:payload],
    )


def _delivery(kept: Kept, body: bytes) -> None:
    msg = u16(body, 4)
    kept.deliveries[u16(body, 0)] = {
        "session": u16(body, 2),
        "message": None if msg == _NONE else kept.messages[msg],
        "qos": body[6] >> 1 & 3,
        "retain": bool(body[6] & 1),
        "state": "released" if msg == _NONE else "sent" if body[6] & 8 else "queued",
        "identifier": u32(body, 9) or None,
    }


def _delivery_released(kept: Kept, body: bytes) -> None:
    kept.deliveries[u16(body, 0)].update(message=None, state="released")


def _delivery_gone(kept: Kept, body: bytes) -> None:
    kept.deliveries.pop(u16(body, 0), None)


def _received(kept: Kept, body: bytes) -> None:
    held = [(u16(body, at), u16(body, at + 2)) for at in range(2, len(body), 4)]
    kept.received[u16(body, 0)] = [
        (packet_id, None if msg == _NONE else kept.messages[msg]) for packet_id, msg in held
    ]


def _retained(kept: Kept, body: bytes) -> None:
    kept.retained[u16(body, 0)] = kept.messages[u16(body, 2)]


def _retained_gone(kept: Kept, body: bytes) -> None:
    kept.retained.pop(u16(body, 0), None)


def _commit(kept: Kept, body: bytes) -> None:
    kept.now = u32(body, 0)
    kept.commits += 1


def _skip(kept: Kept, body: bytes) -> None:
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
