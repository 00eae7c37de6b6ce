# messages_viper.py - message slots, and packets put into outgoing buffers, on MicroPython, in
# viper. Nothing here allocates. o: the table of columns, fast/columns.py.
# x ^ NONE is true if x is not none.
import micropython

from slotmq.constants import (ALIGN_AT, C_COUNTS, C_DIRTY, C_LEVEL, C_OUT, C_TX, C_TX_END,
    C_TX_LIMIT, DIRTY_CONNS, D_FLAGS, D_MSG, FIRST_FREE, FREE_BLOCK, FREE_BLOCKS, IN_USE,
    MOST_IN_USE, M_ARENA_DATA, M_ARENA_NEXT, M_ARENA_STATE, M_COUNT, M_FIRST, M_FLAGS, M_NEXT,
    M_PAYLOAD_LEN, M_REFS, M_SLOTS, M_TOPIC_LEN, NONE, POOL, PUBLISHES, QUEUES, SIZE, S_CONN,
    S_CURSOR)


@micropython.viper
def store(
    o: ptr32, buf: ptr8, topic: int, topic_len: int, payload: int, payload_len: int, flags: int
) -> int:
    # A message slot for topic (with its length before it) and payload of buf, with
    # one reference; 0xFFFF: no slot or no space.
    count = ptr32(int(o) - o[M_COUNT])
    arena = ptr32(int(o) - o[M_ARENA_STATE])
    size = arena[SIZE]
    msg = count[FIRST_FREE]
    n = topic_len + 2
    k = (n + payload_len + size - 1) // size
    if msg == o[M_SLOTS] or k > arena[FREE_BLOCKS]:
        return NONE
    count[FIRST_FREE] = ptr16(int(o) - o[M_NEXT])[msg]
    k = arena[FREE_BLOCKS] - k
    arena[FREE_BLOCKS] = k
    k = count[IN_USE] + 1
    count[IN_USE] = k
    if k > count[MOST_IN_USE]:
        count[MOST_IN_USE] = k
    block = arena[FREE_BLOCK]
    ptr16(int(o) - o[M_FIRST])[msg] = block
    ptr16(int(o) - o[M_TOPIC_LEN])[msg] = topic_len
    ptr32(int(o) - o[M_PAYLOAD_LEN])[msg] = payload_len
    ptr16(int(o) - o[M_REFS])[msg] = 1
    ptr8(int(o) - o[M_FLAGS])[msg] = flags
    chain = ptr16(int(o) - o[M_ARENA_NEXT])
    s = int(buf) + topic - 2
    d = int(o) - o[M_ARENA_DATA] + block * size
    space = size
    while True:
        while n:
            if not space:
                block = chain[block]
                d = int(o) - o[M_ARENA_DATA] + block * size
                space = size
            k = space
            if k > n:
                k = n
            space -= k
            n -= k
            k += s
            if not (d | s) & o[ALIGN_AT]:
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
    arena[FREE_BLOCK] = chain[block]
    chain[block] = NONE
    return msg


@micropython.viper
def put_ack(o: ptr32, conn: int, first: int, value: int):
    # Four bytes, or a PINGRESP, to the connection that is being read, whose space is
    # certain.
    tx_end = ptr32(int(o) - o[C_TX_END])
    d = ptr8(int(o) - o[C_TX] + tx_end[conn])
    d[0] = first
    d[1] = 0
    if first ^ 0xD0:
        d[1] = 2
        d[2] = value >> 8
        d[3] = value
        tx_end[conn] = tx_end[conn] + 2
    tx_end[conn] = tx_end[conn] + 2
    out = ptr8(int(o) - o[C_OUT])
    if not out[conn]:
        out[conn] = 1
        count = ptr32(int(o) - o[C_COUNTS])
        ptr16(int(o) - o[C_DIRTY])[count[DIRTY_CONNS]] = conn
        count[DIRTY_CONNS] = count[DIRTY_CONNS] + 1


