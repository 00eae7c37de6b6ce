# properties_viper.py - the fast path for what fast/path_viper.py leaves of MQTT 5.0, on
# MicroPython, in viper: PUBLISH with properties that are only passed on, topic aliases in both
# directions, message expiry, identifiers, shared subscriptions. This file has what comes in,
# receivers_viper.py what leaves. v5/quick_properties.py puts it in place where the heap is large.
# Owns the table `g` of the columns of version 5, and which route a topic alias belongs to; the
# class allocates them, nothing else here allocates.
#
# fast_path() has the contract of path_viper.fast_path(), send() that of deliveries_viper.send()
# for clients of version 5. What they do not take is left as it was.
import sys

import micropython
from micropython import const

from slotmq.fast.bytes_viper import find_route, table, utf8_ok
from slotmq.fast.messages_viper import place, put_ack
from slotmq.fast.path_viper import accept
from slotmq.fast.path_viper import fast_path as without_properties
from slotmq.fast.receivers_viper import choose, fits, note, send, spread
from slotmq.platform.arrays import u16

_NONE = const(0xFFFF)
_ODD = const(0xFFFE)  # mid of a route of v5/option_routes.py
_EXTRA = const(8)
_FLAGS = const(1)
_START = const(2)
_END = const(4)
_PACKET_ID = const(6)
_TOPIC = const(7)
_TOPIC_LEN = const(8)
_PAYLOAD = const(9)
_FAST_MAX = const(11)
_PACKETS_IN = const(0)
_PACKETS_OUT = const(1)
_PUBLISH_IN = const(2)
_BYTES_IN = const(5)
# Positions in other rows of tables/
_FIRST_FREE = const(2)
_NOW = const(0)
_GENERATION = const(0)
# Indexes of the table of columns
_R_MASK = const(0)
_R_GEN = const(2)
_R_STATE = const(5)
_M_COUNT = const(31)
_M_FLAGS = const(34)
_STATS = const(41)
_CLOCK = const(42)
_PKT = const(43)
_R_FIRST = const(47)
_R_END = const(48)
_SENDERS = const(62)
_SENDERS_WIDTH = const(63)
_C_LEVEL = const(64)
_R_MID = const(65)
_QUEUES = const(66)
# Indexes of the table of version 5, as Quick makes it
_G_PROPS = const(0)
_G_EXPIRES = const(1)
_G_INWARD = const(3)
_G_INWARD_LEN = const(4)
_G_ALLOWED = const(8)
_G_SIZE = const(9)  # of a block of the aliases
_G_NEXT = const(10)
_G_DATA = const(11)
_G_MOST = const(12)  # aliases of a connection
_G_KNOWN_IN = const(13)  # of each alias: slot of its topic's route + 1; 0: not known
_G_FAR = const(15)
_G_AT = const(16)  # of v5/option_routes.py
_G_OPTIONS = const(17)
_G_WIDE = const(22)  # are addresses wider than 32 bits?
_G_ALIAS_AT = const(23)  # where scan() has found an alias
_G_SECTION = const(24)  # bytes of the properties that are passed on
_G_EXPIRY = const(25)  # in how many tenths of a second the message expires; 0: never
_G_EXPIRING = const(26)  # was a message stored that expires?
_G_IS_KNOWN = const(29)  # of each route: is it known of an alias?
# Where `scratch` is in the table, in bytes: a topic, with its length before it. The table lies
# behind the buffers of packets, so the packet record can have its distance from there.
_SCRATCH = const(136)
_BURST = const(256)  # bytes of a read that has more than a packet or two


