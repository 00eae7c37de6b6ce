# receivers_viper.py - what leaves the fast path of properties_viper.py, on MicroPython, in viper:
# a QoS 0 PUBLISH to all receivers of a route, each with its own alias and identifiers; the choice
# of a member of a group; deliveries to clients of version 5. Nothing here allocates.
#
# o or c: the table of columns, fast/columns.py. g or g5: that of version 5, as Quick of
# properties_viper.py makes it. The routes with options are those of v5/option_routes.py.
import micropython
from micropython import const

from slotmq.fast.messages_viper import place

_NONE = const(0xFFFF)
_ODD = const(0xFFFE)
_MANY_IDENTS = const(0xFFFE)
_RELEASED = const(3)
_EXTRA = const(8)
_BY = const(64)  # flag of a delivery
_FLAGS = const(1)
_END = const(4)
_TOPIC_LEN = const(8)
_PAYLOAD = const(9)
# Positions in other rows of tables/
_SIZE = const(2)
_FREE_BLOCKS = const(1)
_DIRTY_CONNS = const(0)
_PUBLISHES = const(1)
_IN_USE = const(0)
_FIRST_FREE = const(2)
_QUOTA_DELIVERIES = const(5)
_MORE_QUEUED = const(6)
_MAX_INFLIGHT = const(0)
_MAX_QUEUED = const(1)
_QUOTA_SLOTS = const(2)
_QUOTA_BLOCKS = const(3)
_NOW = const(0)
# Indexes of the table of columns
_R_TOPIC_BYTES = const(1)
_R_LEN = const(3)
_R_TEXT = const(4)
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
_D_COUNT = const(20)
_S_TAIL = const(22)
_S_CURSOR = const(23)
_S_QUEUED = const(24)
_S_INFLIGHT = const(25)
_D_WINDOW = const(27)
_M_FIRST = const(29)
_M_COUNT = const(31)
_M_TOPIC_LEN = const(32)
_M_PAYLOAD_LEN = const(33)
_M_FLAGS = const(34)
_M_ARENA_STATE = const(37)
_M_ARENA_NEXT = const(38)
_M_ARENA_DATA = const(39)
_CLOCK = const(42)
_PKT = const(43)
_R_FIRST = const(47)
_R_END = const(48)
_ALIGN_AT = const(54)
_C_LEVEL = const(64)
_R_MID = const(65)
# Indexes of the table of version 5
_G_PROPS = const(0)
_G_EXPIRES = const(1)
_G_LARGEST = const(2)
_G_OUTWARD = const(5)
_G_OUTWARD_LEN = const(6)
_G_OFFERED = const(7)
_G_SIZE = const(9)
_G_NEXT = const(10)
_G_DATA = const(11)
_G_MOST = const(12)
_G_KNOWN_OUT = const(14)  # as _G_KNOWN_IN of properties_viper.py
_G_FAR = const(15)
_G_AT = const(16)
_G_OPTIONS = const(17)
_G_IDENTIFIER = const(18)
_G_IDENT = const(19)
_G_GROUP = const(20)
_G_LAST = const(21)
_G_SECTION = const(24)
# The connection whose alias fits() has looked up last, and that alias
_G_CONN = const(27)
_G_ALIAS = const(28)
_G_IS_KNOWN = const(29)
# What put() has found for put_body()
_G_OWN_ALIAS = const(30)
_G_OWN_IDENT = const(31)
_G_OWN_EXPIRY = const(32)
_G_OWN_SECTION = const(33)
_SCRATCH = const(136)
_MOST_HEAD = const(10)  # most bytes beside topic, properties and payload, with an alias


