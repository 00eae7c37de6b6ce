# flush.py - a Recorder that syncs finished segments at the next flush, and not when they end: a
# computer may fill a segment in milliseconds, and must not wait for the disk each time. A file of
# its own, since it is loaded only if the heap is large. Allocates, with the heap lock lifted.
import os

from slotmq.constants import ENOENT, NEVER
from slotmq.platform import heap
from slotmq.platform.runtime import MICROPYTHON
from slotmq.recorder import files
from slotmq.recorder.writer import Recorder


class SyncingRecorder(Recorder):
    unsynced = NEVER  # the first segment that may not be synced yet; set when the recorder begins

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
            if error.args[0] != ENOENT:  # else it has been overwritten
                raise