class Quick:
    def __init__(self, broker, options):
        five = broker.five
        self.aliases = a = five.aliases
        self.routes = r = broker.subscriptions.routes
        self.queued = broker.sessions.queued
        self.known_in = u16(len(a.inward))
        self.known_out = u16(len(a.outward))
        self.is_known = bytearray(len(r.first))  # of each slot: is it in one of these?
        p = (five.props, five.expires, five.packet_max, a.inward, a.inward_len, a.outward)
        p += (a.outward_len, a.offered, a.allowed, a.arena.size, a.arena.next, a.arena.data)
        p += (a.most, self.known_in, self.known_out, five.far, options.at, options.data)
        p += (five.identifier, five.ident, five.group, five.shares.last)
        p += (1 if sys.maxsize >> 32 else 0, 0, 0, 0, 0, 0, 0, self.is_known, 0, 0, 0, 0)
        p += (0,) * ((broker.limits.topic_bytes + 5) // 4)
        self.g = table(p + (broker.rx, broker.conns.partial, broker.deliveries.flags))
        self.inner_keep, r.keep = r.keep, self.keep
        self.inner_give, a._keep = a._keep, self.give

    def keep(self, buf, off, n, first, end):
        # Routes.keep(): the slot has another topic now.
        slot = self.inner_keep(buf, off, n, first, end)
        if self.is_known[slot]:
            self.is_known[slot] = 0
            _forget(self.known_in, len(self.known_in), slot + 1)
            _forget(self.known_out, len(self.known_out), slot + 1)
        return slot

    def give(self, firsts, lengths, at, buf, off, n):
        # Aliases._keep(): the alias has another topic now.
        known = self.known_out if firsts is self.aliases.outward else self.known_in
        known[at] = 0
        return self.inner_give(firsts, lengths, at, buf, off, n)

    def expiring(self):
        # Was a message stored that expires, since this was called last, and does any wait?
        found = self.g[_G_EXPIRING]
        self.g[_G_EXPIRING] = 0
        return found and _is_any(self.queued, len(self.queued))

    @micropython.viper
    def fast_path(self, c, conn: int, buf, at: int, end: int) -> int:
        o = ptr32(c)
        stats = ptr32(int(o) - o[_STATS])
        b = ptr8(buf)
        g = self.g
        # Has publish() taken the last packet? It may take a first one that others follow.
        goes_on = 1 if end - at > _BURST else 0
        while at + 1 < end:
            if not goes_on or b[at] >> 4 ^ 3:
                goes_on = 0
                at = int(without_properties(c, conn, buf, at, end))
                if at + 1 >= end or b[at] >> 4 ^ 3:
                    return at
            n = int(publish(c, g, conn, buf, at, end))
            if n:
                goes_on = 1
                at += n
                stats[_PUBLISH_IN] = stats[_PUBLISH_IN] + 1
                stats[_PACKETS_IN] = stats[_PACKETS_IN] + 1
                stats[_BYTES_IN] = stats[_BYTES_IN] + n
            elif goes_on:
                goes_on = 0
            else:
                return at
        return at

    def send(self, columns, session, conn, most):
        return send(columns, self.g, session, conn, most)


@micropython.viper
def _is_any(counts: ptr16, n: int) -> int:
    while n:
        n -= 1
        if counts[n]:
            return 1
    return 0


@micropython.viper
def _forget(known: ptr16, n: int, value: int):
    while n:
        n -= 1
        if not known[n] ^ value:
            known[n] = 0


@micropython.viper
def publish(c, g5, conn: int, buf, start: int, end: int) -> int:
    # The PUBLISH at buf[start]; -> its length. 0, and nothing is changed: see publish() of
    # path_viper.py, or it sets an alias, expires and does not say so first, or a receiver is its
    # sender, may not accept such a packet, would get a new alias or has several identifiers.
    o = ptr32(c)
    g = ptr32(g5)
    b = ptr8(buf)
    p = ptr32(int(o) - o[_PKT])
    flags = b[start] & 15
    length = b[start + 1]
    at = start + 2
    if flags & 9 or not flags ^ 6 or at >= end or o[_QUEUES] and not flags:
        return 0
    if length >> 7:
        length = (length & 127) | (b[at] << 7)
        at += 1
        if length > 16383 or length < 128:
            return 0
    stop = at + length
    n = stop - start
    if stop > end or length < 3 or n > p[_FAST_MAX]:
        return 0
    size = (b[at] << 8) | b[at + 1]
    at += 2
    end = at + size  # of the topic
    if end > stop or size and not b[at] ^ 36:
        return 0
    p[_START] = start
    p[_TOPIC] = at
    p[_TOPIC_LEN] = size
    p[_END] = stop
    p[_FLAGS] = flags
    if flags:
        p[_PACKET_ID] = (b[end] << 8) | b[end + 1]
        end += 2
        if end > stop:
            return 0
    section = alias = g[_G_EXPIRY] = 0
    if not ptr8(int(o) - o[_C_LEVEL])[conn] ^ 5:
        if end >= stop:
            return 0
        section = b[end]
        end += 1
        if section >> 7:
            section = (section & 127) | (b[end] << 7)
            end += 1
            if section > 16383 or section < 128:
                return 0
        if end + section > stop:
            return 0
        g[_G_ALIAS_AT] = end
        if not section ^ 3 and not b[end] ^ 0x23 and not b[end + 1]:  # as scan() finds it
            alias = b[end + 2]
        if section and not alias:
            alias = int(scan(g5, buf, end, end + section))
            if alias < 0:
                return 0
    p[_PAYLOAD] = end
    g[_G_SECTION] = section
    return n if int(hand_on(c, g5, conn, buf, alias)) else 0


@micropython.viper
def hand_on(c, g5, conn: int, buf, alias: int) -> int:
    # Delivers what publish() has scanned; 0: not here.
    o = ptr32(c)
    g = ptr32(g5)
    p = ptr32(int(o) - o[_PKT])
    slot = -1
    if not alias:
        if p[_TOPIC_LEN]:
            slot = int(find_route(c, buf, p[_TOPIC], p[_TOPIC_LEN]))
    elif alias > ptr16(int(g) - g[_G_ALLOWED])[conn]:
        return 0
    else:
        k = conn * g[_G_MOST] + alias - 1
        if not p[_TOPIC_LEN] | p[_FLAGS] and ptr16(int(g) - g[_G_INWARD_LEN])[k]:
            slot = ptr16(int(g) - g[_G_KNOWN_IN])[k] - 1
        k = ptr32(int(o) - o[_R_STATE])[_GENERATION]
        if slot < 0 or ptr16(int(o) - o[_R_GEN])[slot] ^ k:
            slot = int(route_of(c, g5, conn, alias, buf))
    if slot < 0:
        return 0
    width = o[_SENDERS_WIDTH]
    if width:
        width = slot * width + (conn >> 3)
        if not (ptr8(int(o) - o[_SENDERS])[width] >> (conn & 7)) & 1:
            return 0
    first = ptr16(int(o) - o[_R_FIRST])[slot]
    last = ptr16(int(o) - o[_R_END])[slot]
    mid = ptr16(int(o) - o[_R_MID])[slot]
    level = ptr8(int(o) - o[_C_LEVEL])[conn] ^ 5
    if p[_FLAGS]:
        if not (g[_G_SECTION] or not mid ^ _ODD) or not level and not first ^ last:
            return 0  # path_viper.py does it, or version 5 wants a reason code
        return int(accept_with(c, g5, conn, slot, buf, alias))
    if not (alias or mid ^ (last if level else first)):
        # All receivers get it as it came
        if not g[_G_SECTION]:
            return 0
        k = p[_START]
        return 1 if int(place(c, first, last, buf, k, k - p[_END])) == last else 0
    if not g[_G_SECTION] and last - first < 2 and mid < _ODD:
        return 0  # path_viper.py does that for a single receiver
    if not int(fits(c, g5, conn, slot, 3 if alias else 0)):
        return 0
    if alias:
        if p[_PAYLOAD] ^ g[_G_ALIAS_AT]:
            cut_alias(c, g5, buf)
        else:
            p[_PAYLOAD] = p[_PAYLOAD] + 3
            g[_G_SECTION] = g[_G_SECTION] - 3
    spread(c, g5, slot, buf)
    return 1


@micropython.viper
def route_of(c, g5, conn: int, alias: int, buf) -> int:
    # The route of a client's alias. Its topic goes to `scratch`, with its length before it, where
    # the packet record has it then. -1: there is none, or the PUBLISH has another topic.
    o = ptr32(c)
    g = ptr32(g5)
    b = ptr8(buf)
    p = ptr32(int(o) - o[_PKT])
    at = p[_TOPIC]
    size = p[_TOPIC_LEN]
    alias += conn * g[_G_MOST] - 1
    n = ptr16(int(g) - g[_G_INWARD_LEN])[alias]
    if not n or size and size ^ n:
        return -1
    block = ptr16(int(g) - g[_G_INWARD])[alias]
    d = int(g) + _SCRATCH
    ptr8(d)[0] = n >> 8
    ptr8(d)[1] = n
    d += 2
    k = 0
    space = 0
    while k < n:
        if not space:
            space = g[_G_SIZE]
            s = int(g) - g[_G_DATA] + block * space
            block = ptr16(int(g) - g[_G_NEXT])[block]
        space -= 1
        ptr8(d)[k] = ptr8(s)[0]
        if size and ptr8(s)[0] ^ b[at + k]:
            return -1
        s += 1
        k += 1
    slot = int(find_route(c, g5, _SCRATCH + 2, n))
    if slot >= 0:
        ptr16(int(g) - g[_G_KNOWN_IN])[alias] = slot + 1
        ptr8(int(g) - g[_G_IS_KNOWN])[slot] = 1
    at = d - int(b)
    if at < 0 and g[_G_WIDE] and p[_FLAGS]:
        return -1
    p[_TOPIC] = at
    p[_TOPIC_LEN] = n
    return slot


@micropython.viper
def cut_alias(c, g5, buf):
    # Cuts the alias out of the properties: moves those before it up.
    o = ptr32(c)
    g = ptr32(g5)
    p = ptr32(int(o) - o[_PKT])
    b = ptr8(buf)
    k = g[_G_ALIAS_AT]
    at = p[_PAYLOAD]
    while k > at:
        k -= 1
        b[k + 3] = b[k]
    p[_PAYLOAD] = at + 3
    g[_G_SECTION] = g[_G_SECTION] - 3


@micropython.viper
def accept_with(c, g5, conn: int, slot: int, buf, alias: int) -> int:
    # accept() of path_viper.py with properties, identifiers and groups, and its acknowledgement.
    o = ptr32(c)
    g = ptr32(g5)
    p = ptr32(int(o) - o[_PKT])
    msg = ptr32(int(o) - o[_M_COUNT])[_FIRST_FREE]
    expiry = g[_G_EXPIRY]
    if expiry >> 31:
        return 0
    route = slot
    if not ptr16(int(o) - o[_R_MID])[slot] ^ _ODD:
        if not int(choose(c, g5, slot)):
            return 0
        route = o[_R_MASK] + 1  # the slot past the last, which is for one message
        k = ptr16(int(o) - o[_R_END])[slot]
        ptr16(int(o) - o[_R_FIRST])[route] = k
        k += ptr16(int(g) - g[_G_OPTIONS])[ptr16(int(g) - g[_G_AT])[slot]]
        ptr16(int(o) - o[_R_END])[route] = k
    if expiry:
        p[_PAYLOAD] = p[_PAYLOAD] + 5
        g[_G_SECTION] = g[_G_SECTION] - 5
    if alias:
        cut_alias(c, g5, buf)
    if not int(accept(c, conn, route, buf)):
        if alias:
            put_back(c, g5, buf, alias)
        return 0
    if g[_G_SECTION] | expiry:
        cells = ptr8(int(o) - o[_M_FLAGS])
        cells[msg] = cells[msg] | _EXTRA
        ptr16(int(g) - g[_G_PROPS])[msg] = g[_G_SECTION]
        if expiry:
            g[_G_EXPIRING] = 1
            expiry += ptr32(int(o) - o[_CLOCK])[_NOW]
        ptr32(int(g) - g[_G_EXPIRES])[msg] = expiry
        ptr8(int(g) - g[_G_FAR])[msg] = 0
    if route ^ slot:
        note(c, g5, slot)
    put_ack(c, conn, ((p[_FLAGS] & 6) << 3) + 0x30, p[_PACKET_ID])
    stats = ptr32(int(o) - o[_STATS])
    stats[_PACKETS_OUT] = stats[_PACKETS_OUT] + 1
    return 1


@micropython.viper
def put_back(c, g5, buf, alias: int):
    # Undoes cut_alias().
    o = ptr32(c)
    g = ptr32(g5)
    p = ptr32(int(o) - o[_PKT])
    b = ptr8(buf)
    k = p[_PAYLOAD] - 3
    while k < g[_G_ALIAS_AT]:
        b[k] = b[k + 3]
        k += 1
    b[k] = 0x23
    b[k + 1] = alias >> 8
    b[k + 2] = alias


@micropython.viper
def scan(g5, buf, at: int, stop: int) -> int:
    # Checks the properties buf[at:stop]; -> the alias, or 0. -1: there is another property, or a
    # wrong one. Notes a message expiry if it comes first: in tenths of a second, or -1 if that is
    # too long for the fast path to store it.
    g = ptr32(g5)
    b = ptr8(buf)
    alias = 0
    seen = 0
    if not b[at] ^ 2:
        n = b[at + 1] << 24 | b[at + 2] << 16 | b[at + 3] << 8 | b[at + 4]
        if at + 5 > stop or not n:
            return -1
        g[_G_EXPIRY] = -1 if b[at + 1] >> 1 else n * 10
        at += 5
    while at < stop:
        name = b[at]
        at += 1
        if not name ^ 0x23:
            if alias or at + 2 > stop:
                return -1
            g[_G_ALIAS_AT] = at - 1
            alias = b[at] << 8 | b[at + 1]
            at += 2
            if not alias:
                return -1
        elif not name ^ 1:
            if seen & 2 or at >= stop or b[at] >> 1:
                return -1
            seen |= 2
            at += 1
        else:
            texts = 1
            if not name ^ 0x26:
                texts = 2
            elif name ^ 3 and name ^ 8 and name ^ 9:
                return -1
            else:
                if (seen >> name) & 1:
                    return -1
                seen |= 1 << name
            while texts:
                if at + 2 > stop:
                    return -1
                n = b[at] << 8 | b[at + 1]
                at += 2
                end = at + n
                if end > stop or not n and not name ^ 8:
                    return -1
                if name ^ 9:
                    k = at
                    while k < end:
                        char = b[k]
                        k += 1
                        if not char or char >> 7 or not name ^ 8 and (char == 35 or char == 43):
                            if not int(utf8_ok(buf, at, n, 0 if name ^ 8 else 1)):
                                return -1
                            k = end
                at = end
                texts -= 1
    return alias
