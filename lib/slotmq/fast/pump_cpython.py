# pump_cpython.py - the contract of fast/pump_viper.py on CPython.
from slotmq.fast.path_cpython import may_read
from slotmq.fast.routes_cpython import next_dirty
from slotmq.platform import heap

_NONE = 0xFFFF
_IN = 1
_NAP = 5
_MS_BITS = 0x3FFFFFFF
_TENTH_MS = 100
# Positions in Connections.counts
_DIRTY_CONNS = 0
_LAST_MS = 2
_SERVED = 3
_POLLING = -32768  # its value until there is an event
_EACH_TURN = 4
_WHOLE = 5
_PENDING_COUNT = 0  # in Deliveries.pending
# Positions in heap._state
_LOCKED = 0
_IS_LOCKED = 2


def pump(hand, timeout_ms):
    """A turn of the loop whose at_hand this is."""
    loop, broker, of_stream, ipoll, serve, drain, flush, ticks_ms, _, state = hand
    if heap.in_turn():
        loop.refuse()
    state[_LOCKED] = state[_IS_LOCKED] = 1
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
    counts[_SERVED] = _POLLING
    for stream, event in ipoll((busy - 1) * _NAP if busy else timeout_ms):
        busy = 1
        counts[_SERVED] = conn = of_stream[stream]
        columns = broker.fast_path
        n = may_read(columns, conn) if event == _IN and conn >= 0 and columns else 0
        if n:
            serve(conn, n, columns)
        else:
            loop._other_event(conn, stream, event)
    counts[_SERVED] = -1
    passed = ticks_ms() - counts[_LAST_MS] & _MS_BITS
    # The poller may have served events without returning them (turn_cpython.py).
    busy = busy or counts[_DIRTY_CONNS] or broker.deliveries.pending[_PENDING_COUNT]
    whole = passed >= _TENTH_MS or counts[_EACH_TURN]
    if whole or busy and (counts[_WHOLE] or broker.turn_soon):
        loop.finish(passed)
    elif busy:
        drain()
        while counts[_DIRTY_CONNS]:
            conn = next_dirty(conns.columns)
            if conn != _NONE:
                flush(conn)
