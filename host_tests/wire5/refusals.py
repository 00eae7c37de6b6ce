"""What a broker says to a packet that it cannot take, for tables of such packets.

A row tells the reason codes that the standard allows there: "81", or "81 82" where it
leaves that open. The peer, on which the tables themselves are tried, has words of its
own: it must end the connection.
"""

from collections.abc import Iterable

import pytest

from ..wire.vectors import wire
from .client import Client
from .codec import Connack, Disconnect
from .scene import Scene

MALFORMED = 0x81
Codes = Iterable[int]


def case(name: str, text: str, codes: str, *statements: str, ours: str = ""):
    """A row of such a table, named after what is wrong with the packet."""
    marks = [pytest.mark.spec(*statements, of="5.0")] if statements else []
    if ours:
        marks.append(pytest.mark.ours(ours))
    return pytest.param(wire(text), bytes.fromhex(codes), id=name, marks=marks)


def refuse_connect(mqtt5: Scene, packet: bytes, codes: Codes, what: str = "") -> None:
    """The packet is answered by CONNACK, or (if malformed) by none, and the connection ends."""
    client = mqtt5.socket()
    client.send(packet)
    answer = client.answer()
    if answer is not None:
        assert isinstance(answer, Connack), f"{what}: {answer}"
        _check(mqtt5, answer.code, codes, what)
    else:
        assert MALFORMED in codes or mqtt5.is_peer, f"{what}: no answer"
    client.expect_last()


def refuse(mqtt5: Scene, client: Client, packet: bytes, codes: Codes, what: str = "") -> None:
    """The packet ends the connection, with one of these reasons in a DISCONNECT."""
    client.send(packet)
    answer = client.answer()
    if answer is None:
        assert mqtt5.is_peer, f"{what}: closed without a reason"
    else:
        assert isinstance(answer, Disconnect), f"{what}: {answer}"
        _check(mqtt5, answer.code, codes, what)
    client.expect_last()


def _check(mqtt5: Scene, code: int, codes: Codes, what: str) -> None:
    allowed = bytes(codes)
    good = code in allowed or (code >= 0x80 and mqtt5.is_peer)
    assert good, f"{what}: {code:#x} and not {allowed.hex(' ')}"
