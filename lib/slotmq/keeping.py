# keeping.py - how a program with `persistence true` starts: what the journal holds is taken
# over, and what its broker promises from then on is kept. Borrowed by the start: allocates.
# Of two brokers of a computer one has the journal: the App holds its lock until it ends.
import gc

from slotmq import log, ondemand
from slotmq.app import borrow
from slotmq.runtime import MICROPYTHON, const
from slotmq.settings import ConfError

# Settings beside `persistence`
DEFAULTS = {
    "persistence_location": "",  # the folder; or a board's flash
    "persistence_file": "slotmq.db",
    "persistence_sync": "always",  # nothing leaves before what it implies is kept; "interval"
    "autosave_interval": 1800,  # seconds until what may wait is kept as well
}
_WARNING = const(2)
_INFO = const(8)
_LONG = const(100)  # tenths of a second: nothing has been called since


def keep(app, board, wrong=str):
    """Take over what the journal of an App holds, and keep in it what its broker promises.

    wrong(expected) names the line of the configuration that says where that is."""
    location = _setting(app, "persistence_location")
    if location and location[-1] != "/":
        location += "/"
    try:
        _keep(app, board, location, wrong)
    except OSError as error:
        if not isinstance(error.args[0], int):
            raise  # it says what it is
        place = location + _setting(app, "persistence_file")
        raise ConfError(wrong("a place for the journal, not %s (%s)" % (place, _errno(error))))


def _errno(error):
    text = str(error)
    return "[Errno %s]" % text if text.isdigit() else text  # MicroPython names a few


def _keep(app, board, location, wrong):
    broker = app.broker
    name = _setting(app, "persistence_file")
    always = _setting(app, "persistence_sync") == "always"
    # One after the other: a small heap has no room for all of this at once.
    ondemand.tick(_LONG)
    medium = borrow("places", "medium", app.limits, board, location, name, _say)
    path = getattr(medium, "path", None)
    if path:
        app.lock = borrow("places", "lock", path)
        if app.lock is False:
            raise OSError(wrong("a journal that no other broker keeps, not %s" % path))
    # A start collects often, so that what stays lies close; of this nothing stays.
    often = MICROPYTHON and gc.threshold()
    MICROPYTHON and gc.threshold(-1)
    newest = borrow("restore", "read_back", broker, medium, _say)
    gc.collect()
    MICROPYTHON and gc.threshold(often)
    if newest:
        _tell(broker)
    ondemand.tick(_LONG)
    control = ondemand.take("journal_control", broker.now)
    control.begin(broker, medium, newest, _say, always, _setting(app, "autosave_interval"))


def _setting(app, name):
    return getattr(app.settings, name, DEFAULTS[name])


def _tell(broker):
    counts = broker.sessions.names.count(), broker.messages.count[0]
    counts += broker.deliveries.count[0], broker.retained.names.count()
    text = "The journal: %d sessions, %d messages (%d deliveries, %d retained) are back."
    log.write(_INFO, text % counts)


def _say(text):
    log.write(_WARNING, "The journal: %s." % text)
