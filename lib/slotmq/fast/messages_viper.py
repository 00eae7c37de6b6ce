# messages_viper.py - message slots, and packets put into outgoing buffers, on MicroPython, in
# viper. Nothing here allocates. o: the table of columns, fast/columns.py.
# x ^ _NONE is true if x is not none.
import micropython
from micropython import const

_NONE = const(0xFFFF)
# Arena.state
_FREE_BLOCK = const(0)
_FREE_BLOCKS = const(1)
_SIZE = const(2)
# Positions in count and counts of tables/
_IN_USE = const(0)
_MOST_IN_USE = const(1)
_FIRST_FREE = const(2)
_DIRTY_CONNS = const(0)
_PUBLISHES = const(1)
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
_D_FLAGS = const(19)
_S_CURSOR = const(23)
_M_REFS = const(28)
_M_FIRST = const(29)
_M_NEXT = const(30)
_M_COUNT = const(31)
_M_TOPIC_LEN = const(32)
_M_PAYLOAD_LEN = const(33)
_M_FLAGS = const(34)
_M_ARENA_STATE = const(37)
_M_ARENA_NEXT = const(38)
_M_ARENA_DATA = const(39)
_ALIGN_AT = const(54)
_M_SLOTS = const(56)
_C_LEVEL = const(64)
_QUEUES = const(66)  # may a QoS 0 message have to be queued?


@micropython.viper
def store(
    o: ptr32, buf: ptr8, topic: int, topic_len: int, payload: int, payload_len: int, flags: int
) -> int:
    # A message slot for topic (with its length before it) and payload of buf, with
    # one reference; 0xFFFF: no slot or no space.
    count = ptr32(int(o) - o[_M_COUNT])
    arena = ptr32(int(o) - o[_M_ARENA_STATE])
    size = arena[_SIZE]
    msg = count[_FIRST_FREE]
    n = topic_len + 2
    k = (n + payload_len + size - 1) // size
    if msg == o[_M_SLOTS] or k > arena[_FREE_BLOCKS]:
        return _NONE
    count[_FIRST_FREE] = ptr16(int(o) - o[_M_NEXT])[msg]
    k = arena[_FREE_BLOCKS] - k
    arena[_FREE_BLOCKS] = k
    k = count[_IN_USE] + 1
    count[_IN_USE] = k
    if k > count[_MOST_IN_USE]:
        count[_MOST_IN_USE] = k
    block = arena[_FREE_BLOCK]
    ptr16(int(o) - o[_M_FIRST])[msg] = block
    ptr16(int(o) - o[_M_TOPIC_LEN])[msg] = topic_len
    ptr32(int(o) - o[_M_PAYLOAD_LEN])[msg] = payload_len
    ptr16(int(o) - o[_M_REFS])[msg] = 1
    ptr8(int(o) - o[_M_FLAGS])[msg] = flags
    chain = ptr16(int(o) - o[_M_ARENA_NEXT])
    s = int(buf) + topic - 2
    d = int(o) - o[_M_ARENA_DATA] + block * size
    space = size
    while True:
        while n:
            if not space:
                block = chain[block]
                d = int(o) - o[_M_ARENA_DATA] + block * size
                space = size
            k = space
            if k > n:
                k = n
            space -= k
            n -= k
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
        if not payload_len:
            break
        s = int(buf) + payload
        n = payload_len
        payload_len = 0
    arena[_FREE_BLOCK] = chain[block]
    chain[block] = _NONE
    return msg


@micropython.viper
def put_ack(o: ptr32, conn: int, first: int, value: int):
    # Four bytes, or a PINGRESP, to the connection that is being read, whose space is
    # certain.
    tx_end = ptr32(int(o) - o[_C_TX_END])
    d = ptr8(int(o) - o[_C_TX] + tx_end[conn])
    d[0] = first
    d[1] = 0
    if first ^ 0xD0:
        d[1] = 2
        d[2] = value >> 8
        d[3] = value
        tx_end[conn] = tx_end[conn] + 2
    tx_end[conn] = tx_end[conn] + 2
    out = ptr8(int(o) - o[_C_OUT])
    if not out[conn]:
        out[conn] = 1
        count = ptr32(int(o) - o[_C_COUNTS])
        ptr16(int(o) - o[_C_DIRTY])[count[_DIRTY_CONNS]] = conn
        count[_DIRTY_CONNS] = count[_DIRTY_CONNS] + 1


@micropython.viper
def unref(o: ptr32, msg: int):
    # One reference less; the last one frees the message and its blocks.
    cells = ptr16(int(o) - o[_M_REFS])
    cells[msg] = cells[msg] - 1
    if cells[msg]:
        return
    count = ptr32(int(o) - o[_M_COUNT])
    ptr16(int(o) - o[_M_NEXT])[msg] = count[_FIRST_FREE]
    count[_FIRST_FREE] = msg
    count[_IN_USE] = count[_IN_USE] - 1
    msg = ptr16(int(o) - o[_M_FIRST])[msg]
    arena = ptr32(int(o) - o[_M_ARENA_STATE])
    k = arena[_FREE_BLOCK]
    arena[_FREE_BLOCK] = msg
    cells = ptr16(int(o) - o[_M_ARENA_NEXT])
    while True:
        arena[_FREE_BLOCKS] = arena[_FREE_BLOCKS] + 1
        if not cells[msg] ^ _NONE:
            break
        msg = cells[msg]
    cells[msg] = k


