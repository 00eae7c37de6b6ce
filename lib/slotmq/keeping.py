# keeping.py - where a broker's journal lies: a board's raw flash, where it has a region for
# it, else a file. Borrowed by the start: allocates.
from slotmq import log
from slotmq.app import borrow
from slotmq.runtime import const

# Settings beside `persistence`
DEFAULTS = {
    "persistence_location": "",  # the folder, with its slash; or a board's flash
    "persistence_file": "slotmq.db",
    "persistence_sync": "always",  # nothing leaves before what it implies is kept; "interval"
    "autosave_interval": 1800,  # seconds until what may wait is kept as well
}
_WARNING = const(2)

_RECORD = const(9)  # bytes around a record's fields at most: type, length, CRC


def snapshot_bytes(limits):
    """Bytes that all rows of full tables take at most, as records; see FORMAT.md."""
    session = limits.client_id_bytes + 25 + 2 + 4 * limits.received + 2 * _RECORD
    subscription = limits.topic_bytes + 32 + 11 + _RECORD
    total = limits.sessions * session + limits.subscriptions * subscription
    total += limits.message_bytes + limits.messages * (13 + _RECORD)
    total += limits.deliveries * (13 + _RECORD) + limits.retained * (4 + _RECORD)
    return total + 64


def keep(app, board):
    """Take over what the journal of an App holds, and keep in it what its broker promises."""
    always = _setting(app, "persistence_sync") == "always"
    medium = _medium(app, board, _setting(app, "persistence_location"))
    borrow(
        "restore", "restore", app.broker, medium, _say, always, _setting(app, "autosave_interval")
    )


def _setting(app, name):
    return getattr(app.settings, name, DEFAULTS[name])


def _say(text):
    log.write(_WARNING, "The journal: %s." % text)


def _medium(app, board, location):
    # What the settings name. OSError: it cannot be used.
    snapshot = snapshot_bytes(app.limits)
    region = None if location else _region(board)
    if region:
        from slotmq.journal_flash import FlashMedium

        return FlashMedium(region, snapshot)
    from slotmq.journal_file import FileMedium, promises

    path = location + _setting(app, "persistence_file")
    kind, is_safe = promises(path)
    if is_safe is False:
        raise OSError("persistence_location: %s cannot keep a promise, %s" % (kind, path))
    return FileMedium(path, snapshot, 8 * snapshot + 1048576)


def _region(board):
    # The part of its flash that a board has for this, as a block device; or None.
    try:
        return __import__("slotmq_boards.%s.region" % board, None, None, ["region"]).region()
    except ImportError:
        return None
