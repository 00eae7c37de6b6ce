# hot.py - the inner loops of the broker on MicroPython, in viper.
#
# Owns no state of its own beside the columns of the three stores below; nothing
# here allocates after construction. hot_cpython.py keeps the same contract with
# dicts and slices; property tests hold the two equal. Callers check bounds.
#
# Offsets and lengths are bytes; slots are 16 bits wide and 0xFFFF means none.
# Words are copied unaligned where the machine can (_WORDS): x86 and Xtensa's
# and Cortex-M0+'s loads differ there.
import sys
from array import array
import micropython
from micropython import const

_NONE = const(0xFFFF)
_TYPE = const(0)
_FLAGS = const(1)
_START = const(2)
_BODY = const(3)
_END = const(4)
_TOTAL = const(5)
_PACKET_ID = const(6)
_TOPIC = const(7)
_TOPIC_LEN = const(8)
_PAYLOAD = const(9)
_PACKET_MAX = const(10)
_TEXT_BLOCK = const(16)  # block of Names' text

# 3 where a word may lie anywhere, 0 where only aligned words may be touched
WORDS = 3 if sys.platform == "linux" else 0


def settled(buf, n):
    # What a turn reads from: here the buffer itself, on CPython a bytes of it.
    return buf


def new_packet(packet_max):
    pkt = array("i", bytes(44))
    pkt[_PACKET_MAX] = packet_max
    return pkt


@micropython.viper
def copy(to, to_off: int, src, off: int, n: int):
    # Forward, so it may also move bytes down within one buffer.
    d = int(ptr8(to)) + to_off
    s = int(ptr8(src)) + off
    end = s + n
    if ((d | s) & 3) & (3 - int(WORDS)) == 0:
        words = end - 3
        while s < words:
            ptr32(d)[0] = ptr32(s)[0]
            d += 4
            s += 4
    while s < end:
        ptr8(d)[0] = ptr8(s)[0]
        d += 1
        s += 1


@micropython.viper
def next_packet(buf, start: int, end: int, pkt) -> int:
    # Scans one packet of buf[start:end] into pkt [2.2]. -> its length in bytes,
    # 0: more bytes are needed, -1: malformed, -2: larger than pkt[_PACKET_MAX].
    b = ptr8(buf)
    p = ptr32(pkt)
    p[_TOTAL] = 0
    length = 0
    shift = 0
    at = start + 1
    while True:
        if at >= end:
            return 0
        byte = b[at]
        at += 1
        length |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
        if shift > 21:
            return -1
    kind = b[start] >> 4
    flags = b[start] & 15
    if kind != 3:
        # reserved flags [2.2.2-1]; DUP of MQTT 3.1 is left to the handlers
        if kind == 6 or kind == 8 or kind == 10:
            if flags & 7 != 2:
                return -1
        elif flags:
            return -1
    if byte == 0 and shift:
        return -1  # a length longer than it need be
    p[_TYPE] = kind
    p[_FLAGS] = flags
    p[_START] = start
    p[_BODY] = at
    total = at - start + length
    p[_TOTAL] = total
    if total > p[_PACKET_MAX]:
        return -2
    stop = start + total
    if stop > end:
        return 0
    p[_END] = stop
    if kind == 3:
        if length < 2:
            return -1
        size = (b[at] << 8) | b[at + 1]
        at += 2
        p[_TOPIC] = at
        p[_TOPIC_LEN] = size
        at += size
        if flags & 6:
            if at + 2 > stop:
                return -1
            p[_PACKET_ID] = (b[at] << 8) | b[at + 1]
            at += 2
        if at > stop:
            return -1
        p[_PAYLOAD] = at
    elif kind >= 4 and kind <= 7:
        if length != 2:
            return -1
        p[_PACKET_ID] = (b[at] << 8) | b[at + 1]
    return total


