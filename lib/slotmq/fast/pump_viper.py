# pump_viper.py - a turn of the loop on MicroPython: it locks the heap, waits for events, passes
# each to the loop, and writes to the connections with output. What is seldom due is the loop's. In
# most turns of a board nothing has happened, so these do not reach bytecode. After an exception
# Loop.failed() unlocks the heap. Owns nothing; does not allocate.
import micropython
from micropython import heap_lock, heap_unlock

from slotmq.constants import (C_COUNTS, C_DIRTY, C_OUT, DIRTY_CONNS, D_PENDING, EACH_TURN, IN,
    LAST_MS, NAP, PENDING_COUNT, POLLING, SERVED, TENTH_MS, WHOLE)
from slotmq.fast.path_viper import may_read


error = None  # in a turn that it has ended; a variable of pump() could not be


# hand: Loop.at_hand
@micropython.viper
def pump(hand, wait):
    global error
    loop, broker, of_stream, ipoll, serve, drain, flush, ticks_ms, c, heap = hand
    o = ptr32(c)
    counts = ptr32(int(o) - o[C_COUNTS])
    state = ptr32(heap)
    if ptr16(heap)[0]:  # locked or lifted: this is within a turn
        loop.refuse()
    heap_lock()
    k = 1
    state[0] = k + (k << 16)  # of the four bytes: locked once, and locked now
    try:
        counts[SERVED] = POLLING
        k = int(wait)  # TypeError: not before the lock
        busy = int(broker.turn_soon)
        if busy:
            k = (busy - 1) * NAP
        for stream, event in ipoll(k):
            busy = 1
            slot = of_stream[stream]
            conn = int(slot)
            counts[SERVED] = conn
            k = 0
            if not (int(event) ^ IN | conn >> 31):
                columns = broker.fast_path
                if columns:
                    k = int(may_read(columns, slot))
            if k:
                serve(slot, k, columns)
            else:
                loop._other_event(slot, stream, event)
        counts[SERVED] = -1
        k = 1 << 29
        k = (int(ticks_ms()) - counts[LAST_MS]) & (k + k - 1)
        whole = counts[EACH_TURN]
        # The poller may have served events without returning them (platform/poller.py).
        busy |= counts[DIRTY_CONNS] | ptr16(int(o) - o[D_PENDING])[PENDING_COUNT]
        if busy:
            whole |= counts[WHOLE] | int(broker.turn_soon)
        if whole or k >= TENTH_MS:
            loop.finish(k)
        elif busy:
            if ptr16(int(o) - o[D_PENDING])[PENDING_COUNT]:
                drain()
            out = ptr8(int(o) - o[C_OUT])
            while counts[DIRTY_CONNS]:
                k = counts[DIRTY_CONNS] - 1
                counts[DIRTY_CONNS] = k
                conn = ptr16(int(o) - o[C_DIRTY])[k]
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