@micropython.viper
def fits(c, g5, sender: int, slot: int, cut: int) -> int:
    # Can spread() send the QoS 0 PUBLISH to all receivers of the route, when so many bytes of its
    # properties are cut? 0: no, or perhaps not, as its size is not computed for each.
    o = ptr32(c)
    g = ptr32(g5)
    p = ptr32(int(o) - o[_PKT])
    n = p[_END] - p[_PAYLOAD] - cut + ptr16(int(o) - o[_R_LEN])[slot] + _MOST_HEAD
    data = ptr16(int(g) - g[_G_OPTIONS])
    i = ptr16(int(o) - o[_R_FIRST])[slot]
    end = ptr16(int(o) - o[_R_END])[slot]
    odd = base = 0
    if not ptr16(int(o) - o[_R_MID])[slot] ^ _ODD:
        odd = int(choose(c, g5, slot))
        if not odd:
            return 0
        base = ptr16(int(g) - g[_G_AT])[slot]
        i = end
        end += data[base]
        base += 3 - i
    while i < end:
        conn = ptr16(int(o) - o[_S_CONN])[ptr16(int(o) - o[_POOL])[i] >> 2]
        size = n
        if odd:
            size += data[data[base + i] + 2]
        i += 1
        if conn ^ _NONE:
            if not conn ^ sender or size >> 14:
                return 0
            k = ptr8(int(o) - o[_C_LEVEL])[conn]
            if not k ^ 6:
                return 0
            if not k ^ 5:
                k = ptr32(int(g) - g[_G_LARGEST])[conn]
                if k and size > k:
                    return 0
                if ptr16(int(g) - g[_G_OFFERED])[conn]:
                    k = int(alias_of(c, g5, conn, slot))
                    if k < 0:
                        return 0
                    g[_G_CONN] = conn
                    g[_G_ALIAS] = k
            if ptr32(int(o) - o[_C_TX_END])[conn] + size > ptr32(int(o) - o[_C_TX_LIMIT])[conn]:
                return 0
    return 1


@micropython.viper
def spread(c, g5, slot: int, buf):
    # The QoS 0 PUBLISH of p to each receiver, as fits() has found that it can be.
    o = ptr32(c)
    g = ptr32(g5)
    p = ptr32(int(o) - o[_PKT])
    tx_end = ptr32(int(o) - o[_C_TX_END])
    counts = ptr32(int(o) - o[_C_COUNTS])
    data = ptr16(int(g) - g[_G_OPTIONS])
    i = ptr16(int(o) - o[_R_FIRST])[slot]
    end = ptr16(int(o) - o[_R_END])[slot]
    odd = base = 0
    if not ptr16(int(o) - o[_R_MID])[slot] ^ _ODD:
        note(c, g5, slot)
        odd = 1
        base = ptr16(int(g) - g[_G_AT])[slot]
        i = end
        end += data[base]
        base += 3 - i
    mid = ptr16(int(o) - o[_R_MID])[slot]
    made = n = 0  # the packet that the others of its version get too, if these do not differ
    while i < end:
        conn = ptr16(int(o) - o[_S_CONN])[ptr16(int(o) - o[_POOL])[i] >> 2]
        if n:
            k = mid if i < mid else end
            place(c, i, k, c, made, n)
            i = k
            n = 0
            continue
        record = data[base + i] if odd else 0
        i += 1
        if not conn ^ _NONE:
            continue
        five = ptr8(int(o) - o[_C_LEVEL])[conn] ^ 5
        alias = 0
        if not five and ptr16(int(g) - g[_G_OFFERED])[conn]:
            alias = g[_G_ALIAS] if not conn ^ g[_G_CONN] else int(alias_of(c, g5, conn, slot))
        s = int(ptr8(buf)) + p[_PAYLOAD] + (g[_G_SECTION] if five else 0)
        k = int(ptr8(buf)) + p[_END]
        d = int(put_head(c, g5, conn, slot, record, alias))
        if mid < _ODD and i ^ mid:
            made = tx_end[conn] + (int(o) - o[_C_TX] - int(o))  # from the table on
            n = d + k - s - tx_end[conn]
        tx_end[conn] = d + k - s
        counts[_PUBLISHES] = counts[_PUBLISHES] + 1
        if not ptr8(int(o) - o[_C_OUT])[conn]:
            mark_dirty(c, conn)
        d += int(o) - o[_C_TX]
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


@micropython.viper
def mark_dirty(c, conn: int):
    # There is something to be flushed to a connection that was idle.
    o = ptr32(c)
    counts = ptr32(int(o) - o[_C_COUNTS])
    ptr8(int(o) - o[_C_OUT])[conn] = 1
    ptr16(int(o) - o[_C_DIRTY])[counts[_DIRTY_CONNS]] = conn
    counts[_DIRTY_CONNS] = counts[_DIRTY_CONNS] + 1


