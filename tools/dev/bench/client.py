"""One connection of the load generator: a blocking socket that gives up on a silent broker."""

import socket
import struct
from collections.abc import Sequence

from ... import codec

TIMEOUT_S = 20
Address = tuple[str, int]

_READ = 1 << 18
_FILTERS_PER_PACKET = 100
_TIMEOUT = struct.pack("@ll", TIMEOUT_S, 0)


class Unexpected(Exception):
    """The broker sent another packet than the one that was due."""


class Silent(Exception):
    """What was due from the broker did not come, or it hung up."""


class Client:
    """A client that is connected; it says CONNECT unless it is given no id, for a relay."""

    def __init__(
        self, address: Address, client_id: str | None = None, *, level: int = 4, aliases: int = 0
    ) -> None:
        self._level = level
        self._held: bytearray | None = None
        self.socket = socket.create_connection(address, TIMEOUT_S)
        # Timeouts of the kernel: Python's own would poll before each call.
        self.socket.setblocking(True)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _TIMEOUT)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _TIMEOUT)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if client_id is not None:
            props = b"\x22" + codec.number(aliases) if aliases else b""
            self.send(codec.connect(level, client_id.encode(), props=props))
            self._expect_connected()

    def subscribe(self, filters: Sequence[str], qos: int = 0) -> None:
        """Subscribe to all the filters, and see all granted."""
        for first in range(0, len(filters), _FILTERS_PER_PACKET):
            wanted = filters[first : first + _FILTERS_PER_PACKET]
            rows = [(each.encode(), qos) for each in wanted]
            self.send(codec.subscribe(self._level, 1 + first, rows))
            self.expect(codec.suback(self._level, 1 + first, [qos] * len(wanted)))

    def send(self, data: bytes | bytearray) -> None:
        """Write all of it, or keep it for release()."""
        if self._held is not None:
            self._held += data
            return
        try:
            self.socket.sendall(data)
        except BlockingIOError:
            raise Silent(f"the broker has read nothing for {TIMEOUT_S} s") from None

    def hold(self) -> None:
        """From now on keep what is to be sent."""
        self._held = bytearray()

    def release(self) -> bool:
        """Send what was kept; was there anything?"""
        data, self._held = self._held, None
        if data:
            self.send(data)
        self.hold()
        return bool(data)

    def receive(self) -> bytes:
        """What is there, or else what comes next; never empty."""
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
            raise Unexpected(f"{got[:40].hex()} came where {answer[:40].hex()} was due")

    def _expect_connected(self) -> None:
        """Read the CONNACK: what one of MQTT 5.0 tells beside its code is each broker's own."""
        if self._level < 5:
            self.expect(codec.CONNECTED)
            return
        reader = codec.Reader()
        answers: list[tuple[int, bytes]] = []
        while not answers:
            answers = reader.packets(self.receive())
        first, body = answers[0]
        if len(answers) > 1 or (first >> 4, body[:2]) != (codec.CONNACK, b"\0\0"):
            raise Unexpected(f"{first:#04x} {body[:2].hex()} came where a CONNACK was due")

    def close(self) -> None:
        """Hang up without a word; the broker has nothing to do for it, there is no will."""
        self.socket.close()
