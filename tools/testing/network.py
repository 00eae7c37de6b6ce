"""The listening socket of a test's broker, and connections that fail when they are told to.

They are streams as the loop expects them (lib/slotmq/net/loop.py).
"""

import contextlib
import errno
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from slotmq.platform.sockets_cpython import Stream, accept

HOST = "127.0.0.1"
_OUT = 4
_RETRY_S = 0.01
_AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER: close() sends RST


def reset(sock: socket.socket) -> None:
    """Close a connection as if the peer had lost it: with RST."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
    sock.close()


class Line:
    """A client's connection, as a mixin of what it goes over: faults stand before that."""

    fileno: Callable[[], int]
    readinto: Any
    send: Any
    close: Any

    def begin(self, network: "Network", sock: socket.socket) -> None:
        """Take the place of the stream's methods."""
        self._inner = self.readinto, self.send, self.close
        self.readinto, self.send, self.close = self._read, self._send, self._close
        self.network = network
        self.raw = sock
        self.client = b""  # the client id, once it has connected
        self.is_5 = False
        self.silent = False  # half open: what either side sends is lost
        self.stalled = False  # the client does not read
        self.left = False  # the client has closed a connection that is silent
        self.late: list[tuple[float, bytes]] = []  # output, and when it is due
        self.sent = bytearray()  # the beginning of a packet whose end is not written yet

    def _read(self, buf: Any, n: int) -> int | None:
        got: int | None = self._inner[0](buf, n)
        if not self.silent:
            return got
        if got == 0:
            self.left = True
            self.network.inner_poller.unregister(self)
        raise BlockingIOError(errno.EAGAIN, "half open")

    def _send(self, data: Any) -> int:
        if self.silent:
            return len(data)
        if self.stalled:
            raise BlockingIOError(errno.EAGAIN, "it does not read")
        if self.network.delay_s or self.late:
            self.late.append((time.monotonic() + self.network.delay_s, bytes(data)))
            done = len(data)
        else:
            done = int(self._inner[1](data))
        self.sent += data[:done]
        self.network.on_sent(self)
        return done

    def send_late(self, now: float) -> float | None:
        """Send what is due; -> when the next is."""
        while self.late and self.late[0][0] <= now:
            due, data = self.late[0]
            try:
                done = self._inner[1](data)
            except BlockingIOError:
                return now + _RETRY_S
            except OSError:
                self.late.clear()
                return None
            if done < len(data):
                self.late[0] = due, data[done:]
            else:
                del self.late[0]
        return self.late[0][0] if self.late else None

    def _close(self) -> None:
        self.network.lines.discard(self)
        if self.silent:
            reset(self.raw)
            return
        with contextlib.suppress(OSError):
            for _, data in self.late:
                self._inner[1](data)
        self._inner[2]()


class PlainLine(Line, Stream):
    """A connection over TCP."""

    def __init__(self, sock: socket.socket, network: "Network") -> None:
        super().__init__(sock)  # type: ignore[no-untyped-call]
        self.begin(network, sock)


class Network:
    """Owns the port, which stays the same across power cuts; and stands before the loop's poller.

    The broker closes listeners and connections; this close() is for the end of all."""

    def __init__(self, on_sent: Callable[[Line], None]) -> None:
        self.on_sent = on_sent
        self.socket = socket.create_server((HOST, 0), backlog=128)
        self.socket.setblocking(False)
        self.fileno = self.socket.fileno
        self.port = self.socket.getsockname()[1]
        self.lines: set[Line] = set()
        self.is_cut = False
        self.delay_s = 0.0
        self.inner_poller: Any = None
        self.opened: Callable[[socket.socket, Network], Line] = PlainLine

    def listen(self, loop: Any, most: int, options: dict[str, Any] | None) -> None:
        """Let the loop of a new broker accept connections."""
        self.opened = PlainLine
        if options and options.get("tls"):
            from .tls import opener  # here, since the import of ssl takes as long as the broker's

            self.opened = opener(loop, options["tls"])
        self.inner_poller = loop.poller
        loop.poller = self
        loop.listeners.add(self, self.accept, most, options)

    def close(self) -> None:
        """As a listening socket, which the broker closes: it stays open for the next one."""

    def accept(self) -> tuple[Line, Any] | None:
        found = accept(self.socket, True)
        if found is None:
            return None
        if self.is_cut:
            reset(found[0].sock)
            return None
        line = self.opened(found[0].sock, self)
        self.lines.add(line)
        return line, found[1]

    # As a poller

    def register(self, stream: Any, mask: int) -> None:
        self.inner_poller.register(stream, mask)

    def unregister(self, stream: Any) -> None:
        self.inner_poller.unregister(stream)

    def modify(self, stream: Any, mask: int) -> None:
        if isinstance(stream, Line):
            if stream.left:
                return
            if stream.stalled:  # its socket is writable: that would be an event in each turn
                mask &= ~_OUT
        self.inner_poller.modify(stream, mask)

    # Faults

    def send_late(self) -> float:
        """Send what has been delayed and is due; -> seconds until the next, or a quarter."""
        now = time.monotonic()
        due = [line.send_late(now) for line in list(self.lines)]
        return min([0.25, *(max(0.0, at - now) for at in due if at is not None)])

    def shut(self) -> None:
        """Close everything."""
        for line in list(self.lines):
            reset(line.raw)
        self.lines.clear()
        self.socket.close()
