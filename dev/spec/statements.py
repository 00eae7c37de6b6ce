"""The tables of statements and of reasons."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
_UNTESTED = "-untested"
_CLIENT_ONLY = "client"


@dataclass(frozen=True)
class Statement:
    """A normative statement."""

    id: str
    binds: str  # client, server or both
    kind: str  # wire, websocket or internal
    text: str

    @property
    def binds_a_server(self) -> bool:
        return self.binds != _CLIENT_ONLY


def versions() -> list[str]:
    """The MQTT versions that have a table."""
    names = [path.stem.removeprefix("mqtt-") for path in FOLDER.glob("mqtt-*.tsv")]
    return sorted(name for name in names if not name.endswith(_UNTESTED))


def load(version: str) -> dict[str, Statement]:
    """The statements of this version, by id."""
    return {row["id"]: Statement(**row) for row in _rows(f"mqtt-{version}.tsv")}


def reasons(version: str) -> dict[str, str]:
    """The reasons for having no test, by id."""
    return {row["id"]: row["reason"] for row in _rows(f"mqtt-{version}{_UNTESTED}.tsv")}


def _rows(name: str) -> Iterator[dict[str, str]]:
    seen: set[str] = set()
    with (FOLDER / name).open(newline="") as file:
        lines = (line for line in file if not line.startswith("#"))
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            if row["id"] in seen:
                raise ValueError(f"{name}: {row['id']} is there twice")
            seen.add(row["id"])
            yield row
