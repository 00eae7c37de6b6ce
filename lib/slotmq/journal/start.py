# start.py - the start of a program with `persistence true`. Its steps, see _start(): choose the
# medium (journal/location.py), read back the rows (journal/restore.py), let the recorder begin,
# end the connections of before (settle()), begin the first generation (journal/compaction.py). On
# a computer only one broker has the journal: its App holds a lock. Loaded for the start only; owns
# nothing; allocates.
import gc
import sys

from slotmq.config.settings import ConfError
from slotmq.constants import ENOENT, INFO, IN_USE, NONE, QUEUED, WARNING
from slotmq.delivery import lifecycle
from slotmq.fast import finish, unref
from slotmq.platform import log, ondemand
from slotmq.platform.ondemand import borrow

# Settings beside `persistence`
DEFAULTS = {
    "persistence_location": "",  # the folder; or a board's flash
    "persistence_file": "slotmq.db",
    "persistence_sync": "always",  # no packet leaves before its promises are committed; "interval"
    "autosave_interval": 1800,  # seconds until what may wait is written as well
}
_COLLECT_AFTER = 4096  # bytes allocated until the next collection
_LONG = 100  # tenths of a second: at this time ondemand.tick() unloads every module


def start(app):
    """Restore what an App's journal contains, and begin to write to it."""
    try:
        _start(app, app.broker)
    except OSError as error:
        if not isinstance(error.args[0], int):
            raise  # its text says what is wrong
        location = _location(app)
        what = "a folder that is there, not %s" % location
        if error.args[0] != ENOENT:
            place = location + _setting(app, "persistence_file")
            what = "a place for the journal, not %s (%s)" % (place, _errno(error))
        raise ConfError(_wrong(app, what))
    except MemoryError:
        raise MemoryError("no heap is left for the journal; lower limit message_bytes")
    ondemand.IS_SMALL and _forget_what_made_it(app.broker)


def _forget_what_made_it(broker):
    # No second journal or medium is made: unload what made these.
    ondemand.forget_all()
    type(broker.journal).__init__ = None
    for name in list(sys.modules):
        if name.startswith("slotmq_boards"):
            del sys.modules[name]
        elif name in ("slotmq.journal.medium_file", "slotmq.journal.medium_flash"):
            sys.modules[name].forget()


def _wrong(app, expected):
    # The text of an error in the line of persistence_location, or else of `persistence`.
    key = "persistence_location"
    key = key if key in app.lines else "persistence"
    return "%s: %s: expected %s" % (app.lines[key], key, expected)


def _errno(error):
    text = str(error).split(": ")[0]  # of CPython, without the name of a file beside it
    return "[Errno %s]" % text if text.isdigit() else text  # MicroPython names a few


def _start(app, broker):
    # Each step is loaded after the one before is unloaded: a small heap has no space for two.
    ondemand.tick(_LONG)
    medium = _medium(app)
    if ondemand.IS_SMALL:
        gc.threshold(_COLLECT_AFTER)  # otherwise lasting objects would lie among garbage
    newest, restorer = borrow("journal.restore", "read_back", broker, medium, _warn)
    if ondemand.IS_SMALL:
        gc.threshold(-1)
        gc.collect()
    # The recorder starts here: a start that is refused before uses no segment of the ring, and
    # the wills that are published next are recorded.
    if "record" in app.lines:
        borrow("recorder.start", "start", app)
    if restorer:
        settle(broker, restorer)
        restorer = None  # its code need not stay beside that of begin()
    if newest or medium.is_foreign:
        _log_counts(broker)
    ondemand.tick(_LONG)
    always = _setting(app, "persistence_sync") == "always"
    control = ondemand.take("journal.compaction", broker.now)
    control.begin(broker, medium, newest, _warn, always, _setting(app, "autosave_interval"))


def _medium(app):
    name = _setting(app, "persistence_file")
    try:
        medium = borrow(
            "journal.location", "medium", app.limits, app.board, _location(app), name, _warn
        )
    except ValueError as error:
        raise ConfError(_wrong(app, error))
    path = getattr(medium, "path", None)
    if path:
        app.lock = borrow("journal.location", "lock", path)
        if app.lock is False:
            raise OSError(_wrong(app, "a journal that no other broker keeps, not %s" % path))
    return medium


def settle(broker, restorer):
    """Move restored times to the new clock, and end the connections that the power cut ended:
    their wills are published or begin to wait."""
    five = broker.five
    ondemand.take("tables.epoch", broker.now).move_rows(broker, restorer.now)
    if five:
        five.to_sweep = True
    gone = restorer.expired | restorer.odd
    if gone:
        _end(broker, gone, restorer.odd)
    for session, msg in restorer.due:
        _publish(broker, session, msg, msg in gone)
    for session in sorted(restorer.connected):
        was_connected = restorer.connected[session]
        if not broker.sessions.used(session):
            continue
        if broker.sessions.will[session] in restorer.odd:
            lifecycle.drop_will(broker, session)
        if was_connected:
            broker.sessions.left[session] = 0
        _disconnect(broker, session, was_connected)
        if five and broker.sessions.used(session):
            five.note_due(broker, session)


def _end(broker, gone, odd):
    # Remove these messages. Wills stay: the expiry of one counts from its publication. What has
    # expired is sent again if it was sent, but nothing that is odd.
    retained = broker.retained
    for at in range(retained.slots):
        if retained.msg[at] in gone:
            unref(broker.tables, retained.remove(at))
    deliveries = broker.deliveries
    for at in range(deliveries.slots):
        if deliveries.state[at] == QUEUED and deliveries.msg[at] in gone:
            if deliveries.msg[at] in odd:
                recheck = ondemand.take("access.recheck_sessions", broker.now)
                recheck.drop(broker, deliveries.session[at], at)
            elif not deliveries.may_be_known(at):
                finish(broker.tables, at)
    messages = broker.sessions.id_msg
    for at in range(len(messages) if messages is not None else 0):
        if messages[at] in gone:
            unref(broker.tables, messages[at])
            messages[at] = NONE


def _publish(broker, session, msg, is_gone):
    # A message that waited for PUBREL, after a change to qos2_delivery receive: publish it now.
    five = broker.five
    if five:
        five.publisher = session
    if not is_gone:
        lifecycle.publish_stored(broker, msg, session)
    unref(broker.tables, msg)
    if five:
        five.publisher = NONE


def _disconnect(broker, session, was_connected):
    # The session's connection has ended: end it, or publish its will. Without version 5 a will has
    # no delay.
    five = broker.five
    if broker.sessions.clean[session]:
        lifecycle.publish_will(broker, session)
        lifecycle.end_session(broker, session)
    elif not five or was_connected and not five.keeps_will(broker, session):
        lifecycle.publish_will(broker, session)


def _location(app):
    location = _setting(app, "persistence_location")
    return location + "/" if location and location[-1] != "/" else location


def _setting(app, name):
    return getattr(app.settings, name, DEFAULTS[name])


def _log_counts(broker):
    counts = broker.sessions.names.count(), broker.messages.count[IN_USE]
    counts += broker.deliveries.count[IN_USE], broker.retained.names.count()
    text = "The journal: %d sessions, %d messages (%d deliveries, %d retained) are back."
    if not counts[0] + counts[1]:
        text, counts = "The journal: nothing is back, it begins anew.", ()
    log.write(INFO, text % counts)


def _warn(text):
    log.write(WARNING, "The journal: %s." % text)
