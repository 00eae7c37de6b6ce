# sys_topics.py - the $SYS topics: their names and their values.
#
# No value is stored. It is made for a new subscription, as if it were retained, or when a round of
# sys_interval finds that it has changed. Names are mosquitto's if it has such a value;
# slots/<table>/high, refused and limit are slotmq's. A line of the tables below is a name below
# $SYS/broker/ and where its value is: a path of attributes and indexes from the broker, or a dot
# and a key of VALUES. There are three texts, since a small heap has no large free blocks. A new
# topic is one line; what is for computers only stands in sys_more_cpython.py. `s` is the Sys
# (status/sys_state.py), which owns the state. Loaded on demand; allocates.
import gc

from slotmq.constants import EPOCH, NONE, REC_SEQ
from slotmq.delivery import retain
from slotmq.delivery.lifecycle import publish_stored
from slotmq.fast import store, topic_matches, unref
from slotmq.platform import ondemand
from slotmq.platform.runtime import MICROPYTHON
from slotmq.status.sys_state import MINUTES

# The names of those in status/sys_state.py
_LOADS = """messages/received messages/sent publish/received publish/sent bytes/received
bytes/sent"""
TOPICS = """\
version .version
uptime .uptime
clients/total .known
clients/connected connected
clients/active connected
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


def _lines(text):
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        yield text[at:end]
        at = end + 1


def _topics(s):
    # Of each its name below $SYS/broker/, and the path of its value or the value itself.
    for text in (TOPICS, JOURNAL):
        for line in _lines(text):
            words = line.rsplit(" ", 2 if " .stat " in line else 1)
            yield words[0], " ".join(words[1:])
    for line in _lines(SLOTS):
        name, high, refused = line.split(" ")
        yield "slots/%s/high" % name, high
        yield "slots/%s/refused" % name, refused
        yield "slots/%s/limit" % name, "limits." + name
    at = 0
    for load in _LOADS.split():
        for minutes in MINUTES:
            yield "load/%s/%dmin" % (load, minutes), b"%.2f" % s.loads[at]
            at += 1
    if s.broker.bridges:
        for row in ondemand.take("status.sys_bridges", s.broker.now).topics(s.broker):
            yield row


def _value(s, path):
    # As bytes
    if isinstance(path, bytes):
        return path
    if path[0] == ".":
        words = path[1:].split(" ")
        found = s.stat(int(words[1])) if len(words) > 1 else VALUES[words[0]](s)
    else:
        found = s.broker
        for part in path.split("."):
            found = found[int(part)] if part.isdigit() else getattr(found, part, 0)
    return str(found).encode()


def _topic(name):
    # With its length before it
    name = b"$SYS/broker/" + name.encode()
    return len(name).to_bytes(2, "big") + name


def _message(s, name, text):
    # Store them in a message slot, whose reference is the caller's; or NONE.
    n = len(name)
    return store(s.broker.tables, name + text, 2, n - 2, n, len(text), 0)


def scan(s, session, sub, text, n):
    """Give a new subscription the topics that match, from where its scan paused."""
    broker = s.broker
    if broker.five:
        broker.five.reclaim()  # what has expired does not count
    scans = broker.subscriptions.scan
    work = broker.work
    at = broker.retained.slots
    for name, path in _topics(s):
        at += 1
        if at < scans[sub]:
            continue  # it has this one
        scans[sub] = min(at, NONE - 1)
        name = _topic(name)
        size = len(name) - 2
        if size > broker.limits.topic_bytes:
            continue
        work[:size] = name[2:]
        if topic_matches(work, text, n, work, 0, size) and (
            not broker.acl or broker.acl.reads(session, work, 0, size)
        ):
            if not _give(s, session, sub, name, _value(s, path)):
                return False
    return True


def _give(s, session, sub, name, text):
    # Give a subscription a topic with its value; False: not now.
    msg = _message(s, name, text)
    if msg == NONE:
        take = ondemand.take
        return take("embed.publishing", s.broker.now).put(s.broker, session, sub, name, text)
    given = retain.deliver(s.broker, session, sub, msg)
    unref(s.broker.tables, msg)
    return given


def publish_changed(s):
    """A round: publish the topics whose values have changed since the last one."""
    if s.broker.five:
        s.broker.five.reclaim()
    at = 0
    for name, path in _topics(s):
        text = _value(s, path)
        digest = hash(text) & 0x3FFFFFFF
        if at == len(s.last):
            s.last.append(0)
        if digest != s.last[at]:
            s.last[at] = digest
            _report(s, _topic(name), text)
        at += 1


def _report(s, name, text):
    # Publish a topic with its value.
    msg = _message(s, name, text)
    if msg == NONE:
        publishing = ondemand.take("embed.publishing", s.broker.now)
        publishing.send(s.broker, name[2:], text, 0, False)
    else:
        publish_stored(s.broker, msg, NONE)
        unref(s.broker.tables, msg)


# Values that are computed


def _version(s):
    from slotmq import __version__

    return "slotmq version " + __version__


def _stored(s):
    arena = s.broker.messages.arena
    return (arena.blocks - arena.free_blocks()) * arena.size


def _size(s):
    # (An ESP32's heap may grow; adding up a large one takes long.)
    return gc.mem_alloc() + gc.mem_free() if ondemand.IS_SMALL else ondemand.SIZE


def _lost(s):
    # Records that are in no segment, or not yet in one.
    rec = s.broker.record and s.broker.record.rec
    if not rec:
        return 0
    return rec.lost + (rec.o[REC_SEQ] - rec.lost_from if rec.gap else 0)


VALUES = {
    "version": _version,
    "uptime": lambda s: "%d seconds" % (s.broker.carried[7] * (EPOCH // 10) + s.broker.now // 10),
    "known": lambda s: s.broker.sessions.names.count(),
    "offline": lambda s: s.broker.sessions.names.count() - s.broker.connected,
    "retained": lambda s: s.broker.retained.names.count(),
    "stored": _stored,
    "heap": lambda s: (ondemand.in_use or gc.mem_alloc()) if MICROPYTHON else 0,
    "size": _size,
    "sent": lambda s: s.sent(),
    "full": lambda s: int(s.broker.journal_full),
    "lost": _lost,
    "users": lambda s: s.broker.users.count() if s.broker.users else 0,
}

if not MICROPYTHON:
    from slotmq.status import sys_more_cpython as more

    JOURNAL += more.ROWS
    _LOADS += more.LOADS
    VALUES.update(more.VALUES)
