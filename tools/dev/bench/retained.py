"""Subscribing to many retained messages: subscribers that come again and again."""

import select
import time

from ... import codec
from .client import TIMEOUT_S, Address, Client, Silent, Unexpected
from .numbered import Violation, number_payload, read_numbers

MESSAGES = 1000
_SUBSCRIBERS = 4
_PAYLOAD = 64
_FILTER = b"retained/#"
_AT_A_TIME = 20


def store(client: Client, count: int) -> None:
    """Publish so many retained messages, and wait now and then until they are handled."""
    for number in range(count):
        payload = number_payload(0, number, _PAYLOAD)
        client.send(codec.publish(4, b"retained/%04d" % number, payload, retain=True))
        if (number + 1) % _AT_A_TIME == 0:
            client.send(codec.PING)
            client.expect(codec.PONG)


class Visitor:
    """Subscribes, sees each retained message once, unsubscribes, and so on."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.delivered = 0
        self.waiting = False
        self._missing: set[int] = set()
        self._reader = codec.Reader()
        self._granted = False

    def visit(self) -> None:
        """Subscribe."""
        self.waiting, self._granted = True, False
        self._missing = set(range(MESSAGES))
        self.client.send(codec.subscribe(4, 1, [(_FILTER, 0)]))

    def on_readable(self) -> None:
        """Take what has come; the visit is over when the UNSUBACK is there."""
        for first, body in self._reader.packets(self.client.receive()):
            kind = first >> 4
            if kind == codec.PUBLISH:  # amqtt leaves the flag of retained messages out
                self._take(body)
            elif kind == codec.SUBACK and not self._granted:
                self._granted = True
            elif kind == codec.UNSUBACK and not self._missing:
                self.waiting = False
            else:
                raise Unexpected(f"a subscriber got a packet that starts with {first:#04x}")

    def _take(self, body: bytes) -> None:
        _, number = read_numbers(body, 2 + int.from_bytes(body[:2], "big"))
        if number not in self._missing:
            raise Violation(f"retained message {number} came twice")
        self._missing.remove(number)
        self.delivered += 1
        if not self._missing:
            self.client.send(codec.unsubscribe(4, 2, [_FILTER]))


class Storm:
    """Several subscribers that visit at the same time."""

    def __init__(self, address: Address) -> None:
        self._publisher = Client(address, "retained-publisher")
        store(self._publisher, MESSAGES)
        self._visitors = [
            Visitor(Client(address, f"visitor{index}")) for index in range(_SUBSCRIBERS)
        ]
        self._by_descriptor = {each.client.socket.fileno(): each for each in self._visitors}
        self._epoll = select.epoll()
        for descriptor in self._by_descriptor:
            self._epoll.register(descriptor, select.EPOLLIN)

    def run(self, seconds: float) -> int:
        """Visit for so long; the number of retained messages delivered."""
        before = sum(visitor.delivered for visitor in self._visitors)
        end = time.monotonic() + seconds
        for visitor in self._visitors:
            visitor.visit()
        while any(visitor.waiting for visitor in self._visitors):
            self._turn(go_on=time.monotonic() < end)
        return sum(visitor.delivered for visitor in self._visitors) - before

    def close(self) -> None:
        """Hang up all connections."""
        self._epoll.close()
        for client in (self._publisher, *(visitor.client for visitor in self._visitors)):
            client.close()

    def _turn(self, *, go_on: bool) -> None:
        ready = self._epoll.poll(TIMEOUT_S)
        if not ready:
            raise Silent("retained messages never came")
        for descriptor, _ in ready:
            visitor = self._by_descriptor[descriptor]
            visitor.on_readable()
            if go_on and not visitor.waiting:
                visitor.visit()
