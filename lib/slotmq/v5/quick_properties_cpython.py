# quick_properties_cpython.py - puts fast/properties_cpython.py in place: packets that the fast
# path leaves go there before they go to the handlers. The first client of version 5 has it done.
# With an interceptor that must see each property, such as the recorder, nothing changes.
from slotmq.constants import BLOCKED, BRIDGE, INFLIGHT_BYTES, NOW, PLAIN
from slotmq.delivery import routing
from slotmq.fast import fast_path
from slotmq.fast.properties_cpython import Quick
from slotmq.v5.routing import drain as drain_plainly


def make(broker):
    """Let the first client of version 5 call begin()."""
    five = broker.five
    inner = five.take

    def take(broker, session, kind=PLAIN):
        five.take = inner
        begin(broker)
        inner(broker, session, kind)

    five.take = take


def begin(broker):
    """Let properties and topic aliases take the fast path."""
    five = broker.five
    if broker.handle_fast is fast_path:
        five.quick = quick = Quick(broker)
        broker.handle_fast = quick.fast_path
        five.drain = drain
        five.tick = tick


def tick(broker):
    """Version5.tick(): a sweep for expired messages begins only if any wait."""
    five = broker.five
    if five.quick.expiring():
        five.to_sweep = True
    type(five).tick(five, broker)


def drain(broker, session):
    """drain() of v5/routing.py with the fast path's way for properties and aliases."""
    conn = broker.sessions.conn[session]
    if broker.subscriptions.kind[session] & BRIDGE or broker.conns.level[conn] != 5:
        drain_plainly(broker, session)
        return
    sessions = broker.sessions
    sessions.progress[session] = broker.clock[NOW] = broker.now
    most = broker.five.receive_max[conn]
    if broker.deliveries.count[INFLIGHT_BYTES]:
        most = routing.ask_quota(broker, session, most, 0, 0, -1, most)
    quick = broker.five.quick
    conns = broker.conns
    while True:
        done = quick.send(broker.tables, session, conn, most)
        at = conns.tx_end[conn]
        if done == 1 and conns.out[conn] != BLOCKED and not broker.no_commit:
            broker.flush(conn)
        if conns.tx_end[conn] == at:
            break
    if done:
        drain_plainly(broker, session)
