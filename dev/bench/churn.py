"""Clients that connect, subscribe and disconnect, several at the same time."""

import select
import time

from slotmq_tools import codec

from . import tls
from .client import TIMEOUT_S, Address, Client, Silent, Unexpected

_CLIENTS = 8
_FILTER = b"churn/+/status"


class Repeater:
    """Connects one client after the other; each goes on when the broker has answered."""

    def __init__(self, address: Address, name: str) -> None:
        self.clients = 0
        self._address = address
        self._name = name
        self._due = b""
        self.client: Client | None = None

    def connect(self) -> int:
        """Connect a new client; -> its descriptor."""
        self.client = Client(self._address)
        name = f"{self._name}-{self.clients}"
        self.client.send(codec.connect(name, **tls.login()))
        self._due = codec.CONNECTED
        return self.client.socket.fileno()

    def step(self) -> bool:
        """Read the broker's answer and go on; False when it has closed the connection."""
        assert self.client
        if not self._due:
            return self._see_closed(self.client)
        self.client.expect(self._due)
        if self._due == codec.CONNECTED:
            self._due = codec.suback(1, [0])
            self.client.send(codec.subscribe(1, (_FILTER, 0)))
        else:
            self._due = b""
            self.client.send(codec.disconnect())
        return True

    def _see_closed(self, client: Client) -> bool:
        if client.socket.recv(1):
            raise Unexpected("bytes after DISCONNECT")
        client.close()
        self.client = None
        self.clients += 1
        return False


def one_by_one(address: Address, count: int) -> int:
    """Let so many clients come and go, one after the other; -> their number."""
    repeater = Repeater(address, "client")
    while repeater.clients < count:
        repeater.connect()
        while repeater.step():
            pass
    return repeater.clients


class Churn:
    """Several of them in parallel."""

    def __init__(self, address: Address) -> None:
        self._repeaters = [Repeater(address, f"client{n}") for n in range(_CLIENTS)]

    def run(self, seconds: float) -> int:
        """Connect and disconnect for so long; -> the number of clients."""
        before = sum(repeater.clients for repeater in self._repeaters)
        end = time.monotonic() + seconds
        with select.epoll() as epoll:
            connected: dict[int, Repeater] = {}
            for repeater in self._repeaters:
                self._start(repeater, epoll, connected)
            while connected:
                for repeater in self._turn(epoll, connected):
                    if time.monotonic() < end:
                        self._start(repeater, epoll, connected)
        return sum(repeater.clients for repeater in self._repeaters) - before

    def close(self) -> None:
        """Close the connections of a failed round."""
        for repeater in self._repeaters:
            if repeater.client:
                repeater.client.close()

    def _start(
        self, repeater: Repeater, epoll: select.epoll, connected: dict[int, Repeater]
    ) -> None:
        descriptor = repeater.connect()
        connected[descriptor] = repeater
        epoll.register(descriptor, select.EPOLLIN)

    def _turn(self, epoll: select.epoll, connected: dict[int, Repeater]) -> list[Repeater]:
        """Handle answers; -> the repeaters whose client has disconnected."""
        ready = epoll.poll(TIMEOUT_S)
        if not ready:
            raise Silent("a connecting client got no answer")
        left = []
        for descriptor, _ in ready:
            if not connected[descriptor].step():
                left.append(connected.pop(descriptor))
        return left
