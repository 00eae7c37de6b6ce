# keeping.py - where a broker's journal lies: a board's raw flash, where it has a region for
# it, else a file. Borrowed by the start: allocates.
from slotmq.runtime import const

_RECORD = const(9)  # bytes around a record's fields at most: type, length, CRC


def snapshot_bytes(limits):
    """Bytes that all rows of full tables take at most, as records; see FORMAT.md."""
    session = limits.client_id_bytes + 25 + 2 + 4 * limits.received + 2 * _RECORD
    subscription = limits.topic_bytes + 32 + 11 + _RECORD
    total = limits.sessions * session + limits.subscriptions * subscription
    total += limits.message_bytes + limits.messages * (13 + _RECORD)
    total += limits.deliveries * (13 + _RECORD) + limits.retained * (4 + _RECORD)
    return total + 64


def medium(board, settings, limits):
    """The medium that the settings name. OSError: it cannot be used."""
    snapshot = snapshot_bytes(limits)
    region = _region(board) if not settings.persistence_location else None
    if region:
        from slotmq.journal_flash import FlashMedium

        return FlashMedium(region, snapshot)
    from slotmq.journal_file import FileMedium, promises

    path = settings.persistence_location + settings.persistence_file
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
