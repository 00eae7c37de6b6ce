"""What each table costs of a board's heap, with the limits of a board or of a configuration."""

from pathlib import Path
from typing import Any

from slotmq.config import budget, mosquitto_conf
from slotmq.config.settings import ConfError, Settings

from .. import boards
from ..errors import ToolError
from .check import preset

_OF_VERSION_5 = ("version 5", "aliases", "shares")


def text(board: str, file: Path | None) -> str:
    """A line for each owner of memory, their sum, then what other keys add."""
    limits, settings = preset(board), Settings()
    if file:
        reader: Any = mosquitto_conf.Reader(str(file), limits, is_foreign=True)
        try:
            reader.open(str(file))
            settings = reader.finish()
        except ConfError as error:
            raise ToolError(str(error)) from None
        limits = reader.limits
    rows = [
        row for row in limits.rows() if settings.mqtt_versions == 5 or row[0] not in _OF_VERSION_5
    ]
    journal = budget.journal(limits)
    more = [(*journal[:2], "more, with persistence true")]
    if settings.persistence:
        rows, more = [*rows, journal], []
    rows += (used := budget.access_rows(settings, limits))
    for row, key in (
        (budget.users_row(limits), "password_file"),
        (budget.acl_row(limits), "acl_file"),
        (budget.owners_row(limits), "one of them"),
    ):
        if row not in used:
            more.append((*row[:2], f"more, with {key}"))
    size = sum(row[1] for row in rows)
    if board != "HOST":
        more += _tls(board, settings, limits, size)
    rows = [*rows, ("tables", size, ""), *more]
    return "\n".join("{:<16}{:>8}  {}".format(*row) for row in rows)


def _tls(board: str, settings: Any, limits: Any, size: int) -> list[tuple[Any, ...]]:
    # What TLS would take, and how many connections over it the rest of the heap bears.
    ways = ("3", settings.mqtt_versions == 3), ("kept", settings.persistence)
    way = " ".join(name for name, is_so in ways if is_so)
    left = boards.load(board).tables_bytes[way] - size
    if limits.tls_connections:
        left += budget.tls_row(limits.tls_connections)[1]
    none, one = (budget.tls_row(n)[1] for n in (0, 1))
    most = min(limits.connections, max(0, (left - none) // (one - none)))
    rows: list[tuple[Any, ...]] = [("tls bears", most, "connections beside the other tables")]
    if not limits.tls_connections:
        rows.insert(0, ("tls_connections", one, "more, with limit tls_connections 1"))
    return rows
