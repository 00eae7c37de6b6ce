# properties_viper.py - the fast path for what fast/path_viper.py leaves of MQTT 5.0, on
# MicroPython, in viper: PUBLISH with properties that are only passed on, topic aliases in both
# directions. v5/quick_properties.py puts it in place where the heap is large. Owns the table `g`
# of the columns of version 5, which the class allocates; nothing else here allocates.
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

_NONE = const(0xFFFF)
_RELEASED = const(3)
_EXTRA = const(8)
_FLAGS = const(1)
_END = const(4)
_PACKET_ID = const(6)
_TOPIC = const(7)
_TOPIC_LEN = const(8)
_PAYLOAD = const(9)
_PACKET_MAX = const(10)
_PACKETS_IN = const(0)
_PACKETS_OUT = const(1)
_PUBLISH_IN = const(2)
_BYTES_IN = const(5)
# Positions in other rows of tables/
_SIZE = const(2)
_DIRTY_CONNS = const(0)
_PUBLISHES = const(1)
_FIRST_FREE = const(2)
# Indexes of the table of columns
_C_OUT = const(6)
_C_TX_END = const(7)
_C_TX_LIMIT = const(8)
_C_TX = const(9)
_C_DIRTY = const(10)
_C_COUNTS = const(11)
_POOL = const(12)
_S_CONN = const(13)
_D_MSG = const(15)
_D_NEXT = const(17)
_D_STATE = const(18)
_D_FLAGS = const(19)
_S_CURSOR = const(23)
_S_QUEUED = const(24)
_S_INFLIGHT = const(25)
_M_FIRST = const(29)
_M_COUNT = const(31)
_M_TOPIC_LEN = const(32)
_M_PAYLOAD_LEN = const(33)
_M_FLAGS = const(34)
_M_ARENA_STATE = const(37)
_M_ARENA_NEXT = const(38)
_M_ARENA_DATA = const(39)
_STATS = const(41)
_PKT = const(43)
_R_FIRST = const(47)
_R_END = const(48)
_ALIGN_AT = const(54)
_SENDERS = const(62)
_SENDERS_WIDTH = const(63)
_C_LEVEL = const(64)
_R_MID = const(65)
# Indexes of the table of version 5, as Quick makes it
_G_PROPS = const(0)
_G_EXPIRES = const(1)
_G_LARGEST = const(2)
_G_INWARD = const(3)
_G_INWARD_LEN = const(4)
_G_OUTWARD = const(5)
_G_OUTWARD_LEN = const(6)
_G_OFFERED = const(7)
_G_ALLOWED = const(8)
_G_SIZE = const(9)  # of a block of the aliases
_G_NEXT = const(10)
_G_DATA = const(11)
_G_MOST = const(12)  # aliases of a connection
_G_WIDE = const(13)  # are addresses wider than 32 bits?
_G_ALIAS_AT = const(14)  # where scan() has found an alias
_G_SECTION = const(15)  # bytes of the properties that are passed on
# The connection whose alias fits() has looked up last, and that alias
_G_CONN = const(16)
_G_ALIAS = const(17)
# Where `scratch` is in the table, in bytes: a topic, with its length before it. The table lies
# behind the buffers of packets, so the packet record can have its distance from there.
_SCRATCH = const(80)
_BURST = const(256)  # bytes of a read that has more than a packet or two


