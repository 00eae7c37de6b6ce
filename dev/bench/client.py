"""A connection of the load generator: a blocking socket with timeouts."""

import socket
import struct
from collections.abc import Sequence

from slotmq_tools import codec

from . import tls

TIMEOUT_S = 20
Address = tuple[str, int]

_READ = 1 << 18
_FILTERS_PER_PACKET = 100
_TIMEOUT = struct.pack("@ll", TIMEOUT_S, 0)


class Unexpected(Exception):
    """The broker sent another packet than the expected one."""


class Silent(Exception):
    """The broker did not answer in time, or closed the connection."""


class Client:
    """A connected client; without a client id, for a relay, it sends no CONNECT."""

    def __init__(
        self, address: Address, client_id: str | None = None, *, level: int = 4, aliases: int = 0
    ) -> None:
        self._level = level
        self._held: bytearray | None = None
        self.socket = socket.create_connection(address, TIMEOUT_S)
        # Timeouts of the kernel: with Python's own each call would poll first.
        self.socket.setblocking(True)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _TIMEOUT)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _TIMEOUT)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if with_tls := tls.context():
            self.socket = with_tls.wrap_socket(self.socket, server_hostname="localhost")
        if client_id is not None:
            props = b"\x22" + codec.number(aliases) if aliases else b""
            self.send(codec.connect(client_id, level=level, properties=props, **tls.login()))
            self._expect_connected()

    def subscribe(self, filters: Sequence[str], qos: int = 0, props: bytes = b"") -> None:
        """Subscribe to all filters, and check that all are granted."""
        for first in range(0, len(filters), _FILTERS_PER_PACKET):
            some = filters[first : first + _FILTERS_PER_PACKET]
            rows = [(each, qos) for each in some]
            of = codec.of(self._level, props)
            self.send(codec.subscribe(1 + first, *rows, properties=of))
            self.expect(codec.suback(1 + first, [qos] * len(some), codec.of(self._level)))

    def send(self, data: bytes | bytearray) -> None:
        """Write all of it, or store it for release()."""
        if self._held is not None:
            self._held += data
            return
        try:
            self.socket.sendall(data)
        except BlockingIOError:
            raise Silent(f"the broker has read nothing for {TIMEOUT_S} s") from None

    def hold(self) -> None:
        """From now on store what is to be sent."""
        self._held = bytearray()

    def release(self) -> bool:
        """Send what was stored; -> whether there was anything."""
        data, self._held = self._held, None
        if data:
            self.send(data)
        self.hold()
        return bool(data)

    def receive(self) -> bytes:
        """Received bytes; waits for them, so that it never returns none."""
        try:
            data = self.socket.recv(_READ)
        except BlockingIOError:
            raise Silent(f"the broker has sent nothing for {TIMEOUT_S} s") from None
        if not data:
            raise Silent("the broker has closed a connection")
        return data

    def expect(self, answer: bytes) -> None:
        """Read exactly these bytes."""
        got = b""
        while len(got) < len(answer):
            got += self.receive()
        if got != answer:
            raise Unexpected(f"{got[:40].hex()} received instead of {answer[:40].hex()}")

    def _expect_connected(self) -> None:
        """Read the CONNACK; the properties of one of MQTT 5.0 depend on the broker."""
        if self._level < 5:
            self.expect(codec.CONNECTED)
            return
        reader = codec.Reader()
        answers: list[tuple[int, bytes]] = []
        while not answers:
            answers = reader.packets(self.receive())
        first, body = answers[0]
        if len(answers) > 1 or (first >> 4, body[:2]) != (codec.CONNACK, b"\0\0"):
            raise Unexpected(f"{first:#04x} {body[:2].hex()} received instead of a CONNACK")

    def close(self) -> None:
        """Close the connection without DISCONNECT: it has no will."""
        self.socket.close()
