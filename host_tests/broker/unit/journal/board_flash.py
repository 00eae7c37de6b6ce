# board_flash.py - stand-ins for modules of a board with flash: `rp2`, `esp32`, and what `vfs`
# and `os` report of the file system on it.
#
# rp2.Flash and esp32.Partition are block devices over one chip: a program with an offset does
# not erase, one without does, an erase is an ioctl. readblocks, writeblocks and an unknown ioctl
# return None.
import os
import sys

from media import Flash

SIZE = 4096


class Part:
    """Some blocks of a chip, from `first` on."""

    def __init__(self, chip, first, count):
        self.chip, self.first, self.count = chip, first, count

    def readblocks(self, block, buf, off=0):
        self.chip.readblocks(self._place(block, off, len(buf)), buf, off)

    def writeblocks(self, block, buf, off=None):
        if off is None:
            self.ioctl(6, block)
        self.chip.writeblocks(self._place(block, off or 0, len(buf)), buf, off or 0)

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
            raise AssertionError(f"block {block}, {off}: outside of the part")
        return self.first + block


class Module:
    pass


class System:
    """`os` with a statvfs of its own."""

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
    """Modules that `import` finds until undo()."""

    def __init__(self, **found):
        self.replaced = {name: sys.modules.get(name) for name in found}
        sys.modules.update(found)

    def undo(self):
        for name, module in self.replaced.items():
            if module:
                sys.modules[name] = module
            else:
                del sys.modules[name]


def pico(blocks, of_files, system=VfsLfs2):
    """A Pico W whose file system has `of_files` of the blocks: its chip and its modules."""
    chip = Flash(blocks, SIZE)

    def flash(*, start=-1, len=-1):  # noqa: A002 - the names of rp2.Flash
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
    """An ESP32 with data partitions, {label: blocks}: its chip and its modules."""
    chip = Flash(sum(partitions.values()), SIZE)
    made, first = {}, 0
    for label, count in partitions.items():
        made[label] = Part(chip, first, count)
        first += count

    class Partition:
        TYPE_DATA = 1

        @staticmethod
        def find(type=0, subtype=0xFF, label=None):  # noqa: A002 - the names of esp32
            return [part for name, part in made.items() if type == 1 and label in (None, name)]

    module = Module()
    module.Partition = Partition
    return chip, Modules(esp32=module)
