# timers.py - what happens with time: who has been silent too long, what is sent
# again, counters before they grow too large, the rounds of $SYS. The loop calls
# tick() several times a second; the unit is a tenth of a second, so that small
# integers last for three years. Does not allocate, but for $SYS.
from slotmq import heap, ondemand
from slotmq.runtime import const

_NONE = const(0xFFFF)
_NEW = const(1)
_CONNECTED = const(2)
_FIVE = const(4)
_TIMED_OUT = const(8)
_PUBLISH_OUT = const(3)
CARRY = 100000000  # stats stay below this; carried counts how often they passed it


def tick(broker):
    """Several times a second: who has been silent too long, what is to be sent again."""
    conns = broker.conns
    for conn in range(conns.top):
        if conns.state[conn] in (_NEW, _CONNECTED, _FIVE):
            _check_patience(broker, conn)
            session = conns.session[conn]
            if session != _NONE and broker.sessions.scans[session]:
                broker.go_on(conn)  # others may have made room for it
    if broker.retry:
        broker.retry(broker)
    _carry(broker)
    ondemand.tick(broker.now)
    if broker.five:
        broker.five.tick(broker)
    if broker.sys:
        heap.lift()
        try:
            broker.sys.tick()
        except MemoryError:
            pass  # another round will come
        heap.drop()


def _carry(broker):
    # Counters stay below what 30 bits hold.
    counts = broker.conns.counts
    broker.stats[_PUBLISH_OUT] += counts[1]
    counts[1] = 0
    for k in range(7):
        if broker.stats[k] >= CARRY:
            broker.stats[k] -= CARRY
            broker.carried[k] += 1


def _check_patience(broker, conn):
    conns = broker.conns
    now = broker.now
    if conns.waits_for_big(conn):
        # It is not read until a whole-packet buffer is free: not its fault.
        conns.heard[conn] = conns.held_since[conn] = now
    if conns.state[conn] == _NEW:
        late = now - conns.opened[conn] >= broker.settings.connect_timeout * 10
    else:
        patience = conns.patience[conn]
        late = patience and now - conns.heard[conn] >= patience
    held = conns.held[conn]
    if held:
        # A cut packet: as long without a byte, and a second more for each 100 in all.
        most = broker.settings.packet_timeout * 10
        late = late or now - conns.heard[conn] >= most
        late = late or now - conns.held_since[conn] >= most + held // 10
    if late:
        broker.end(conn, _TIMED_OUT)
