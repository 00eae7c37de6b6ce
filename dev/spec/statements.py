"""The tables of statements."""

import csv
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
_CLIENT_ONLY = "client"


@dataclass(frozen=True)
class Statement:
    """A normative statement."""

    id: str
    binds: str  # client, server or both
    kind: str  # wire, websocket or internal
    text: str
    reason: str = ""  # why no test names it

    @property
    def binds_a_server(self) -> bool:
        return self.binds != _CLIENT_ONLY


def versions() -> list[str]:
    """The MQTT versions that have a table."""
    return sorted(path.stem.removeprefix("mqtt-") for path in FOLDER.glob("mqtt-*.tsv"))


def load(version: str) -> dict[str, Statement]:
    """The statements of this version, by id."""
    found: dict[str, Statement] = {}
    with (FOLDER / f"mqtt-{version}.tsv").open(newline="") as file:
        lines = (line for line in file if not line.startswith("#"))
        for row in csv.DictReader(lines, restval="", delimiter="\t", quoting=csv.QUOTE_NONE):
            if row["id"] in found:
                raise ValueError(f"MQTT {version}: {row['id']} is there twice")
            found[row["id"]] = Statement(**row)
    return found
