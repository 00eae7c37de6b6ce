# flush.py - a Recorder that syncs finished segments at the next flush, and not when they end: a
# computer may fill a segment in milliseconds, and must not wait for the disk each time. A file of
# its own, since it is loaded only if the heap is large. Allocates, with the heap lock lifted.
import os

from slotmq.platform import heap
from slotmq.platform.runtime import MICROPYTHON, const
from slotmq.recorder import files
from slotmq.recorder.writer import Recorder

_ENOENT = const(2)
_NEVER = const(0x3FFFFFFF)


class SyncingRecorder(Recorder):
    unsynced = _NEVER  # the first segment that may not be synced yet; set when the recorder begins

    def flush(self):
        """Sync finished segments, then flush the current one; False: that failed."""
        heap.lift()
        try:
            _sync(self)
        except OSError as error:
            self.failed(error)
            return False
        finally:
            heap.drop()
        return Recorder.flush(self)


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
