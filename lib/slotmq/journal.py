# journal.py - what was promised, written down before it leaves: rows of the tables that
# have changed, as records in a medium (journal_flash.py, journal_file.py).
#
# Tables mark what changes. commit() looks for marks and writes the present row of each
# slot that has one: a record says what a slot holds, not what was done, so the last one
# counts, and what came and went between two commits is never written. A commit ends with
# COMMIT and sync(); what follows the last COMMIT does not count. Compaction is a commit
# of all rows into a new generation of the medium. That a delivery has ended waits for
# the next commit: to send it again breaks no promise, and it would cost one for each.
# Does not allocate after construction, if the medium does not.
from slotmq import heap
from slotmq.journal_records import put_u32
from slotmq.journal_rows import Rows
from slotmq.runtime import const

_FIELDS = const(8)
_RETRY = const(10)  # tenths of a second between two attempts to write
_HEAD = const(1)
_COMMIT = const(13)
VERSION = const(1)


class Journal(Rows):
    def __init__(self, broker, medium, generation, always=True, interval_s=1800):
        Rows.__init__(self, broker, medium, generation)
        self.commits = self.failures = 0
        self.snapshot = 0  # bytes of the last compaction
        self.whole = False  # is the current generation all that was promised until now?
        self.retry_at = 0  # now and due: tenths of a second
        self.always = always  # does nothing leave before what it implies is kept?
        self.interval = interval_s * 10
        self.due = broker.now + self.interval

    def commit(self):
        """Write what has changed; True: packets may leave."""
        now = self.broker.now
        if not self._is_due(now):
            return True
        if self.broker.held or not self.whole and now < self.retry_at:
            return False
        self.due = now + self.interval
        if self.whole and self.medium.end <= self._most():
            try:
                self._write()
                return True
            except OSError:
                self.whole = False  # a part of it may be there: all of it goes elsewhere
        return self._compacted(now)

    def _compacted(self, now):
        heap.lift()
        try:
            self.compact()
        except OSError:
            self.failures += 1
            self.retry_at = now + _RETRY
        heap.drop()
        return self.whole

    def _is_due(self, now):
        # That a delivery has ended can wait; all else only if everything may.
        broker = self.broker
        ended = broker.deliveries.count[4]
        changed = broker.sessions.changed or broker.subscriptions.changed or ended & 1
        changed = changed or broker.retained.changed or broker.sessions.ids_high[1]
        if changed and self.always or not self.whole:
            return True
        return (changed or ended) and now >= self.due

    def close(self):
        """Write what has waited; nothing will follow."""
        self.due = self.retry_at = 0
        self.commit()
        self.medium.close()

    def _most(self):
        # A compaction pays when the journal is several times what it would write.
        return min(self.medium.capacity, 65536 + 4 * self.snapshot)

    def compact(self):
        """Write all there is into a new generation, and switch to it. OSError: no room."""
        self.whole = False
        self.generation += 1
        put_u32(self.seed, 0, self.generation)
        self.medium.begin(self.generation)
        self.forget()
        self.records = 0
        buf = self.buf
        buf[_FIELDS] = VERSION
        self.record(_HEAD, put_u32(buf, _FIELDS + 1, self.generation))
        self._write()
        self.medium.switch()
        self.snapshot = self.medium.end
        self.whole = True

    def _write(self):
        self.write()
        if self.records:
            self.record(_COMMIT, put_u32(self.buf, _FIELDS, self.broker.now))
            self.medium.sync()
            self.records = 0
            self.commits += 1
