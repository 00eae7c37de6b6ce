# wall_clock.py - the time of day, as a recorder was told it, and how it is told on. Owns nothing:
# `rec` is a Recorder, and rec.wall what it knows. Loaded with recorder/segments.py; allocates.
from struct import pack

from slotmq.platform.runtime import const

_NONE = const(0xFFFF)
_TICKS = const(5)
_CLIENT = const(8)
_ANCHOR = const(4)
_U32_MOST = 0xFFFFFFFF
_WRAP = const(30)  # bits of the ticks
_HALF = const(0x20000000)  # of them

# Wall time: [quality, seconds, ms, ticks of then, error bound in ms, tenths of a second of then]


def anchor(rec, quality, seconds, ms, error):
    """What the time is now, and who says so: known from now on unless what is known is better."""
    wall = rec.wall
    if not wall or quality >= wall[0] or error <= _error(wall, _passed(rec, wall)):
        rec.wall = [quality, seconds, ms, rec.o[_TICKS], error, rec.now]
    rec.o[_CLIENT] = _NONE
    rec.put(_ANCHOR | quality << 8, _NONE, pack("<IHI", seconds, ms, error), 0, 10)


def tell_time(rec):
    """A segment stands alone: the time that is known is told once more, as it has passed since."""
    wall = rec.wall
    if not wall:
        return
    passed = _passed(rec, wall)
    ms = wall[2] + passed
    seconds = wall[1] + ms // 1000
    error = _error(wall, passed)
    if seconds > _U32_MOST or error > _U32_MOST:
        rec.wall = None  # what cannot be said is not known
        return
    detail = pack("<IHI", seconds, ms % 1000, error)
    rec.put(_ANCHOR | wall[0] << 8, _NONE, detail, 0, 10)


def _error(wall, passed):
    return wall[4] + passed // 10000  # of a crystal, 100 ppm


def _passed(rec, wall):
    # Milliseconds since then: how often the ticks have begun anew, the tenths tell.
    passed = (rec.o[_TICKS] - wall[3]) & 0x3FFFFFFF
    turns = ((rec.now - wall[5]) * 100 - passed + _HALF) >> _WRAP
    return passed + (max(0, turns) << _WRAP)
