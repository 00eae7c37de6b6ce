"""What a journal contains: the last row of each slot, from the generation that a start would use.

The broker's own reader reads the records; lib/slotmq/journal/records.py has their fields.
"""

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from slotmq.journal import records
from slotmq.journal.reader import Reader, last_commit, u16

from ..errors import ToolError
from .image import Image
from .schema import RECORDS

_NONE = 0xFFFF
_NEVER = 0x3FFFFFFF
Row = dict[str, Any]  # the fields of a record


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
    except (IndexError, KeyError, UnicodeDecodeError, struct.error):
        raise ToolError(f"{path}: its records contradict each other") from None
    return contents


def _newest(path: Path, medium: Image, found: list[int], longest: int) -> tuple[Contents, Reader]:
    """The newest generation with a whole commit, which a start would use, without its rows."""
    wrong = ["has damaged headers"] * medium.has_rotted
    versions = []
    for generation in found:
        reader = Reader(medium, generation, longest)  # a buffer for any record
        end, tail = last_commit(reader)
        if end:
            contents = Contents(
                generation=generation, bytes=end, tail=tail, newer=", ".join(wrong)
            )
            return contents, reader
        versions.append(tail)
        wrong.append(f"generation {generation} is {_newer(tail, records.VERSION) or 'damaged'}")
    newer = _newer(max(versions), records.VERSION)
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
        record = RECORDS[reader.kind]
        row, rest = record.decoded(bytes(reader.buf[: reader.read_body()]))
        if record.name in _GONE:
            getattr(contents, _GONE[record.name]).pop(row["slot"], None)
        else:
            _STEPS[record.name](contents, row, rest)
        at = reader.next


def _head(contents: Contents, row: Row, _rest: bytes) -> None:
    contents.version = row["version"]


def _session(contents: Contents, row: Row, rest: bytes) -> None:
    slot, flags = row["slot"], row["flags"]
    user = None
    if flags & records.OWNED:
        end = 2 + u16(rest, 0)
        user, rest = rest[2:end].decode(), rest[end:]
    client_id = rest.decode()
    is_clean, was_connected = flags & records.IS_CLEAN, flags & records.WAS_CONNECTED
    # As journal/restore.py: a clean session has no rows, and a new client in a slot does not
    # inherit the rows of the last one.
    before = contents.clients.get(slot)
    if is_clean or not before or (before["client_id"], before["user"]) != (client_id, user):
        _session_gone(contents, row, b"")
    will = contents.messages[row["will"]] if flags & records.HAS_WILL else None
    contents.clients[slot] = {
        "client_id": client_id,
        "user": user,
        "expiry_s": 0 if is_clean else _seconds(row["expiry"]),
        "was_connected": bool(was_connected),
        "left": None if was_connected else row["left"],
        "will": will,
        "will_delay_s": row["delay"] if will else None,
        "will_due": row["due"] if will and not was_connected else None,
    }


def _session_gone(contents: Contents, row: Row, _rest: bytes) -> None:
    slot = row["slot"]
    contents.clients.pop(slot, None)
    contents.received.pop(slot, None)
    for rows in (contents.subs, contents.deliveries):
        for key in [key for key, row in rows.items() if row["session"] == slot]:
            del rows[key]


def _subscription(contents: Contents, row: Row, rest: bytes) -> None:
    contents.subs[row["slot"]] = {
        "session": row["session"],
        "filter": rest[row["length"] :].decode(),
        "qos": row["qos"],
        "options": row["options"],
        "identifier": row["identifier"] or None,
        "share": rest[: row["length"]].decode() or None,
    }


def _message(contents: Contents, row: Row, rest: bytes) -> None:
    text = 2 + u16(rest, 0)
    payload = text + (row["high"] << 16 | row["low"])
    contents.messages[row["slot"]] = Message(
        rest[2:text].decode(),
        rest[payload:],
        row["flags"] >> 1 & 3,
        bool(row["flags"] & 1),
        row["expires"] + row["far"] * (10 << 25),
        rest[text:payload],
    )


def _delivery(contents: Contents, row: Row, _rest: bytes) -> None:
    msg, flags = row["message"], row["flags"]
    contents.deliveries[row["slot"]] = {
        "session": row["session"],
        "message": None if msg == _NONE else contents.messages[msg],
        "qos": flags >> 1 & 3,
        "retain": bool(flags & 1),
        "state": "released" if msg == _NONE else "sent" if flags & 8 else "queued",
        "identifier": row["identifier"] or None,
    }


def _delivery_released(contents: Contents, row: Row, _rest: bytes) -> None:
    contents.deliveries[row["slot"]].update(message=None, state="released")


def _received(contents: Contents, row: Row, rest: bytes) -> None:
    contents.received[row["slot"]] = [
        (packet_id, None if msg == _NONE else contents.messages[msg])
        for packet_id, msg in struct.iter_unpack(">HH", rest)
    ]


def _retained(contents: Contents, row: Row, _rest: bytes) -> None:
    contents.retained[row["slot"]] = contents.messages[row["message"]]


def _commit(contents: Contents, row: Row, _rest: bytes) -> None:
    contents.now = row["now"]
    contents.commits += 1


_STEPS = {
    "HEAD": _head,
    "SESSION": _session,
    "SESSION_GONE": _session_gone,
    "SUBSCRIPTION": _subscription,
    "MESSAGE": _message,
    "DELIVERY": _delivery,
    "DELIVERY_RELEASED": _delivery_released,
    "RECEIVED": _received,
    "RETAINED": _retained,
    "COMMIT": _commit,
}
_GONE = {"SUBSCRIPTION_GONE": "subs", "DELIVERY_GONE": "deliveries", "RETAINED_GONE": "retained"}


def _seconds(value: int) -> int | None:
    return None if value >= _NEVER else value
