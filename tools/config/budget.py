"""What each table costs of a board's heap, with the limits of a board or of a configuration."""

from pathlib import Path
from typing import Any

from slotmq.config import budget, mosquitto_conf
from slotmq.config.settings import ConfError, Settings

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
    rows = [*rows, ("tables", sum(row[1] for row in rows), ""), *more]
    return "\n".join("{:<16}{:>8}  {}".format(*row) for row in rows)
