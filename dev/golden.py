"""Makes the golden segments: files that the recorder writes in a few small scenes.

    python -m slotmq_dev.golden [--check] [FOLDER]

The board's own code writes them with a simulated clock, so that each run gives the same bytes.
All readers of segments are tested with these files; decode() shares no code with the writer. It
writes the journals of golden_journal.py, too. --check lists the files that the code writes
differently today.
"""

import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import click

from slotmq import Limits
from slotmq.fast import Names  # type: ignore[attr-defined]
from slotmq.platform.arrays import u16
from slotmq.recorder import files, segments, wall_clock
from slotmq.recorder.writer import Recorder

FOLDER = Path(__file__).resolve().parents[1] / "host_tests/support/golden"
BOARD = bytes.fromhex("e6614104035f2d2b")
OTHER = bytes.fromhex("00000000c0ffee01")
UNIX = 1_795_320_988
NONE = 0xFFFF
TICKS, CLIENT = 5, 6
BOOT, CONNECT, DISCONNECT, WILL, TAKEOVER, SUBSCRIBE, FULL, LOW, UNSUBSCRIBE = range(1, 10)


class Broken:
    """A file on a medium that fails."""

    def write(self, _: object) -> None:
        """Fail."""
        raise OSError(5, "write")

    def close(self) -> None:
        """Do nothing."""


class Scene:
    """A recorder whose clock the scene sets."""

    def __init__(self, folder: Path, size: int, budget: int, boot: int, **options: Any) -> None:
        self.clients = Names(8, 8 * 64)
        ring = f"{folder}/", size, budget // size
        self.rec = Recorder(*ring, self.clients, u16(1), Limits(), (b"#",), block=256, **options)
        self.rec.board, self.rec.boot = BOARD, boot

    def at(self, ticks: int) -> "Scene":
        self.rec.o[TICKS] = ticks
        return self

    def begin(self) -> "Scene":
        files.look(self.rec)
        segments.begin(self.rec)
        self.event(BOOT, b"\1")
        return self

    def client(self, name: str, level: int = 4) -> int:
        slot = int(self.clients.add(0, name.encode(), 0, len(name.encode())))
        self.event(CONNECT, bytes((level,)), slot)
        return slot

    def event(self, code: int, detail: bytes, client: int = NONE, topic: int = NONE) -> None:
        segments.event(self.rec, code, detail, client, topic)

    def message(
        self, client: int, topic: str, payload: bytes, flags: int = 0, origin: bytes = b""
    ) -> None:
        name = topic.encode()
        if origin:
            self.rec.origin[:] = origin
            flags |= 16
        buf = bytearray(name + payload)
        self.rec.message(client, buf, 0, len(name), flags, buf, len(name), len(payload))

    def anchor(self, quality: int, seconds: int, ms: int, error: int) -> None:
        wall_clock.anchor(self.rec, quality, seconds, ms, error)

    def end(self) -> None:
        assert self.rec.flush()
        files.close(self.rec)


def everything(folder: Path) -> None:
    """Each kind of record, and payloads of every kind, in one segment."""
    scene = Scene(folder, 4096, 65536, 7).at(12).begin()
    scene.anchor(1, UNIX, 250, 60_000)
    sensor = scene.at(900).client("sensor-1")
    scene.at(950).event(SUBSCRIBE, b"cmd/+/#", sensor)
    scene.at(1000).message(sensor, "room/1/temperature", b"21.5")
    scene.at(2000).message(sensor, "room/1/temperature", b'{"t": 21.75, "ok": true}', 1 << 0)
    scene.at(2000).message(sensor, "room/1/door", b"open", 1 | 4)
    scene.at(2001).message(sensor, "room/1/door", b"", 4)
    phone = scene.at(2500).client("phone \u00fc", 5)
    scene.at(2600).message(phone, "cmd/1/set", bytes(range(256)), 2)
    scene.at(2900).message(phone, "cmd/1/set", bytes(range(256)), 2 | 8)
    scene.at(3000).message(phone, "b\u00e9ton/x", b"\xa2atfloat\xff", 0)
    origin = OTHER + struct.pack("<II", 3, 41)
    scene.at(3100).message(phone, "room/9/temperature", b"19", 1, origin)
    scene.at(3200).message(NONE, "own/uptime", b"3")
    scene.at(3300).anchor(2, UNIX + 4, 10, 40)
    scene.at(3400).event(TAKEOVER, b"", sensor)
    scene.at(3500).event(WILL, b"", sensor)
    scene.at(3500).event(DISCONNECT, b"\x08", sensor)
    scene.at(3600).event(FULL, b"deliveries")
    scene.at(3700).event(LOW, struct.pack("<I", 20_480))
    scene.at(3800).event(UNSUBSCRIBE, b"cmd/+/#", phone)
    scene.at(3900).message(phone, "long", b"0123456789" * 60)
    scene.at(4000).anchor(4, UNIX + 5, 0, 20)
    scene.at(4100).anchor(3, UNIX + 5, 90, 5)
    scene.end()


def ring(folder: Path) -> None:
    """A ring of three segments of 512 bytes; each defines its ids."""
    scene = Scene(folder, 512, 1536, 2).at(0).begin()
    scene.anchor(4, UNIX, 0, 20)
    sensors = [scene.client(f"s{n}") for n in range(3)]
    for n in range(60):
        scene.at(1000 * n).message(sensors[n % 3], f"t/{n % 4}", b"%d" % n, n % 3)
    scene.end()


