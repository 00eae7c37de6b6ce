"""The journal's records with the names of their fields, from lib/slotmq/journal/records.py."""

import re
from pathlib import Path
from struct import calcsize, unpack_from
from typing import Any, NamedTuple

from slotmq.journal import records

_TYPE = re.compile(
    r"^(?!VERSION|LAST_TYPE|\w+_SIZE)(\w+?)(?:_ROW)? = (?:const\()?(\d+)", re.MULTILINE
)
_LAYOUT = re.compile(r"^# (.+)\n(\w+)_LAYOUT = ", re.MULTILINE)


class Record(NamedTuple):
    """One type of record: its fields, and what its body has behind them."""

    name: str
    layout: str = ">H"
    fields: tuple[str, ...] = ("slot",)
    rest: str = ""

    def decoded(self, body: bytes) -> tuple[dict[str, Any], bytes]:
        """The values of the fields, and the bytes behind them."""
        known = unpack_from(self.layout, body.ljust(calcsize(self.layout), b"\0"))
        return dict(zip(self.fields, known, strict=True)), body[calcsize(self.layout) :]


def _records(text: str) -> dict[int, Record]:
    found = {int(number): Record(name) for name, number in _TYPE.findall(text)}
    for comment, name in _LAYOUT.findall(text):
        fields, _, rest = comment.partition(" | ")
        layout = getattr(records, f"{name}_LAYOUT")
        number = next(number for number, record in found.items() if record.name == name)
        found[number] = Record(name, layout, tuple(fields.split(", ")), rest)
    return found


# By their numbers
RECORDS = _records(Path(records.__file__).read_text().partition("\n# Flags")[0])
