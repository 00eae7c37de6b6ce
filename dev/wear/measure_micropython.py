# measure_micropython.py - the real loop and broker with a journal on a flash chip in RAM, and two
# clients with persistent sessions. Prints a line for each medium and kind of traffic: the bytes
# that a message programs and erases, in hundredths.
import sys

import vfs

from slotmq import Broker, Limits, Settings
from slotmq.journal.location import snapshot_bytes
from slotmq.journal.medium_file import FileMedium
from slotmq.journal.medium_flash import FlashMedium
from slotmq.journal.restore import restore
from slotmq.net.loop import Loop
from slotmq.platform import heap
from slotmq_tools import codec

SIZE, BLOCKS = 4096, 64
PAYLOAD = b"x" * 64
MESSAGES = 600
# name: QoS, retained, messages in one turn
TRAFFIC = (
    ("QoS 0", 0, 0, 1),
    ("QoS 0, retained", 0, 1, 1),
    ("QoS 1", 1, 0, 1),
    ("QoS 1, 12 at once", 1, 0, 12),
    ("QoS 2", 2, 0, 1),
    ("QoS 2, 12 at once", 2, 0, 12),
)


class Chip:
    """A flash chip that counts programmed and erased bytes."""

    def __init__(self):
        self.data = bytearray(b"\xff" * (BLOCKS * SIZE))
        self.programmed = self.erased = 0

    def readblocks(self, block, buf, off=0):
        heap.lift()
        at = block * SIZE + off
        buf[:] = self.data[at : at + len(buf)]
        heap.drop()

    def writeblocks(self, block, buf, off=0):
        heap.lift()
        at = block * SIZE + off
        self.data[at : at + len(buf)] = buf
        self.programmed += len(buf)
        heap.drop()

    def ioctl(self, op, block):
        heap.lift()
        if op == 6:
            self.data[block * SIZE : (block + 1) * SIZE] = b"\xff" * SIZE
            self.erased += SIZE
        heap.drop()
        return BLOCKS if op == 4 else SIZE if op == 5 else 0


class Client:
    """A client that answers as MQTT requires, and its stream."""

    def __init__(self, name):
        self.sent = codec.connect(name, clean=False)
        self.received = b""
        self.got = 0

    def readinto(self, buf, n):
        heap.lift()
        n = min(n, len(self.sent))
        buf[:n] = self.sent[:n]
        self.sent = self.sent[n:]
        heap.drop()
        return n or None

    def write(self, buf, off, n):
        heap.lift()
        self.received += buf[off : off + n]
        heap.drop()
        return n

    def close(self):
        pass

    def answer(self):
        """Acknowledge received packets."""
        while self.received:
            n = 2 + self.received[1]
            one, self.received = self.received[:n], self.received[n:]
            kind = one[0] >> 4
            if kind == 3:
                self.got += 1
                if one[0] & 6:
                    at = 4 + one[3]
                    self.sent += bytes((0x40 if one[0] & 6 == 2 else 0x50, 2)) + one[at : at + 2]
            elif kind == 5:
                self.sent += b"\x62\2" + one[2:4]
            elif kind == 6:
                self.sent += b"\x70\2" + one[2:4]


class World:
    """Poller, clock and listener of a Loop."""

    def __init__(self, medium):
        self.ms = 0
        self.waiting = []
        self.streams = [self]
        self.broker = Broker(Limits(), Settings(sys_interval=0))
        self.broker.loop = Loop(self.broker, self, self)
        self.broker.loop.listeners.add(self, self.accept)
        restore(self.broker, medium)

    def accept(self):
        return (self.waiting.pop(), None) if self.waiting else None

    def register(self, stream, mask):
        if stream is not self:
            self.streams.append(stream)

    def modify(self, stream, mask):
        pass

    def ticks_ms(self):
        return self.ms

    def ticks_diff(self, now, before):
        return now - before

    def ipoll(self, timeout_ms):
        heap.lift()
        found = [(self, 1)] if self.waiting else []
        found += [(each, 1) for each in self.streams[1:] if each.sent]
        heap.drop()
        return found

    def connect(self, name):
        client = Client(name)
        self.waiting.append(client)
        self.turn(3)
        client.received = b""
        return client

    def turn(self, times=1):
        for _ in range(times):
            self.ms += 5
            self.broker.loop.turn(0)


def publish(qos, retain, number):
    topic = b"t/" + bytes((97 + number % 7,))
    return codec.publish(topic, PAYLOAD, qos, number % 60000 + 1, retain)


def measure(chip, medium, qos, retain, at_once):
    world = World(medium)
    reader, publisher = world.connect(b"reader"), world.connect(b"publisher")
    reader.sent += codec.subscribe(1, (b"t/+", 2))
    world.turn(3)
    reader.received = b""
    programmed, erased = chip.programmed, chip.erased
    for first in range(0, MESSAGES, at_once):
        for n in range(at_once):
            publisher.sent += publish(qos, retain, first + n)
        for _ in range(6):
            world.turn()
            publisher.answer()
            reader.answer()
    if reader.got < MESSAGES:
        raise ValueError("messages were lost")
    world.broker.journal.medium.close()
    return [(now - before) * 100 // MESSAGES
            for now, before in ((chip.programmed, programmed), (chip.erased, erased))]  # fmt: skip


def main():
    snapshot = snapshot_bytes(Limits())
    for name, qos, retain, at_once in TRAFFIC:
        chip = Chip()
        found = measure(chip, FlashMedium(chip, snapshot), qos, retain, at_once)
        print("wear flash", name, *found)
        chip = Chip()
        vfs.VfsLfs2.mkfs(chip, progsize=256)
        vfs.mount(vfs.VfsLfs2(chip, progsize=256), "/wear")
        found = measure(chip, FileMedium("/wear/db", snapshot, 200000), qos, retain, at_once)
        vfs.umount("/wear")
        print("wear littlefs", name, *found)
    print("done")


main()
sys.exit(0)
