"""The golden journals: those that the broker writes in a small scene, on each medium.

`python -m slotmq_dev.golden` writes them. The real broker does it with simulated clients and a
simulated clock, so that each run gives the same bytes. Their names have the version of the
format. Journals of older versions stay but are not written again; test_golden.py reads all.
"""

import tempfile
from pathlib import Path
from typing import Any

from slotmq import Broker, Limits, Settings
from slotmq.journal.medium_file import FileMedium
from slotmq.journal.medium_flash import FlashMedium
from slotmq.journal.records import VERSION
from slotmq.journal.restore import restore
from slotmq.net.loop import Loop
from slotmq_tools import codec
from slotmq_tools.sim.flash import Flash

LIMITS = {"connections": 6, "sessions": 8, "subscriptions": 12, "messages": 24, "deliveries": 24}
SNAPSHOT = 3840
BLOCKS = 8
PUBACK, PUBREC, PUBREL = 4, 5, 6
NOTE = b"\x26\0\1a\0\1b"  # a user property
HOUR = b"\x02\0\0\x0e\x10"  # until a message expires
FAR = b"\x02\x7f\xff\xff\xff"
DELAY = b"\x18\0\0\0\x3c"  # of a will: a minute


class Client:
    """A stream with the bytes that a client sends; the broker's bytes are ignored."""

    def __init__(self) -> None:
        self.sent = b""

    def readinto(self, buf: bytearray, n: int) -> int | None:
        """The broker reads."""
        n = min(n, len(self.sent))
        buf[:n] = self.sent[:n]
        self.sent = self.sent[n:]
        return n or None

    def write(self, _buf: bytearray, _off: int, n: int) -> int:
        """The broker writes."""
        return n

    def close(self) -> None:
        """The broker closes the connection."""


class Scene:
    """A broker with its journal on a medium; poller, clock and listener of its loop."""

    def __init__(self, medium: Any, acl_file: str | None = None) -> None:
        self.ms = 0
        self.waiting: list[Client] = []
        self.streams: list[Client] = []
        settings = Settings(sys_interval=0, qos2_delivery="release", acl_file=acl_file)
        self.broker = Broker(Limits(**LIMITS), settings)
        self.broker.loop = Loop(self.broker, self, self)
        self.broker.loop.listeners.add(self, self.accept)
        restore(self.broker, medium)

    def accept(self) -> tuple[Client, None] | None:
        return (self.waiting.pop(), None) if self.waiting else None

    def register(self, stream: Any, _mask: int) -> None:
        if stream is not self:
            self.streams.append(stream)

    def modify(self, _stream: Any, _mask: int) -> None:
        """All events are always returned."""

    def unregister(self, stream: Any) -> None:
        self.streams.remove(stream)

    def ticks_ms(self) -> int:
        return self.ms

    def ticks_diff(self, now: int, before: int) -> int:
        return now - before

    def ipoll(self, _timeout_ms: int) -> list[tuple[Any, int]]:
        found: list[tuple[Any, int]] = [(self, 1)] if self.waiting else []
        return found + [(stream, 1) for stream in self.streams if stream.sent]

    def connect(
        self, level: int, name: str, clean: bool, props: bytes = b"", will: Any = None
    ) -> Client:
        client = Client()
        self.waiting.append(client)
        user = name[:1].encode() if self.broker.owners and name != "old" else None
        packet = codec.connect(
            name,
            clean,
            will and will[:4],
            username=user,
            level=level,
            properties=props,
            will_properties=will[4] if will else b"",
        )
        return self.send(client, packet)

    def send(self, client: Client, *packets: bytes) -> Client:
        for packet in packets:
            client.sent += packet
            for _ in range(3):
                self.ms += 500
                assert self.broker.loop
                self.broker.loop.turn(0)
        return client


