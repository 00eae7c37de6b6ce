# sys_topics.py - the $SYS topics: their names and their values.
#
# No value is stored. It is made for a new subscription, as if it were retained, or when a round of
# sys_interval finds that it has changed. Names are mosquitto's if it has such a value;
# slots/<table>/high, refused and limit are slotmq's. A line of the tables below is a name below
# $SYS/broker/ and where its value is: a path of attributes and indexes from the broker, or a dot
# and a function of this file. There are three texts, since a small heap has no large free blocks.
# `s` is the Sys (status/sys_state.py), which owns the state. Loaded on demand; allocates.
import gc

from slotmq.delivery import retain
from slotmq.delivery.lifecycle import publish_stored
from slotmq.fast import store, topic_matches, unref
from slotmq.platform import ondemand
from slotmq.platform.runtime import MICROPYTHON, const

_NONE = const(0xFFFF)
_FIRST_SLOTS = const(26)  # rows of SLOTS, three a line
_FIRST_JOURNAL = const(59)
_SEQ = const(4)  # in the recorder's state: the next number
_EPOCH = const(259200000)  # tenths of a second, as in net/timers.py
_MINUTES = (1, 5, 15)  # as in status/sys_state.py
# The names of those in status/sys_state.py
_LOADS = """messages/received messages/sent publish/received publish/sent bytes/received
bytes/sent"""
TOPICS = """\
version .version
uptime .uptime
clients/total .known
clients/connected .connected
clients/active .connected
clients/disconnected .offline
clients/inactive .offline
clients/maximum sessions.high
clients/stalled conns.stalled
messages/received .stat 0
messages/sent .sent
publish/messages/received .stat 2
publish/messages/sent .stat 3
publish/messages/dropped .stat 4
bytes/received .stat 5
bytes/sent .stat 6
messages/stored messages.count.0
store/messages/count messages.count.0
store/messages/bytes .stored
store/messages/bytes/limit limits.message_bytes
subscriptions/count subscriptions.count
retained messages/count .retained
heap/current .heap
heap/size .size
heap/exhausted loop.exhausted
exceptions loop.exceptions
"""
# slots/<name>/high and /refused: a table's high-water mark and refusals; /limit: the limit of
# that name
SLOTS = """\
connections conns.high conns.refused
sessions sessions.high sessions.refused
subscriptions subscriptions.high subscriptions.refused
nodes subscriptions.nodes_high subscriptions.nodes_refused
retained retained.high retained.refused
messages messages.count.1 messages.refused
deliveries deliveries.count.1 deliveries.refused
received sessions.ids_high.0 sessions.ids_refused
reassembly conns.reassembly.1 conns.reassembly.2
shares five.shares.high five.shares.refused
aliases five.aliases.high five.aliases.refused
"""
JOURNAL = """\
journal/commits journal.commits
journal/full .full
journal/bytes/written journal.medium.written
journal/bytes/erased journal.medium.erased
logins/users .users
logins/accepted users.accepted
logins/refused users.refused
logins/delayed users.delayed
logins/computed users.computed
recording/lost .lost
"""


def _line(text, i):
    start = 0
    for _ in range(i):
        start = text.find("\n", start) + 1
    return text[start : text.find("\n", start)]


