"""A connection on which packets are sent and received as bytes."""

import contextlib
import socket
import struct
from collections.abc import Iterator

from slotmq_tools import codec

from .inputs import CLEAN

TIMEOUT_S = 20.0
_RESET = struct.pack("ii", 1, 0)


class Noticed(AssertionError):
    """A client was affected by what others sent."""


class Link:
    """One connection to the broker."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._sock = socket.create_connection(address, TIMEOUT_S)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data: bytes) -> None:
        """Send; the broker may have closed the connection already."""
        with contextlib.suppress(ConnectionError):
            self._sock.sendall(data)

    def exchange(self, data: bytes, expected: bytes) -> None:
        """Send, and receive exactly these bytes."""
        self.send(data)
        found = b""
        while len(found) < len(expected):
            found += self._receive(len(expected) - len(found))
        if found != expected:
            raise Noticed(f"received {found.hex()} instead of {expected.hex()}")

    def packets(self) -> Iterator[tuple[int, bytes]]:
        """First byte and body of each packet before the answers to two PINGREQs.

        A broker may answer a whole input before it sends retained messages to its subscriptions.
        """
        reader = codec.Reader()
        for _ in range(2):
            self.send(codec.PING)
            answered = False
            while not answered:
                found = reader.packets(self._receive(65536))
                answered = (codec.PINGRESP << 4, b"") in found
                yield from found

    def next_packet(self) -> bytes:
        """The next packet, without reading further."""
        data = b""
        while not codec.extent(data):
            data += self._receive(1)
        return data

    def finish(self) -> None:
        """Shut down sending, and wait until the broker has closed."""
        try:
            self._sock.shutdown(socket.SHUT_WR)
            while self._sock.recv(65536):
                pass
        except TimeoutError:
            raise Noticed(f"the broker did not close in {TIMEOUT_S} s") from None
        except OSError:
            pass
        self.close()

    def reset(self) -> None:
        """Reset the connection."""
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.close()

    def close(self) -> None:
        self._sock.close()

    def _receive(self, most: int) -> bytes:
        try:
            data = self._sock.recv(most)
        except OSError as error:
            raise Noticed(f"a witness received no answer: {error}") from None
        if not data:
            raise Noticed("the broker closed the connection of a witness")
        return data


def extent(data: bytes) -> tuple[int, int]:
    """Begin and end of the first packet's body; (0, 0) if it is incomplete."""
    try:
        return codec.extent(data) or (0, 0)
    except codec.Malformed:
        return 0, 0


def kept_client_id(data: bytes) -> bytes | None:
    """The client id, if an input begins with a CONNECT whose session may be persistent."""
    body = data[slice(*extent(data))]
    flags = 3 + int.from_bytes(body[:2], "big")
    start = flags + 5
    if data[:1] != b"\x10" or len(body) < start:
        return None
    if body[flags - 1] == 5:  # the session may have an expiry interval
        size = body[flags + 3]
        start += 1 + size if size < 128 else 2 + (size & 127 | body[flags + 4] << 7)
    elif body[flags] & CLEAN:
        return None
    return body[start : start + int.from_bytes(body[start - 2 : start], "big")]
