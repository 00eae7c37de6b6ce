# behaviour.py - what a client does at each step, by its plan and its random numbers: traffic,
# slowness, and the ways in which it loses its connection.
from slotmq_tools.sim.link import ALL


def step(client):
    """One step while faults happen."""
    numbers = client.numbers
    link = client.link
    if link is None:
        client.pause -= 1
        if client.pause <= 0 and numbers.one_in(3):
            client.connect()
        return
    client.read(client.plan.reads)
    if client.link is not link:
        return
    if link.is_over():
        client.gone(numbers.below(8))
    elif not client.accepted:
        if numbers.one_in(40):
            _break_off(client)
    else:
        _talk(client, numbers)


def _talk(client, numbers):
    plan = client.plan
    if client.todo and not numbers.percent(plan.lazy):
        client.acknowledge()
    what = numbers.below(100)
    if what < plan.publishes:
        for _ in range(numbers.choice((1, 1, 1, 2, 4))):
            client.publish()
    elif what < plan.publishes + plan.subscribes:
        client.subscribe()
    elif what == 98:
        client.unsubscribe()
    elif what == 97 or _wants_ping(client):
        client.ping()
    if client.world.plan.has_rules and numbers.one_in(60):
        client.pretend()
    if plan.disconnects and numbers.below(300) < plan.disconnects:
        DISCONNECTS[numbers.below(len(DISCONNECTS))](client)


def _wants_ping(client):
    keep_alive = client.plan.keep_alive * 1000
    return keep_alive and client.world.clock.ms - client.sent_ms > keep_alive // 2


def _leave(client):
    client.leave()


def _leave_with_will(client):
    client.leave(True)


def _end(client):
    client.link.ended = True
    client.gone(client.numbers.below(6))


def _break_off(client):
    client.link.break_off()
    client.gone(client.numbers.below(6))


def _vanish(client):
    """The client's machine is gone. The broker gets neither FIN nor RST."""
    client.link.vanished = True
    client.link.weather = _Dead(client.link.weather)
    client.gone(client.numbers.below(20))


def _take_over(client):
    """Open a second connection while the first one exists."""
    client.connect()


class _Dead:
    """The weather after the peer has vanished: only what it sent before may arrive."""

    def __init__(self, before):
        self.reads = before.reads
        self.writes = before.writes
        self.not_now = before.not_now
        self.no_memory = before.no_memory
        self.one_packet = before.one_packet
        self.capacity = min(before.capacity, 3000)


DISCONNECTS = (_leave, _leave_with_will, _end)
DISCONNECTS += (_break_off, _break_off, _vanish, _vanish, _take_over, _take_over)


def step_without_faults(client):
    """One step after the faults: read, acknowledge, keep the connection alive."""
    link = client.link
    if link is None:
        return
    client.read(ALL)
    if client.link is not link:
        return
    if link.is_over():
        client.gone()
    elif client.accepted:
        client.acknowledge()
        if _wants_ping(client):
            client.ping()
