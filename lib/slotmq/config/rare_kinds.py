# rare_kinds.py - kinds of values of mosquitto.conf that few files have. Loaded on demand by
# config/mosquitto_conf.py; owns nothing; allocates.
#
# A kind: (the Reader, bounds, text of the value) -> the setting; None if it has stored it.
# ValueError: what it expected.
import os

from slotmq.config.mosquitto_conf import OF_BOARD, SCOPED, bare
from slotmq.config.policies import WHEN_FULL, rows
from slotmq.constants import LINE
from slotmq.platform.runtime import MICROPYTHON

if MICROPYTHON:
    private = open
else:
    from slotmq.platform.filesystem_cpython import private

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


def scope(reader, bounds, value):
    """per_listener_settings: do the keys in SCOPED belong to the listener above them?"""
    found = reader.flag(bounds, value)
    found = found or getattr(reader.settings, "per_listener_settings", False)
    before = [key for key in SCOPED.split() if key in reader.lines]
    if found and before:
        raise ValueError("a line above %s" % ", ".join(before))
    return found


def rules(reader, bounds, value):
    """acl_file: that of all listeners, or with per_listener_settings of the one above it."""
    value = reader.text((), value)
    before = reader.settings.acl_file
    if before not in (None, value):
        text = "%s, as above: each listener has its own only with per_listener_settings true"
        raise ValueError(text % before)
    return value


def files(reader, bounds, settings):
    """With per_listener_settings: the one password_file of all listeners that have users, and the
    first acl_file."""
    for listener in settings.listeners:
        path = listener[3].setdefault("acl_file", None)
        settings.acl_file = settings.acl_file or path
        if settings.acl_file and (MICROPYTHON or reader.is_foreign == OF_BOARD):
            # Rules of each listener are in access/rules_of_listeners_cpython.py.
            if any([each[3].get("acl_file") != settings.acl_file for each in settings.listeners]):
                at = reader.lines["acl_file"]
                reader.fail(at, "acl_file", "on a board the same file below each listener")
                break
    for listener in settings.listeners:
        path = listener[3].setdefault("password_file", None)
        if path and settings.password_file not in (None, path):
            text = "%s, the file of another listener: there is one table of users"
            at = reader.lines["password_file"]
            reader.fail(at, "password_file", text % settings.password_file)
        settings.password_file = settings.password_file or path


def total(reader, bounds, value):
    """global_max_connections; the lower of it and max_connections counts."""
    reader.of_all = reader.size((1, 65535), value), reader.at


def dest(reader, bounds, value):
    """log_dest; several add up."""
    if value[:5] != "file ":
        value = bare(value)
    if value == "stdout unbuffered":
        value = "stdout"  # each line is written at once
    if value == "none":
        return ()
    if value == "syslog":
        _must_be_cpython(reader, "another destination; syslog needs CPython")
    elif value[:5] != "file ":
        reader.word(("stdout", "stderr", "syslog", "topic", "none", "file PATH"), value)
    elif not value[5:].strip():
        raise ValueError("a file that can be written")
    elif not reader.is_foreign:
        try:
            private(value[5:].strip(), "a").close()
        except OSError as error:
            raise ValueError("a file that can be written (%s)" % error)
    return (reader.settings.log_dest if "log_dest" in reader.lines else ()) + (value,)


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
    if reader.at >> LINE:
        raise ValueError("no include_dir in a file that is included")
    try:
        names = os.listdir(reader.text(bounds, value))
    except OSError as error:
        raise ValueError("a folder that can be read (%s)" % error)
    at = reader.at
    section = reader._section
    for name in sorted([name for name in names if name[-5:] == ".conf"]):
        reader.names.append(value.rstrip("/") + "/" + name)
        reader.at = len(reader.names) - 1 << LINE
        reader._section = reader.sections[0]
        reader.open(reader.names[-1])
    reader.at = at
    reader._section = section


def path(reader, bounds, value):
    """The path of a unix domain socket."""
    _must_be_cpython(reader, "an address; unix domain sockets need CPython")
    return value if "/" in value else "./" + value
