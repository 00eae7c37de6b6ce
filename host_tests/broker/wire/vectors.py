"""A small language for tables of packets.

    10 [ 'MQTT' 04 02 003c 'me' ]

Hexadecimal digits are bytes, 'text' is a string with its two bytes of length,
"text" is the text alone, and [ ... ] is a body with its remaining length before it.
"""

import re
from collections.abc import Sequence

import pytest
from _pytest.mark.structures import ParameterSet

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


def cases(table: str, versions: Sequence[str] = ("3.1.1", "5.0")) -> list[ParameterSet]:
    """The rows of a table of packets, for each version: its name, the packet, the reason code.

        name | packet | code of 5.0 | statements of 3.1.1 | those of 5.0 | what mosquitto does

    `v` in a packet is the level of the version, `_` the properties that 5.0 has there: none. A row
    without a code is for 3.1.1 alone, one whose name begins with + for 5.0 alone.
    """
    found = []
    for row in table.strip().splitlines():
        name, text, code, *rest = (cell.strip() for cell in row.split("|"))
        older, newer, ours = (*rest, "", "", "")[:3]
        for version, marks in zip(("3.1.1", "5.0"), (older, newer), strict=True):
            is_new = version == "5.0"
            if version not in versions or (is_new and not code) or (name[0] == "+" and not is_new):
                continue
            level, none = ("05", "[ ]") if is_new else ("04", "")
            packet = wire(re.sub(r"\bv\b", level, text).replace(" _", f" {none}"))
            statements = [f"MQTT-{number}" for number in marks.split()]
            signs = [pytest.mark.spec(*statements, of=version)] if statements else []
            signs += [pytest.mark.ours(ours)] if ours else []
            values = version, packet, int(code or "0", 16)
            found.append(pytest.param(*values, id=f"{version}-{name.lstrip('+')}", marks=signs))
    return found


EACH_CASE = "mqtt,packet,code"  # the parameters of a test of them, with indirect=["mqtt"]


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