@micropython.viper
def put_head(c, g5, conn: int, slot: int, record: int, alias: int) -> int:
    # The QoS 0 PUBLISH of p into tx, as far as the properties that are passed on, or the payload
    # of version 3; -> where it ends in tx. record: of its identifiers, or 0.
    o = ptr32(c)
    g = ptr32(g5)
    p = ptr32(int(o) - o[_PKT])
    topic_len = ptr16(int(o) - o[_R_LEN])[slot]
    section = g[_G_SECTION]
    n = p[_END] - p[_PAYLOAD] - section
    five = ptr8(int(o) - o[_C_LEVEL])[conn] ^ 5
    own = int(g) - g[_G_OPTIONS] + 2 * record + 4  # where the record has its identifiers
    size = 0
    if not five:
        if record:
            size = ptr16(own)[0]
        section += size
        if alias:
            topic_len = 0
            section += 3
        n += section + (2 if section >> 7 else 1)
    n += topic_len + 2
    start = int(o) - o[_C_TX]
    d = start + ptr32(int(o) - o[_C_TX_END])[conn]
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
    s = int(o) - o[_R_TEXT] + slot * o[_R_TOPIC_BYTES]
    n = s + topic_len
    while s < n:
        ptr8(d)[0] = ptr8(s)[0]
        d += 1
        s += 1
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
        own += 2
        n = own + size
        while own < n:
            ptr8(d)[0] = ptr8(own)[0]
            d += 1
            own += 1
    return d - start


@micropython.viper
def choose(c, g5, slot: int) -> int:
    # Chooses a member for each group of a route with options, as Shares.choose() does. 0: quotas
    # of sessions must be asked.
    o = ptr32(c)
    g = ptr32(g5)
    p = ptr32(int(o) - o[_PKT])
    data = ptr16(int(g) - g[_G_OPTIONS])
    at = ptr16(int(g) - g[_G_AT])[slot]
    group = data[at + 1]
    if not group ^ data[at + 2]:
        return 1
    online = 2 if p[_FLAGS] else 8
    inflight = ptr32(int(o) - o[_D_WINDOW])[_MAX_INFLIGHT]
    queued = ptr32(int(o) - o[_D_WINDOW])[_MAX_QUEUED]
    more = ptr32(int(o) - o[_D_COUNT])[_MORE_QUEUED]
    k = p[_END] - p[_PAYLOAD] + ptr16(int(o) - o[_R_LEN])[slot]
    if not int(is_loose(c, k)):
        return 0
    while group ^ data[at + 2]:
        last = ptr16(int(g) - g[_G_LAST])[data[group]]
        rank = -1
        k = group + 3
        end = data[group + 2]
        while k < end:
            session = data[k] >> 2
            fit = 1 if data[k + 1] < last else 0  # also if there is no last one
            waiting = ptr16(int(o) - o[_S_QUEUED])[session] - queued
            if ptr16(int(o) - o[_S_CONN])[session] ^ _NONE:
                fit += online
                waiting += ptr16(int(o) - o[_S_INFLIGHT])[session] - inflight
            if waiting < 0:
                fit += 4
            elif waiting < more:
                return 0
            if fit > rank:
                chosen = k
                rank = fit
                if not fit ^ (5 + online):
                    break  # the next in turn, since those behind it have lower slots
            k += 3 + ((data[k + 2] + 1) >> 1)
        k = data[group + 1]
        data[at + 3 + k] = chosen
        ptr16(int(o) - o[_POOL])[ptr16(int(o) - o[_R_END])[slot] + k] = data[chosen]
        group = data[group + 2]
    return 1


@micropython.viper
def is_loose(c, size: int) -> int:
    # 1: there is so much space that a message of that size may be queued for any session that has
    # space in its queue: is_tight() of delivery/routing.py is false, now and when it is stored.
    o = ptr32(c)
    count = ptr32(int(o) - o[_D_COUNT])
    window = ptr32(int(o) - o[_D_WINDOW])
    arena = ptr32(int(o) - o[_M_ARENA_STATE])
    if count[_IN_USE] >= count[_QUOTA_DELIVERIES] or not count[_FIRST_FREE] ^ _NONE:
        return 0
    if ptr32(int(o) - o[_M_COUNT])[_IN_USE] + 2 > window[_QUOTA_SLOTS]:
        return 0
    spare = (arena[_FREE_BLOCKS] - window[_QUOTA_BLOCKS]) * arena[_SIZE]
    return 1 if spare >= 2 * (size + arena[_SIZE]) else 0