def wrapped(folder: Path) -> None:
    """The ticks wrap around at 2**30."""
    scene = Scene(folder, 1024, 65536, 1).at(2**30 - 200).begin()
    sensor = scene.client("wraps")
    for n in range(5):
        scene.at((2**30 - 150 + 60 * n) % 2**30).message(sensor, "t", b"%d" % n)
    scene.end()


def ids(folder: Path) -> None:
    """An id is reused in the same segment, and a message that matches no filter has no record."""
    scene = Scene(folder, 2048, 65536, 4).at(5).begin()
    scene.rec.filters = (b"wanted/#",)
    first = scene.client("first")
    scene.at(10).message(first, "wanted/1", b"a")
    scene.at(11).message(first, "unwanted", b"b")
    scene.at(20).event(DISCONNECT, b"\1", first)
    scene.clients.remove(first)
    scene.rec.defined[1][first] = 0
    second = scene.at(30).client("second")
    assert second == first
    scene.at(31).message(second, "wanted/1", b"c")
    for n in range(40):  # more than there are ids
        scene.at(40 + n).message(second, f"wanted/{n}", b"%d" % n)
    scene.end()


def stopped(folder: Path) -> None:
    """Recording stops when the ring of two segments is full, and goes on when one is removed."""
    scene = Scene(folder, 512, 1024, 1, stops=True).at(0).begin()
    sensor = scene.client("s")
    for n in range(60):
        scene.at(n).message(sensor, "t", b"message %d" % n)
    files.remove(scene.rec, 0)
    scene.rec.now += 600
    for n in range(60, 63):
        scene.at(n).message(sensor, "t", b"message %d" % n)
    scene.end()


def torn(folder: Path) -> None:
    """A power failure in a record, then garbage; and the segment of the next boot."""
    scene = Scene(folder, 1024, 65536, 8).at(0).begin()
    sensor = scene.client("s")
    for n in range(9):
        scene.at(n).message(sensor, "t", b"message %d" % n)
    scene.end()
    path = folder / "00000000.seg"
    path.write_bytes(path.read_bytes()[:-7] + b"\0" * 5)
    scene = Scene(folder, 1024, 65536, 9).at(0).begin()
    scene.end()


def holes(folder: Path) -> None:
    """A record longer than a segment leaves a hole; a failing medium leaves a GAP record."""
    scene = Scene(folder, 512, 65536, 3).at(0).begin()
    sensor = scene.client("s")
    scene.at(1).message(sensor, "t", b"x" * 600)
    scene.at(2).message(sensor, "t", b"after it")
    assert scene.rec.flush()
    assert scene.rec.file
    scene.rec.file.close()
    scene.rec.file = Broken()
    scene.at(3).message(sensor, "t", b"lost")
    assert not scene.rec.flush()
    scene.at(4).message(sensor, "t", b"lost too")
    scene.rec.now += 100
    scene.at(5).message(sensor, "t", b"there again")
    scene.end()


SCENES: tuple[Callable[[Path], None], ...] = (everything, ring, wrapped, ids, stopped, torn, holes)


def decode(data: bytes) -> dict[str, Any]:
    """The content of a segment, decoded as FORMAT.md describes it."""
    magic, version, _, size, board, boot, segment, seq, crc = struct.unpack_from(
        "<4sBBH8sIIII", data
    )
    assert (magic, version, crc) == (b"SLMR", 1, crc32(data[:28]))
    head = {"size": size << 8, "board": board.hex(), "boot": boot, "segment": segment, "seq": seq}
    records = []
    at = 32
    while at + 20 <= len(data):
        fields = struct.unpack_from("<IHBBIIHH", data, at)
        total = fields[1]
        if total == NONE or total < 20 or at + total > len(data):
            break
        if crc32(data[at + 4 : at + total]) != fields[0]:
            break
        names = ("type", "flags", "seq", "ticks", "client", "topic")
        record = {"at": at, **dict(zip(names, fields[2:], strict=True))}
        records.append({**record, "payload": data[at + 20 : at + total].hex()})
        at += total
    return {"head": head, "end": at, "bytes": len(data), "records": records}


def make() -> dict[str, bytes]:
    """All golden segments by name."""
    made = {}
    for scene in SCENES:
        with tempfile.TemporaryDirectory() as name:
            scene(Path(name))
            for path in sorted(Path(name).glob("*.seg")):
                made[f"{scene.__name__}-{path.name}"] = path.read_bytes()
    return made


def differing(made: dict[str, bytes], folder: Path, *, write: bool) -> Iterator[str]:
    """The files that are new or differ; write: they are written."""
    for name, data in made.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != data:
            yield f"{name}: {'differs' if path.is_file() else 'new'}"
            if write:
                folder.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; list the files that differ.")
@click.argument("folder", type=click.Path(path_type=Path), default=FOLDER)
def main(check: bool, folder: Path) -> None:
    """Make the golden segments of the recorder, and the journals of this version."""
    from . import golden_journal

    files = {"record": make(), "journal": golden_journal.make()}
    odd = [
        line
        for name, made in files.items()
        for line in differing(made, folder / name, write=not check)
    ]
    print(*odd, sep="\n")
    sys.exit(bool(check and odd))


if __name__ == "__main__":
    main()
