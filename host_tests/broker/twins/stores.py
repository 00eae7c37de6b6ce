# stores.py SEED COUNT - the stores, with random operations until they are full.
#
# Prints a line for each. Two runtimes may choose other blocks of an Arena and other slots of
# Routes: so the contents are printed, and whether there was free space.
import sys

from seeded import Numbers, shown

from slotmq.fast import Arena, Names, Routes
from slotmq.platform.runtime import MICROPYTHON

if MICROPYTHON:
    from slotmq.fast.senders_viper import make
else:
    from slotmq.fast.senders_cpython import make

NONE = 0xFFFF
TEXTS = [b"", b"a", b"b", b"aa", b"a" * 15, b"a" * 16, b"a" * 17, b"a" * 32, b"a" * 31 + b"b"]
TEXTS += [b"a" * 16 + b"b", b"a" * 48, b"\0\xff" * 8, b"\xff" * 33]


class Arenas:
    def __init__(self, numbers):
        self.numbers = numbers
        self.arena = Arena(numbers.choice((1, 2, 7, 20)), numbers.choice((16, 64, 24)))
        self.kept = []  # (first block, bytes)

    def step(self):
        numbers = self.numbers
        if numbers.one_in(3) and self.kept:
            self.drop()
        elif numbers.one_in(3) and self.kept:
            self.change()
        else:
            self.keep()
        print("free", self.arena.free_blocks())
        for first, data in self.kept:
            out = bytearray(len(data) + 2)
            self.arena.move(first, 0, out, 1, len(data), 1)
            print("kept", shown(out), out[1:-1] == data)

    def keep(self):
        numbers = self.numbers
        buf = numbers.bytes(260)
        n, n2 = numbers.choice((0, 1, 2, 15, 16, 17, 63, 64, 65)), numbers.choice((0, 1, 64, 130))
        off, off2 = numbers.below(60), numbers.below(60)
        first = self.arena.take(n + n2)
        print("keep", n, n2, first == NONE)
        if first != NONE:
            self.arena.move(first, 0, buf, off, n, 0)
            self.arena.move(first, n, buf, off2, n2, 0)
            self.kept.append((first, bytearray(buf[off : off + n] + buf[off2 : off2 + n2])))

    def change(self):
        """Read a part of one entry, and write one that was only reserved."""
        numbers = self.numbers
        first, data = numbers.choice(self.kept)
        at = numbers.below(len(data) + 1)
        n = numbers.below(len(data) - at + 1)
        out = bytearray(n + 4)
        self.arena.move(first, at, out, 2, n, 1)
        print("part", at, n, shown(out))
        n = numbers.between(1, 100)
        first = self.arena.take(n)
        print("take", n, first == NONE)
        if first != NONE:
            data = bytearray(numbers.bytes(n))
            self.arena.move(first, 0, data, 0, n, 0)
            self.kept.append((first, data))

    def drop(self):
        first, _ = self.kept.pop(self.numbers.below(len(self.kept)))
        self.arena.drop(first)


class Sets:
    """Names: both runtimes must choose the same slots."""

    def __init__(self, numbers):
        self.numbers = numbers
        self.names = Names(numbers.choice((1, 3, 8, 30)), numbers.choice((64, 160, 1024)))
        self.slots = []

    def step(self):
        numbers = self.numbers
        scope = numbers.choice((0, 1, 7, 65534))
        text = numbers.choice(TEXTS)
        if numbers.one_in(4):
            text = numbers.bytes(numbers.below(40))
        off = numbers.below(3)
        buf = numbers.bytes(off) + text + b"tail"
        slot = self.names.find(scope, buf, off, len(text))
        print("find", scope, shown(text), slot)
        if slot == NONE:
            slot = self.names.add(scope, buf, off, len(text))
            print("add", slot)
            if slot != NONE:
                self.slots.append(slot)
        elif numbers.one_in(2):
            self.names.remove(slot)
            self.slots.remove(slot)
        self.tell()

    def tell(self):
        names = self.names
        print("count", names.count())
        for slot in self.slots:
            out = bytearray(60)
            n = names.read(slot, out, 1)
            print("name", slot, names.scope[slot], names.length[slot], n, shown(out[: n + 2]))


CONNECTIONS = 11


class Ways:
    """Routes: a cache may forget, but never give another topic's entries, nor allow what a
    connection was not allowed."""

    def __init__(self, numbers):
        self.numbers = numbers
        self.routes = Routes(numbers.choice((1, 2, 5, 16)), numbers.choice((8, 32)))
        self.known = {}
        self.senders = self.routes.senders = make(self.routes, CONNECTIONS)
        self.allowed = set()  # (connection, topic)

    def step(self):
        numbers = self.numbers
        topic = numbers.choice((b"a", b"b", b"ab", b"ba", b"a" * 8, b"a" * 9, b"b" * 33))
        if numbers.one_in(3):
            topic = numbers.bytes(numbers.between(1, 10))
        off = numbers.below(3)
        buf = numbers.bytes(off) + topic + b"tail"
        slot = self.routes.find(buf, off, len(topic))
        if slot < 0:
            first = numbers.below(1000)
            self.known[topic] = (first, first + numbers.below(20))
            slot = self.routes.keep(buf, off, len(topic), *self.known[topic])
        elif topic not in self.known:
            print("a topic that was never kept", shown(topic))
        else:
            numbers.below(1000)  # as many numbers as above
            numbers.below(20)
        entries = (self.routes.first[slot], self.routes.end[slot])
        print("route right", shown(topic), entries == self.known.get(topic))
        again = self.routes.find(buf, off, len(topic))
        print("remembered", again == slot or (len(topic) > self.routes.topic_bytes and again < 0))
        conn = numbers.below(CONNECTIONS)
        if numbers.one_in(2):
            self.senders.add(conn, buf, off, len(topic))
            self.allowed.add((conn, topic))
            print("allowed", again < 0 or bool(self.senders.may(conn, again)))
        elif numbers.one_in(3):
            self.senders.remove(conn)
            self.allowed = {each for each in self.allowed if each[0] != conn}
        for other in range(CONNECTIONS if again >= 0 else 0):
            if self.senders.may(other, again) and (other, topic) not in self.allowed:
                print("not allowed", other, shown(topic))
        if numbers.one_in(20):
            self.routes.forget()
            self.known = {}
            print("forgotten", self.routes.find(buf, off, len(topic)))


def main(seed, count):
    numbers = Numbers(int(seed))
    for kind in (Arenas, Sets, Ways):
        for n in range(int(count)):
            if n % 100 == 0:
                print(kind.__name__)
                store = kind(numbers)
            store.step()


main(*sys.argv[1:])
