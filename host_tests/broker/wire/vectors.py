"""A small language for tables of packets.

    10 [ 'MQTT' 04 02 003c 'me' ]

Hexadecimal digits are bytes, 'text' is a string with its two bytes of length,
"text" is the text alone, and [ ... ] is a body with its remaining length before it.
"""

import re

import pytest

from . import codec

_TOKEN = re.compile(r"\s*(?:'([^']*)'|\"([^\"]*)\"|([0-9a-f]+)|([\[\]]))")


def wire(text: str) -> bytes:
    """The bytes that `text` describes."""
    parts = [bytearray()]
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        assert found, f"not a vector from here on: {text[at:]}"
        at = found.end()
        string, plain, digits, bracket = found.groups()
        if bracket == "[":
            parts.append(bytearray())
        elif bracket == "]":
            body = parts.pop()
            parts[-1] += codec.length(len(body)) + body
        else:
            parts[-1] += _bytes(string, plain, digits)
    assert len(parts) == 1, f"an open bracket: {text}"
    return bytes(parts[0])


def _bytes(string: str | None, plain: str | None, digits: str | None) -> bytes:
    if string is not None:
        return codec.string(string)
    return plain.encode() if plain is not None else bytes.fromhex(digits or "")


def case(name: str, text: str, *statements: str, ours: str = ""):
    """A row of a table of packets, named after what is wrong with them."""
    marks = [pytest.mark.spec(*statements)] if statements else []
    if ours:
        marks.append(pytest.mark.ours(ours))
    return pytest.param(wire(text), id=name, marks=marks)


# Invalid UTF-8 strings, and unusual valid ones.
BAD_TEXT = {
    "no-utf8": b"\xff",
    "cut-short": b"a\xe6\x97",
    "lone-continuation": b"a\x80",
    "overlong": b"\xc0\x80",
    "overlong-3": b"\xe0\x82\x80",
    "surrogate": b"\xed\xa0\x80",
    "surrogate-pair": b"\xed\xa0\xbd\xed\xb8\x80",
    "beyond-unicode": b"\xf4\x90\x80\x80",
    "zero": b"a\x00b",
    # not wrong in UTF-8, but mosquitto and its clients take none of them
    "control": b"a\x01b",
    "line-end": b"a\n",
    "last-control": b"\x1f",
    "delete": b"\x7f",
    "c1-control": b"\xc2\x9f",
    "noncharacter": b"\xef\xb7\x90",
    "last-noncharacter-of-fdxx": b"\xef\xb7\xaf",
    "fffe": b"a\xef\xbf\xbe",
    "ffff": b"\xef\xbf\xbf",
    "last-of-a-plane": b"\xf0\x9f\xbf\xbe",
    "last-of-all": b"\xf4\x8f\xbf\xbf",
}
GOOD_TEXT = {
    "latin": "Füße",
    "cjk": "主题",
    "emoji": "😀",
    "last-before-surrogates": "\ud7ff",
    "first-after-surrogates": "\ue000",
    "last-of-unicode": "\U0010fffd",
    "byte-order-mark": "\ufeffa",
    "space": " ",
    "first-behind-c1": "\xa0",
    "around-noncharacters": "\ufdcf\ufdf0\ufffd",
    "dollar-inside": "a$SYS",
}