@micropython.viper
def put_publish(o: ptr32, conn: int, entry: int) -> int:
    # The PUBLISH of a QoS 1 or 2 delivery into tx: header; topic; id; with version 5 the length
    # of no properties; payload. 0: no space.
    msg = ptr16(int(o) - o[_D_MSG])[entry]
    left = ptr16(int(o) - o[_M_TOPIC_LEN])[msg] + 2
    payload = ptr32(int(o) - o[_M_PAYLOAD_LEN])[msg]
    rest = left + payload + 2
    five = ptr8(int(o) - o[_C_LEVEL])[conn] ^ 5
    if not five:
        rest += 1
    n = rest + 2
    k = rest >> 7
    while k:
        n += 1
        k >>= 7
    cells = ptr32(int(o) - o[_C_TX_END])
    d = cells[conn]
    if d + n > ptr32(int(o) - o[_C_TX_LIMIT])[conn]:
        return 0
    cells[conn] = d + n
    d += int(o) - o[_C_TX]
    out = ptr8(int(o) - o[_C_OUT])
    if not out[conn]:
        out[conn] = 1
        cells = ptr32(int(o) - o[_C_COUNTS])
        ptr16(int(o) - o[_C_DIRTY])[cells[_DIRTY_CONNS]] = conn
        cells[_DIRTY_CONNS] = cells[_DIRTY_CONNS] + 1
    ptr8(d)[0] = ptr8(int(o) - o[_D_FLAGS])[entry] | 0x30
    while rest >> 7:
        d += 1
        ptr8(d)[0] = rest | 128
        rest >>= 7
    ptr8(d + 1)[0] = rest
    d += 2
    block = ptr16(int(o) - o[_M_FIRST])[msg]
    space = 0
    while True:
        while left:
            if not space:
                space = ptr32(int(o) - o[_M_ARENA_STATE])[_SIZE]
                s = int(o) - o[_M_ARENA_DATA] + block * space
                block = ptr16(int(o) - o[_M_ARENA_NEXT])[block]
            k = space if space < left else left
            left -= k
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
        if payload < 0:
            return n
        entry += 1
        ptr8(d)[0] = entry >> 8
        ptr8(d)[1] = entry
        d += 2
        if not five:
            ptr8(d)[0] = 0
            d += 1
        left = payload
        payload = -1


@micropython.viper
def place(o: ptr32, i: int, end: int, src: ptr8, start: int, n: int) -> int:
    # Puts the QoS 0 packet src[start:start + n] into the outgoing buffer of every
    # session of the route entries i..end, with first byte 0x30. Offline sessions are
    # skipped. -> the first entry that place() cannot serve (no space, or a chunked send is
    # under way), or end. The fast path passes -n: then either all of them get the packet,
    # or none, and -> -1; so also where it must be queued for one (queue_qos0_messages).
    entries = ptr16(int(o) - o[_POOL])
    conn_of = ptr16(int(o) - o[_S_CONN])
    tx_end = ptr32(int(o) - o[_C_TX_END])
    tx_limit = ptr32(int(o) - o[_C_TX_LIMIT])
    count = ptr32(int(o) - o[_C_COUNTS])
    if n < 0:
        n = -n
        at = i
        queues = o[_QUEUES]
        while at < end:
            d = entries[at] >> 2
            conn = conn_of[d]
            at += 1
            if conn ^ _NONE:
                if tx_end[conn] + n > tx_limit[conn]:
                    return -1
                conn = 0
            if queues and conn | ptr16(int(o) - o[_S_CURSOR])[d] ^ _NONE:
                return -1
    while i < end:
        conn = conn_of[entries[i] >> 2]
        if conn ^ _NONE:
            at = tx_end[conn]
            if at + n > tx_limit[conn]:
                break
            tx_end[conn] = at + n
            out = ptr8(int(o) - o[_C_OUT])
            if not out[conn]:
                out[conn] = 1
                ptr16(int(o) - o[_C_DIRTY])[count[_DIRTY_CONNS]] = conn
                count[_DIRTY_CONNS] = count[_DIRTY_CONNS] + 1
            d = int(o) - o[_C_TX] + at
            s = int(src) + start
            stop = s + n
            if not (d | s) & o[_ALIGN_AT]:
                words = stop - 3
                while s < words:
                    ptr32(d)[0] = ptr32(s)[0]
                    d += 4
                    s += 4
            while s < stop:
                ptr8(d)[0] = ptr8(s)[0]
                d += 1
                s += 1
            ptr8(d - n)[0] = 0x30
            count[_PUBLISHES] = count[_PUBLISHES] + 1
        i += 1
    return i
