# closing.py - the end of a network connection: at once, or, where the client was told
# why, after it had a moment to read that (version 5: the write side is shut where sockets
# can do that, what still comes is thrown away, since bytes that nobody read would destroy
# the last packet).
# Gives memory back; allocates nothing that stays.
from slotmq import heap
from slotmq.runtime import const, half_close

_OUT = const(4)
_GONE = const(8 | 16 | 32)
_EAGAIN = const(11)


def close(loop, conn):
    """An ended connection, whose last bytes have been written as far as they could be."""
    five = loop.broker.five
    if five and not loop.stopping and five.lingers(loop.broker, conn):
        loop.paused_count -= loop.paused[conn]
        loop.paused[conn] = 0
        loop.poll_for(conn)
        half_close(loop.streams[conn])
    else:
        hang_up(loop, conn)


def drain(loop, conn, stream, event):
    """Something has come from a client to whom nobody listens any more."""
    if event & _OUT:
        loop.writable(conn)
    try:
        gone = stream.readinto(loop.rx, len(loop.rx)) == 0
    except OSError as error:
        gone = error.args[0] != _EAGAIN
    if gone or event & _GONE:
        hang_up(loop, conn)


def hang_up(loop, conn):
    """The network connection ends now, and gives its slot back."""
    stream = loop.streams[conn]
    heap.lift()
    loop.poller.unregister(stream)
    del loop.of_stream[stream]
    stream.close()
    if loop.paused[conn]:
        loop.paused[conn] = 0
        loop.paused_count -= 1
    loop.broker.closed(conn)
    loop.doors.left(conn)
    heap.drop()