@micropython.viper
def note(c, g5, slot: int):
    # The message of p goes to all receivers of a route with options: a group has another last
    # receiver, and a delivery an identifier or a group.
    o = ptr32(c)
    g = ptr32(g5)
    data = ptr16(int(g) - g[_G_OPTIONS])
    flags = ptr8(int(o) - o[_D_FLAGS])
    qos = ptr32(int(o) - o[_PKT])[_FLAGS]
    at = ptr16(int(g) - g[_G_AT])[slot]
    group = data[at + 1]
    k = at + 3
    at = data[at] + k if qos else k
    while k < at:
        record = data[k]
        k += 1
        if data[record + 2]:
            sub = data[record + 1]
            entry = ptr16(int(o) - o[_S_TAIL])[data[record] >> 2]
            flags[entry] = flags[entry] | _BY
            ptr16(int(g) - g[_G_GROUP])[entry] = _NONE
            sub = -1 if not sub ^ _MANY_IDENTS else ptr32(int(g) - g[_G_IDENTIFIER])[sub]
            ptr32(int(g) - g[_G_IDENT])[entry] = sub
    at = ptr16(int(g) - g[_G_AT])[slot]
    while group ^ data[at + 2]:
        record = data[at + 3 + data[group + 1]]
        sub = data[group]
        ptr16(int(g) - g[_G_LAST])[sub] = data[record + 1]
        if qos:
            entry = ptr16(int(o) - o[_S_TAIL])[data[record] >> 2]
            if not data[record + 2]:
                flags[entry] = flags[entry] | _BY
                ptr32(int(g) - g[_G_IDENT])[entry] = 0
            ptr16(int(g) - g[_G_GROUP])[entry] = sub
        group = data[group + 2]


@micropython.viper
def alias_of(c, g5, conn: int, slot: int) -> int:
    # alias_for() with the topic of a route.
    o = ptr32(c)
    g = ptr32(g5)
    first = k = conn * g[_G_MOST]
    end = k + ptr16(int(g) - g[_G_OFFERED])[conn]
    known = ptr16(int(g) - g[_G_KNOWN_OUT])
    while k < end:
        if not ptr16(int(g) - g[_G_OUTWARD_LEN])[k]:
            break
        if not known[k] ^ (slot + 1):
            return k - first + 1
        k += 1
    k = int(o) - o[_R_TEXT] + slot * o[_R_TOPIC_BYTES] - int(g)
    k = int(alias_for(g5, conn, k, ptr16(int(o) - o[_R_LEN])[slot]))
    if k > 0:
        known[first + k - 1] = slot + 1
        ptr8(int(g) - g[_G_IS_KNOWN])[slot] = 1
    return k


@micropython.viper
def alias_for(g5, conn: int, at: int, n: int) -> int:
    # The alias that the client knows for the topic of n bytes, `at` bytes from the table on; 0: it
    # has none and gets none, -1: it would get a new one.
    g = ptr32(g5)
    at += int(g)
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
                if ptr8(s)[0] ^ ptr8(at)[i]:
                    break
                s += 1
                i += 1
            if not i ^ n:
                return k - conn * g[_G_MOST] + 1
        k += 1
    return 0


@micropython.viper
def send(c, g5, session: int, conn: int, most: int) -> int:
    # send() of deliveries_viper.py for a client of version 5, with properties, aliases and one
    # identifier. 2: the delivery has expired or has several identifiers, would get a new alias or
    # is too large.
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
    alias = section = left = ident = 0
    if flags & _BY:
        k = ident = ptr32(int(g) - g[_G_IDENT])[entry]
        if k >> 28:
            return 2
        while k:
            section += 1
            k >>= 7
        if section:
            section += 1
    if ptr8(int(o) - o[_M_FLAGS])[msg] & _EXTRA:
        left = ptr32(int(g) - g[_G_EXPIRES])[msg]
        if left:
            section += 5
            k = left >> 31
            left = (left - ptr32(int(o) - o[_CLOCK])[_NOW] + 9) // 10
            if k or left < 1 or ptr8(int(g) - g[_G_FAR])[msg]:
                return 2
    n = topic_len + ptr32(int(o) - o[_M_PAYLOAD_LEN])[msg] + 5
    if not flags & 4 and ptr16(int(g) - g[_G_OFFERED])[conn]:
        topic_into(c, g5, ptr16(int(o) - o[_M_FIRST])[msg], topic_len)
        alias = int(alias_for(g5, conn, _SCRATCH + 2, topic_len))
        if alias < 0:
            return 2
        if alias:
            section += 3
            n -= topic_len
    n += section
    if ptr8(int(o) - o[_M_FLAGS])[msg] & _EXTRA:
        section += ptr16(int(g) - g[_G_PROPS])[msg]
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
    if cells[conn] + k > ptr32(int(o) - o[_C_TX_LIMIT])[conn]:
        return 1
    g[_G_OWN_ALIAS] = alias
    g[_G_OWN_IDENT] = ident
    g[_G_OWN_EXPIRY] = left
    g[_G_OWN_SECTION] = section
    put_body(c, g5, conn, entry, n)
    return 3