def play(scene: Scene) -> None:
    """Write every kind of record, and leave some of everything that a journal stores."""
    ends = scene.connect(4, "ended", False)
    scene.send(ends, codec.subscribe(1, (b"news/#", 1)))
    away, reader = _readers(scene)
    writer = scene.connect(4, "writer", False, will=(b"last/writer", b"cut off", 1, False, b""))
    five = scene.connect(5, "five", False, _expiry(0x3FFFFFFF))
    _retained(scene, writer, five)
    scene.send(five, codec.publish(b"news/first", b"1st", 2, 6, 0, 0, b""), codec.ack(PUBREL, 6))
    scene.send(reader, codec.ack(PUBREC, 1))
    scene.broker.compact()
    scene.connect(4, "ended", True)
    scene.send(away, codec.unsubscribe(4, b"old", properties=b""), codec.disconnect(4))
    scene.send(writer, codec.publish(b"state/c", b"", 1, 4, 1, 0))
    for n, props in enumerate((b"", NOTE, NOTE + HOUR)):
        packet = codec.publish(b"news/%d" % n, b"n%d" % n * 20, 2, 1 + n, 0, 0, props)
        scene.send(five, packet, codec.ack(PUBREL, 1 + n))
    scene.send(five, codec.publish(b"jobs/1", b"do it", 1, 9, 0, 0, NOTE))
    scene.send(reader, codec.ack(PUBREC, 5))
    scene.send(writer, codec.publish(b"once", b"", 1, 8, 0, 0))
    scene.send(reader, codec.ack(PUBACK, 15))
    held = [codec.publish(b"news/held", b"%d" % n, 2, n, int(n == 72), 0) for n in (71, 72, 73)]
    scene.send(writer, *held, codec.ack(PUBREL, 71))
    scene.connect(5, "fleeting", True, will=(b"last/fleeting", b"gone", 1, True, NOTE))


def _expiry(seconds: int) -> bytes:
    return bytes(b"\x11" + codec.number4(seconds))


def _readers(scene: Scene) -> tuple[Client, Client]:
    # A client of version 5 will lose its connection, and its will is delayed; one of 3.1 is
    # offline; one is connected, and will have acknowledged some of its messages at the end.
    will = (b"last/away", b"not back", 2, True, DELAY + NOTE + HOUR)
    away = scene.connect(5, "away", False, _expiry(600), will)
    scene.send(away, codec.subscribe(1, (b"$share/g/jobs/+", 1), properties=b"\x0b\x07"))
    scene.send(away, codec.subscribe(2, (b"news/#", 2 | 4 | 8 | 16), properties=b"\x0b\xac\x02"))
    scene.send(away, codec.subscribe(3, (b"old", 1), properties=b""))
    old = scene.connect(3, "old", False)
    scene.send(old, codec.subscribe(1, (b"news/#", 1), (b"+/b", 0)), codec.disconnect())
    reader = scene.connect(4, "reader", False)
    scene.send(reader, codec.subscribe(1, (b"news/#", 2)))
    scene.send(reader, codec.subscribe(2, (b"once", 1)))
    return away, reader


def _retained(scene: Scene, writer: Client, five: Client) -> None:
    for n, (topic, data) in enumerate(((b"b", b"first"), (b"b", b"second"), (b"c", b"x"))):
        scene.send(writer, codec.publish(b"state/" + topic, data, 1, 1 + n, 1, 0))
    packet = codec.publish(b"state/a", bytes(range(256)), 2, 5, 1, 0, NOTE + HOUR)
    scene.send(five, packet, codec.ack(PUBREL, 5))
    scene.send(five, codec.publish(b"state/far", b"0", 0, 0, 1, 0, FAR))


def file_bytes(acl_file: str | None = None) -> bytes:
    """The journal file that the scene leaves."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal"
        medium = FileMedium(str(path), SNAPSHOT, 1 << 20)
        play(Scene(medium, acl_file))
        medium.close()
        return path.read_bytes()


def flash_bytes(acl_file: str | None = None) -> bytes:
    """The flash region that the scene leaves."""
    chip = Flash(BLOCKS)
    play(Scene(FlashMedium(chip, SNAPSHOT), acl_file))
    return bytes(chip.data)


def make() -> dict[str, bytes]:
    """The golden files by name: of this version, and of version 2, for brokers without users."""
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder) / "acl"
        rules.write_text("pattern readwrite #\n")
        return {
            f"version-{VERSION - 1}.file": file_bytes(),
            f"version-{VERSION - 1}.flash": flash_bytes(),
            f"version-{VERSION}.file": file_bytes(str(rules)),
            f"version-{VERSION}.flash": flash_bytes(str(rules)),
        }
