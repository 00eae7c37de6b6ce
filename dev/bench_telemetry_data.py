"""Makes a large harvest folder quickly: one board's ring, copied for other boards."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from random import Random

from slotmq_telemetry.harvest.manifest import NAME, Line, locked
from slotmq_telemetry.season import writer as w

SIZE = 65536
BOARDS = 40
START = 1_772_323_200_000
_PLACE = b"site/00/"  # part of each topic; the number is the board's
_BUNDLE = 32  # segments


@dataclass
class Template:
    """A segment, and the offsets of its topic definitions."""

    data: bytearray
    topics: list[int]


def make(folder: Path, records: int) -> None:
    """Write a harvest folder with about so many records of BOARDS boards."""
    templates = ring(records // BOARDS)
    (folder / "bundles").mkdir(parents=True)
    waiting: list[bytes] = []
    lines: list[Line] = []
    for board in range(BOARDS):
        for template in templates:
            waiting.append(copy(template, board))
            if len(waiting) == _BUNDLE:
                lines.append(_bundle(folder, len(lines), waiting))
                waiting = []
    if waiting:
        lines.append(_bundle(folder, len(lines), waiting))
    with locked(folder) as manifest:
        manifest.append(*lines)


def hold_back(folder: Path) -> list[Line]:
    """Take the last hundredth of the lines away, all of one board."""
    with locked(folder) as manifest:
        lines = manifest.lines()
    held = lines[-max(1, len(lines) // 100) :]
    (folder / NAME).unlink()
    with locked(folder) as manifest:
        manifest.append(*lines[: -len(held)])
    return held


def given_back(folder: Path, held: list[Line]) -> Path:
    """Add them as a harvest does."""
    with locked(folder) as manifest:
        manifest.append(*held)
    return folder


def _bundle(folder: Path, number: int, segments: list[bytes]) -> Line:
    path = f"bundles/{number:05}.smq"
    (folder / path).write_bytes(b"".join(segments))
    return Line(path, len(segments) * SIZE, "", SIZE, START / 1000 + 90 * 86400, "benchmark")


def ring(records: int) -> list[Template]:
    """Three boots of a board with 12 clients and 40 topics, an anchor in each segment."""
    random = Random(7)
    found: list[Template] = []
    per_boot = records // 3 + 1
    for boot in range(1, 4):
        seq, uptime, base = 0, 4000, START + boot * 30 * 86_400_000
        while seq < min(per_boot, records - per_boot * (boot - 1)):
            template = Template(bytearray(w.header(b"", boot, len(found), seq, SIZE)), [])
            seq, uptime = _fill(template, random, seq, uptime, base)
            found.append(template)
    return found


def _fill(
    template: Template, random: Random, seq: int, uptime: int, base: int
) -> tuple[int, int]:  # fmt: skip
    data = template.data
    for number in range(12):
        data += w.record(1, 0, seq, uptime, number, w.NO_ID, b"node-%02d" % number)
        seq += 1
    for number in range(40):
        template.topics.append(len(data))
        kind = (b"temp", b"humidity", b"soil", b"battery")[number % 4]
        data += w.record(1, 1, seq, uptime, w.NO_ID, number, _PLACE + kind + b"/%d" % number)
        seq += 1
    wall = base + uptime
    data += w.record(4, 2, seq, uptime, w.NO_ID, w.NO_ID,
                     struct.pack("<IHI", wall // 1000, wall % 1000, 40))  # fmt: skip
    seq += 1
    while len(data) < SIZE - 160:
        uptime += random.randrange(50, 900)
        topic = random.randrange(40)
        data += w.record(2, random.choice((0, 1, 1, 2, 5)), seq, uptime, random.randrange(12),
                         topic, _payload(random, seq))  # fmt: skip
        seq += 1
    return seq, uptime


def _payload(random: Random, seq: int) -> bytes:
    kind = seq % 20
    if kind < 10:
        return b"%.3f" % random.gauss(20, 4)
    if kind < 17:
        return b'{"t":%.2f,"bat":%d,"n":%d}' % (random.gauss(20, 4), random.randrange(9999), seq)
    if kind < 19:
        return b"\xa2at\xfb" + struct.pack(">d", random.gauss(20, 4)) + b"an\x1a" + struct.pack(
            ">I", seq
        )  # fmt: skip
    return b"motion in zone %d" % (seq % 9)


def copy(template: Template, board: int) -> bytes:
    """The same segment of another board, with the topics of its site."""
    data = bytearray(template.data.ljust(SIZE, b"\xff"))
    data[8:16] = struct.pack(">Q", 0x286F_0000_0000_0000 + board)
    data[28:32] = struct.pack("<I", zlib.crc32(data[:28]))
    for at in template.topics:
        end = at + int.from_bytes(data[at + 4 : at + 6], "little")
        data[at + 20 + 5 : at + 20 + 7] = b"%02d" % board
        data[at : at + 4] = struct.pack("<I", zlib.crc32(data[at + 4 : end]))
    return bytes(data)