class Quick:
    def __init__(self, broker):
        five = broker.five
        a = five.aliases
        p = (five.props, five.expires, five.packet_max, a.inward, a.inward_len, a.outward)
        p += (a.outward_len, a.offered, a.allowed, a.arena.size, a.arena.next, a.arena.data)
        p += (a.most, 1 if sys.maxsize >> 32 else 0, 0, 0, 0, 0, broker.rx, broker.conns.partial)
        self.g = table(p + (0,) * ((broker.limits.topic_bytes + 5) // 4))

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
def publish(c, g5, conn: int, buf, start: int, end: int) -> int:
    # The PUBLISH at buf[start]; -> its length. 0, and nothing is changed: see publish() of
    # path_viper.py, or it expires, sets an alias, has no properties at QoS 1 or 2, or a receiver
    # is its sender, accepts no such packet, or would get a new alias.
    o = ptr32(c)
    g = ptr32(g5)
    b = ptr8(buf)
    flags = b[start] & 15
    length = b[start + 1]
    at = start + 2
    if flags & 9 or not flags ^ 6 or at >= end:
        return 0
    if length >> 7:
        length = (length & 127) | (b[at] << 7)
        at += 1
        if length > 16383 or length < 128:
            return 0
    stop = at + length
    n = stop - start
    p = ptr32(int(o) - o[_PKT])
    if stop > end or length < 3 or n > p[_PACKET_MAX]:
        return 0
    size = (b[at] << 8) | b[at + 1]
    at += 2
    end = at + size  # of the topic
    if end > stop or size and not b[at] ^ 36:
        return 0
    if flags:
        if end + 2 > stop:
            return 0
        p[_PACKET_ID] = (b[end] << 8) | b[end + 1]
        end += 2
    section = 0
    alias = 0
    level = ptr8(int(o) - o[_C_LEVEL])[conn] ^ 5
    if not level:
        if end >= stop:
            return 0
        section = b[end]
        end += 1
        if section >> 7:
            if end >= stop:
                return 0
            section = (section & 127) | (b[end] << 7)
            end += 1
            if section > 16383 or section < 128:
                return 0
        if end + section > stop:
            return 0
        if section:
            g[_G_ALIAS_AT] = end
            if not section ^ 3 and not b[end] ^ 0x23 and not b[end + 1]:  # as scan() finds it
                alias = b[end + 2]
            if not alias:
                alias = int(scan(g5, buf, end, end + section))
                if alias < 0 or flags and alias >> 16:
                    return 0
                alias &= 0xFFFF
    if flags and not section:
        return 0
    if alias:
        size = int(topic_of(g5, conn, alias, buf, at, size))
        if not size:
            return 0
        # from here on the topic is in `scratch`, so its offset is from there to buf
        at = int(g) + _SCRATCH + 2 - int(b)
        if at < 0 and g[_G_WIDE]:
            return 0
    slot = int(find_route(c, buf, at, size)) if size else -1
    if slot < 0:
        return 0
    length = o[_SENDERS_WIDTH]
    if length:
        length = slot * length + (conn >> 3)
        if not (ptr8(int(o) - o[_SENDERS])[length] >> (conn & 7)) & 1:
            return 0
    p[_TOPIC] = at
    p[_TOPIC_LEN] = size
    p[_PAYLOAD] = end
    p[_END] = stop
    p[_FLAGS] = flags
    g[_G_SECTION] = section
    at = ptr16(int(o) - o[_R_FIRST])[slot]
    size = ptr16(int(o) - o[_R_END])[slot]
    if flags or alias or ptr16(int(o) - o[_R_MID])[slot] ^ (size if level else at):
        return n if int(hand_on(c, g5, conn, slot, buf, alias)) else 0
    # All receivers get it as it came
    return n if section and int(place(c, at, size, buf, start, -n)) == size else 0


@micropython.viper
def hand_on(c, g5, conn: int, slot: int, buf, alias: int) -> int:
    # Delivers what publish() has scanned; 0: not here.
    o = ptr32(c)
    p = ptr32(int(o) - o[_PKT])
    if p[_FLAGS]:
        if not ptr16(int(o) - o[_R_FIRST])[slot] ^ ptr16(int(o) - o[_R_END])[slot]:
            return 0  # version 5 wants a reason code, since nobody subscribes
        return int(accept_with(c, g5, conn, slot, buf, alias))
    at = ptr16(int(o) - o[_R_END])[slot] - ptr16(int(o) - o[_R_FIRST])[slot]
    if not ptr32(g5)[_G_SECTION] and ptr16(int(o) - o[_R_MID])[slot] ^ _NONE and at < 2:
        return 0  # path_viper.py does that for a single receiver
    if not int(fits(c, g5, conn, slot, buf, 3 if alias else 0)):
        return 0
    if alias:
        if p[_PAYLOAD] ^ ptr32(g5)[_G_ALIAS_AT]:
            cut_alias(c, g5, buf)
        else:
            p[_PAYLOAD] = p[_PAYLOAD] + 3
            ptr32(g5)[_G_SECTION] = ptr32(g5)[_G_SECTION] - 3
    spread(c, g5, slot, buf)
    return 1


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
    # accept() of path_viper.py with properties, and its acknowledgement.
    o = ptr32(c)
    g = ptr32(g5)
    p = ptr32(int(o) - o[_PKT])
    b = ptr8(buf)
    msg = ptr32(int(o) - o[_M_COUNT])[_FIRST_FREE]
    if alias:
        cut_alias(c, g5, buf)
    if not int(accept(c, conn, slot, buf)):
        if alias:  # put it back
            k = p[_PAYLOAD] - 3
            while k < g[_G_ALIAS_AT]:
                b[k] = b[k + 3]
                k += 1
            b[k] = 0x23
            b[k + 1] = alias >> 8
            b[k + 2] = alias
        return 0
    if g[_G_SECTION]:
        cells = ptr8(int(o) - o[_M_FLAGS])
        cells[msg] = cells[msg] | _EXTRA
        ptr16(int(g) - g[_G_PROPS])[msg] = g[_G_SECTION]
        ptr32(int(g) - g[_G_EXPIRES])[msg] = 0
    put_ack(c, conn, ((p[_FLAGS] & 6) << 3) + 0x30, p[_PACKET_ID])
    stats = ptr32(int(o) - o[_STATS])
    stats[_PACKETS_OUT] = stats[_PACKETS_OUT] + 1
    return 1


@micropython.viper
def scan(g5, buf, at: int, stop: int) -> int:
    # Checks the properties buf[at:stop]; -> the alias, or 0; 65536 more if the message expires,
    # which is passed on at QoS 0 if it comes first. -1: there is another property, or a wrong one.
    g = ptr32(g5)
    b = ptr8(buf)
    alias = 0
    seen = 0
    expires = 0
    if not b[at] ^ 2:
        if at + 5 > stop or not b[at + 1] | b[at + 2] | b[at + 3] | b[at + 4]:
            return -1
        expires = 0x10000
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
    return alias | expires


@micropython.viper
def topic_of(g5, conn: int, alias: int, buf, at: int, size: int) -> int:
    # Copies the topic of a client's alias to `scratch`, with its length before it; -> its length.
    # 0: it has none, or the PUBLISH has another topic, buf[at:at + size].
    g = ptr32(g5)
    b = ptr8(buf)
    if alias > ptr16(int(g) - g[_G_ALLOWED])[conn]:
        return 0
    alias += conn * g[_G_MOST] - 1
    n = ptr16(int(g) - g[_G_INWARD_LEN])[alias]
    if not n or size and size ^ n:
        return 0
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
            return 0
        s += 1
        k += 1
    return n


@micropython.viper
def alias_for(g5, conn: int, buf, at: int, n: int) -> int:
    # The alias that the client knows for the topic buf[at:at + n]; 0: it has none and gets none,
    # -1: it would get a new one.
    g = ptr32(g5)
    b = ptr8(buf)
    k = conn * g[_G_MOST]
    end = k + ptr16(int(g) - g[_G_OFFERED])[conn]
    if n < 4:
        return 0
    while k < end:
        size = ptr16(int(g) - g[_G_OUTWARD_LEN])[k]
        if not size:
            return -1
        if not size ^ n:
            block = ptr16(int(g) - g[_G_OUTWARD])[k]
            i = 0
            space = 0
            while i < n:
                if not space:
                    space = g[_G_SIZE]
                    s = int(g) - g[_G_DATA] + block * space
                    block = ptr16(int(g) - g[_G_NEXT])[block]
                space -= 1
                if ptr8(s)[0] ^ b[at + i]:
                    break
                s += 1
                i += 1
            if not i ^ n:
                return k - conn * g[_G_MOST] + 1
        k += 1
    return 0


@micropython.viper
def fits(c, g5, sender: int, slot: int, buf, cut: int) -> int:
    # Can spread() send the QoS 0 PUBLISH to all receivers of the route, when so many bytes of its
    # properties are cut? 0: no.
    o = ptr32(c)
    g = ptr32(g5)
    p = ptr32(int(o) - o[_PKT])
    topic_len = p[_TOPIC_LEN]
    section = g[_G_SECTION] - cut
    rest = p[_END] - p[_PAYLOAD] - cut + 2
    i = ptr16(int(o) - o[_R_FIRST])[slot]
    end = ptr16(int(o) - o[_R_END])[slot]
    while i < end:
        conn = ptr16(int(o) - o[_S_CONN])[ptr16(int(o) - o[_POOL])[i] >> 2]
        i += 1
        if conn ^ _NONE:
            if not conn ^ sender or ptr8(int(o) - o[_C_LEVEL])[conn] > 5:
                return 0
            n = rest + topic_len - section
            most = k = 0
            if not ptr8(int(o) - o[_C_LEVEL])[conn] ^ 5:
                n = rest + topic_len + 1
                k = section
                if ptr16(int(g) - g[_G_OFFERED])[conn]:
                    alias = int(alias_for(g5, conn, buf, p[_TOPIC], topic_len))
                    if alias < 0:
                        return 0
                    g[_G_CONN] = conn
                    g[_G_ALIAS] = alias
                    if alias:
                        n += 3 - topic_len
                        k += 3
                if k >> 7:
                    n += 1
                most = ptr32(int(g) - g[_G_LARGEST])[conn]
            if n >> 14 or k >> 14:
                return 0
            n += 2
            if n > 129:
                n += 1
            if most and n > most:
                return 0
            if ptr32(int(o) - o[_C_TX_END])[conn] + n > ptr32(int(o) - o[_C_TX_LIMIT])[conn]:
                return 0
    return 1


@micropython.viper
def spread(c, g5, slot: int, buf):
    # The QoS 0 PUBLISH of p to each receiver, as fits() has found that it can be.
    o = ptr32(c)
    g = ptr32(g5)
    p = ptr32(int(o) - o[_PKT])
    i = ptr16(int(o) - o[_R_FIRST])[slot]
    end = ptr16(int(o) - o[_R_END])[slot]
    of_3 = 0  # where the packet of each version is, that can be copied
    of_5 = 0
    while i < end:
        conn = ptr16(int(o) - o[_S_CONN])[ptr16(int(o) - o[_POOL])[i] >> 2]
        i += 1
        if not conn ^ _NONE:
            continue
        alias = 0
        topic_len = p[_TOPIC_LEN]
        section = g[_G_SECTION]
        s = int(ptr8(buf)) + p[_PAYLOAD]
        left = p[_END] - p[_PAYLOAD]  # of the packet, behind what is put here
        five = ptr8(int(o) - o[_C_LEVEL])[conn] ^ 5
        if five:
            s += section
            left -= section
            n = left + topic_len + 2
        else:
            if ptr16(int(g) - g[_G_OFFERED])[conn]:
                alias = g[_G_ALIAS]
                if conn ^ g[_G_CONN]:
                    alias = int(alias_for(g5, conn, buf, p[_TOPIC], topic_len))
                if alias:
                    topic_len = 0
                    section += 3
            n = p[_END] - p[_PAYLOAD] + topic_len + 3
            if alias:
                n += 3
            if section >> 7:
                n += 1
        size = n + 2
        if n >> 7:
            size += 1
        cells = ptr32(int(o) - o[_C_TX_END])
        d = cells[conn]
        cells[conn] = d + size
        d += int(o) - o[_C_TX]
        cells = ptr32(int(o) - o[_C_COUNTS])
        cells[_PUBLISHES] = cells[_PUBLISHES] + 1
        out = ptr8(int(o) - o[_C_OUT])
        if not out[conn]:
            out[conn] = 1
            ptr16(int(o) - o[_C_DIRTY])[cells[_DIRTY_CONNS]] = conn
            cells[_DIRTY_CONNS] = cells[_DIRTY_CONNS] + 1
        k = of_3 if five else of_5
        if k and not alias:
            s = k
            left = size
        else:
            if five:
                of_3 = d
            elif not alias:
                of_5 = d
            ptr8(d)[0] = 0x30
            d += 1
            if n >> 7:
                ptr8(d)[0] = n | 128
                d += 1
                n >>= 7
            ptr8(d)[0] = n
            ptr8(d)[1] = topic_len >> 8
            ptr8(d)[2] = topic_len
            d += 3
            k = int(ptr8(buf)) + p[_TOPIC]
            n = k + topic_len
            while k < n:
                ptr8(d)[0] = ptr8(k)[0]
                d += 1
                k += 1
            if not five:
                if section >> 7:
                    ptr8(d)[0] = section | 128
                    d += 1
                    section >>= 7
                ptr8(d)[0] = section
                d += 1
                if alias:
                    ptr8(d)[0] = 0x23
                    ptr8(d)[1] = alias >> 8
                    ptr8(d)[2] = alias
                    d += 3
        n = s + left
        if not (d | s) & o[_ALIGN_AT]:
            k = n - 3
            while s < k:
                ptr32(d)[0] = ptr32(s)[0]
                d += 4
                s += 4
        while s < n:
            ptr8(d)[0] = ptr8(s)[0]
            d += 1
            s += 1


@micropython.viper
def send(c, g5, session: int, conn: int, most: int) -> int:
    # send() of deliveries_viper.py for a client of version 5, with properties and aliases. 2: the
    # delivery expires, came by a group, has an identifier, would get a new alias or is too large.
    o = ptr32(c)
    cursors = ptr16(int(o) - o[_S_CURSOR])
    states = ptr8(int(o) - o[_D_STATE])
    flags = ptr8(int(o) - o[_D_FLAGS])
    while cursors[session] ^ _NONE:
        entry = cursors[session]
        if not states[entry] ^ _RELEASED or not flags[entry] & 6:
            return 2
        inflight = ptr16(int(o) - o[_S_INFLIGHT])
        if inflight[session] >= most:
            if not states[entry]:
                return 0
            if inflight[session] ^ most:
                return 2
        if flags[entry] >> 6:
            return 2
        done = int(put(c, g5, conn, entry))
        if done ^ 3:
            return done
        counts = ptr32(int(o) - o[_C_COUNTS])
        counts[_PUBLISHES] = counts[_PUBLISHES] + 1
        if not states[entry]:
            states[entry] = (flags[entry] >> 1) & 3
            flags[entry] = flags[entry] | 8
            inflight[session] = inflight[session] + 1
            inflight = ptr16(int(o) - o[_S_QUEUED])
            inflight[session] = inflight[session] - 1
        cursors[session] = ptr16(int(o) - o[_D_NEXT])[entry]
    return 0


@micropython.viper
def put(c, g5, conn: int, entry: int) -> int:
    # The PUBLISH of a delivery into tx. -> 3: it is there, 1: no space, 2: see send().
    o = ptr32(c)
    g = ptr32(g5)
    msg = ptr16(int(o) - o[_D_MSG])[entry]
    flags = ptr8(int(o) - o[_D_FLAGS])[entry]
    topic_len = ptr16(int(o) - o[_M_TOPIC_LEN])[msg]
    left = ptr32(int(o) - o[_M_PAYLOAD_LEN])[msg]  # with the properties
    section = 0
    if ptr8(int(o) - o[_M_FLAGS])[msg] & _EXTRA:
        if ptr32(int(g) - g[_G_EXPIRES])[msg]:
            return 2
        section = ptr16(int(g) - g[_G_PROPS])[msg]
    size = ptr32(int(o) - o[_M_ARENA_STATE])[_SIZE]
    chain = ptr16(int(o) - o[_M_ARENA_NEXT])
    block = ptr16(int(o) - o[_M_FIRST])[msg]
    skip = 0  # bytes of the chain that are not sent
    alias = 0
    if not flags & 4 and ptr16(int(g) - g[_G_OFFERED])[conn]:
        _topic_into(c, g5, block, topic_len)
        alias = int(alias_for(g5, conn, g5, _SCRATCH + 2, topic_len))
        if alias < 0:
            return 2
    n = topic_len + left + 5
    if alias:
        skip = topic_len + 2
        n = left + 8
        section += 3
    if section >> 7:
        n += 1
    if section >> 14 or n >> 14:
        return 2
    k = n + 2
    if n >> 7:
        k += 1
    cells = ptr32(int(g) - g[_G_LARGEST])
    if cells[conn] and k > cells[conn]:
        return 2
    cells = ptr32(int(o) - o[_C_TX_END])
    d = cells[conn]
    if d + k > ptr32(int(o) - o[_C_TX_LIMIT])[conn]:
        return 1
    cells[conn] = d + k
    d += int(o) - o[_C_TX]
    out = ptr8(int(o) - o[_C_OUT])
    if not out[conn]:
        out[conn] = 1
        cells = ptr32(int(o) - o[_C_COUNTS])
        ptr16(int(o) - o[_C_DIRTY])[cells[_DIRTY_CONNS]] = conn
        cells[_DIRTY_CONNS] = cells[_DIRTY_CONNS] + 1
    ptr8(d)[0] = (flags & 15) | 0x30
    d += 1
    if n >> 7:
        ptr8(d)[0] = n | 128
        d += 1
        n >>= 7
    ptr8(d)[0] = n
    d += 1
    while skip > size:
        skip -= size
        block = chain[block]
    s = int(o) - o[_M_ARENA_DATA] + block * size + skip
    space = size - skip
    n = topic_len + 2
    if alias:
        ptr8(d)[0] = 0
        ptr8(d)[1] = 0
        d += 2
        n = 0
    while True:
        while n:
            if not space:
                block = chain[block]
                space = size
                s = int(o) - o[_M_ARENA_DATA] + block * size
            k = space if space < n else n
            n -= k
            space -= k
            k += s
            if not (d | s) & o[_ALIGN_AT]:
                words = k - 3
                while s < words:
                    ptr32(d)[0] = ptr32(s)[0]
                    d += 4
                    s += 4
            while s < k:
                ptr8(d)[0] = ptr8(s)[0]
                d += 1
                s += 1
        if left < 0:
            return 3
        entry += 1
        ptr8(d)[0] = entry >> 8
        ptr8(d)[1] = entry
        d += 2
        if section >> 7:
            ptr8(d)[0] = section | 128
            d += 1
            section >>= 7
        ptr8(d)[0] = section
        d += 1
        if alias:
            ptr8(d)[0] = 0x23
            ptr8(d)[1] = alias >> 8
            ptr8(d)[2] = alias
            d += 3
        n = left
        left = -1


@micropython.viper
def _topic_into(c, g5, block: int, n: int):
    # Copies the topic of a message, whose first block it is, to `scratch`.
    o = ptr32(c)
    g = ptr32(g5)
    d = int(g) + _SCRATCH
    n += d + 2
    space = 0
    while d < n:
        if not space:
            space = ptr32(int(o) - o[_M_ARENA_STATE])[_SIZE]
            s = int(o) - o[_M_ARENA_DATA] + block * space
            block = ptr16(int(o) - o[_M_ARENA_NEXT])[block]
        space -= 1
        ptr8(d)[0] = ptr8(s)[0]
        d += 1
        s += 1
