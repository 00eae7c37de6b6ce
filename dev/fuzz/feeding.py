"""Sends inputs to a broker, and checks that other clients, the witnesses, are not affected.

A batch of inputs is sent on parallel connections, piece by piece in turns. Each connection ends
when the broker has closed it. Then two witnesses of each MQTT version exchange numbered messages
and must receive exactly these bytes.
"""

import time
from collections.abc import Sequence
from itertools import zip_longest

from slotmq_tools.codec import CONNECTED, PING, PONG, disconnect, packet, section, string

from . import TIGHT
from .inputs import CLIENT_IDS, Inputs, connect
from .link import Link, Noticed, kept_client_id

BATCH = 24
_RESETS = 8  # one of so many batches ends with a reset of all its connections
_TOPIC = string(b"witness/of-what-nobody-else-names")
_TOPIC_5 = string(b"witness-5/of-what-nobody-else-names")
_CARRIED = b"\x03" + string(b"text") + b"\x26" + string(b"a") + string(b"b")
_IDENTIFIER = b"\x0b\x07"
_ALIAS = b"\x23\x00\x01"
_SHARES = int(TIGHT.partition("limit shares ")[2].split()[0])
_QUOTA = 0x97
_SWEPT_IN_S = 10.0  # expired messages stay in the tables until they are swept

# The use of the tables, which must be the same at the end.
_COUNTED = (
    b"$SYS/broker/clients/connected",
    b"$SYS/broker/clients/total",
    b"$SYS/broker/subscriptions/count",
    b"$SYS/broker/retained messages/count",
    b"$SYS/broker/messages/stored",
    b"$SYS/broker/store/messages/bytes",
)

Pieces = Sequence[bytes]  # an input, split for sending