def _row(i):
    # Name and path of a topic that is not a moving average.
    if i < _FIRST_SLOTS:
        return _line(TOPICS, i)
    if i >= _FIRST_JOURNAL:
        return _line(JOURNAL, i - _FIRST_JOURNAL)
    i -= _FIRST_SLOTS
    row = _line(SLOTS, i // 3).split(" ")
    row.append("limits." + row[0])
    return "slots/%s/%s %s" % (row[0], ("high", "refused", "limit")[i % 3], row[1 + i % 3])


def topic(s, i, buf, off):
    """Write the name of topic i to buf[off:]; -> its length in bytes."""
    if i < s.rows:
        row = _row(i)
        name = row.rsplit(" ", 2 if " .stat " in row else 1)[0]
    else:
        load, minutes = divmod(i - s.rows, len(_MINUTES))
        name = "load/%s/%dmin" % (_LOADS.split()[load], _MINUTES[minutes])
    text = b"$SYS/broker/" + name.encode()
    buf[off : off + len(text)] = text
    return len(text)


def value(s, i):
    """The value of topic i as text."""
    if i >= s.rows:
        return "%.2f" % s.loads[i - s.rows]
    words = _row(i).split(" ")
    if words[-2] == ".stat":
        return str(s.stat(int(words[-1])))
    path = words[-1]
    if path[0] == ".":
        return str(_VALUES[path[1:]](s))
    found = s.broker
    for part in path.split("."):
        found = found[int(part)] if part.isdigit() else getattr(found, part, 0)
    return str(found)


def _texts(s, i):
    # The topic, after its length, and its value.
    buf = bytearray(80)
    n = topic(s, i, buf, 2)
    buf[1] = n
    return bytes(buf[: 2 + n]), value(s, i).encode()


def _message(s, name, text):
    # Store them in a message slot, whose reference is the caller's; or NONE.
    n = len(name)
    return store(s.broker.tables, name + text, 2, n - 2, n, len(text), 0)


def scan(s, session, sub, text, n):
    """Give a new subscription the topics that match, from where its scan paused."""
    broker = s.broker
    if broker.five:
        broker.five.reclaim()  # what has expired does not count
    subs = broker.subscriptions
    first = max(subs.scan[sub] - 1 - broker.retained.slots, 0)
    for i in range(first, s.count):
        subs.scan[sub] = broker.retained.slots + i + 1
        size = topic(s, i, broker.work, 0)
        if topic_matches(broker.work, text, n, broker.work, 0, size) and (
            not broker.acl or broker.acl.reads(session, broker.work, 0, size)
        ):
            if not publish(s, session, sub, *_texts(s, i)):
                return False
    return True


def publish(s, session, sub, name, text):
    """Give a subscription a topic, after its length, with its value; False: not now."""
    msg = _message(s, name, text)
    if msg == _NONE:
        take = ondemand.take
        return take("embed.publishing", s.broker.now).put(s.broker, session, sub, name, text)
    given = retain.deliver(s.broker, session, sub, msg)
    unref(s.broker.tables, msg)
    return given


# Values that are computed


def version(s):
    from slotmq import __version__

    return "slotmq version " + __version__


def uptime(s):
    return "%d seconds" % (s.broker.carried[7] * (_EPOCH // 10) + s.broker.now // 10)


def known(s):
    return s.broker.sessions.names.count()


def connected(s):
    return s.broker.connected


def offline(s):
    return known(s) - connected(s)


def retained(s):
    return s.broker.retained.names.count()


def stored(s):
    arena = s.broker.messages.arena
    return (arena.blocks - arena.free_blocks()) * arena.size


def heap(s):
    return (ondemand.in_use or gc.mem_alloc()) if MICROPYTHON else 0


def size(s):
    # (An ESP32's heap may grow; adding up a large one takes long.)
    return gc.mem_alloc() + gc.mem_free() if ondemand.IS_SMALL else ondemand.SIZE


def sent(s):
    return s.sent()


def users(s):
    return s.broker.users.count() if s.broker.users else 0


def lost(s):
    # Records that are in no segment, or not yet in one.
    rec = s.broker.record and s.broker.record.rec
    if not rec:
        return 0
    return rec.lost + (rec.o[_SEQ] - rec.lost_from if rec.gap else 0)


def full(s):
    return int(s.broker.journal_full)


def publish_changed(s):
    """A round: publish the topics whose values have changed since the last one."""
    if s.broker.five:
        s.broker.five.reclaim()
    for i in range(s.count):
        digest = hash(value(s, i)) & 0x3FFFFFFF
        if digest != s.last[i]:
            s.last[i] = digest
            report(s, *_texts(s, i))


def report(s, name, text):
    """Publish a topic, after its length, with its value."""
    msg = _message(s, name, text)
    if msg == _NONE:
        publishing = ondemand.take("embed.publishing", s.broker.now)
        publishing.send(s.broker, name[2:], text, 0, False)
    else:
        publish_stored(s.broker, msg, _NONE)
        unref(s.broker.tables, msg)


_VALUES = {
    "version": version,
    "uptime": uptime,
    "known": known,
    "connected": connected,
    "offline": offline,
    "retained": retained,
    "stored": stored,
    "heap": heap,
    "size": size,
    "sent": sent,
    "full": full,
    "lost": lost,
    "users": users,
}

if not MICROPYTHON:
    from slotmq.status.sys_more_cpython import ROWS, VALUES

    JOURNAL += ROWS
    _LOADS += " publish/dropped sockets connections"
    _VALUES.update(VALUES)
