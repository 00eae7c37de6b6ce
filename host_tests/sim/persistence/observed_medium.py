# observed_medium.py - the medium that the journal writes to. It passes every call on, tells the
# Storage when a commit begins and when it is done, and counts which records a power cut hit.
from slotmq.platform import heap
from slotmq_tools.sim.flash import PowerCut

# Types of records, 1 and up (lib/FORMAT.md)
RECORD_TYPES = ["head", "session", "session gone", "subscription", "subscription gone", "message"]
RECORD_TYPES += ["delivery", "delivery released", "delivery gone", "received", "retained"]
RECORD_TYPES += ["retained gone", "commit"]
_SWITCH = 0  # no record: the change to another generation
_MAY_BE_TORN = 6  # records of a commit that one unfinished operation may have written


class ObservedMedium:
    def __init__(self, storage, medium):
        self.storage = storage
        self.medium = medium
        self.page = medium.page
        self.capacity = medium.capacity
        self.most = medium.most
        self.set_aside = medium.set_aside
        self.generations = medium.generations
        self.open = medium.open
        self.readinto = medium.readinto
        self.close = medium.close
        self.is_rewriting = False  # does it write a new generation?
        self.commit_begun = False
        self.record_types = []  # of this commit
        self.bytes_to_next_record = 0

    @property
    def end(self):
        return self.medium.end

    @property
    def failed(self):
        return getattr(self.medium, "failed", False)

    @property
    def is_foreign(self):
        return self.medium.is_foreign

    def begin(self, generation):
        heap.lift()
        try:
            self.is_rewriting = True
            self._commit_begins()
            self.medium.begin(generation)
        except OSError:
            self.storage.raise_if_power_off()
            raise
        finally:
            heap.drop()

    def append(self, buf, off, n):
        heap.lift()
        try:
            if not self.commit_begun:
                self._commit_begins()
            if not self.bytes_to_next_record:
                self._note_record(buf, off)
            self.bytes_to_next_record -= n
            self._do(self.medium.append, buf, off, n)
        finally:
            heap.drop()

    def spare(self, n):
        return self._do(self.medium.spare, n)

    def sync(self):
        heap.lift()
        try:
            self._do(self.medium.sync)
            if not self.is_rewriting:
                self._commit_done()
        finally:
            heap.drop()

    def switch(self):
        heap.lift()
        try:
            self.record_types = [_SWITCH]
            self._do(self.medium.switch)
            self.is_rewriting = False
            self._commit_done()
        finally:
            heap.drop()

    def _do(self, call, *args):
        try:
            try:
                return call(*args)
            except OSError:
                self.storage.raise_if_power_off()
                raise
        except PowerCut:
            self._count_cut_records()
            raise

    def _commit_begins(self):
        self.commit_begun = True
        self.record_types = []
        self.bytes_to_next_record = 0
        self.storage.commit_begins(self.is_rewriting)

    def _commit_done(self):
        self.commit_begun = False
        self.storage.commit_done()

    def _note_record(self, buf, off):
        self.record_types.append(buf[off])
        size = shift = 0
        at = off + 1
        while True:
            size |= (buf[at] & 127) << shift
            shift += 7
            at += 1
            if buf[at - 1] < 128:
                break
        self.bytes_to_next_record = at - off + size + 4

    def _count_cut_records(self):
        """The power was cut while these records were written."""
        events = self.storage.world.events
        for number in self.record_types[-_MAY_BE_TORN:]:
            events["cut " + (RECORD_TYPES[number - 1] if number else "switch")] += 1
