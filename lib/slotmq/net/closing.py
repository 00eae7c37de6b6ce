# closing.py - the end of a network connection: at once, or, where the client was told
# why, after it had a moment to read that (version 5: the write side is shut where sockets
# can do that, what still comes is thrown away, since bytes that nobody read would destroy
# the last packet). Where another one needs its slot, that moment is over.
# Gives memory back; allocates nothing that stays.
from slotmq.platform import heap
from slotmq.platform.runtime import const
from slotmq.platform.sockets import half_close

_OUT = const(4)
_GONE = const(8 | 16 | 32)
_EAGAIN = const(11)
_LINGERING = const(5)
_LOST = const(9)


def close(loop, conn):
    """An ended connection, whose last bytes have been written as far as they could be."""
    five = loop.broker.five
    if five and not loop.stopping and five.lingers(loop.broker, conn):
        loop.pause(conn, 0)
        _half_close(loop, conn)
        loop.listeners.start()  # it makes way for who waits there
    else:
        hang_up(loop, conn)


def _half_close(loop, conn):
    # Once the last bytes have left.
    if loop.conns.is_empty(conn):
        half_close(loop.conns.stream[conn])


def discard(loop, conn, stream, event):
    """Something has come from a client to whom nobody listens any more."""
    if event & _OUT:
        loop.writable(conn)
        if loop.conns.state[conn] != _LINGERING:
            return  # its socket has failed: the turn's end hangs it up
        _half_close(loop, conn)
    try:
        gone = stream.readinto(loop.broker.rx, len(loop.broker.rx)) == 0
    except OSError as error:
        gone = error.args[0] != _EAGAIN
    if gone or event & _GONE:
        hang_up(loop, conn)


def make_way(loop):
    """One that lingers is closed when the turn ends, for who waits to come in; False: there
    is none. Not at once: the poller may have told of it already."""
    conns = loop.conns
    for conn in range(conns.top):
        if conns.state[conn] == _LINGERING:
            loop.broker.end(conn, _LOST)
            return True
    return False


def hang_up(loop, conn):
    """The network connection ends now, and gives its slot back."""
    stream = loop.conns.stream[conn]
    loop.pause(conn, 0)
    heap.lift()
    loop.poller.unregister(stream)
    del loop.of_stream[stream]
    if loop.lwip:
        loop.lwip.closing(stream)
    stream.close()
    loop.broker.closed(conn)
    loop.listeners.left(conn)
    heap.drop()
