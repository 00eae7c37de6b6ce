# media.py - writes generations to a journal's medium, checks what a reader finds after a power
# cut, and has the devices in RAM for that. On both runtimes.
import random
import unittest

from slotmq.platform import heap


class MediumCase(unittest.TestCase):
    def refused(self, call, *args):
        """The errno with which a call fails."""
        with self.assertRaises(OSError) as caught:
            call(*args)
        return caught.exception.errno

    def check_closed(self):
        """The medium takes nothing, after close() or an error."""
        self.assertEqual(self.refused(self.medium.append, b"a", 0, 1), 28)
        self.assertEqual(self.refused(self.medium.sync), 5)


def text(seed, n):
    """n bytes that differ for each seed."""
    made = bytearray(n)
    for i in range(n):
        made[i] = (seed * 37 + i * 11 + (i >> 8) * 5) & 0xFF
    return made


def fill(medium, stream, n):
    """Append n bytes, which lie in the middle of a buffer, and note them in `stream`."""
    part = text(len(stream) + n, n)
    medium.append(b"abc" + part + b"xyz", 3, n)
    stream.extend(part)


def sync(medium, stream):
    medium.sync()
    stream.extend(b"\xff" * (medium.end - len(stream)))


def read(medium, n):
    """The first n bytes of the open generation, read in pieces."""
    found = bytearray()
    buf = bytearray(200)
    while len(found) < n:
        want = min(len(buf), n - len(found))
        got = medium.readinto(len(found), buf, want)
        found.extend(buf[:got])
        if got < want:
            break
    return found


class Life:
    """Writes generations. note(may_be) gets what a reader may find if the power fails now: a
    list of (generation, the bytes that must be there); generation 0 means none."""

    def __init__(self, medium, note=lambda may_be: None):
        self.medium = medium
        self.note = note
        self.generation = 0
        self.synced = b""
        self.stream = bytearray()
        self.report()

    def report(self, under_way=()):
        may_be = [(self.generation, self.synced)]
        may_be.extend(under_way)
        self.note(may_be)

    def append(self, *sizes):
        for n in sizes:
            fill(self.medium, self.stream, n)
        sync(self.medium, self.stream)
        self.synced = bytes(self.stream)
        self.report()

    def compact(self, *sizes, give_up=False):
        stream = bytearray()
        self.medium.begin(self.generation + 1)
        for n in sizes:
            fill(self.medium, stream, n)
        if give_up:
            self.medium.sync()
            self.medium.resume(len(self.stream))
            return
        padded = stream + b"\xff" * (-len(stream) % self.medium.page)
        self.report([(self.generation + 1, bytes(padded))])
        self.medium.switch()
        self.generation += 1
        self.stream, self.synced = padded, bytes(padded)
        self.report()


def three_generations(medium, note):
    """Blocks are begun, filled and given up in every way, in 8 blocks of 1 KB."""
    life = Life(medium, note)
    life.compact(100)
    life.append(10)
    life.append(200, 300, 256)
    life.append(500)
    life.compact(900)
    life.append(124)
    life.compact(50, 1000, give_up=True)
    life.append(256)
    life.append(700)
    life.compact(700)
    life.append(40)
    life.append(728)
    life.append(1)
    return life


def looked_at(case, medium, may_be):
    """Open the newest generation and check what was synced; its number and those bytes."""
    found = medium.generations()
    newest = found[0] if found else 0
    wanted = [synced for generation, synced in may_be if generation == newest]
    case.assertEqual(len(wanted), 1, f"{newest} of {found}")
    if newest:
        medium.open(newest)
        case.assertTrue(read(medium, len(wanted[0])) == wanted[0], f"bytes of {newest}")
    return newest, wanted[0]


def goes_on(case, make, may_be, resumes):
    """After a cut the medium is reopened, appended to and compacted: nothing is lost."""
    medium = make()
    newest, synced = looked_at(case, medium, may_be)
    if newest and resumes:
        end = medium.end
        if medium.page > 1:
            end = clean_from(medium, end)
        life = Life(medium)
        life.generation = newest
        life.stream = bytearray(read(medium, end))
        medium.resume(end)
        life.append(300, 600)
        case.assertEqual(life.stream[: len(synced)], synced)
        medium.close()
        medium = make()
        looked_at(case, medium, [(newest, life.synced)])
    life = Life(medium)
    life.generation = newest
    life.compact(333, 900)
    life.append(500)
    medium.close()
    medium = make()
    looked_at(case, medium, [(newest + 1, life.synced)])
    medium.close()


def clean_from(medium, end):
    """The end of what is written: only erased pages follow."""
    page = bytearray(medium.page)
    while end:
        medium.readinto(end - medium.page, page, medium.page)
        if page != b"\xff" * medium.page:
            break
        end -= medium.page
    return end


class Ram:
    """A device of blocks, which unlocks the heap while it allocates; `log`, if it is a list,
    gets each change."""

    def __init__(self, blocks, size, data=None):
        self.blocks, self.size = blocks, size
        self.data = bytearray(data or b"\xff" * (blocks * size))
        self.log = None
        self.erases = [0] * blocks
        self.programmed = 0

    def note(self, may_be):
        self.log.append((may_be,))

    def readblocks(self, block, buf, off=0):
        heap.lift()
        at = block * self.size + off
        buf[:] = self.data[at : at + len(buf)]
        heap.drop()

    def writeblocks(self, block, buf, off=0):
        heap.lift()
        at = block * self.size + off
        self.data[at : at + len(buf)] = buf
        self.programmed += len(buf)
        if self.log is not None:
            self.log.append((at, bytes(buf)))
        heap.drop()

    def ioctl(self, op, block):
        if op == 4:
            return self.blocks
        if op == 5:
            return self.size
        if op == 6:
            heap.lift()
            at = block * self.size
            self.data[at : at + self.size] = b"\xff" * self.size
            self.erases[block] += 1
            if self.log is not None:
                self.log.append((at, None))
            heap.drop()
        return 0


class Flash(Ram):
    """Takes whole pages of 256 bytes, and each page once between two erases."""

    def writeblocks(self, block, buf, off=0):
        heap.lift()
        at = block * self.size + off
        if off % 256 or len(buf) != 256 or self.data[at : at + 256] != b"\xff" * 256:
            raise AssertionError(f"block {block}, {off}: programmed twice, or no page")
        Ram.writeblocks(self, block, buf, off)
        heap.drop()


class Quiet(Ram):
    """Does not allocate, like a board's own devices."""

    def readblocks(self, block, buf, off=0):
        at = block * self.size + off
        for i in range(len(buf)):
            buf[i] = self.data[at + i]

    def writeblocks(self, block, buf, off=0):
        at = block * self.size + off
        for i in range(len(buf)):
            self.data[at + i] = buf[i]

    def ioctl(self, op, block):
        return self.blocks if op == 4 else self.size if op == 5 else 0


def garbage(n, seed):
    source = random
    source.seed(seed)
    return bytes([source.getrandbits(8) for _ in range(n)])
