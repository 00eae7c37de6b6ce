"""Expectations for packets that a broker must refuse.

A broker of 3.1.1 closes the connection without an answer; one of 5.0 sends a reason code. The
peer, on which the tests are tried, may send another code, but it must end the connection.
"""

from typing import Any

from ..wire5.codec import Connack, Disconnect, Suback, Unsuback
from . import codec

MALFORMED = 0x81


def refuse_connect(mqtt: Any, packet: bytes, code: int, what: str = "") -> None:
    """The CONNECT is answered by CONNACK (by the peer perhaps by none), and the connection ends.
    Code 0: by none, since the broker cannot read for which version."""
    client = mqtt.socket()
    client.send(packet)
    if client.codec is codec or not (code or mqtt.is_peer):
        client.expect_last()
        return
    answer = client.answer()
    if answer is not None:
        assert isinstance(answer, Connack), f"{what}: {answer}"
        _check(mqtt, answer.code, code, what)
    else:
        assert mqtt.is_peer, f"{what}: no answer"
    client.expect_last()


def refuse(mqtt: Any, client: Any, packet: bytes, code: int, what: str = "") -> None:
    """The packet ends the connection; in 5.0 with this reason in a DISCONNECT."""
    client.send(packet)
    if client.codec is codec:
        client.expect_closed()
        return
    answer = client.answer()
    if answer is None:
        assert mqtt.is_peer, f"{what}: closed without a reason"
    else:
        assert isinstance(answer, Disconnect), f"{what}: {answer}"
        _check(mqtt, answer.code, code, what)
    client.expect_last()


def refuse_filter(mqtt: Any, client: Any, packet: bytes) -> None:
    """A SUBSCRIBE or UNSUBSCRIBE with an invalid filter is malformed; the peer may answer with
    a code for each filter instead."""
    client.send(packet)
    if client.codec is codec:
        client.expect_closed()
        return
    answer = client.answer()
    if mqtt.is_peer and isinstance(answer, Suback | Unsuback):
        assert answer.codes[-1] >= 0x80, answer
        return
    if not mqtt.is_peer:
        assert answer == Disconnect(MALFORMED), answer
    client.expect_last()


def code_of(client: Any, topic: str, payload: bytes, qos: int) -> int:
    """Publish; -> the reason code of the first acknowledgement, which 3.1.1 has not."""
    client.send(client.codec.publish(topic, payload, qos, 77))
    answer = client.next()
    assert (answer.kind, answer.packet_id) == (codec.PUBACK if qos == 1 else codec.PUBREC, 77)
    code: int = getattr(answer, "code", 0)
    if qos == 2 and code < 0x80:
        client.release(77)
    return code


def _check(mqtt: Any, found: int, code: int, what: str) -> None:
    good = found == code or (found >= 0x80 and mqtt.is_peer)
    assert good, f"{what}: {found:#x} and not {code:#x}"