@micropython.viper
def unref(o: ptr32, msg: int):
    # One reference less; the last one frees the message and its blocks.
    cells = ptr16(int(o) - o[M_REFS])
    cells[msg] = cells[msg] - 1
    if cells[msg]:
        return
    count = ptr32(int(o) - o[M_COUNT])
    ptr16(int(o) - o[M_NEXT])[msg] = count[FIRST_FREE]
    count[FIRST_FREE] = msg
    count[IN_USE] = count[IN_USE] - 1
    msg = ptr16(int(o) - o[M_FIRST])[msg]
    arena = ptr32(int(o) - o[M_ARENA_STATE])
    k = arena[FREE_BLOCK]
    arena[FREE_BLOCK] = msg
    cells = ptr16(int(o) - o[M_ARENA_NEXT])
    while True:
        arena[FREE_BLOCKS] = arena[FREE_BLOCKS] + 1
        if not cells[msg] ^ NONE:
            break
        msg = cells[msg]
    cells[msg] = k


@micropython.viper
def put_publish(o: ptr32, conn: int, entry: int) -> int:
    # The PUBLISH of a QoS 1 or 2 delivery into tx: header; topic; id; with version 5 the length
    # of no properties; payload. 0: no space.
    msg = ptr16(int(o) - o[D_MSG])[entry]
    left = ptr16(int(o) - o[M_TOPIC_LEN])[msg] + 2
    payload = ptr32(int(o) - o[M_PAYLOAD_LEN])[msg]
    rest = left + payload + 2
    five = ptr8(int(o) - o[C_LEVEL])[conn] ^ 5
    if not five:
        rest += 1
    n = rest + 2
    k = rest >> 7
    while k:
        n += 1
        k >>= 7
    cells = ptr32(int(o) - o[C_TX_END])
    d = cells[conn]
    if d + n > ptr32(int(o) - o[C_TX_LIMIT])[conn]:
        return 0
    cells[conn] = d + n
    d += int(o) - o[C_TX]
    out = ptr8(int(o) - o[C_OUT])
    if not out[conn]:
        out[conn] = 1
        cells = ptr32(int(o) - o[C_COUNTS])
        ptr16(int(o) - o[C_DIRTY])[cells[DIRTY_CONNS]] = conn
        cells[DIRTY_CONNS] = cells[DIRTY_CONNS] + 1
    ptr8(d)[0] = ptr8(int(o) - o[D_FLAGS])[entry] | 0x30
    while rest >> 7:
        d += 1
        ptr8(d)[0] = rest | 128
        rest >>= 7
    ptr8(d + 1)[0] = rest
    d += 2
    block = ptr16(int(o) - o[M_FIRST])[msg]
    space = 0
    while True:
        while left:
            if not space:
                space = ptr32(int(o) - o[M_ARENA_STATE])[SIZE]
                s = int(o) - o[M_ARENA_DATA] + block * space
                block = ptr16(int(o) - o[M_ARENA_NEXT])[block]
            k = space if space < left else left
            left -= k
            space -= k
            k += s
            if not (d | s) & o[ALIGN_AT]:
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
    entries = ptr16(int(o) - o[POOL])
    conn_of = ptr16(int(o) - o[S_CONN])
    tx_end = ptr32(int(o) - o[C_TX_END])
    tx_limit = ptr32(int(o) - o[C_TX_LIMIT])
    count = ptr32(int(o) - o[C_COUNTS])
    if n < 0:
        n = -n
        at = i
        queues = o[QUEUES]
        while at < end:
            d = entries[at] >> 2
            conn = conn_of[d]
            at += 1
            if conn ^ NONE:
                if tx_end[conn] + n > tx_limit[conn]:
                    return -1
                conn = 0
            if queues and conn | ptr16(int(o) - o[S_CURSOR])[d] ^ NONE:
                return -1
    while i < end:
        conn = conn_of[entries[i] >> 2]
        if conn ^ NONE:
            at = tx_end[conn]
            if at + n > tx_limit[conn]:
                break
            tx_end[conn] = at + n
            out = ptr8(int(o) - o[C_OUT])
            if not out[conn]:
                out[conn] = 1
                ptr16(int(o) - o[C_DIRTY])[count[DIRTY_CONNS]] = conn
                count[DIRTY_CONNS] = count[DIRTY_CONNS] + 1
            d = int(o) - o[C_TX] + at
            s = int(src) + start
            stop = s + n
            if not (d | s) & o[ALIGN_AT]:
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
            count[PUBLISHES] = count[PUBLISHES] + 1
        i += 1
    return i
