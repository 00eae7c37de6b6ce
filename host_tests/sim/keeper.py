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

from . import survival
from .model import Broken
from .snapshot import NOTHING, Snapshot

_MOST = 400  # states that are remembered where bits rot
PATH = "/j/slotmq.db"
KINDS = ["head", "session", "session gone", "subscription", "subscription gone", "message"]
KINDS += ["delivery", "delivery released", "delivery gone", "received", "retained"]
KINDS += ["retained gone", "commit"]


class Keeper:
    def __init__(self, world):
        plan = world.plan
        self.world = world
        self.kind = plan.medium
        self.numbers = Numbers(world.seed, 3)
        self.always = plan.always
        self.takes_all = not plan.always or plan.rots or plan.fills  # a snapshot of each commit?
        self.snapshot = snapshot_bytes(plan.limits)
        if self.kind == "flash":
            data = plan.block_bytes - 256
            blocks = 2 * -(-self.snapshot // data) + plan.spare_blocks
            self.device = Flash(blocks, plan.block_bytes, 256, world.seed)
        elif plan.real:
            from .littlefs import Littlefs

            room = 2 * self.snapshot + plan.spare_bytes
            # Each start may set a damaged one aside, which stays.
            self.device = Littlefs(room * (6 if plan.rots else 1), world.seed)
        elif self.kind == "fat":
            self.device = Fat(self.numbers)
        else:
            self.device = Disk(self.kind == "littlefs", self.numbers)
        self.is_armed = self.booting = False
        self.seq = self.durable = 0  # changes of the model: written now, kept
        self.ms = self.kept_ms = 0
        self.candidates = [NOTHING]
        self.commits = 0
        self.last = NOTHING  # the candidate that was kept last
        self.said = []

    # A start

    def boot(self, broker):
        """The broker takes over what is there; PowerCut, if it goes again meanwhile."""
        self.booting = True
        self.medium = Watched(self, self._medium())
        try:
            restore(broker, self.medium, self.said.append, self.always, self.world.plan.autosave)
        except OSError:
            self.look_at_power()
            raise

    def _medium(self):
        if self.kind == "flash":
            return FlashMedium(self.device, self.snapshot)
        real = self.world.plan.real
        start = ondemand.take("journal.medium_file_start", 0)  # as the medium does
        start.os = medium_file.os = os if real else self.device
        start.open = open if real else self.device.open_file
        start.MICROPYTHON = medium_file.MICROPYTHON = self.kind != "host"
        return FileMedium(PATH, self.snapshot, 2 * self.snapshot + self.world.plan.spare_bytes)

    # The power

    def arm(self, operations):
        """The power will go in the midst of the n-th operation from now on; 0: after them all."""
        if not self.is_armed and not self.takes_all:
            self.candidates = [Snapshot(self.world.model, self.kept_ms)]
        self.is_armed = True
        if operations:
            self.device.cut_at(operations)

    def cut_at(self, operations):
        """It will, while it is only coming back."""
        self.is_armed = True
        self.device.cut_at(operations)

    def calm(self):
        """It stays from now on. Has it gone already, the next one to write will see that."""
        if self.device.is_on:
            self.is_armed = False
            self.device.cut_at(0)

    def fill(self, room):
        """Others fill the file system: so many bytes are left; -1: they are gone again."""
        if self.kind != "flash":
            self.device.fill(room)
        self.world.seen["filled"] += room >= 0

    def power_off(self):
        """It is gone; what was to be there then is one of the candidates."""
        if not self.is_armed and not self.takes_all:
            self.candidates = [Snapshot(self.world.model, self.kept_ms)]
        self.is_armed = False
        self.device.cut_at(0)

    def power_on(self):
        if self.world.plan.real:
            self.medium.close()
        if self.kind == "flash":
            self.device.power_on()
        else:
            self.device = self.device.after_the_cut()

    def rot(self):
        """Bits turn over while nobody looks: any state that was ever kept may be found, or
        none. What was promised may be lost, but nothing is made up."""
        self.device.rot(self.numbers.choice((1, 4, 40)))
        self.world.weak = True
        self.world.seen["rot"] += 1

    # What the medium tells

    def begins(self, is_making):
        """The journal begins to write: what there is now may be kept from now on.

        is_making: all of it, beside what it had written."""
        world = self.world
        if self.booting:
            found = survival.adopt(world.model, self.candidates)
            self.booting = False
            self._judge(found)
        else:
            world.settle_now()
        self.seq = world.model.changes
        self.ms = world.clock.ms
        if self.is_armed or self.takes_all:
            doubted = world.model.learn_all()
            full = Snapshot(world.model, self.ms)
            if is_making and world.plan.rots and self.kind != "flash":
                self.candidates += full.parts()
            self.candidates.append(full)
            world.model.trust(doubted)

    def _judge(self, found):
        """Was it said aloud that something is lost?"""
        if not self.world.plan.rots:
            if [text for text in self.said if "damaged" in text or "rotted" in text]:
                raise Broken(f"without a reason: {self.said}")
            return
        if self.candidates.index(found) >= self.candidates.index(self.last):
            return
        self.world.seen["rot lost all" if found is NOTHING else "rot lost some"] += 1
        if not self.said:
            raise Broken("something is lost, and nobody says so")

    def kept(self):
        """What it wrote is there, whatever happens."""
        self.commits += 1
        self.durable = self.seq
        self.last = self.candidates[-1]
        self.kept_ms = self.ms
        if not self.world.plan.rots:
            self.candidates = self.candidates[-1:]
        elif len(self.candidates) > _MOST:
            self.candidates.pop(1)  # the oldest one after NOTHING
        for session in self.world.model.sessions:
            session.ended = []
        self.world.trace.note(107, 0, self.ms, b"%d" % self.medium.end)

    def look_at_power(self):
        """Something has failed: was it that?"""
        if not self.device.is_on:
            raise PowerCut("seen by its error")

    def was_cut(self, kinds):
        """The power went while these records were written."""
        for kind in kinds:
            name = "cut " + (KINDS[kind - 1] if kind else "switch")
            self.world.seen[name] += 1


class Watched:
    """A medium that tells its keeper what is done to it."""

    def __init__(self, keeper, medium):
        self.keeper = keeper
        self.medium = medium
        self.page = medium.page
        self.capacity = medium.capacity
        self.most = medium.most
        self.set_aside = medium.set_aside
        self.generations = medium.generations
        self.open = medium.open
        self.readinto = medium.readinto
        self.close = medium.close
        self.is_making = False  # a generation beside the current one
        self.has_begun = False
        self.kinds = []  # types of the records of this commit
        self.ahead = 0  # bytes until the next record begins

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
            self.is_making = True
            self._begins()
            self.medium.begin(generation)
        except OSError:
            self.keeper.look_at_power()
            raise
        finally:
            heap.drop()

    def append(self, buf, off, n):
        heap.lift()
        try:
            if not self.has_begun:
                self._begins()
            if not self.ahead:
                self._note(buf, off)
            self.ahead -= n
            self._do(self.medium.append, buf, off, n)
        finally:
            heap.drop()

    def spare(self, n):
        return self._do(self.medium.spare, n)

    def sync(self):
        heap.lift()
        try:
            self._do(self.medium.sync)
            if not self.is_making:
                self._is_kept()
        finally:
            heap.drop()

    def switch(self):
        heap.lift()
        try:
            self.kinds = [0]
            self._do(self.medium.switch)
            self.is_making = False
            self._is_kept()
        finally:
            heap.drop()

    def _do(self, call, *args):
        try:
            try:
                return call(*args)
            except OSError:
                self.keeper.look_at_power()
                raise
        except PowerCut:
            self.keeper.was_cut(self.kinds[-6:])
            raise

    def _begins(self):
        self.has_begun = True
        self.kinds = []
        self.ahead = 0
        self.keeper.begins(self.is_making)

    def _is_kept(self):
        self.has_begun = False
        self.keeper.kept()

    def _note(self, buf, off):
        self.kinds.append(buf[off])
        size = shift = 0
        at = off + 1
        while True:
            size |= (buf[at] & 127) << shift
            shift += 7
            at += 1
            if buf[at - 1] < 128:
                break
        self.ahead = at - off + size + 4
