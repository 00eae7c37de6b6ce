# wall_clock.py - stores the wall time that a recorder gets (from the board's clock or by MQTT),
# and writes it into segments. Owns nothing: `rec` is a Recorder, rec.wall the known time. Loaded
# with recorder/segments.py; allocates.
from struct import pack

from slotmq.constants import NONE, REC_CLIENT, REC_TICKS, U32_MOST


_ANCHOR = 4
_WRAP = 30  # bits of the ticks
_HALF = 0x20000000  # half of their range

# rec.wall: [quality, seconds, ms, ticks at that time, error bound in ms, rec.now at that time]


def anchor(rec, quality, seconds, ms, error):
    """Write an ANCHOR, and remember its time unless the known time is better."""
    wall = rec.wall
    if not wall or quality >= wall[0] or error <= _error(wall, _passed(rec, wall)):
        rec.wall = [quality, seconds, ms, rec.o[REC_TICKS], error, rec.now]
    rec.o[REC_CLIENT] = NONE
    rec.put(_ANCHOR | quality << 8, NONE, pack("<IHI", seconds, ms, error), 0, 10)


def write_time(rec):
    """Write the known time, advanced to now: each segment can be read alone."""
    wall = rec.wall
    if not wall:
        return
    passed = _passed(rec, wall)
    ms = wall[2] + passed
    seconds = wall[1] + ms // 1000
    error = _error(wall, passed)
    if seconds > U32_MOST or error > U32_MOST:
        rec.wall = None  # an ANCHOR has no space for it
        return
    detail = pack("<IHI", seconds, ms % 1000, error)
    rec.put(_ANCHOR | wall[0] << 8, NONE, detail, 0, 10)


def _error(wall, passed):
    return wall[4] + passed // 10000  # 100 ppm, the error of a crystal


def _passed(rec, wall):
    # Milliseconds since the known time. The ticks wrap; rec.now shows how often they did.
    passed = (rec.o[REC_TICKS] - wall[3]) & 0x3FFFFFFF
    turns = ((rec.now - wall[5]) * 100 - passed + _HALF) >> _WRAP
    return passed + (max(0, turns) << _WRAP)
