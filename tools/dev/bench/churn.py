"""Connect, subscribe, leave: clients that come and go, several at the same time."""

import select
import time

from ... import codec
from .client import TIMEOUT_S, Address, Client, Silent, Unexpected

_LANES = 8
_FILTER = b"churn/+/status"


class Guest:
    """One client after the other, each at the next step when the broker has answered."""

    def __init__(self, address: Address, name: str) -> None:
        self.visits = 0
        self._address = address
        self._name = name
        self._due = b""
        self.client: Client | None = None

    def arrive(self) -> int:
        """Connect a new client; its descriptor."""
        self.client = Client(self._address)
        self.client.send(codec.connect(4, f"{self._name}-{self.visits}".encode()))
        self._due = codec.CONNECTED
        return self.client.socket.fileno()

    def step(self) -> bool:
        """Take the broker's answer and go on; False when it has closed the connection."""
        assert self.client
        if not self._due:
            return self._see_closed(self.client)
        self.client.expect(self._due)
        if self._due == codec.CONNECTED:
            self._due = codec.suback(4, 1, [0])
            self.client.send(codec.subscribe(4, 1, [(_FILTER, 0)]))
        else:
            self._due = b""
            self.client.send(codec.disconnect())
        return True

    def _see_closed(self, client: Client) -> bool:
        if client.socket.recv(1):
            raise Unexpected("bytes after DISCONNECT")
        client.close()
        self.client = None
        self.visits += 1
        return False


class Churn:
    """Several guests that come and go side by side."""

    def __init__(self, address: Address) -> None:
        self._guests = [Guest(address, f"guest{lane}") for lane in range(_LANES)]

    def run(self, seconds: float) -> int:
        """Come and go for so long; the number of visits."""
        before = sum(guest.visits for guest in self._guests)
        end = time.monotonic() + seconds
        with select.epoll() as epoll:
            present: dict[int, Guest] = {}
            for guest in self._guests:
                self._admit(guest, epoll, present)
            while present:
                for guest in self._turn(epoll, present):
                    if time.monotonic() < end:
                        self._admit(guest, epoll, present)
        return sum(guest.visits for guest in self._guests) - before

    def close(self) -> None:
        """Hang up what a failed round has left."""
        for guest in self._guests:
            if guest.client:
                guest.client.close()

    def _admit(self, guest: Guest, epoll: select.epoll, present: dict[int, Guest]) -> None:
        descriptor = guest.arrive()
        present[descriptor] = guest
        epoll.register(descriptor, select.EPOLLIN)

    def _turn(self, epoll: select.epoll, present: dict[int, Guest]) -> list[Guest]:
        """Let those go on who have an answer; the guests who have left."""
        ready = epoll.poll(TIMEOUT_S)
        if not ready:
            raise Silent("a client that comes and goes got no answer")
        left = []
        for descriptor, _ in ready:
            if not present[descriptor].step():
                left.append(present.pop(descriptor))
        return left
