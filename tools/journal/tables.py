"""A journal as five tables, those of mosquitto 0.1's database."""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from ..errors import ToolError
from .contents import Contents, Message
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


def rows(contents: Contents) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of each table in TABLES. None: no value, or (for an expiry) never."""
    config = [
        ("format", contents.version),
        ("generation", contents.generation),
        ("commits", contents.commits),
        ("bytes", contents.bytes),
        ("newer", contents.newer or "none"),
        ("tail", ("whole", "torn, cut", "damaged")[contents.tail]),
        ("uptime at the last commit, s", contents.now / 10),
    ]
    return {
        "config": config,
        "clients": [_client(contents, client) for client in contents.clients.values()],
        "subs": [
            (_name(contents, sub), *list(sub.values())[1:])
            for sub in contents.subs.values()
            if sub["session"] in contents.clients
        ],
        "messages": [*_outgoing(contents), *_incoming(contents)],
        "retain": [
            (one.topic, one.qos, one.payload, _left(contents, one), shown(one.properties))
            for one in contents.retained.values()
        ],
    }


def _client(contents: Contents, row: dict[str, Any]) -> tuple[Any, ...]:
    will: Message | None = row["will"]
    left, due = row["left"], row["will_due"]
    about = (will.topic, will.payload, will.qos, will.retain) if will else (None,) * 4
    return (
        *(row["client_id"], row["expiry_s"], row["was_connected"]),
        None if left is None else (contents.now - left) / 10,
        *about,
        row["will_delay_s"],
        None if due is None else (due - contents.now) / 10,
    )


def _left(contents: Contents, message: Message) -> float | None:
    return (message.expires - contents.now) / 10 if message.expires else None


def _name(contents: Contents, row: dict[str, Any]) -> str:
    return str(contents.clients[row["session"]]["client_id"])


def _outgoing(contents: Contents) -> list[tuple[Any, ...]]:
    return [
        (
            _name(contents, row),
            "out",
            slot + 1,
            row["qos"],
            row["state"],
            *_text(row["message"]),
            row["retain"],
            *_about(contents, row["message"]),
            row["identifier"],
        )
        for slot, row in contents.deliveries.items()
        if row["session"] in contents.clients
    ]


def _text(message: Message | None) -> tuple[Any, ...]:
    return (message.topic, message.payload) if message else (None, None)


def _about(contents: Contents, message: Message | None) -> tuple[Any, ...]:
    return (_left(contents, message), shown(message.properties)) if message else (None, None)


def _incoming(contents: Contents) -> list[tuple[Any, ...]]:
    return [
        (
            *(contents.clients[slot]["client_id"], "in", packet_id, 2, "waits for PUBREL"),
            *_text(held),
            held and held.retain,
            *_about(contents, held),
            None,
        )
        for slot, ids in contents.received.items()
        for packet_id, held in ids
        if slot in contents.clients
    ]


def write_sqlite(contents: Contents, path: Path) -> None:
    """Write the tables as a new SQLite database. ToolError: it exists, or cannot be written."""
    if path.exists():
        raise ToolError(f"{path} exists already")
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.unlink(missing_ok=True)  # left by a process that was killed
        _write(contents, partial)
        partial.replace(path)
    except (OSError, sqlite3.Error) as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise ToolError(f"{path}: {error}") from None


def _write(contents: Contents, path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        for name, columns in TABLES.items():
            database.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
            marks = ", ".join("?" * len(columns))
            database.executemany(f"INSERT INTO {name} VALUES ({marks})", rows(contents)[name])