@micropython.viper
def utf8_ok(buf, off: int, n: int, name: int) -> int:
    # 1 where the bytes are UTF-8 without U+0000 and surrogates [1.5.3-1, -2];
    # with name also without wildcards and not empty [4.7.1-1, 4.7.3-1].
    b = ptr8(buf)
    i = off
    end = off + n
    if name and n == 0:
        return 0
    while i < end:
        c = b[i]
        i += 1
        if c < 128:
            if c == 0:
                return 0
            if name and (c == 35 or c == 43):
                return 0
            continue
        more = 1
        least = 0x80
        if c >= 0xF0:
            if c > 0xF4:
                return 0
            more = 3
            least = 0x10000
            c &= 7
        elif c >= 0xE0:
            more = 2
            least = 0x800
            c &= 15
        elif c >= 0xC2:
            c &= 31
        else:
            return 0
        if i + more > end:
            return 0
        while more:
            x = b[i]
            i += 1
            more -= 1
            if (x & 0xC0) != 0x80:
                return 0
            c = (c << 6) | (x & 63)
        if c < least or c > 0x10FFFF or (c >> 11) == 27:
            return 0
    return 1


@micropython.viper
def filter_ok(buf, off: int, n: int) -> int:
    # How many levels a topic filter has; 0 where a wildcard is not alone in its
    # level or a # is not last [4.7.1-2, 4.7.1-3], or it is empty [4.7.3-1].
    b = ptr8(buf)
    end = off + n
    i = off
    levels = 1
    if n == 0:
        return 0
    while i < end:
        c = b[i]
        if c == 47:
            levels += 1
        elif c == 35 or c == 43:
            if i > off and b[i - 1] != 47:
                return 0
            if i + 1 < end and (c == 35 or b[i + 1] != 47):
                return 0
        i += 1
    return levels


@micropython.viper
def topic_matches(fbuf, f: int, fn: int, tbuf, t: int, tn: int) -> int:
    # 1 where the (legal) filter matches the topic name [4.7].
    a = ptr8(fbuf)
    b = ptr8(tbuf)
    fe = f + fn
    te = t + tn
    if b[t] == 36 and (a[f] == 35 or a[f] == 43):
        return 0
    while f < fe:
        c = a[f]
        if c == 35:
            return 1
        if c == 43:
            while t < te and b[t] != 47:
                t += 1
            f += 1
            if f == fe:
                break
            # after + comes a slash; the topic may end here only before "/#"
            if t == te:
                return 1 if f + 2 == fe and a[f + 1] == 35 else 0
            f += 1
            t += 1
            continue
        if t == te:
            return 1 if f + 2 == fe and c == 47 and a[f + 1] == 35 else 0
        if c != b[t]:
            return 0
        f += 1
        t += 1
    return 1 if t == te else 0


@micropython.viper
def find_id(ids, start: int, n: int, packet_id: int) -> int:
    # Index of packet_id in ids[start:start + n], or -1.
    p = ptr16(ids)
    i = start
    end = start + n
    while i < end:
        if p[i] == packet_id:
            return i
        i += 1
    return -1


@micropython.viper
def place(columns, i: int, end: int, src, start: int, n: int) -> int:
    # Puts the QoS 0 packet src[start:start + n] into the outgoing buffer of every
    # session of the route entries i..end, with a clean first byte. Offline
    # sessions are passed over. -> the first entry that needs another way (no
    # room, or a message in parts under way), or end. columns: Connections.columns.
    entries = ptr16(columns[0])
    conn_of = ptr16(columns[1])
    out = ptr8(columns[2])
    tx_end = ptr32(columns[3])
    tx_limit = ptr32(columns[4])
    tx = int(ptr8(columns[5]))
    dirty = ptr16(columns[6])
    count = ptr32(columns[7])
    first = int(ptr8(src)) + start
    mask = 3 - int(WORDS)
    placed = 0
    while i < end:
        conn = conn_of[entries[i] >> 2]
        if conn != _NONE:
            at = tx_end[conn]
            if at + n > tx_limit[conn]:
                break
            if out[conn] == 0:
                out[conn] = 1
                dirty[count[0]] = conn
                count[0] += 1
            tx_end[conn] = at + n
            d = tx + at
            s = first
            stop = s + n
            if ((d | s) & mask) == 0:
                words = stop - 3
                while s < words:
                    ptr32(d)[0] = ptr32(s)[0]
                    d += 4
                    s += 4
            while s < stop:
                ptr8(d)[0] = ptr8(s)[0]
                d += 1
                s += 1
            ptr8(tx + at)[0] = 0x30
            placed += 1
        i += 1
    count[1] += placed
    return i


