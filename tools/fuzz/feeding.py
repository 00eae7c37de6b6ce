"""Sends inputs to a broker and watches two well-behaved clients meanwhile.

A batch of inputs goes out on as many connections at once, piece by piece in turns,
and each is over when the broker has closed it. Then the witnesses exchange
numbered messages: what comes must be these bytes and no others.
"""

from collections.abc import Sequence

from .inputs import Inputs, connect, packet, string
from .link import DISCONNECT, PINGREQ, PINGRESP, Link, Noticed, kept_client_id

BATCH = 24
_RESETS = 8  # of so many batches, one ends with all its connections broken
_TOPIC = string(b"witness/of-what-nobody-else-names")
_ACCEPTED = b"\x20\x02\x00\x00"

# What the tables hold: all of it is to be as it was before.
_COUNTED = (
    b"$SYS/broker/clients/connected",
    b"$SYS/broker/clients/total",
    b"$SYS/broker/subscriptions/count",
    b"$SYS/broker/retained messages/count",
    b"$SYS/broker/messages/stored",
    b"$SYS/broker/store/messages/bytes",
)

Pieces = Sequence[bytes]  # an input as it is sent


class Feeder:
    """Sends batches to one broker."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._kept: set[bytes] = set()  # client ids whose sessions may be there
        self._number = 0
        self._publisher = self._client(b"witness-publisher")
        self._subscriber = self._client(b"witness-subscriber")
        self._subscriber.exchange(packet(0x82, b"\0\1" + _TOPIC + b"\0"), b"\x90\3\0\1\0")
        self._counts = self._count()

    def feed(self, batch: Sequence[Pieces], *, reset: bool = False) -> None:
        """Send each input on a connection of its own; nobody else may notice."""
        self._kept |= {kept_client_id(b"".join(pieces)) or b"" for pieces in batch}
        links = [Link(self._address) for _ in batch]
        for turn in range(max(map(len, batch))):
            for link, pieces in zip(links, batch, strict=True):
                if turn < len(pieces):
                    link.send(pieces[turn])
        for link in links:
            if reset:
                link.reset()
            else:
                link.finish()
        self.check()

    def check(self) -> None:
        """The witnesses exchange a message of each QoS."""
        self._number += 1
        text = b"%d" % self._number
        plain, body = packet(0x30, _TOPIC + text), _TOPIC + b"\0\7" + text
        self._publisher.exchange(plain + packet(0x32, body), b"\x40\2\0\7")
        self._publisher.exchange(packet(0x34, body), b"\x50\2\0\7")
        self._publisher.exchange(packet(0x62, b"\0\7"), b"\x70\2\0\7")
        self._subscriber.exchange(PINGREQ, plain * 3 + PINGRESP)

    def clean(self) -> None:
        """Undo what inputs may rightly leave behind; then every table is as it was."""
        for client_id in self._kept - {b""}:
            link = Link(self._address)
            link.send(connect(client_id) + DISCONNECT)
            link.finish()
        self._kept.clear()
        while self._clear_retained():
            pass
        left = self._count()
        if left != self._counts:
            raise Noticed(f"the tables hold {left}, at first {self._counts}")

    def _clear_retained(self) -> int:
        link = self._client(b"cleaner")
        link.send(packet(0x82, b"\0\1" + string(b"#") + b"\0"))
        found = [one for one in link.packets() if one[0] == 0x31]
        for one in found:
            body = one[2 if one[1] < 128 else 3 :]
            link.send(packet(0x31, body[: 2 + int.from_bytes(body[:2], "big")]))
        link.send(DISCONNECT)
        link.finish()
        return len(found)

    def _count(self) -> list[bytes]:
        link = self._client(b"counter")
        asked = b"".join(string(name) + b"\0" for name in _COUNTED)
        link.send(packet(0x82, b"\0\1" + asked))
        told = sorted(one[4:] for one in link.packets() if one[0] == 0x31)
        link.send(DISCONNECT)
        link.finish()
        return told

    def close(self) -> None:
        """Let the witnesses go, who must be there still."""
        try:
            for link in (self._publisher, self._subscriber):
                link.exchange(PINGREQ, PINGRESP)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let the witnesses go, whatever they have noticed."""
        for link in (self._publisher, self._subscriber):
            link.finish()

    def _client(self, client_id: bytes) -> Link:
        link = Link(self._address)
        link.exchange(connect(client_id), _ACCEPTED)
        return link


def feed_many(feeder: Feeder, seed: int, count: int) -> None:
    """Feed so many inputs of that seed; what was noticed names the batch again."""
    inputs = Inputs(seed)
    source = iter(inputs)
    for number in range(-(-count // BATCH)):
        batch = [inputs.cut(next(source)) for _ in range(BATCH)]
        try:
            feeder.feed(batch, reset=number % _RESETS == 0)
        except (OSError, Noticed) as error:
            sent = "\n".join(" ".join(piece.hex() for piece in pieces) for pieces in batch)
            raise Noticed(f"seed {seed}, batch {number}: {error}\n{sent}") from error
