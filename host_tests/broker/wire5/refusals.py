"""Expectations for tables of packets that a broker must refuse.

A row has the one reason code that slotmq must send. The peer, on which the tables themselves
are tried, may send another one, but it must end the connection.
"""

import pytest

from ..wire.vectors import wire
from .client import Client
from .codec import Connack, Disconnect, Suback, Unsuback
from .scene import Scene

MALFORMED = 0x81


def case(name: str, text: str, code: str, *statements: str, ours: str = ""):
    """A row of such a table, named after what is wrong with the packet."""
    marks = [pytest.mark.spec(*statements, of="5.0")] if statements else []
    if ours:
        marks.append(pytest.mark.ours(ours))
    return pytest.param(wire(text), int(code, 16), id=name, marks=marks)


def refuse_connect(mqtt5: Scene, packet: bytes, code: int, what: str = "") -> None:
    """The packet is answered by CONNACK (by the peer perhaps by none), and the connection ends."""
    client = mqtt5.socket()
    client.send(packet)
    answer = client.answer()
    if answer is not None:
        assert isinstance(answer, Connack), f"{what}: {answer}"
        _check(mqtt5, answer.code, code, what)
    else:
        assert mqtt5.is_peer, f"{what}: no answer"
    client.expect_last()


def refuse(mqtt5: Scene, client: Client, packet: bytes, code: int, what: str = "") -> None:
    """The packet ends the connection, with this reason in a DISCONNECT."""
    client.send(packet)
    answer = client.answer()
    if answer is None:
        assert mqtt5.is_peer, f"{what}: closed without a reason"
    else:
        assert isinstance(answer, Disconnect), f"{what}: {answer}"
        _check(mqtt5, answer.code, code, what)
    client.expect_last()


def refuse_filter(mqtt5: Scene, client: Client, packet: bytes) -> None:
    """A SUBSCRIBE or UNSUBSCRIBE with an invalid filter is malformed; the peer may answer with
    a code for each filter instead."""
    client.send(packet)
    answer = client.answer()
    if mqtt5.is_peer and isinstance(answer, Suback | Unsuback):
        assert answer.codes[-1] >= 0x80, answer
        return
    if not mqtt5.is_peer:
        assert answer == Disconnect(MALFORMED), answer
    client.expect_last()


def _check(mqtt5: Scene, found: int, code: int, what: str) -> None:
    good = found == code or (found >= 0x80 and mqtt5.is_peer)
    assert good, f"{what}: {found:#x} and not {code:#x}"