class Feeder:
    """Sends batches to one broker. to: their address, if it is not that of the witnesses."""

    def __init__(self, address: tuple[str, int], to: tuple[str, int] | None = None) -> None:
        self._address = address
        self._to = to or address
        self._client_ids: set[bytes] = set()  # client ids that may have a session
        self._number = 0
        self._publisher = self._client(b"witness-publisher")
        self._subscriber = self._client(b"witness-subscriber")
        self._subscriber.exchange(packet(0x82, b"\0\1" + _TOPIC + b"\0"), b"\x90\3\0\1\0")
        self._assigned = 0  # the last client id that the broker has assigned
        self._publisher_5 = self._client_5(b"witness-publisher-5")
        self._subscriber_5 = self._client_5(b"witness-subscriber-5")
        asked = b"\0\1" + section(_IDENTIFIER) + _TOPIC_5 + b"\0"
        self._subscriber_5.exchange(packet(0x82, asked), b"\x90\4\0\1\0\0")
        self._publisher_5.exchange(*_with_alias(_TOPIC_5, b"0"))
        self._subscriber_5.exchange(PING, _delivered(b"0") + PONG)
        self._counts = self._count()

    def feed(self, batch: Sequence[Pieces], *, reset: bool = False) -> None:
        """Send each input on its own connection; no witness may be affected."""
        self._client_ids |= {kept_client_id(b"".join(pieces)) or b"" for pieces in batch}
        if self._to != self._address:  # there they are in frames
            self._client_ids |= set(CLIENT_IDS)
        links = [Link(self._to) for _ in batch]
        for turn in zip_longest(*batch):
            for link, piece in zip(links, turn, strict=True):
                if piece:
                    link.send(piece)
        for link in links:
            if reset:
                link.reset()
            else:
                link.finish()
        self.check()

    def check(self) -> None:
        """Let the witnesses exchange a message of each QoS."""
        self._number += 1
        text = b"%d" % self._number
        plain, body = packet(0x30, _TOPIC + text), _TOPIC + b"\0\7" + text
        self._publisher.exchange(plain + packet(0x32, body), b"\x40\2\0\7")
        self._publisher.exchange(packet(0x34, body), b"\x50\2\0\7")
        self._publisher.exchange(packet(0x62, b"\0\7"), b"\x70\2\0\7")
        self._subscriber.exchange(PING, plain * 3 + PONG)
        self._publisher_5.exchange(*_with_alias(b"\0\0", text))
        self._subscriber_5.exchange(PING, _delivered(text) + PONG)

    def clean(self) -> None:
        """Remove what inputs may legally leave; then the tables must be as at the start."""
        for client_id in self._client_ids.union(self._assigned_ids()) - {b""}:
            link = Link(self._address)
            link.send(connect(client_id) + disconnect())
            link.finish()
        self._client_ids.clear()
        while self._clear_retained():
            pass
        left = self._count()
        end = time.monotonic() + _SWEPT_IN_S
        while left != self._counts and time.monotonic() < end:
            time.sleep(0.1)
            left = self._count()
        if left != self._counts:
            raise Noticed(f"the tables have {left}, at the start {self._counts}")
        self._fill_groups()

    def _assigned_ids(self) -> set[bytes]:
        # Client ids assigned since the last call, which may have a session.
        link = Link(self._address)
        link.send(connect(b"", level=5))
        number = int(link.next_packet().partition(b"auto-")[2][:8], 16)
        link.finish()
        before, self._assigned = self._assigned, number
        return {b"auto-%08x" % n for n in range(before + 1, number)}

    def _fill_groups(self) -> None:
        # One client can get all slots for groups of shared subscriptions, and no more.
        link = self._client_5(b"sharer")
        names = [string(b"$share/%032d/witness" % n) + b"\0" for n in range(_SHARES + 1)]
        link.send(packet(0x82, b"\0\1\0" + b"".join(names)))
        granted = link.next_packet()[-_SHARES - 1 :]
        if granted != bytes(_SHARES) + bytes([_QUOTA]):
            raise Noticed(f"groups of shared subscriptions are left: {granted.hex()}")
        link.send(disconnect())
        link.finish()

    def _clear_retained(self) -> int:
        link = self._client(b"cleaner")
        link.send(packet(0x82, b"\0\1" + string(b"#") + b"\0"))
        found = [body for first, body in link.packets() if first == 0x31]
        for body in found:
            link.send(packet(0x31, body[: 2 + int.from_bytes(body[:2], "big")]))
        link.send(disconnect())
        link.finish()
        return len(found)

    def _count(self) -> list[bytes]:
        link = self._client(b"counter")
        filters = b"".join(string(name) + b"\0" for name in _COUNTED)
        link.send(packet(0x82, b"\0\1" + filters))
        counts = sorted(body for first, body in link.packets() if first == 0x31)
        link.send(disconnect())
        link.finish()
        return counts

    def close(self) -> None:
        """Check the witnesses, then close their connections."""
        try:
            for link in self._witnesses():
                link.exchange(PING, PONG)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the connections of the witnesses without a check."""
        for link in self._witnesses():
            link.finish()

    def _witnesses(self) -> tuple[Link, ...]:
        return self._publisher, self._subscriber, self._publisher_5, self._subscriber_5

    def _client(self, client_id: bytes) -> Link:
        link = Link(self._address)
        link.exchange(connect(client_id), CONNECTED)
        return link

    def _client_5(self, client_id: bytes) -> Link:
        link = Link(self._address)
        link.send(connect(client_id, level=5))
        answer = link.next_packet()
        if answer[0] != 0x20 or answer[2:4] != b"\0\0":
            raise Noticed(f"a witness received {answer.hex()} for its CONNECT")
        return link


def _with_alias(topic: bytes, text: bytes) -> tuple[bytes, bytes]:
    """A PUBLISH with a topic alias, with or without the topic, and the answer."""
    body = topic + b"\0\7" + section(_ALIAS + _CARRIED) + text
    return packet(0x32, body), b"\x40\2\0\7"


def _delivered(text: bytes) -> bytes:
    return packet(0x30, _TOPIC_5 + section(_IDENTIFIER + _CARRIED) + text)


def feed_many(feeder: Feeder, seed: int, count: int, kind: type[Inputs] = Inputs) -> None:
    """Feed so many inputs of this seed; an error names the batch and has its bytes."""
    inputs = kind(seed)
    source = iter(inputs)
    for number in range(-(-count // BATCH)):
        batch = [inputs.cut(next(source)) for _ in range(BATCH)]
        try:
            feeder.feed(batch, reset=number % _RESETS == 0)
        except (OSError, Noticed) as error:
            sent = "\n".join(" ".join(piece.hex() for piece in pieces) for pieces in batch)
            raise Noticed(f"seed {seed}, batch {number}: {error}\n{sent}") from error
