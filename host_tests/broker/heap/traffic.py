"""Four clients that keep a Pico W busy: every QoS, a reader that blocks, route misses."""

import itertools
from collections.abc import Iterable

from host_tests.broker.wire import codec
from host_tests.broker.wire.client import Client
from host_tests.broker.wire.codec import Ack

BURST = 11  # less than a client may have in flight
TOPICS = 40  # more than there are routes
FLOOD = 400
LARGE = b"L" * 430  # a burst of these is what one session may use


class Traffic:
    """A publisher, two readers and a slow one."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._topics = itertools.cycle(f"t/{n}" for n in range(TOPICS))
        self._ids = itertools.cycle(range(1, 65536))
        self.publisher = Client(address)
        self.reader = Client(address)
        self.second = Client(address)
        self.slow = Client(address)
        for client, name in zip(
            self.clients, ("publisher", "reader", "second", "slow"), strict=True
        ):
            assert client.connect(codec.connect(name)).code == 0
        self.reader.subscribe("t/#", qos=2)
        self.second.subscribe("t/+", qos=1)
        self.slow.subscribe("slow/#", qos=1)

    @property
    def clients(self) -> tuple[Client, ...]:
        return self.publisher, self.reader, self.second, self.slow

    def burst(self, qos: int) -> int:
        """Messages of one QoS for both readers, with all acknowledgements."""
        ids = [next(self._ids) if qos else 0 for _ in range(BURST)]
        topics = [next(self._topics) for _ in ids]
        pairs = list(zip(topics, ids, strict=True))
        self.publisher.send(b"".join(codec.publish(t, b"x" * 64, qos, n) for t, n in pairs))
        if qos == 1:
            self._expect(codec.PUBACK, ids)
        elif qos == 2:
            self._expect(codec.PUBREC, ids)
            self.publisher.send(b"".join(codec.ack(codec.PUBREL, n) for n in ids))
            self._expect(codec.PUBCOMP, ids)
        for topic in topics:
            self.reader.receive(topic, b"x" * 64, qos)
            self.second.receive(topic, b"x" * 64, min(qos, 1))
        return len(ids)

    def block(self) -> None:
        """Send the slow client more than it and all socket buffers take in, then let it read."""
        self.publisher.send(codec.publish("slow/0", LARGE) * FLOOD)
        ids = [next(self._ids) for _ in range(BURST)]
        self.publisher.send(b"".join(codec.publish("slow/1", LARGE, 1, n) for n in ids))
        self._expect(codec.PUBACK, ids)
        received = self.slow.receive_all()
        assert [message.qos for message in received].count(1) == BURST

    def ping(self) -> None:
        for client in self.clients:
            client.ping()

    def close(self) -> None:
        for client in self.clients:
            client.sock.close()

    def _expect(self, kind: int, ids: Iterable[int]) -> None:
        for packet_id in ids:
            self.publisher.expect(Ack(kind, packet_id))
