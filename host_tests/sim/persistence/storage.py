# keeper.py - where a world's broker keeps its journal, and what the power does to it.
#
# Owns the medium: a flash chip or a disk in memory, and the Watched medium over it, which
# tells when the journal begins to write and when what it wrote is kept. Candidates are the
# states of which the next start must find one: the last that was kept, and those that the
# journal may have been about to keep. They are only taken while somebody may need them.
import os

from slotmq.journal import medium_file
from slotmq.journal.location import snapshot_bytes
from slotmq.journal.medium_file import FileMedium
from slotmq.journal.medium_flash import FlashMedium
from slotmq.journal.restore import restore
from slotmq.platform import heap, ondemand
from slotmq_tools.sim.disk import Disk
from slotmq_tools.sim.fat import Fat
from slotmq_tools.sim.flash import Flash, PowerCut
from slotmq_tools.sim.numbers import Numbers

from ..model.model import PromiseBroken
from . import recovery
from .snapshot import EMPTY, Snapshot

_MOST = 400  # states that are remembered where bits rot
PATH = "/j/slotmq.db"
RECORD_TYPES = ["head", "session", "session gone", "subscription", "subscription gone", "message"]
RECORD_TYPES += ["delivery", "delivery released", "delivery gone", "received", "retained"]
RECORD_TYPES += ["retained gone", "commit"]


