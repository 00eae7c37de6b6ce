# reload.py - reads the configuration again while the broker runs. What only a restart can change
# stays, and the log says so. Loaded for a reload; owns nothing; allocates.
from slotmq.config.mosquitto_conf import FIELDS, Reader
from slotmq.config.policies import rows
from slotmq.config.settings import ConfError
from slotmq.constants import ANNOUNCED, ERROR, NOTICE, WARNING
from slotmq.platform import log
from slotmq.platform.ondemand import borrow

_FIXED = "bind_interface password_file acl_file protocol"  # settings of a listener


def reload_app(program):
    """Read an App's configuration again, and log what has changed."""
    try:
        done, refused, warnings = reload(
            program.conf, program.limits, program.settings, program.is_public
        )
        borrow("app.log_dests", "start", program.broker, program.verbose)
    except (ConfError, OSError, MemoryError) as error:
        for line in _why(error).split("\n"):
            log.write(ERROR, "Not reloaded: %s" % line)
        return
    program.broker.apply_settings()
    # Each file is taken whole or not at all. Without memory for one the other is still read.
    if program.settings.password_file:
        try:
            borrow("access.users_file", "reload", program.broker, log.write)
        except MemoryError as error:
            log.write(WARNING, "The users stay as they are: %s." % _why(error))
    if program.broker.acl:
        try:
            program.broker.acl.reload()
        except MemoryError as error:
            log.write(ERROR, "The old rules stay: %s" % _why(error))
    for line in warnings:
        log.write(WARNING, line)
    log.write(NOTICE, "Reloaded %s; changed: %s." % (program.conf, ", ".join(done) or "nothing"))
    if refused:
        log.write(WARNING, "Only a restart changes: %s." % ", ".join(refused))
    most = program.broker.sessions.ids_high[ANNOUNCED]
    if most > (program.settings.max_inflight_messages or most):
        text = "max_inflight_messages: until a restart each client may send %d at a time."
        log.write(WARNING, text % most)
    if "acl_file" in refused and not program.broker.acl:
        text = "acl_file: until that restart each client may read and write all topics."
        log.write(WARNING, text)
    if "password_file" in refused and not program.broker.users:
        log.write(WARNING, "password_file: until that restart no password is checked.")


def _why(error):
    return str(error) or "too little memory"


def reload(path, limits, settings, is_public=False):
    """Change in `settings` what can change while running; if ConfError is raised, nothing.

    -> the keys that changed, the keys that only a restart can change, and warnings."""
    reader = Reader(path, limits)
    reader.is_public = is_public
    reader.open(path)
    new = reader.finish(False)
    changed = []
    sizes = reader.sizes
    refused = ["limit"] if any(sizes[name] != getattr(limits, name) for name in sizes) else []
    if _fixed(new.listeners) != _fixed(settings.listeners):
        refused.append("listener")
    elif new.listeners != settings.listeners:
        changed.append("listener")
        for old, each in zip(settings.listeners, new.listeners):
            old[3].clear()  # the quota of the open listener refers to it
            old[3].update(each[3])
    if [each.lines for each in new.connections] != [each.lines for each in settings.connections]:
        refused.append("connection")
    for row in rows(FIELDS):
        key = row[0]
        value = getattr(new, key, None)
        if value != getattr(settings, key, None):
            if row[1] == "live":
                setattr(settings, key, value)
                changed.append(key)
            else:
                refused.append(key)
    return changed, refused, reader.warnings


def _fixed(listeners):
    # What only a restart can change of listeners.
    return [
        each[:3] + tuple([each[3].get(key) for key in _FIXED.split()]) + (not each[3].get("tls"),)
        for each in listeners
    ]
