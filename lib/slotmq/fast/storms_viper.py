# storms_viper.py - retained messages to a new subscriber, on MicroPython, in viper: as many as its
# buffer has space for in one call. Where the heap is large, delivery/retain.py calls it for what
# is sent at QoS 0. Nothing here allocates. o: the table of columns, fast/columns.py.
import micropython
from micropython import const

_NONE = const(0xFFFF)
_SIZE = const(2)  # of Arena.state
_DIRTY_CONNS = const(0)
_PUBLISHES = const(1)
_C_OUT = const(6)
_C_TX_END = const(7)
_C_TX_LIMIT = const(8)
_C_TX = const(9)
_C_DIRTY = const(10)
_C_COUNTS = const(11)
_M_FIRST = const(29)
_M_TOPIC_LEN = const(32)
_M_PAYLOAD_LEN = const(33)
_M_FLAGS = const(34)
_M_ARENA_STATE = const(37)
_M_ARENA_NEXT = const(38)
_M_ARENA_DATA = const(39)
_ALIGN_AT = const(54)
_C_LEVEL = const(64)


@micropython.viper
def put_retained(
    c,
    msgs: ptr16,
    i: int,
    end: int,
    conn: int,
    w: ptr8,
    at: int,
    n: int,
    ident: int,
    most: int,
    look_at: int,
) -> int:
    # Puts those messages of msgs[i:end] whose topics match the filter w[at:at + n] into tx. ident:
    # the identifier of the subscription, or 0; most: bytes of a packet, 0: no bound. -> end, or
    # the first one that must be looked at: it has one of these flags, its packet is larger than
    # that or than the space that is left, or its topic is in several blocks.
    o = ptr32(c)
    size = ptr32(int(o) - o[_M_ARENA_STATE])[_SIZE]
    start = int(o) - o[_C_TX]
    d = start + ptr32(int(o) - o[_C_TX_END])[conn]
    limit = start + ptr32(int(o) - o[_C_TX_LIMIT])[conn]
    own = 0  # bytes of the property length and of the identifier
    if not ptr8(int(o) - o[_C_LEVEL])[conn] ^ 5:
        own = 1
        k = ident
        while k:
            own += 1
            k >>= 7
        if ident:
            own += 1
    start = d
    count = ptr32(int(o) - o[_C_COUNTS])
    at += int(w)
    n += at
    while i < end:
        msg = msgs[i]
        if not msg ^ _NONE:
            i += 1
            continue
        left = ptr16(int(o) - o[_M_TOPIC_LEN])[msg] + 2
        if left > size:
            break
        block = ptr16(int(o) - o[_M_FIRST])[msg]
        s = int(o) - o[_M_ARENA_DATA] + block * size
        # Does the filter match? k: 1 at its end, 0: no, 2: not known yet
        t = s + 2
        stop = s + left
        f = at
        k = ptr8(f)[0]
        k = 0 if not ptr8(t)[0] ^ 36 and (not k ^ 35 or not k ^ 43) else 2
        while k > 1:
            if f >= n:
                k = 0 if t ^ stop else 1
                break
            byte = ptr8(f)[0]
            f += 1
            if not byte ^ 35:
                k = 1
            elif not byte ^ 43:
                while t < stop and ptr8(t)[0] ^ 47:
                    t += 1
            elif not t ^ stop:  # it may end here only before "/#"
                k = 1 if not byte ^ 47 and f < n and not ptr8(f)[0] ^ 35 else 0
            elif byte ^ ptr8(t)[0]:
                k = 0
            else:
                t += 1
        i += 1
        if not k:
            continue
        payload = ptr32(int(o) - o[_M_PAYLOAD_LEN])[msg]
        rest = left + own + payload
        k = rest + 2
        if rest >> 7:
            k += 1
        words = ptr8(int(o) - o[_M_FLAGS])[msg] & look_at
        if words or rest >> 14 or d + k > limit or most and k > most:
            i -= 1
            break
        count[_PUBLISHES] = count[_PUBLISHES] + 1
        ptr8(d)[0] = 0x31
        if rest >> 7:
            d += 1
            ptr8(d)[0] = rest | 128
            rest >>= 7
        ptr8(d)[1] = rest
        d += 2
        space = size
        while True:  # the topic with its length, then the payload
            while left:
                if not space:
                    block = ptr16(int(o) - o[_M_ARENA_NEXT])[block]
                    s = int(o) - o[_M_ARENA_DATA] + block * size
                    space = size
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
                break
            left = payload
            payload = -1
            if own:
                ptr8(d)[0] = own - 1
                d += 1
                if ident:
                    ptr8(d)[0] = 0x0B
                    d += 1
                    k = ident
                    while k >> 7:
                        ptr8(d)[0] = k | 128
                        d += 1
                        k >>= 7
                    ptr8(d)[0] = k
                    d += 1
    if d ^ start:
        ptr32(int(o) - o[_C_TX_END])[conn] = d - (int(o) - o[_C_TX])
        out = ptr8(int(o) - o[_C_OUT])
        if not out[conn]:
            out[conn] = 1
            ptr16(int(o) - o[_C_DIRTY])[count[_DIRTY_CONNS]] = conn
            count[_DIRTY_CONNS] = count[_DIRTY_CONNS] + 1
    return i
