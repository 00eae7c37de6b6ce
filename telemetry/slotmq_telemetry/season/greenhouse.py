"""Ten days in a greenhouse and a tunnel, for the demo, with the faults that such places have.

All boards use the same topics, since each is a broker of its own.

    beds    air and two soil sensors, of which one stands still from the sixth day on; on the
            eighth day the air sensor loses its radio again and again
    door    nobody harvests it for a week, so its small ring overwrites two days
    tunnel  a soil sensor that drifts; the power is off for seven hours in the fourth night
"""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from random import Random

from .board import DAY, EVENT, HARVESTER, HOUR, MESSAGE, Board, Make
from .harvest import Harvest

START = 1_777_593_600_000  # 1 May 2026
DAYS = 10
STEP = 10 * 60_000  # from one reading to the next
SIZE = 4096
DRIFT = 4.8  # % of moisture a day
STUCK_FROM, FLAPS_AT = 5, 7  # days
OFF, ON = 3 * DAY + 22 * HOUR, 4 * DAY + 5 * HOUR
SITES = {"beds": "greenhouse", "tunnel": "outside", "door": "greenhouse"}
NAMES = tuple(SITES)
IDS = {name: bytes((0x28, 0x6F, 0, 0, 0, 0, 0, i)) for i, name in enumerate(NAMES, 1)}
TOML = "".join(
    f'[{IDS[name].hex()}]\nname = "{name}"\nsite = "{site}"\n\n' for name, site in SITES.items()
)


def grow(folder: Path, lines: int = 0, seed: int = 1, start: int = START) -> Harvest:
    """Append what these boards recorded to a harvest folder that has so many lines.

    start: ms since 1970, at midnight.
    """
    random = Random(seed)
    harvest = Harvest(folder, SIZE, random)
    harvest.lines = lines
    boards = {
        "beds": Board(IDS["beds"], Make(SIZE, 400, flush=3), 12, random),
        "tunnel": Board(IDS["tunnel"], Make(SIZE, 400, flush=3), -20, random),
        "door": Board(IDS["door"], Make(SIZE, 7, flush=1), 5, random),
    }
    for board in boards.values():
        _begin(board, start)
    for at in range(start, start + DAYS * DAY, STEP):
        since = at - start
        day = since // DAY
        if since == OFF:
            boards["tunnel"].cut()
        if since == ON:
            _begin(boards["tunnel"], at)
        for name, board in boards.items():
            if name == "tunnel" and OFF <= since < ON:
                continue
            board.wait(at)
            if at % DAY == 8 * HOUR and (name != "door" or day in (0, 8, 9)):
                _visit(harvest, board, at)
            if name == "door":
                _door(board, at, since, random)
            else:
                _climate(board, name, at, since, random)
    for board in boards.values():
        board.finish()
        _visit(harvest, board, start + DAYS * DAY)
    harvest.save()
    return harvest


def latest() -> int:
    """The start of the last ten days."""
    return (int(time.time() * 1000) // DAY - DAYS) * DAY


def _begin(board: Board, at: int) -> None:
    board.start(at)
    board.put(at, EVENT, 1, b"\x01")
    for client in ("air", "soil", "door"):
        board.put(at, EVENT, 2, b"\x04", client)


def _visit(harvest: Harvest, board: Board, at: int) -> None:
    """Somebody comes by with a laptop, and tells the time."""
    board.tell(at, HARVESTER, at + 3, 40, is_false=False)
    harvest.bundle(board.copies(), at + 20_000)
    board.clear(at)


def _climate(board: Board, name: str, at: int, since: int, random: Random) -> None:
    day, hour = divmod(since / HOUR, 24)
    sun = max(0.0, math.sin((hour - 6) / 12 * math.pi))
    warm = 14 + 13 * sun + random.gauss(0, 0.3)
    air = {"temperature": round(warm, 2), "humidity": round(88 - 30 * sun + random.gauss(0, 1), 1)}
    board.put(at, MESSAGE, 0, json.dumps(air).encode(), "air", "air")
    wet = 46 - 6 * (hour / 24) + random.gauss(0, 0.2)  # it is watered at midnight
    if name == "tunnel":
        drifting = 30 + DRIFT * since / DAY + random.gauss(0, 0.4)
        board.put(at + 1000, MESSAGE, 1, f"{drifting:.1f}".encode(), "soil", "soil/1")
    else:
        stuck = 41.0 if day >= STUCK_FROM else wet
        board.put(at + 1000, MESSAGE, 1, f"{wet:.1f}".encode(), "soil", "soil/1")
        board.put(at + 1500, MESSAGE, 1, f"{stuck:.1f}".encode(), "soil", "soil/2")
    if name == "beds" and day == FLAPS_AT and hour == 14:
        for i in range(6):
            board.put(at + 2000 + 70_000 * i, EVENT, 3, b"\x08", "air")
            board.put(at + 5000 + 70_000 * i, EVENT, 2, b"\x04", "air")


def _door(board: Board, at: int, since: int, random: Random) -> None:
    """1 while it is open, by day and half of the time; it says so every 40 minutes."""
    is_open = 7 <= since / HOUR % 24 < 19 and random.random() < 0.5
    if since % (4 * STEP) == 0:
        board.put(at, MESSAGE, 5, b"1" if is_open else b"0", "door", "door")
    volts = 4.1 - 0.5 * since / (DAYS * DAY) + random.gauss(0, 0.01)
    board.put(at + 30_000, MESSAGE, 0, f"{volts:.2f}".encode(), "door", "battery")
