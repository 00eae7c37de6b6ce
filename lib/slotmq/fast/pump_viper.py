# pump_viper.py - a turn of the loop on MicroPython: it locks the heap, waits for events, passes
# each to the loop, and writes to the connections with output. What is seldom due is the loop's. In
# most turns of a board nothing has happened, so these do not reach bytecode. After an exception
# Loop.failed() unlocks the heap. Owns nothing; does not allocate.
import micropython
from micropython import const, heap_lock, heap_unlock

from slotmq.fast.path_viper import may_read

_IN = const(1)
_NAP = const(5)  # ms of a turn while a connection waits for lwIP's memory, which causes no event
_TENTH_MS = const(100)
# Positions in Connections.counts, and in Deliveries.pending
_DIRTY_CONNS = const(0)
_LAST_MS = const(2)
_SERVED = const(3)
_POLLING = const(-32768)  # its value until there is an event
_EACH_TURN = const(4)
_WHOLE = const(5)
_PENDING_COUNT = const(0)
# Indexes of the table of columns
_C_OUT = const(6)
_C_DIRTY = const(10)
_C_COUNTS = const(11)
_D_PENDING = const(35)


error = None  # in a turn that it has ended; a variable of pump() could not be


# hand: Loop.at_hand
@micropython.viper
def pump(hand, wait):
    global error
    loop, broker, of_stream, ipoll, serve, drain, flush, ticks_ms, c, heap = hand
    o = ptr32(c)
    counts = ptr32(int(o) - o[_C_COUNTS])
    state = ptr32(heap)
    if ptr16(heap)[0]:  # locked or lifted: this is within a turn
        loop.refuse()
    heap_lock()
    k = 1
    state[0] = k + (k << 16)  # of the four bytes: locked once, and locked now
    try:
        counts[_SERVED] = _POLLING
        k = int(wait)  # TypeError: not before the lock
        busy = int(broker.turn_soon)
        if busy:
            k = (busy - 1) * _NAP
        for stream, event in ipoll(k):
            busy = 1
            slot = of_stream[stream]
            conn = int(slot)
            counts[_SERVED] = conn
            k = 0
            if not (int(event) ^ _IN | conn >> 31):
                columns = broker.fast_path
                if columns:
                    k = int(may_read(columns, slot))
            if k:
                serve(slot, k, columns)
            else:
                loop._other_event(slot, stream, event)
        counts[_SERVED] = -1
        k = 1 << 29
        k = (int(ticks_ms()) - counts[_LAST_MS]) & (k + k - 1)
        whole = counts[_EACH_TURN]
        # The poller may have served events without returning them (platform/poller.py).
        busy |= counts[_DIRTY_CONNS] | ptr16(int(o) - o[_D_PENDING])[_PENDING_COUNT]
        if busy:
            whole |= counts[_WHOLE] | int(broker.turn_soon)
        if whole or k >= _TENTH_MS:
            loop.finish(k)
        elif busy:
            if ptr16(int(o) - o[_D_PENDING])[_PENDING_COUNT]:
                drain()
            out = ptr8(int(o) - o[_C_OUT])
            while counts[_DIRTY_CONNS]:
                k = counts[_DIRTY_CONNS] - 1
                counts[_DIRTY_CONNS] = k
                conn = ptr16(int(o) - o[_C_DIRTY])[k]
                if out[conn] ^ 1:
                    continue  # it was flushed, blocked or closed meanwhile
                out[conn] = 0
                flush(conn)
    except BaseException as error:
        loop.failed(error)
        return
    if state[0] >> 16 & 1:
        heap_unlock()
    state[0] = 0
