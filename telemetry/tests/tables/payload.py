"""Payloads whose kind and value are known from how they are made."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Payload:
    """Bytes, and what silver should make of them."""

    data: bytes
    kind: str
    number: float | None = None
    json: str | None = None
    text: str | None = None


FIXED = (
    Payload(b"", "empty"),
    Payload(b"21.5", "number", 21.5),
    Payload(b"-0.001e3", "number", -1.0),
    Payload(b" 7\n", "number", 7.0),
    Payload(b".5", "number", 0.5),
    Payload(b"1e30", "number", 1e30),
    Payload(b"1e999", "text", text="1e999"),
    Payload(b"NaN", "text", text="NaN"),
    Payload(b"0x10", "text", text="0x10"),
    Payload(b"1_000", "text", text="1_000"),
    Payload(b"true", "text", text="true"),
    Payload("zwölf".encode(), "text", text="zwölf"),
    Payload("\U0001f321 21".encode(), "text", text="\U0001f321 21"),
    Payload(b'{"a": 1} x', "text", text='{"a": 1} x'),
    Payload(b'{"a": 1', "text", text='{"a": 1'),
    Payload(b"[1, 2,]", "text", text="[1, 2,]"),
    Payload(b"[]", "json", json="[]"),
    Payload(b'{"a": {"b": [null, "x"]}}', "json", json='{"a": {"b": [null, "x"]}}'),
    Payload(b"\xa1\x61t\x15", "cbor", json='{"t": 21}'),
    Payload(b"\x82\x01\x41\xff", "cbor", json='[1, "ff"]'),
    Payload(b"\xa1\x61t\xfb\x7f\xf0" + bytes(6), "cbor", json='{"t": "inf"}'),
    Payload(b"\xa1\x61t", "bytes"),  # cut
    Payload(b"\xa1\x61t\x15\x00", "bytes"),  # and something behind it
    Payload(b"\x00\x01\x02", "bytes"),
    Payload(b"\xff\xfe", "bytes"),
    Payload(b"ab\x00", "bytes"),
    Payload(b"\xed\xa0\x80", "bytes"),  # a surrogate is not UTF-8
)


def draw(random: Random, count: int) -> Payload:
    """Any payload; `count` is a number that a publisher counts up."""
    choice = random.randrange(6)
    value = round(random.gauss(20, 4), 2)
    if choice == 0:
        return random.choice(FIXED)
    if choice == 1:
        return Payload(repr(value).encode(), "number", value)
    if choice in (2, 3):
        text = json.dumps({"t": value, "n": count})
        return Payload(text.encode(), "json", json=text)
    if choice == 4:
        data = (
            b"\xa2\x61t\xfb" + struct.pack(">d", value) + b"\x61n\x19" + count.to_bytes(2, "big")
        )
        return Payload(data, "cbor", json=json.dumps({"t": value, "n": count}))
    text = f"motion in zone {count}"
    return Payload(text.encode(), "text", text=text)
