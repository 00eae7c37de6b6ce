# closing.py - the end of a network connection. It is closed at once, unless a client of MQTT 5.0
# was sent the reason. Then the connection lingers for a second, so that the client can read that
# packet: the write side is shut down where sockets can do that, and input is read and discarded,
# because unread input would make TCP reset the connection. If a new client needs the slot, the
# linger ends. Owns nothing. Frees memory; allocates nothing that stays.
from slotmq.constants import (EAGAIN, GONE, JOB_CONN, LINGERING, LOST, OUT, POLICY_DISCONNECT,
    QUOTA_SOCKETS)
from slotmq.delivery import lifecycle
from slotmq.delivery.outgoing import end_chunked
from slotmq.platform import heap
from slotmq.platform.sockets import half_close


def close(loop, conn):
    """Close an ended connection, whose output has been written as far as possible."""
    five = loop.broker.five
    if five and not loop.stopping and five.lingers(loop.broker, conn):
        loop.pause(conn, 0)
        _half_close(loop, conn)
        loop.listeners.start()  # if a client waits for a slot, make_way() ends the linger
    else:
        hang_up(loop, conn)


def _half_close(loop, conn):
    # Only after the last bytes were written.
    if loop.conns.is_empty(conn):
        half_close(loop.conns.attached[conn])


def discard(loop, conn, stream, event):
    """An event on a connection that lingers: read its input and discard it."""
    if event & OUT:
        loop.writable(conn)
        if loop.conns.state[conn] != LINGERING:
            return  # its socket has failed: it is closed at the end of the turn
        _half_close(loop, conn)
    try:
        gone = stream.readinto(loop.broker.rx, len(loop.broker.rx)) == 0
    except OSError as error:
        gone = error.args[0] != EAGAIN
    if gone or event & GONE:
        hang_up(loop, conn)


def make_way(loop):
    """A client waits for a slot: end a connection that lingers; or the last login in line, if
    three quarters of the connections are logins that wait, since of these a client that has gone
    is not noticed. False: nothing makes way.

    It is closed at the end of the turn, because this turn may still have an event of it."""
    conns = loop.conns
    users = loop.broker.users
    for conn in range(conns.top):
        if conns.state[conn] == LINGERING:
            loop.broker.end(conn, LOST)
            return True
    if users and len(users.waiting) * 4 >= conns.slots * 3:
        conns.refused += 1
        loop.broker.end(users.waiting[-1][JOB_CONN], POLICY_DISCONNECT)
        return True
    return False


def hang_up(loop, conn):
    """Close the network connection now, and free its slot."""
    broker = loop.broker
    conns = broker.conns
    stream = conns.stream[conn]
    loop.pause(conn, 0)
    heap.lift()
    loop.poller.unregister(stream)
    if loop.lwip:
        loop.lwip.closing(stream)
    conns.attached[conn].close()
    del loop.of_stream[stream]
    if broker.users:
        broker.users.forget(conn)
    lifecycle.detach(broker, conn)
    if broker.five:
        broker.five.connection_ends(broker, conn)
    end_chunked(broker, conn)
    conns.drop_buffered(conn)
    conns.free(conn)
    conns.quota[conn][QUOTA_SOCKETS] -= 1
    loop.listeners.start()  # there is a place for another one
    heap.drop()
