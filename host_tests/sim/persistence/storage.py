# storage.py - the simulated device that has the journal: a flash chip or a disk in memory. It cuts
# the power, flips bits and fills the file system.
#
# `candidates` are snapshots of the model, of which the next start must find one: the last that was
# committed, and those that the journal may have been about to commit. Snapshots are taken only
# if a restart may need them: always (snapshots_all), or since a power cut was armed.
import os

from slotmq.journal import medium_file
from slotmq.journal.medium_file import FileMedium
from slotmq.journal.medium_flash import FlashMedium
from slotmq.journal.restore import restore
from slotmq.platform import ondemand
from slotmq_tools.sim.disk import Disk, Fat
from slotmq_tools.sim.flash import Flash, PowerCut
from slotmq_tools.sim.numbers import Numbers

from ..model.model import PromiseBroken
from . import recovery
from .observed_medium import ObservedMedium
from .snapshot import EMPTY, Snapshot

_MOST = 400  # candidates, if bits rot
PATH = "/j/slotmq.db"


def _longest_rows(limits):
    # The bytes of a generation when all tables are full, by FORMAT.md: a record has at most 9
    # bytes beside its body, and 64 are HEAD and the COMMITs.
    session = 9 + 25 + limits.client_id_bytes
    ids = 9 + 2 + 4 * limits.received
    subscription = 9 + 13 + 32 + limits.topic_bytes
    message = delivery = 9 + 13
    retained = 9 + 4
    return (
        limits.sessions * (session + ids)
        + limits.subscriptions * subscription
        + limits.messages * message
        + limits.message_bytes
        + limits.deliveries * delivery
        + limits.retained * retained
        + 64
    )


class Storage:
    def __init__(self, world):
        plan = world.plan
        self.world = world
        self.kind = plan.medium
        self.numbers = Numbers(world.seed, 3)
        self.always = plan.always
        self.snapshots_all = not plan.always or plan.rots or plan.fills
        self.generation_bytes = _longest_rows(plan.limits)
        if self.kind == "flash":
            data = plan.block_bytes - 256
            blocks = 2 * -(-self.generation_bytes // data) + plan.spare_blocks
            self.device = Flash(blocks, plan.block_bytes, 256, world.seed)
        elif plan.real_littlefs:
            from .littlefs import Littlefs

            room = 2 * self.generation_bytes + plan.spare_bytes
            # Each start may set a damaged file aside, which stays.
            self.device = Littlefs(room * (6 if plan.rots else 1), world.seed)
        elif self.kind == "fat":
            self.device = Fat(self.numbers)
        else:
            self.device = Disk(self.kind == "littlefs", self.numbers)
        self.cut_armed = self.booting = False
        self.writing_change = self.committed_change = 0  # values of Model.journal_changes
        self.writing_ms = self.committed_ms = 0
        self.candidates = [EMPTY]
        self.last = EMPTY  # the candidate that was committed last
        self.log_lines = []  # of the start

    # A start

    def boot(self, broker):
        """The broker reads its journal. PowerCut is raised if the power is cut meanwhile."""
        self.booting = True
        self.medium = ObservedMedium(self, self._medium())
        try:
            autosave = self.world.plan.autosave
            restore(broker, self.medium, self.log_lines.append, self.always, autosave)
        except OSError:
            self.raise_if_power_off()
            raise

    def _medium(self):
        if self.kind == "flash":
            return FlashMedium(self.device, self.generation_bytes)
        real = self.world.plan.real_littlefs
        start = ondemand.take("journal.medium_file_start", 0)  # as the medium does
        start.os = medium_file.os = os if real else self.device
        start.open = open if real else self.device.open_file
        start.MICROPYTHON = medium_file.MICROPYTHON = self.kind != "host"
        most = 2 * self.generation_bytes + self.world.plan.spare_bytes
        return FileMedium(PATH, self.generation_bytes, most)

    # The power

    def arm_cut(self, operations):
        """Cut the power within the n-th operation from now on; 0: after the last one."""
        if not self.cut_armed and not self.snapshots_all:
            self.candidates = [Snapshot(self.world.model, self.committed_ms)]
        self.cut_armed = True
        if operations:
            self.device.cut_at(operations)

    def cut_at(self, operations):
        """Cut the power within the n-th operation of a start."""
        self.cut_armed = True
        self.device.cut_at(operations)

    def calm(self):
        """No power cut from now on. If it is off already, the next operation shows it."""
        if self.device.is_on:
            self.cut_armed = False
            self.device.cut_at(0)

    def fill(self, room):
        """Another program fills the file system but for so many bytes; -1: it frees them again."""
        if self.kind != "flash":
            self.device.fill(room)
        self.world.events["filled"] += room >= 0

    def power_off(self):
        """The power is off. What must be there at the next start is among the candidates."""
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
        """Flip bits. The next start may find any state that was ever committed, or none."""
        self.device.rot(self.numbers.choice((1, 4, 40)))
        self.world.loss_allowed = True
        self.world.events["rot"] += 1

    # Called by ObservedMedium

    def commit_begins(self, is_rewriting):
        """The journal begins to write: the next start may find the state of this moment.

        is_rewriting: it writes a whole new generation beside the current one."""
        world = self.world
        if self.booting:
            found = recovery.find_state(world.model, self.candidates)
            self.booting = False
            self._check_log(found)
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

    def _check_log(self, found):
        """If an older state was found, because of rot, the log must say so."""
        if not self.world.plan.rots:
            if [text for text in self.log_lines if "damaged" in text or "rotted" in text]:
                raise PromiseBroken(f"the log reports damage without a reason: {self.log_lines}")
            return
        if self.candidates.index(found) >= self.candidates.index(self.last):
            return
        self.world.events["rot lost all" if found is EMPTY else "rot lost some"] += 1
        if not self.log_lines:
            raise PromiseBroken("something is lost, and the log does not say so")

    def commit_done(self):
        """The journal has synced: what it wrote stays, whatever happens."""
        self.committed_change = self.writing_change
        self.last = self.candidates[-1]
        self.committed_ms = self.writing_ms
        if not self.world.plan.rots:
            self.candidates = self.candidates[-1:]
        elif len(self.candidates) > _MOST:
            self.candidates.pop(1)  # the oldest one but EMPTY
        for session in self.world.model.sessions:
            session.finished = []
        self.world.trace.note(107, 0, self.writing_ms, b"%d" % self.medium.end)

    def raise_if_power_off(self):
        """An operation has failed: because the power was cut?"""
        if not self.device.is_on:
            raise PowerCut("seen by its error")
