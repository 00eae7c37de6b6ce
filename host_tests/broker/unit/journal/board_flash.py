# board_flash.py - stand-ins for the modules of a board that has flash: `rp2`, `esp32`, and
# what `vfs` and `os` say of the file system on it. Used by test_location.py.
#
# rp2.Flash and esp32.Partition are block devices over one chip: reads and programs with an
# offset do not erase, those without do, an erase is an ioctl. readblocks and writeblocks
# answer None; so does an ioctl that they do not know.
import os
import sys

from media import Flash as Pages

from slotmq.platform import heap

SIZE = 4096


class Part:
    """Blocks of a chip from one on. It allocates, as a board's do not, and lifts for that."""

    def __init__(self, chip, first, count):
        self.chip, self.first, self.count = chip, first, count

    def readblocks(self, block, buf, off=0):
        heap.lift()
        try:
            self.chip.readblocks(self._place(block, off, len(buf)), buf, off)
        finally:
            heap.drop()

    def writeblocks(self, block, buf, off=None):
        heap.lift()
        try:
            if off is None:
                self.ioctl(6, block)
            self.chip.writeblocks(self._place(block, off or 0, len(buf)), buf, off or 0)
        finally:
            heap.drop()

    def ioctl(self, op, block):
        if op in (1, 2, 3):
            return 0
        if op == 4:
            return self.count
        if op == 5:
            return SIZE
        if op == 6:
            return self.chip.ioctl(6, self._place(block, 0, SIZE))
        return None

    def _place(self, block, off, n):
        if not 0 <= block * SIZE + off <= self.count * SIZE - n:
            raise AssertionError(f"block {block}, {off}: not its own")
        return self.first + block


class Module:
    pass


class System:
    """`os`, but for what it says of the file system."""

    def __init__(self, blocks):
        self.blocks = blocks

    def statvfs(self, path):
        return SIZE, SIZE, self.blocks, 9, 9, 0, 0, 0, 0, 255

    def __getattr__(self, name):
        return getattr(os, name)


class VfsLfs2:
    pass


class VfsFat:
    pass


class Modules:
    """What `import` finds, until undo()."""

    def __init__(self, **found):
        self.kept = {name: sys.modules.get(name) for name in found}
        sys.modules.update(found)

    def undo(self):
        for name, module in self.kept.items():
            if module:
                sys.modules[name] = module
            else:
                del sys.modules[name]


def pico(blocks, of_files, system=VfsLfs2):
    """A Pico W whose file system has so many of the blocks; its chip, and its modules."""
    chip = Pages(blocks, SIZE)

    def flash(*, start=-1, len=-1):  # noqa: A002 - rp2.Flash's own, by name only
        first = 0 if start < 0 else start
        size = blocks * SIZE - first if len < 0 else len
        if first % SIZE or size % SIZE or not 0 < size <= blocks * SIZE - first:
            raise ValueError
        return Part(chip, first // SIZE, size // SIZE)

    rp2, vfs = Module(), Module()
    rp2.Flash = flash
    vfs.mount = lambda: [(system(), "/"), (VfsFat(), "/sd")]
    return chip, Modules(rp2=rp2, vfs=vfs, os=System(of_files))


def esp32(**partitions):
    """An ESP32 with data partitions of so many blocks, by their label; its chip, its modules."""
    chip = Pages(sum(partitions.values()), SIZE)
    made, first = {}, 0
    for label, count in partitions.items():
        made[label] = Part(chip, first, count)
        first += count

    class Partition:
        TYPE_DATA = 1

        @staticmethod
        def find(type=0, subtype=0xFF, label=None):  # noqa: A002 - as it has them
            return [part for name, part in made.items() if type == 1 and label in (None, name)]

    module = Module()
    module.Partition = Partition
    return chip, Modules(esp32=module)
