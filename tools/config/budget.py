"""What each table costs of a board's heap, with the limits of a board or of a configuration."""

from pathlib import Path
from typing import Any

from slotmq.bridge.options import EACH_BYTES, TOPIC_BYTES
from slotmq.config import budget, mosquitto_conf
from slotmq.config.settings import ConfError, Settings

from ..errors import ToolError
from .check import preset, tables, tls_most


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
    rows = tables(settings, limits)
    journal = budget.journal(limits)
    more = [] if settings.persistence else [(*journal[:2], "more, with persistence true")]
    for row, key in (
        (budget.users_row(limits), "password_file"),
        (budget.acl_row(limits), "acl_file"),
        (budget.owners_row(limits), "one of them"),
    ):
        if row not in rows:
            more.append((*row[:2], f"more, with {key}"))
    if not settings.connections and limits.bridges and settings.mqtt_versions == 5:
        most = limits.bridges * EACH_BYTES + limits.bridge_topics * TOPIC_BYTES
        more.append(("bridges", most, "more, with a connection each and no prefixes"))
    size = sum(row[1] for row in rows)
    if board != "HOST":
        if not limits.tls_connections:
            row = budget.tls_row(1)
            more.append((*row[:2], "more, with limit tls_connections 1"))
        most = tls_most(board, settings, limits)
        more.append(("tls bears", most, "connections beside the other tables"))
    rows = [*rows, ("tables", size, ""), *more]
    return "\n".join("{:<16}{:>8}  {}".format(*row) for row in rows)
