# sys_more_cpython.py - $SYS topics of mosquitto's that a computer has beside those of
# status/sys_topics.py, since each topic takes heap for its last value. Owns nothing.
import resource
import sys

from slotmq.constants import NONE

# More moving averages, and their indexes in stats
LOADS, STATS = " publish/dropped sockets connections", b"\4\x18\x19"
ROWS = """\
clients/expired stats.26
connections/socket/count conns.count
heap/maximum .maximum
packet/out/bytes .waiting
packet/out/count .packets
shared_subscriptions/count .shared
"""


def maximum(s):
    # The most memory that the process has had, in bytes; macOS counts in bytes, others in KB.
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most << 10


def waiting(s):
    # Bytes in the outgoing buffers.
    conns = s.broker.conns
    used = [conn for conn in range(conns.top) if conns.state[conn]]
    return sum([conns.tx_end[conn] - conn * conns.tx_bytes for conn in used])


def packets(s):
    # Messages that wait for a connected client: only of these the number of packets is known.
    sessions = s.broker.sessions
    pairs = zip(sessions.queued, sessions.conn)  # noqa: B905
    return sum([n for n, conn in pairs if conn != NONE])


VALUES = {
    "maximum": maximum,
    "waiting": waiting,
    "packets": packets,
    "shared": lambda s: sum(s.broker.five.shares.refs) if s.broker.five else 0,
}
