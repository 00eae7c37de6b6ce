# pump_cpython.py - the contract of fast/pump_viper.py on CPython.
from slotmq.constants import (ALL_BITS, DIRTY_CONNS, EACH_TURN, IN, IS_LOCKED, LAST_MS, LOCKED,
    NAP, NONE, PENDING_COUNT, POLLING, SERVED, TENTH_MS, WHOLE)
from slotmq.fast.path_cpython import may_read
from slotmq.fast.routes_cpython import next_dirty
from slotmq.platform import heap


def pump(hand, timeout_ms):
    """A turn of the loop whose at_hand this is."""
    loop, broker, of_stream, ipoll, serve, drain, flush, ticks_ms, _, state = hand
    if heap.in_turn():
        loop.refuse()
    state[LOCKED] = state[IS_LOCKED] = 1
    try:
        _pump(loop, broker, of_stream, ipoll, serve, drain, flush, ticks_ms, timeout_ms)
    except BaseException as error:
        loop.failed(error)
    else:
        heap.unlock()


def _pump(loop, broker, of_stream, ipoll, serve, drain, flush, ticks_ms, timeout_ms):
    conns = loop.conns
    counts = conns.counts
    busy = broker.turn_soon
    counts[SERVED] = POLLING
    for stream, event in ipoll((busy - 1) * NAP if busy else timeout_ms):
        busy = 1
        counts[SERVED] = conn = of_stream[stream]
        columns = broker.fast_path
        n = may_read(columns, conn) if event == IN and conn >= 0 and columns else 0
        if n:
            serve(conn, n, columns)
        else:
            loop._other_event(conn, stream, event)
    counts[SERVED] = -1
    passed = ticks_ms() - counts[LAST_MS] & ALL_BITS
    # The poller may have served events without returning them (turn_cpython.py).
    busy = busy or counts[DIRTY_CONNS] or broker.deliveries.pending[PENDING_COUNT]
    whole = passed >= TENTH_MS or counts[EACH_TURN]
    if whole or busy and (counts[WHOLE] or broker.turn_soon):
        loop.finish(passed)
    elif busy:
        drain()
        while counts[DIRTY_CONNS]:
            conn = next_dirty(conns.columns)
            if conn != NONE:
                flush(conn)