class Arena:
    # Byte strings in chains of fixed blocks: no fragments, no moving.
    # data: blocks * size bytes; next: 2 bytes a block; state: [first free, free].

    def __init__(self, blocks, size):
        self.blocks = blocks
        self.size = size
        self.data = bytearray(blocks * size)
        self.next = array("H", range(1, blocks + 1))
        self.state = array("i", (0, blocks))
        self._c = (self.data, self.next, self.state, size)

    def free_blocks(self):
        return self.state[1]

    @micropython.viper
    def take(self, n: int) -> int:
        # First block of a chain for n bytes, or 0xFFFF where there is no room.
        c = self._c
        nexts = ptr16(c[1])
        state = ptr32(c[2])
        size = int(c[3])
        k = (n + size - 1) // size
        if k == 0:
            k = 1
        if k > state[1]:
            return _NONE
        state[1] -= k
        first = state[0]
        block = first
        while k > 1:
            block = nexts[block]
            k -= 1
        state[0] = nexts[block]
        nexts[block] = _NONE
        return first

    @micropython.viper
    def drop(self, first: int):
        c = self._c
        nexts = ptr16(c[1])
        state = ptr32(c[2])
        block = first
        k = 1
        while nexts[block] != _NONE:
            block = nexts[block]
            k += 1
        nexts[block] = state[0]
        state[0] = first
        state[1] += k

    @micropython.viper
    def move(self, first: int, at: int, buf, off: int, n: int, out: int):
        # Copies n bytes between buf[off:] and the chain from its byte `at` on:
        # out of the chain where out is 1, else into it.
        c = self._c
        data = int(ptr8(c[0]))
        nexts = ptr16(c[1])
        size = int(c[3])
        mask = 3 - int(WORDS)
        b = int(ptr8(buf)) + off
        while at >= size:
            first = nexts[first]
            at -= size
        while n > 0:
            part = size - at
            if part > n:
                part = n
            a = data + first * size + at
            if out:
                s = a
                d = b
            else:
                s = b
                d = a
            stop = s + part
            if ((d | s) & mask) == 0:
                words = stop - 3
                while s < words:
                    ptr32(d)[0] = ptr32(s)[0]
                    d += 4
                    s += 4
            while s < stop:
                ptr8(d)[0] = ptr8(s)[0]
                d += 1
                s += 1
            b += part
            n -= part
            at = 0
            first = nexts[first]


