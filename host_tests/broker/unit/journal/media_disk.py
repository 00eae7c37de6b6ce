# media_disk.py - the simulator's disk for a file on CPython: a host's file system, which after a
# power cut has what was synced, and perhaps some of the rest.
import os

from slotmq.journal import medium_file
from slotmq.platform import ondemand
from slotmq_tools.sim import disk
from slotmq_tools.sim.numbers import Numbers

STATES = 12  # of those that a power cut may leave


def mount(disk):
    """Journals use this disk until mount(None)."""
    for module in (ondemand.take("journal.medium_file_start", 0), medium_file):
        module.os = disk or os
        vars(module).pop("open", None)
        if disk:
            module.open = disk.open_file
    return disk


class Disk(disk.Disk):
    def __init__(self, seed=1):
        self._most = -1
        self.is_wanted = False  # does another program take all space that becomes free?
        super().__init__(False, Numbers(seed))

    @property
    def most(self):
        """The bytes that all files may have."""
        if self.is_wanted:
            self._most = min(self._most, self.used())
        return self._most

    @most.setter
    def most(self, value):
        self._most = value

    def after(self):
        """Disks that a power cut now may leave."""
        return [self.after_the_cut() for _ in range(STATES)]
