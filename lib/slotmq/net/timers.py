# timers.py - what is done from time to time: timeouts, retransmission, carries of counters, a new
# epoch, updates of $SYS. The loop calls tick() several times a second. The unit of time is a tenth
# of a second; every 300 days the clock's zero moves (tables/epoch.py). Owns nothing. Allocates
# only for a new epoch, for the log and for $SYS.
from slotmq.constants import (CARRY, CONNECTED, EPOCH, FAST_READ, FIVE, IN, LOGGED_REFUSALS,
    LOOK_AT, NEW, NONE, PUBLISHES, PUBLISH_OUT, QOS_0, TIMED_OUT, WARNING)
from slotmq.platform import heap, ondemand

_NEXT_LOOK = 100  # tenths of a second between two log lines about full tables
_HURRY = 21  # tenths of a second for 2,000 bytes; the first tenth may be incomplete


def tick(broker):
    """Called several times a second."""
    if broker.now >= EPOCH:
        _begin_epoch(broker)
    conns = broker.conns
    waiting = False  # does a connection wait for a reassembly buffer?
    for conn in range(0 if conns.reassembly[FAST_READ] else conns.top):
        if conns.waits_for_reassembly(conn):
            # It is not read until it has a buffer, so it must not time out.
            conns.last_activity[conn] = broker.now
            waiting = True
            broker.loop.next_tick = broker.now + 1
    for conn in range(conns.top):
        if conns.state[conn] in (NEW, CONNECTED, FIVE):
            _check_timeout(broker, conn, waiting)
            session = conns.session[conn]
            if session != NONE and broker.sessions.scans[session]:
                broker.resume(conn)  # another session may have freed deliveries for its scan
    if broker.retry:
        broker.retry(broker)
    if broker.users and broker.users.waiting:
        broker.turn_soon = 1
    _count(broker)
    ondemand.tick(broker.now)
    if broker.five:
        broker.five.tick(broker)
    if broker.sys:
        heap.lift()
        try:
            broker.sys.tick()
        except MemoryError:
            pass  # until the next round
        heap.drop()


def _begin_epoch(broker):
    # What may allocate comes first: without heap the next tick tries again, which may go on for
    # 300 days.
    heap.lift()
    try:
        epoch = ondemand.take("tables.epoch", broker.now)
        if broker.record:
            epoch.record(broker.record, EPOCH)
    except MemoryError:
        heap.drop()
        return
    heap.drop()
    epoch.take(broker, EPOCH)


def _count(broker):
    # Keep counters below 30 bits, and log that a table was full.
    counts = broker.conns.counts
    broker.stats[PUBLISH_OUT] += counts[PUBLISHES]
    counts[PUBLISHES] = 0
    for k in range(7):
        if broker.stats[k] >= CARRY:
            broker.stats[k] -= CARRY
            broker.carried[k] += 1
    if broker._log_mask & WARNING and broker.now >= broker.clock[LOOK_AT]:
        # Have tables refused or dropped more than the log says?
        k = broker.conns.refused + broker.messages.refused + broker.deliveries.refused
        table = broker.sessions
        k += broker.stats[QOS_0] + table.refused + table.ids_refused + broker.retained.refused
        table = broker.subscriptions
        k += table.refused + table.nodes_refused
        five = broker.five
        if five:
            k += five.shares.refused + five.aliases.refused
        if k - broker.stats[LOGGED_REFUSALS] & 0xFFFF:
            broker.clock[LOOK_AT] = broker.now + _NEXT_LOOK
            heap.lift()
            try:
                ondemand.take("status.log_full_tables", broker.now).log(broker, k)
            except MemoryError:
                pass
            heap.drop()


def _check_timeout(broker, conn, waiting):
    conns = broker.conns
    now = broker.now
    if conns.state[conn] == NEW:
        late = now - conns.opened[conn] >= broker.settings.connect_timeout * 10
    else:
        timeout = conns.keep_alive_timeout[conn]
        late = timeout and now - conns.last_activity[conn] >= timeout
    if conns.buffered[conn] and not (waiting and conns.waits_for_reassembly(conn)):
        # A cut packet has packet_timeout for each 2,000 bytes (protocol/dispatch.py).
        waiting = waiting and conns.has_reassembly(conn)
        timeout = _HURRY if waiting else broker.settings.packet_timeout * 10
        since = conns.buffered_since[conn]
        if broker.loop.paused[conn] & IN:
            # It is not read while its client takes no output. Then the last activity counts, if
            # another connection waits for the buffer.
            conns.buffered_since[conn] = now
            since = conns.last_activity[conn] if waiting else now
        late = late or now - since >= timeout
    if late:
        broker.end(conn, TIMED_OUT)
