# flush.py - syncs finished segments at the next flush, and not when they end: a computer may fill
# a segment in milliseconds, and must not wait for the disk each time. Wraps Recorder.flush(); a
# file of its own, since it is loaded only if the heap is large. Owns rec.unsynced, the first
# segment that may not be synced yet. Allocates, with the heap lock lifted.
import os

from slotmq.platform import heap
from slotmq.platform.runtime import MICROPYTHON, const
from slotmq.recorder import files

_ENOENT = const(2)


def stand_before(rec):
    """From now on Recorder.flush() syncs finished segments first."""
    inner = rec.flush
    rec.unsynced = rec.segment

    def flush():
        heap.lift()
        try:
            _sync(rec)
        except OSError:
            rec.failed()
            return False
        finally:
            heap.drop()
        return inner()

    rec.flush = flush


def _sync(rec):
    while rec.unsynced < rec.segment:
        rec.unsynced += 1
        try:
            with open(files.path(rec, rec.unsynced - 1), "r+b") as file:
                file.flush()
                if not MICROPYTHON:
                    os.fsync(file.fileno())
        except OSError as error:
            if error.args[0] != _ENOENT:  # else it has been overwritten
                raise
