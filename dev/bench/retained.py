"""Clients that subscribe to many retained messages again and again."""

import select
import time

from slotmq_tools import codec

from .client import TIMEOUT_S, Address, Client, Silent, Unexpected
from .numbered import Violation, number_payload, read_numbers

MESSAGES = 1000
_SUBSCRIBERS = 4
_PAYLOAD = 64
_FILTER = b"retained/#"
_AT_A_TIME = 20


def store(client: Client, count: int, level: int = 4) -> None:
    """Publish so many retained messages; a PINGREQ every _AT_A_TIME waits for the broker."""
    for number in range(count):
        payload = number_payload(0, number, _PAYLOAD)
        topic, properties = f"retained/{number:04}", codec.of(level)
        client.send(codec.publish(topic, payload, retain=True, properties=properties))
        if (number + 1) % _AT_A_TIME == 0:
            client.send(codec.PING)
            client.expect(codec.PONG)


class Subscriber:
    """Subscribes, receives each retained message once, unsubscribes, and repeats."""

    def __init__(self, client: Client, level: int = 4) -> None:
        self.client = client
        self._level = level
        self.delivered = 0
        self.waiting = False
        self._missing: set[int] = set()
        self._reader = codec.Reader()
        self._granted = False

    def subscribe(self) -> None:
        """Subscribe."""
        self.waiting, self._granted = True, False
        self._missing = set(range(MESSAGES))
        self.client.send(codec.subscribe(1, (_FILTER, 0), properties=codec.of(self._level)))

    def on_readable(self) -> None:
        """Handle received packets; UNSUBACK ends a repetition."""
        for first, body in self._reader.packets(self.client.receive()):
            kind = first >> 4
            if kind == codec.PUBLISH:  # amqtt does not set RETAIN
                self._take(body)
            elif kind == codec.SUBACK and not self._granted:
                self._granted = True
            elif kind == codec.UNSUBACK and not self._missing:
                self.waiting = False
            else:
                raise Unexpected(f"a subscriber got a packet that starts with {first:#04x}")

    def _take(self, body: bytes) -> None:
        at = 2 + int.from_bytes(body[:2], "big")
        if self._level == 5:
            at += 1 + body[at]  # of properties, which are fewer than 128 bytes
        _, number = read_numbers(body, at)
        if number not in self._missing:
            raise Violation(f"retained message {number} was received twice")
        self._missing.remove(number)
        self.delivered += 1
        if not self._missing:
            self.client.send(codec.unsubscribe(2, _FILTER, properties=codec.of(self._level)))


class RetainedMessages:
    """Several subscribers in parallel."""

    def __init__(self, address: Address, level: int = 4) -> None:
        self._publisher = Client(address, "retained-publisher", level=level)
        store(self._publisher, MESSAGES, level)
        self._subscribers = [
            Subscriber(Client(address, f"subscriber{index}", level=level), level)
            for index in range(_SUBSCRIBERS)
        ]
        self._by_descriptor = {each.client.socket.fileno(): each for each in self._subscribers}
        self._epoll = select.epoll()
        for descriptor in self._by_descriptor:
            self._epoll.register(descriptor, select.EPOLLIN)

    def run(self, seconds: float) -> int:
        """Repeat for so long; -> the number of delivered retained messages."""
        before = sum(subscriber.delivered for subscriber in self._subscribers)
        end = time.monotonic() + seconds
        for subscriber in self._subscribers:
            subscriber.subscribe()
        while any(subscriber.waiting for subscriber in self._subscribers):
            self._turn(go_on=time.monotonic() < end)
        return sum(subscriber.delivered for subscriber in self._subscribers) - before

    def close(self) -> None:
        """Close all connections."""
        self._epoll.close()
        for client in (self._publisher, *(subscriber.client for subscriber in self._subscribers)):
            client.close()

    def _turn(self, *, go_on: bool) -> None:
        ready = self._epoll.poll(TIMEOUT_S)
        if not ready:
            raise Silent("retained messages were not received")
        for descriptor, _ in ready:
            subscriber = self._by_descriptor[descriptor]
            subscriber.on_readable()
            if go_on and not subscriber.waiting:
                subscriber.subscribe()
