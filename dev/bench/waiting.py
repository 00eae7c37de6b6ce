"""How long messages wait: time on the wall until the last of many has come to one subscriber.

CPU says nothing about a broker that sleeps while a window is open.
"""

import time
from dataclasses import dataclass

from slotmq_tools import codec

from .client import Address, Client, Unexpected

_BURST = 20
_PAYLOAD = bytes(64)
_SESSION_EXPIRY = b"\x11" + codec.number4(3600)
_MILLI = 1000


@dataclass(frozen=True)
class Wait:
    """`count` messages for a client of MQTT 5.0 with this Receive Maximum.

    how: "live", "retained" (a new subscription), "queued" (the client comes back)
    """

    how: str = "live"
    window: int = 20
    qos: int = 1
    count: int = 1000


class Subscriber:
    """A client of MQTT 5.0 that acknowledges each read at once."""

    def __init__(self, address: Address, qos: int, props: bytes, *, clean: bool = True) -> None:
        self.client = Client(address)
        self.client.send(codec.connect("waiting", clean, level=5, properties=props))
        self._qos = qos
        self._packets: list[tuple[int, bytes]] = []
        self._reader = codec.Reader()
        self._expect(codec.CONNACK)

    def subscribe(self) -> None:
        """Subscribe."""
        self.client.send(codec.subscribe(1, ("wait/#", self._qos), properties=b""))
        self._expect(codec.SUBACK)

    def receive(self, count: int) -> None:
        """Receive so many messages."""
        while True:
            answers = b""
            for first, body in self._packets:
                if first >> 4 == codec.PUBLISH:
                    count -= 1
                    at = 2 + int.from_bytes(body[:2], "big")
                    kind = codec.PUBACK if self._qos == 1 else codec.PUBREC
                    answers += codec.ack(kind, int.from_bytes(body[at : at + 2], "big"))
                elif first == codec.PUBREL << 4 | 2:
                    answers += codec.ack(codec.PUBCOMP, int.from_bytes(body[:2], "big"))
                else:
                    raise Unexpected(f"a packet that starts with {first:#04x}")
            if answers:
                self.client.send(answers)
            if count <= 0:
                return
            self._packets = self._reader.packets(self.client.receive())

    def _expect(self, kind: int) -> None:
        # What follows it stays for receive().
        while not self._packets:
            self._packets = self._reader.packets(self.client.receive())
        first, _ = self._packets.pop(0)
        if first >> 4 != kind:
            raise Unexpected(f"{first:#04x} instead of {kind << 4:#04x}")


class Waiting:
    """The publisher, and the subscriber of each round."""

    def __init__(self, wait: Wait, address: Address) -> None:
        self._wait = wait
        self._address = address
        self._publisher = Client(address, "waiting-publisher")
        if wait.how == "retained":
            self._publish(retain=True)

    def round(self, _seconds: float) -> dict[str, float]:
        """Milliseconds until all have come."""
        wait = self._wait
        window = b"\x21" + codec.number(wait.window)
        subscriber = Subscriber(self._address, wait.qos, window + _SESSION_EXPIRY)
        if wait.how == "queued":
            subscriber.subscribe()
            subscriber.client.close()
            self._publish()
            start = time.monotonic()
            subscriber = Subscriber(self._address, wait.qos, window, clean=False)
        else:
            start = time.monotonic()
            subscriber.subscribe()
            if wait.how == "live":
                self._publish()
        subscriber.receive(wait.count)
        took = time.monotonic() - start
        subscriber.client.close()
        return {"wall_ms": took * _MILLI}

    def close(self) -> None:
        """Close the connection."""
        self._publisher.close()

    def _publish(self, *, retain: bool = False) -> None:
        qos = self._wait.qos
        kinds = (codec.PUBACK,) if qos == 1 else (codec.PUBREC, codec.PUBCOMP)
        for first in range(0, self._wait.count, _BURST):
            ids = range(1, _BURST + 1)
            names = [b"wait/%d" % (first + number if retain else 0) for number in ids]
            packets = [
                codec.publish(name, _PAYLOAD, qos, number, retain=retain)
                for name, number in zip(names, ids, strict=True)
            ]
            self._publisher.send(b"".join(packets))
            for kind in kinds:
                self._publisher.expect(b"".join(codec.ack(kind, number) for number in ids))
                if kind == codec.PUBREC:
                    self._publisher.send(b"".join(codec.ack(codec.PUBREL, each) for each in ids))