class Names:
    # A hashed set of (scope, text): the slot of a text is found without walking.
    # Text lies in an Arena of 16-byte blocks. 10 bytes a slot beside its text.

    def __init__(self, slots, text_bytes):
        buckets = 8
        while buckets < slots:
            buckets *= 2
        self.slots = slots
        self.text = Arena(text_bytes // _TEXT_BLOCK, _TEXT_BLOCK)
        self.length = array("H", bytes(2 * slots))
        self.scope = array("H", bytes(2 * slots))
        self.first = array("H", bytes(2 * slots))
        self._hash = array("H", bytes(2 * slots))
        self._next = array("H", range(1, slots + 1))
        self._heads = array("H", (_NONE for _ in range(buckets)))
        self._free = array("i", (0, slots))
        self._c = (
            self._heads,
            self._next,
            self._hash,
            self.scope,
            self.length,
            self.first,
            self.text.data,
            self.text.next,
            buckets - 1,
            self._free,
        )

    def count(self):
        return self.slots - self._free[1]

    @micropython.viper
    def find(self, scope: int, buf, off: int, n: int) -> int:
        c = self._c
        b = ptr8(buf)
        nexts = ptr16(c[1])
        hashes = ptr16(c[2])
        scopes = ptr16(c[3])
        lengths = ptr16(c[4])
        firsts = ptr16(c[5])
        chain = ptr16(c[7])
        end = off + n
        h = scope + n
        i = off
        while i < end:
            h = (h * 33 + b[i]) & 0xFFFFFF
            i += 1
        h = (h ^ (h >> 8)) & 0xFFFF
        slot = ptr16(c[0])[h & int(c[8])]
        while slot != _NONE:
            if hashes[slot] == h and scopes[slot] == scope and lengths[slot] == n:
                i = off
                block = firsts[slot]
                while True:
                    t = int(ptr8(c[6])) + block * _TEXT_BLOCK
                    stop = i + _TEXT_BLOCK
                    if stop > end:
                        stop = end
                    while i < stop and ptr8(t)[0] == b[i]:
                        i += 1
                        t += 1
                    if i < stop or i == end:
                        break
                    block = chain[block]
                if i == end:
                    return slot
            slot = nexts[slot]
        return _NONE

    @micropython.viper
    def add(self, scope: int, buf, off: int, n: int) -> int:
        # A new slot for a text that is not there yet; 0xFFFF: no slot, no text room.
        c = self._c
        b = ptr8(buf)
        nexts = ptr16(c[1])
        free = ptr32(c[9])
        if free[1] == 0:
            return _NONE
        first = int(self.text.take(n))
        if first == _NONE:
            return _NONE
        self.text.move(first, 0, buf, off, n, 0)
        end = off + n
        h = scope + n
        i = off
        while i < end:
            h = (h * 33 + b[i]) & 0xFFFFFF
            i += 1
        h = (h ^ (h >> 8)) & 0xFFFF
        slot = free[0]
        free[0] = nexts[slot]
        free[1] -= 1
        ptr16(c[2])[slot] = h
        ptr16(c[3])[slot] = scope
        ptr16(c[4])[slot] = n
        ptr16(c[5])[slot] = first
        heads = ptr16(c[0])
        h = h & int(c[8])
        nexts[slot] = heads[h]
        heads[h] = slot
        return slot

    @micropython.viper
    def remove(self, slot: int):
        c = self._c
        heads = ptr16(c[0])
        nexts = ptr16(c[1])
        free = ptr32(c[9])
        bucket = ptr16(c[2])[slot] & int(c[8])
        at = heads[bucket]
        if at == slot:
            heads[bucket] = nexts[slot]
        else:
            while nexts[at] != slot:
                at = nexts[at]
            nexts[at] = nexts[slot]
        self.text.drop(ptr16(c[5])[slot])
        ptr16(c[4])[slot] = 0
        nexts[slot] = free[0]
        free[0] = slot
        free[1] += 1

    def read(self, slot, buf, off):
        # Copies the slot's text to buf[off:]. -> its length in bytes.
        n = self.length[slot]
        self.text.move(self.first[slot], 0, buf, off, n, 1)
        return n


class Routes:
    # A cache: topic name -> its entries in the route pool. Direct-mapped by the
    # topic's hash; forgotten as a whole by a new generation.

    def __init__(self, slots, topic_bytes):
        n = 1
        while n * 2 <= slots:
            n *= 2
        self.topic_bytes = topic_bytes
        self.first = array("H", bytes(2 * n))
        self.end = array("H", bytes(2 * n))
        self._gen = array("H", bytes(2 * n))
        self._len = array("H", bytes(2 * n))
        self._text = bytearray(n * topic_bytes)
        # [generation, slot of the last miss]
        self._state = array("i", (1, 0))
        self._c = (self._gen, self._len, self._text, n - 1, topic_bytes, self._state)

    def forget(self):
        state = self._state
        state[0] += 1
        if state[0] > 0xFFFF:
            state[0] = 1
            for i in range(len(self._gen)):
                self._gen[i] = 0

    @micropython.viper
    def find(self, buf, off: int, n: int) -> int:
        c = self._c
        b = ptr8(buf)
        state = ptr32(c[5])
        size = int(c[4])
        h = n
        i = off
        end = off + n
        while i < end:
            h = (h * 33 + b[i]) & 0xFFFFFF
            i += 1
        slot = (h ^ (h >> 8)) & int(c[3])
        state[1] = slot
        if ptr16(c[0])[slot] != state[0] or ptr16(c[1])[slot] != n:
            return -1
        t = ptr8(c[2])
        at = slot * size - off
        i = off
        while i < end:
            if t[at + i] != b[i]:
                return -1
            i += 1
        return slot

    def keep(self, buf, off, n, first, end):
        # Remembers the topic that find() has just missed. -> its slot, or -1.
        slot = self._state[1]
        self.first[slot] = first
        self.end[slot] = end
        if n > self.topic_bytes:
            self._gen[slot] = 0
        else:
            self._gen[slot] = self._state[0]
            self._len[slot] = n
            copy(self._text, slot * self.topic_bytes, buf, off, n)
        return slot
