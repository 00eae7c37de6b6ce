"""What a journal holds, as five tables: config, clients, subs, messages and retain.

They are those of mosquitto 0.1's database. The records are read by the broker's own
reader; lib/FORMAT.md has them byte by byte.
"""

import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from slotmq.journal_file import FileMedium
from slotmq.journal_reader import Reader, last_commit, signed, u16, u32

from .errors import ToolError

_NONE = 0xFFFF
_NEVER = 0x3FFFFFFF
_LONGEST = 1 << 20  # bytes of a record that are looked at in one piece
_CLEAN, _CONNECTED, _WILL = 1, 2, 4

TABLES = {
    "config": ("key", "value"),
    "clients": ("client_id", "expiry_s", "was_connected", "will_topic", "will_payload"),
    "subs": ("client_id", "filter", "qos", "options", "identifier", "share"),
    "messages": ("client_id", "direction", "packet_id", "qos", "state", "topic", "payload"),
    "retain": ("topic", "qos", "payload", "expires_in_s"),
}


class Message(NamedTuple):
    topic: str
    payload: bytes
    qos: int
    expires: int  # tenths of a second of the broker's clock; 0: never


@dataclass
class Kept:
    """The last row of each slot, by slot."""

    generation: int = 0
    version: int = 0
    commits: int = 0
    bytes: int = 0
    torn: bool = False
    now: int = 0  # tenths of a second since the broker's start
    clients: dict[int, dict[str, Any]] = field(default_factory=dict)
    subs: dict[int, dict[str, Any]] = field(default_factory=dict)
    deliveries: dict[int, dict[str, Any]] = field(default_factory=dict)
    received: dict[int, list[int]] = field(default_factory=dict)
    messages: dict[int, Message] = field(default_factory=dict)
    retained: dict[int, Message] = field(default_factory=dict)


def read(path: Path) -> Kept:
    """What a journal's file holds up to its last COMMIT. ToolError: it is none."""
    if not path.is_file():
        raise ToolError(f"{path}: there is no such file")
    medium = FileMedium(str(path), 0, path.stat().st_size)
    try:
        found = medium.generations()
        if not found:
            raise ToolError(f"{path}: its header is not a journal's, or damaged")
        reader = Reader(medium, found[0], _LONGEST)
        end, torn = last_commit(reader)
        kept = Kept(generation=found[0], bytes=end, torn=torn)
        at = 0
        while at < end:
            at = reader.after(at)
            reader.find(at)
            body = bytes(reader.buf[: reader.read_body()])
            if reader.kind < len(_STEPS):
                _STEPS[reader.kind](kept, body)
            at = reader.next
        return kept
    finally:
        medium.close()


def _head(kept: Kept, body: bytes) -> None:
    kept.version = body[0]


def _session(kept: Kept, body: bytes) -> None:
    slot, flags = u16(body, 0), body[2]
    client_id = body[25:].decode()
    before = kept.clients.get(slot)
    if before and before["client_id"] != client_id:
        _session_gone(kept, body)
    will = kept.messages[u16(body, 11)] if flags & _WILL else None
    kept.clients[slot] = {
        "client_id": client_id,
        "expiry_s": 0 if flags & _CLEAN else _seconds(u32(body, 7)),
        "was_connected": bool(flags & _CONNECTED),
        "will_topic": will and will.topic,
        "will_payload": will and will.payload,
    }


def _session_gone(kept: Kept, body: bytes) -> None:
    slot = u16(body, 0)
    kept.clients.pop(slot, None)
    kept.received.pop(slot, None)
    for rows in (kept.subs, kept.deliveries):
        for key in [key for key, row in rows.items() if row["session"] == slot]:
            del rows[key]


def _subscription(kept: Kept, body: bytes) -> None:
    share = body[10]
    kept.subs[u16(body, 0)] = {
        "session": u16(body, 2),
        "filter": body[11 + share :].decode(),
        "qos": body[4],
        "options": body[5],
        "identifier": u32(body, 6) or None,
        "share": body[11 : 11 + share].decode() or None,
    }


def _subscription_gone(kept: Kept, body: bytes) -> None:
    kept.subs.pop(u16(body, 0), None)


def _message(kept: Kept, body: bytes) -> None:
    text = 13 + u16(body, 11)
    payload = body[text + u32(body, 7) :]
    topic = body[13:text].decode()
    kept.messages[u16(body, 0)] = Message(topic, payload, body[2] >> 1 & 3, signed(u32(body, 3)))


def _delivery(kept: Kept, body: bytes) -> None:
    msg = u16(body, 4)
    kept.deliveries[u16(body, 0)] = {
        "session": u16(body, 2),
        "message": None if msg == _NONE else kept.messages[msg],
        "qos": body[6] >> 1 & 3,
        "state": "released" if msg == _NONE else "sent or queued",
    }


def _delivery_released(kept: Kept, body: bytes) -> None:
    kept.deliveries[u16(body, 0)].update(message=None, state="released")


def _delivery_gone(kept: Kept, body: bytes) -> None:
    kept.deliveries.pop(u16(body, 0), None)


def _received(kept: Kept, body: bytes) -> None:
    kept.received[u16(body, 0)] = [u16(body, at) for at in range(2, len(body), 4)]


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


def rows(kept: Kept) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of each of TABLES; None is what there is not, or not ever."""
    config = [
        ("format", kept.version),
        ("generation", kept.generation),
        ("commits", kept.commits),
        ("bytes", kept.bytes),
        ("torn tail", "yes, cut" if kept.torn else "no"),
        ("uptime at the last commit, s", kept.now / 10),
    ]
    return {
        "config": config,
        "clients": [tuple(client.values()) for client in kept.clients.values()],
        "subs": [(_name(kept, sub), *list(sub.values())[1:]) for sub in kept.subs.values()],
        "messages": [*_outgoing(kept), *_incoming(kept)],
        "retain": [
            (
                one.topic,
                one.qos,
                one.payload,
                (one.expires - kept.now) / 10 if one.expires else None,
            )
            for one in kept.retained.values()
        ],
    }


def _name(kept: Kept, row: dict[str, Any]) -> str:
    return str(kept.clients[row["session"]]["client_id"])


def _outgoing(kept: Kept) -> list[tuple[Any, ...]]:
    return [
        (
            _name(kept, row),
            "out",
            slot + 1,
            row["qos"],
            row["state"],
            row["message"] and row["message"].topic,
            row["message"] and row["message"].payload,
        )
        for slot, row in kept.deliveries.items()
    ]


def _incoming(kept: Kept) -> list[tuple[Any, ...]]:
    return [
        (kept.clients[slot]["client_id"], "in", packet_id, 2, "waits for PUBREL", None, None)
        for slot, ids in kept.received.items()
        for packet_id in ids
        if slot in kept.clients
    ]


def write_sqlite(kept: Kept, path: Path) -> None:
    """The tables as a SQLite database, which must not be there yet."""
    if path.exists():
        raise ToolError(f"{path} is there already")
    with sqlite3.connect(path) as database:
        for name, columns in TABLES.items():
            database.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
            marks = ", ".join("?" * len(columns))
            database.executemany(f"INSERT INTO {name} VALUES ({marks})", rows(kept)[name])
    database.close()
