"""A connection on which packets are bytes: what is sent, what must come, what has come."""

import contextlib
import socket
import struct
from collections.abc import Iterator

from .inputs import CLEAN

TIMEOUT_S = 20.0
PINGREQ, PINGRESP = b"\xc0\x00", b"\xd0\x00"
DISCONNECT = b"\xe0\x00"
_RESET = struct.pack("ii", 1, 0)


class Noticed(AssertionError):
    """Somebody noticed what others sent."""


class Link:
    """One connection to the broker."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._sock = socket.create_connection(address, TIMEOUT_S)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data: bytes) -> None:
        """Send; that the broker has closed already is no surprise."""
        with contextlib.suppress(ConnectionError):
            self._sock.sendall(data)

    def exchange(self, data: bytes, expected: bytes) -> None:
        """Send, and get these bytes for it and no others."""
        self.send(data)
        found = b""
        while len(found) < len(expected):
            found += self._receive(len(expected) - len(found))
        if found != expected:
            raise Noticed(f"{found.hex()} came, not {expected.hex()}")

    def packets(self) -> Iterator[bytes]:
        """Every packet that comes before the answers to two PINGREQs, one after the other.

        A broker may answer a whole input before it sends what a subscription in it brings.
        """
        data = b""
        for _ in range(2):
            self.send(PINGREQ)
            answered = False
            while not answered:
                data += self._receive(65536)
                while size := packet_size(data):
                    answered |= data[:size] == PINGRESP
                    yield data[:size]
                    data = data[size:]

    def next_packet(self) -> bytes:
        """The next packet, and nothing of what comes behind it."""
        data = b""
        while not packet_size(data):
            data += self._receive(1)
        return data

    def finish(self) -> None:
        """Say that this was all, and wait until the broker has closed."""
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
        """Break the connection, whatever is on its way."""
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.close()

    def close(self) -> None:
        self._sock.close()

    def _receive(self, most: int) -> bytes:
        try:
            data = self._sock.recv(most)
        except OSError as error:
            raise Noticed(f"a witness got no answer: {error}") from None
        if not data:
            raise Noticed("the broker closed the connection of a witness")
        return data


def packet_size(data: bytes) -> int:
    """The size of the packet at the front; 0 if it is not there as a whole."""
    size = 0
    for i in range(1, min(len(data), 5)):
        size |= (data[i] & 127) << 7 * (i - 1)
        if data[i] < 128:
            return i + 1 + size if len(data) >= i + 1 + size else 0
    return 0


def kept_client_id(data: bytes) -> bytes | None:
    """The client id, if an input begins with a CONNECT for a session that may be kept."""
    body = data[2 if data[1:2] < b"\x80" else 3 : packet_size(data)]
    flags = 3 + int.from_bytes(body[:2], "big")
    start = flags + 5
    if data[:1] != b"\x10" or len(body) < start:
        return None
    if body[flags - 1] == 5:  # whatever Clean Start says: it has an expiry, or gets one
        size = body[flags + 3]
        start += 1 + size if size < 128 else 2 + (size & 127 | body[flags + 4] << 7)
    elif body[flags] & CLEAN:
        return None
    return body[start : start + int.from_bytes(body[start - 2 : start], "big")]
