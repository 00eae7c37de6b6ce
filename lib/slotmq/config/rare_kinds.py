# rare_kinds.py - kinds of values of mosquitto.conf that few files have. Loaded on demand by
# config/mosquitto_conf.py; owns nothing; allocates.
#
# A kind: (the Reader, bounds, text of the value) -> the setting; None if it has stored it.
# ValueError: what it expected.
import os

from slotmq.config.mosquitto_conf import OF_BOARD
from slotmq.config.policies import WHEN_FULL, rows
from slotmq.platform.runtime import MICROPYTHON, const

_LINE = const(20)  # as in config/mosquitto_conf.py
# Units of a duration; a month has 30 days
_UNITS = "shdwmy"
_SECONDS = (1, 3600, 86400, 604800, 2592000, 31536000)


def time(reader, bounds, value):
    """Seconds, or a number with s, h, d, w, m or y."""
    unit = value[-1:] if value[-1:] and value[-1:] in _UNITS else ""
    try:
        seconds = reader.number((0, bounds[1]), value[: len(value) - len(unit)])
        if unit:
            seconds *= _SECONDS[_UNITS.index(unit)]
        return reader.number(bounds, str(seconds))
    except ValueError as error:
        raise ValueError("%s seconds, also with h, d, w, m or y" % error)


def policy(reader, bounds, value):
    for row in rows(WHEN_FULL):
        if value.split() in [[row[0], policy] for policy in row[1:]]:
            reader.settings.when_full[row[0]] = value.split()[1]
            return
    raise ValueError("a table and its policy: " + WHEN_FULL[:-1].replace("\n", "; "))


def _must_be_cpython(reader, otherwise):
    """ValueError on a board, and for one."""
    if MICROPYTHON or reader.is_foreign == OF_BOARD:
        raise ValueError(otherwise)


def device(reader, bounds, value):
    _must_be_cpython(reader, "`listener PORT ADDRESS` instead; this needs CPython on Linux")
    return reader.text(bounds, value)


def levels(reader, bounds, value):
    """The protocol levels as bits."""
    found = 0
    for word in value.replace(",", " ").split():
        found |= 1 << int(reader.word(("3", "4", "5"), word))
    return found or reader.word(("3", "4", "5"), value)


def folder(reader, bounds, value):
    """Read the files NAME.conf of a folder. Each begins above its first listener."""
    if reader.at >> _LINE:
        raise ValueError("no include_dir in a file that is included")
    try:
        names = os.listdir(reader.text(bounds, value))
    except OSError as error:
        raise ValueError("a folder that can be read (%s)" % error)
    at = reader.at
    section = reader._section
    for name in sorted([name for name in names if name[-5:] == ".conf"]):
        reader.names.append(value.rstrip("/") + "/" + name)
        reader.at = len(reader.names) - 1 << _LINE
        reader._section = reader.sections[0]
        reader.open(reader.names[-1])
    reader.at = at
    reader._section = section


def path(reader, bounds, value):
    """The path of a unix domain socket."""
    _must_be_cpython(reader, "an address; unix domain sockets need CPython")
    return value if "/" in value else "./" + value
