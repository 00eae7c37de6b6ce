"""What a journal holds, as five tables: config, clients, subs, messages and retain.

They are those of mosquitto 0.1's database.
"""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from ..errors import ToolError
from .contents import Kept, Message
from .properties import shown

TABLES = {
    "config": ("key", "value"),
    "clients": (
        *("client_id", "expiry_s", "was_connected", "offline_s"),
        *(
            "will_topic",
            "will_payload",
            "will_qos",
            "will_retain",
            "will_delay_s",
            "will_due_in_s",
        ),
    ),
    "subs": ("client_id", "filter", "qos", "options", "identifier", "share"),
    "messages": (
        *("client_id", "direction", "packet_id", "qos", "state", "topic", "payload"),
        *("retain", "expires_in_s", "properties", "identifier"),
    ),
    "retain": ("topic", "qos", "payload", "expires_in_s", "properties"),
}


def rows(kept: Kept) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of each of TABLES; None is what there is not, or not ever."""
    config = [
        ("format", kept.version),
        ("generation", kept.generation),
        ("commits", kept.commits),
        ("bytes", kept.bytes),
        ("newer", kept.newer or "none"),
        ("tail", ("whole", "torn, cut", "damaged")[kept.torn]),
        ("uptime at the last commit, s", kept.now / 10),
    ]
    return {
        "config": config,
        "clients": [_client(kept, client) for client in kept.clients.values()],
        "subs": [
            (_name(kept, sub), *list(sub.values())[1:])
            for sub in kept.subs.values()
            if sub["session"] in kept.clients
        ],
        "messages": [*_outgoing(kept), *_incoming(kept)],
        "retain": [
            (one.topic, one.qos, one.payload, _left(kept, one), shown(one.properties))
            for one in kept.retained.values()
        ],
    }


def _client(kept: Kept, row: dict[str, Any]) -> tuple[Any, ...]:
    will: Message | None = row["will"]
    left, due = row["left"], row["will_due"]
    about = (will.topic, will.payload, will.qos, will.retain) if will else (None,) * 4
    return (
        *(row["client_id"], row["expiry_s"], row["was_connected"]),
        None if left is None else (kept.now - left) / 10,
        *about,
        row["will_delay_s"],
        None if due is None else (due - kept.now) / 10,
    )


def _left(kept: Kept, message: Message) -> float | None:
    return (message.expires - kept.now) / 10 if message.expires else None


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
            *_text(row["message"]),
            row["retain"],
            *_about(kept, row["message"]),
            row["identifier"],
        )
        for slot, row in kept.deliveries.items()
        if row["session"] in kept.clients
    ]


def _text(message: Message | None) -> tuple[Any, ...]:
    return (message.topic, message.payload) if message else (None, None)


def _about(kept: Kept, message: Message | None) -> tuple[Any, ...]:
    return (_left(kept, message), shown(message.properties)) if message else (None, None)


def _incoming(kept: Kept) -> list[tuple[Any, ...]]:
    return [
        (
            *(kept.clients[slot]["client_id"], "in", packet_id, 2, "waits for PUBREL"),
            *_text(held),
            held and held.retain,
            *_about(kept, held),
            None,
        )
        for slot, ids in kept.received.items()
        for packet_id, held in ids
        if slot in kept.clients
    ]


def write_sqlite(kept: Kept, path: Path) -> None:
    """The tables as a SQLite database, which must not be there yet."""
    if path.exists():
        raise ToolError(f"{path} is there already")
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.unlink(missing_ok=True)  # of one that was killed
        _write(kept, partial)
        partial.replace(path)
    except (OSError, sqlite3.Error) as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise ToolError(f"{path}: {error}") from None


def _write(kept: Kept, path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        for name, columns in TABLES.items():
            database.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
            marks = ", ".join("?" * len(columns))
            database.executemany(f"INSERT INTO {name} VALUES ({marks})", rows(kept)[name])
