# sys_bridges.py - what $SYS says of each bridge, behind the topics of status/sys_topics.py: below
# $SYS/broker/connection/REMOTE_CLIENTID/ its connection, how many messages wait, how often the
# connection was lost, and what was refused, by reason. Values are made when they are asked for.
# Loaded on demand in place of sys_topics.py if there is a bridge; owns nothing; allocates.
from slotmq.fast import topic_matches
from slotmq.platform import ondemand
from slotmq.platform.runtime import const

_NONE = const(0xFFFF)
_TOPICS = """link queued losses refused/in/topic refused/in/size refused/out/full
refused/out/size refused/out/refused"""


def _values(one):
    # Pairs of a name and a value.
    sessions = one.broker.sessions
    session = one.session
    waits = 0 if session == _NONE else sessions.queued[session] + sessions.inflight[session]
    host, port = one.options.addresses[one.address]
    for name in _TOPICS.split():
        value = one.refusals.get(name[8:], 0)
        if name == "link":
            value = "%s %s:%d" % (one.text(), host, port)
        elif name == "queued":
            value = waits
        elif name == "losses":
            value = one.losses
        yield name, str(value)


def _topic(one, name):
    # With its length before it.
    text = "$SYS/broker/connection/%s/%s" % (one.remote_id.decode(), name)
    text = text.encode()
    return len(text).to_bytes(2, "big") + text


def scan(s, session, sub, text, n):
    """Give a new subscription the topics that match, from where its scan paused."""
    broker = s.broker
    topics = ondemand.take("status.sys_topics", broker.now)
    if not topics.scan(s, session, sub, text, n):
        return False
    scans = broker.subscriptions.scan
    work = broker.work
    at = broker.retained.slots + s.count
    for each in broker.outgoing.every:
        for name, value in _values(each):
            at += 1
            if at < scans[sub]:
                continue  # it has this one
            scans[sub] = min(at, _NONE - 1)
            name = _topic(each, name)
            size = len(name) - 2
            if size > broker.limits.topic_bytes:
                continue
            work[:size] = name[2:]
            if topic_matches(work, text, n, work, 0, size) and (
                not broker.acl or broker.acl.reads(session, work, 0, size)
            ):
                if not topics.publish(s, session, sub, name, value.encode()):
                    return False
    return True


def publish_changed(s):
    """A round: publish the topics whose values have changed since the last one."""
    topics = ondemand.take("status.sys_topics", s.broker.now)
    topics.publish_changed(s)
    for each in s.broker.outgoing.every:
        for name, value in _values(each):
            if each.told.get(name) != value:
                each.told[name] = value
                topics.report(s, _topic(each, name), value.encode())
