"""The tables of statements and of reasons."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
_UNTESTED = "-untested"
_NOBODY_BUT_CLIENTS = "client"


@dataclass(frozen=True)
class Statement:
    """One normative statement of a version of the standard."""

    id: str
    binds: str  # client, server or both
    kind: str  # wire, websocket or internal
    text: str

    @property
    def binds_a_server(self) -> bool:
        return self.binds != _NOBODY_BUT_CLIENTS


def versions() -> list[str]:
    """The versions of MQTT that there is a table for."""
    names = [path.stem.removeprefix("mqtt-") for path in FOLDER.glob("mqtt-*.tsv")]
    return sorted(name for name in names if not name.endswith(_UNTESTED))


def load(version: str) -> dict[str, Statement]:
    """The statements of that version, by id."""
    return {row["id"]: Statement(**row) for row in _rows(f"mqtt-{version}.tsv")}


def reasons(version: str) -> dict[str, str]:
    """Why no test names a statement, by id."""
    return {row["id"]: row["reason"] for row in _rows(f"mqtt-{version}{_UNTESTED}.tsv")}


def _rows(name: str) -> Iterator[dict[str, str]]:
    seen: set[str] = set()
    with (FOLDER / name).open(newline="") as file:
        lines = (line for line in file if not line.startswith("#"))
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            if row["id"] in seen:
                raise ValueError(f"{name}: {row['id']} stands there twice")
            seen.add(row["id"])
            yield row