class Storage:
    def __init__(self, world):
        plan = world.plan
        self.world = world
        self.kind = plan.medium
        self.numbers = Numbers(world.seed, 3)
        self.always = plan.always
        self.snapshots_all = (
            not plan.always or plan.rots or plan.fills
        )  # a snapshot of each commit?
        self.snapshot = snapshot_bytes(plan.limits)
        if self.kind == "flash":
            data = plan.block_bytes - 256
            blocks = 2 * -(-self.snapshot // data) + plan.spare_blocks
            self.device = Flash(blocks, plan.block_bytes, 256, world.seed)
        elif plan.real_littlefs:
            from .littlefs import Littlefs

            room = 2 * self.snapshot + plan.spare_bytes
            # Each start may set a damaged one aside, which stays.
            self.device = Littlefs(room * (6 if plan.rots else 1), world.seed)
        elif self.kind == "fat":
            self.device = Fat(self.numbers)
        else:
            self.device = Disk(self.kind == "littlefs", self.numbers)
        self.cut_armed = self.booting = False
        self.writing_change = self.committed_change = 0  # changes of the model: written now, kept
        self.writing_ms = self.committed_ms = 0
        self.candidates = [EMPTY]
        self.commits = 0
        self.last = EMPTY  # the candidate that was kept last
        self.log_lines = []

    # A start

    def boot(self, broker):
        """The broker takes over what is there; PowerCut, if it goes again meanwhile."""
        self.booting = True
        self.medium = ObservedMedium(self, self._medium())
        try:
            restore(
                broker, self.medium, self.log_lines.append, self.always, self.world.plan.autosave
            )
        except OSError:
            self.raise_if_power_off()
            raise

    def _medium(self):
        if self.kind == "flash":
            return FlashMedium(self.device, self.snapshot)
        real_littlefs = self.world.plan.real_littlefs
        start = ondemand.take("journal.medium_file_start", 0)  # as the medium does
        start.os = medium_file.os = os if real_littlefs else self.device
        start.open = open if real_littlefs else self.device.open_file
        start.MICROPYTHON = medium_file.MICROPYTHON = self.kind != "host"
        return FileMedium(PATH, self.snapshot, 2 * self.snapshot + self.world.plan.spare_bytes)

    # The power

    def arm_cut(self, operations):
        """The power will go in the midst of the n-th operation from now on; 0: after them all."""
        if not self.cut_armed and not self.snapshots_all:
            self.candidates = [Snapshot(self.world.model, self.committed_ms)]
        self.cut_armed = True
        if operations:
            self.device.cut_at(operations)

    def cut_at(self, operations):
        """It will, while it is only coming back."""
        self.cut_armed = True
        self.device.cut_at(operations)

    def calm(self):
        """It stays from now on. Has it gone already, the next one to write will see that."""
        if self.device.is_on:
            self.cut_armed = False
            self.device.cut_at(0)

    def fill(self, room):
        """Others fill the file system: so many bytes are left; -1: they are gone again."""
        if self.kind != "flash":
            self.device.fill(room)
        self.world.events["filled"] += room >= 0

    def power_off(self):
        """It is gone; what was to be there then is one of the candidates."""
        if not self.cut_armed and not self.snapshots_all:
            self.candidates = [Snapshot(self.world.model, self.committed_ms)]
        self.cut_armed = False
        self.device.cut_at(0)

    def power_on(self):
        if self.world.plan.real_littlefs:
            self.medium.close()
        if self.kind == "flash":
            self.device.power_on()
        else:
            self.device = self.device.after_the_cut()

    def rot(self):
        """Bits turn over while nobody looks: any state that was ever kept may be found, or
        none. What was promised may be lost, but nothing is made up."""
        self.device.rot(self.numbers.choice((1, 4, 40)))
        self.world.loss_allowed = True
        self.world.events["rot"] += 1

    # What the medium tells

    def commit_begins(self, is_rewriting):
        """The journal begins to write: what there is now may be kept from now on.

        is_making: all of it, beside what it had written."""
        world = self.world
        if self.booting:
            found = recovery.find_state(world.model, self.candidates)
            self.booting = False
            self._judge(found)
        else:
            world.split_window()
        self.writing_change = world.model.journal_changes
        self.writing_ms = world.clock.ms
        if self.cut_armed or self.snapshots_all:
            made_optional = world.model.observe_during_turn()
            full = Snapshot(world.model, self.writing_ms)
            if is_rewriting and world.plan.rots and self.kind != "flash":
                self.candidates += full.damaged_parts()
            self.candidates.append(full)
            world.model.restore_required(made_optional)

    def _judge(self, found):
        """Was it said aloud that something is lost?"""
        if not self.world.plan.rots:
            if [text for text in self.log_lines if "damaged" in text or "rotted" in text]:
                raise PromiseBroken(f"without a reason: {self.log_lines}")
            return
        if self.candidates.index(found) >= self.candidates.index(self.last):
            return
        self.world.events["rot lost all" if found is EMPTY else "rot lost some"] += 1
        if not self.log_lines:
            raise PromiseBroken("something is lost, and nobody says so")

    def commit_done(self):
        """What it wrote is there, whatever happens."""
        self.commits += 1
        self.committed_change = self.writing_change
        self.last = self.candidates[-1]
        self.committed_ms = self.writing_ms
        if not self.world.plan.rots:
            self.candidates = self.candidates[-1:]
        elif len(self.candidates) > _MOST:
            self.candidates.pop(1)  # the oldest one after EMPTY
        for session in self.world.model.sessions:
            session.finished = []
        self.world.trace.note(107, 0, self.writing_ms, b"%d" % self.medium.end)

    def raise_if_power_off(self):
        """Something has failed: was it that?"""
        if not self.device.is_on:
            raise PowerCut("seen by its error")

    def count_cut_records(self, record_types):
        """The power went while these records were written."""
        for kind in record_types:
            name = "cut " + (RECORD_TYPES[kind - 1] if kind else "switch")
            self.world.events[name] += 1


class ObservedMedium:
    """A medium that tells its keeper what is done to it."""

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
        self.is_rewriting = False  # a generation beside the current one
        self.commit_begun = False
        self.record_types = []  # types of the records of this commit
        self.bytes_to_next_record = 0  # bytes until the next record begins

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
            self.record_types = [0]
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
            self.storage.count_cut_records(self.record_types[-6:])
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
