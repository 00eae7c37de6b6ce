"""A blocking MQTT client for tests: it sends what the test says and nothing by itself.

Nothing here sleeps. A PINGREQ on the same connection shows that the broker has handled
what was sent, or has nothing to send: the PINGRESP comes after all that the broker
placed there before.

Options and properties, here and below, are those of MQTT 5.0: see ../wire5/client.py.
"""

import contextlib
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from ..unit.support import watch
from . import codec
from .codec import Ack, Packet, Pingresp, Publish, Suback

TIMEOUT_S = 8.0
NARROW = 65536  # much less, and TCP on loopback falls back to a packet for each probe
SINGLY = 2048  # bytes that are sent one by one; the rest is sent in odd pieces

P = TypeVar("P")
Send = Callable[[socket.socket, bytes], None]


def whole(sock: socket.socket, data: bytes) -> None:
    sock.sendall(data)


def byte_by_byte(sock: socket.socket, data: bytes) -> None:
    for i in range(min(len(data), SINGLY)):
        sock.send(data[i : i + 1])
    for i in range(SINGLY, len(data), 977):
        sock.sendall(data[i : i + 977])


class Client:
    """One network connection to the broker."""

    codec: Any = codec  # of the protocol version that this client speaks

    def __init__(
        self, address: tuple[str, int], send: Send = whole, *, narrow: bool = False
    ) -> None:
        self.sock = socket.socket()
        self.sock.settimeout(TIMEOUT_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if narrow:  # the system takes in little before the client reads
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, NARROW)
        try:
            self.sock.connect(address)
        except OSError:
            self.sock.close()
            raise
        self.connack: Any = self.codec.Connack(False, 0)
        self._send = send
        self._watch = watch.Watch()
        self._watch.knows_all = False
        self._bytes = bytearray()
        self._inbox: list[Any] = []
        self._packet_id = 0

    def expect_known(self) -> None:
        """Nobody but such clients publishes: nothing else may come."""
        self._watch.knows_all = True

    # Sending.

    def send(self, data: bytes) -> None:
        """Send bytes. If the broker has closed, the test's next expectation fails."""
        self._watch.read(data)
        with contextlib.suppress(ConnectionError):
            self._send(self.sock, data)

    def next_id(self) -> int:
        self._packet_id += 1
        return self._packet_id

    def connect(self, packet: bytes) -> Any:
        self.send(packet)
        answer = self.next()
        assert isinstance(answer, self.codec.Connack), answer
        self.connack = answer
        return answer

    def expect_refused(self, packet: bytes, *codes: int) -> Any:
        """The broker answers this CONNECT with one of these codes, and closes."""
        answer = self.connect(packet)
        assert answer.code in codes, f"{answer.code:#x} came, not {[hex(code) for code in codes]}"
        assert not answer.session_present
        self.expect_last()
        return answer

    def subscribe(self, *filters: str, qos: int = 0, options: int = 0, **properties: Any) -> None:
        """Subscribe, and be granted that QoS for each filter."""
        codes = self.request(*((name, qos | options) for name in filters), **properties)
        assert codes == (qos,) * len(filters), f"granted {codes}"

    def request(self, *filters: tuple[str, int], **properties: Any) -> tuple[int, ...]:
        """Subscribe, and return the codes of the SUBACK."""
        packet_id = self.next_id()
        self.send(self.codec.subscribe(packet_id, *filters, **properties))
        answer = self._first(Suback)
        assert answer.packet_id == packet_id, answer
        assert len(answer.codes) == len(filters), answer
        return answer.codes

    def unsubscribe(self, *filters: str) -> None:
        packet_id = self.next_id()
        self.send(codec.unsubscribe(packet_id, *filters))
        self.expect(Ack(codec.UNSUBACK, packet_id))

    def publish(
        self,
        topic: str,
        payload: bytes = b"x",
        qos: int = 0,
        *,
        retain: bool = False,
        **properties: Any,
    ) -> None:
        """Publish with all acknowledgements; afterwards the broker has handled it."""
        packet_id = self.next_id() if qos else 0
        self.send(self.codec.publish(topic, payload, qos, packet_id, retain=retain, **properties))
        if qos == 0:
            self.ping()
        else:
            self.expect_accepted(packet_id, qos)
        if qos == 2:
            self.release(packet_id)

    def expect_accepted(self, packet_id: int, qos: int) -> Any:
        """The next acknowledgement is the first one of this PUBLISH."""
        self.expect(Ack(codec.PUBACK if qos == 1 else codec.PUBREC, packet_id))

    def release(self, packet_id: int) -> None:
        """The sender's second half of QoS 2."""
        self.send(self.codec.ack(self.codec.PUBREL, packet_id))
        self.expect(self.codec.Ack(self.codec.PUBCOMP, packet_id))

    def acknowledge(self, message: Publish) -> None:
        """The receiver's part of QoS 1 or 2, to its end."""
        if message.qos == 1:
            self.send(self.codec.ack(self.codec.PUBACK, message.packet_id))
        elif message.qos == 2:
            self.send(self.codec.ack(self.codec.PUBREC, message.packet_id))
            self.expect(self.codec.Ack(self.codec.PUBREL, message.packet_id))
            self.send(self.codec.ack(self.codec.PUBCOMP, message.packet_id))

    # Receiving.

    def next(self) -> Any:
        """The next packet in the order of arrival."""
        if not self._inbox and not self._read():
            raise AssertionError("the broker closed the connection")
        return self._inbox.pop(0)

    def read_bytes(self, count: int) -> bytes:
        """The next bytes, not taken apart into packets."""
        while len(self._bytes) < count:
            data = self.sock.recv(count)
            assert data, "the broker closed the connection"
            self._came(data)
        found = bytes(self._bytes[:count])
        del self._bytes[:count]
        return found

    def expect(self, packet: object) -> None:
        """The next packet of that type is this one."""
        found = self._first(type(packet))
        assert found == packet, f"{found} came, not {packet}"

    def expect_publish(
        self,
        topic: str,
        payload: bytes = b"x",
        qos: int = 0,
        *,
        retain: bool = False,
        dup: bool = False,
        **properties: Any,
    ) -> Any:
        """The next PUBLISH is this one, with exactly these properties; not acknowledged."""
        message = self._first(Publish)
        expected = self.codec.Publish(topic, payload, qos, retain, dup)
        if properties:
            expected = replace(expected, properties=properties)
        assert message == expected, f"{message} came, not {expected}"
        return message

    def receive(self, topic: str, payload: bytes = b"x", qos: int = 0, **more: Any) -> Any:
        """As expect_publish; acknowledged as its QoS asks."""
        message = self.expect_publish(topic, payload, qos, **more)
        self.acknowledge(message)
        return message

    def receive_many(self, count: int) -> list[Any]:
        """The next `count` PUBLISH in any order, acknowledged; sorted by topic."""
        found: list[Any] = []
        for _ in range(count):
            found.append(self._first(Publish))
            self.acknowledge(found[-1])
        return sorted(found, key=lambda message: message.topic)

    def receive_all(self) -> list[Any]:
        """Every PUBLISH that the broker has for this client by now, acknowledged. When this
        returns, the broker has handled the acknowledgements."""
        found = self.publishes()
        for message in found:
            self.acknowledge(message)
        if found:
            self.ping()
        return found

    def publishes(self) -> list[Any]:
        """Every PUBLISH that the broker has for this client by now."""
        self.settle()
        found = [packet for packet in self._inbox if isinstance(packet, Publish)]
        self._inbox = [packet for packet in self._inbox if not isinstance(packet, Publish)]
        return found

    def ping(self) -> None:
        """Wait until the broker has handled all that was sent here."""
        self.send(codec.PINGREQ)
        self._first(Pingresp)

    def settle(self) -> None:
        """Wait until the broker has sent all that it has for this client.

        A broker may answer a whole input before it fills the window that acknowledgements
        in it have opened; the second PINGRESP comes after that.
        """
        self.ping()
        self.ping()

    def expect_silence(self) -> None:
        """The broker has nothing for this client."""
        self.settle()
        assert self._inbox == [], f"{self._inbox} came, not nothing"

    def expect_closed(self) -> None:
        """The broker closes, and sends nothing before."""
        while self._read():
            pass
        assert self._inbox == [], f"{self._inbox} came before the end"
        assert not self._bytes, f"ended in a packet: {self._bytes.hex()}"
        self.sock.close()

    def expect_last(self) -> None:
        """The broker sends nothing more, and closes."""
        self.expect_closed()

    def expect_disconnect(self, *_codes: int) -> Any:
        """The broker closes; only in MQTT 5.0 does it send a DISCONNECT with a code before."""
        self.expect_closed()

    def expect_end(self) -> None:
        """The broker closes, whatever it has sent before."""
        while self._read():
            pass
        self.sock.close()

    # Ending.

    def disconnect(self) -> None:
        self.send(codec.DISCONNECT)
        self.expect_closed()

    def drop(self) -> None:
        """End the connection without DISCONNECT; afterwards the broker has noticed."""
        with contextlib.suppress(ConnectionError):
            self.sock.shutdown(socket.SHUT_WR)
            while self.sock.recv(65536):
                pass
        self.sock.close()

    def reset(self) -> None:
        """End the connection with RST instead of FIN, as a failing network does."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def _first(self, kind: type[P]) -> P:
        """The first packet of that type, whatever else came before it."""
        seen = 0
        while True:
            for i in range(seen, len(self._inbox)):
                if isinstance(self._inbox[i], kind):
                    found: P = self._inbox.pop(i)
                    return found
            seen = len(self._inbox)
            if not self._read():
                raise AssertionError(f"closed while waiting for {kind.__name__}: {self._inbox}")

    def _take(self) -> Packet | None:
        """The next packet of what has come; None while it is not whole."""
        return codec.take(self._bytes)

    def _read(self) -> bool:
        """Read until another packet is there; False if the broker has closed."""
        timeout = self.sock.gettimeout() or TIMEOUT_S
        deadline = time.monotonic() + timeout
        while (packet := self._take()) is None:
            assert time.monotonic() < deadline, f"half a packet: {self._bytes.hex()}"
            try:
                data = self.sock.recv(65536)
            except TimeoutError:
                raise AssertionError(f"nothing came in {timeout} s: {self._inbox}") from None
            except ConnectionError:
                return False
            if not data:
                return False
            self._came(data)
        self._inbox.append(packet)
        return True

    def _came(self, data: bytes) -> None:
        self._bytes += data
        self._watch.written(data)
        watch.check()

    def drain(self) -> None:
        """Look at what has come and no test has asked for."""
        with contextlib.suppress(OSError):
            self.sock.setblocking(False)
            while data := self.sock.recv(65536):
                self._came(data)