@micropython.viper
def put_body(c, g5, conn: int, entry: int, n: int):
    # The PUBLISH of a delivery into tx, as put() has found it; n: its Remaining Length.
    o = ptr32(c)
    g = ptr32(g5)
    msg = ptr16(int(o) - o[_D_MSG])[entry]
    if not ptr8(int(o) - o[_C_OUT])[conn]:
        mark_dirty(c, conn)
    d = int(o) - o[_C_TX] + ptr32(int(o) - o[_C_TX_END])[conn]
    ptr8(d)[0] = (ptr8(int(o) - o[_D_FLAGS])[entry] & 15) | 0x30
    if n >> 7:
        ptr8(d)[1] = n | 128
        d += 1
        n >>= 7
    ptr8(d)[1] = n
    d += 2
    block = ptr16(int(o) - o[_M_FIRST])[msg]
    left = ptr32(int(o) - o[_M_PAYLOAD_LEN])[msg]
    n = ptr16(int(o) - o[_M_TOPIC_LEN])[msg] + 2
    s = space = 0
    if g[_G_OWN_ALIAS]:
        ptr8(d)[0] = 0
        ptr8(d)[1] = 0
        d += 2
        size = ptr32(int(o) - o[_M_ARENA_STATE])[_SIZE]
        while n >= size:
            n -= size
            block = ptr16(int(o) - o[_M_ARENA_NEXT])[block]
        if n:
            s = int(o) - o[_M_ARENA_DATA] + block * size + n
            space = size - n
            block = ptr16(int(o) - o[_M_ARENA_NEXT])[block]
        n = 0
    while True:
        while n:
            if not space:
                space = ptr32(int(o) - o[_M_ARENA_STATE])[_SIZE]
                s = int(o) - o[_M_ARENA_DATA] + block * space
                block = ptr16(int(o) - o[_M_ARENA_NEXT])[block]
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
            ptr32(int(o) - o[_C_TX_END])[conn] = d - (int(o) - o[_C_TX])
            return
        d = int(o) - o[_C_TX] + int(put_own(c, g5, d - (int(o) - o[_C_TX]), entry + 1))
        n = left
        left = -1


@micropython.viper
def put_own(c, g5, d: int, packet_id: int) -> int:
    # What is between topic and properties of a delivery: the packet id, the length of the
    # properties, its own properties. d: where in tx; -> where it ends.
    o = ptr32(c)
    g = ptr32(g5)
    d += int(o) - o[_C_TX]
    ptr8(d)[0] = packet_id >> 8
    ptr8(d)[1] = packet_id
    d += 2
    n = g[_G_OWN_SECTION]
    if n >> 7:
        ptr8(d)[0] = n | 128
        d += 1
        n >>= 7
    ptr8(d)[0] = n
    d += 1
    n = g[_G_OWN_EXPIRY]
    if n:
        ptr8(d)[0] = 2
        ptr8(d)[1] = n >> 24
        ptr8(d)[2] = n >> 16
        ptr8(d)[3] = n >> 8
        ptr8(d)[4] = n
        d += 5
    n = g[_G_OWN_ALIAS]
    if n:
        ptr8(d)[0] = 0x23
        ptr8(d)[1] = n >> 8
        ptr8(d)[2] = n
        d += 3
    n = g[_G_OWN_IDENT]
    if n:
        ptr8(d)[0] = 0x0B
        d += 1
        while n >> 7:
            ptr8(d)[0] = n | 128
            d += 1
            n >>= 7
        ptr8(d)[0] = n
        d += 1
    return d - (int(o) - o[_C_TX])


@micropython.viper
def topic_into(c, g5, block: int, n: int):
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
