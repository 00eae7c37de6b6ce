# sys_bridges.py - what $SYS says of each bridge, behind the topics of status/sys_topics.py: below
# $SYS/broker/connection/REMOTE_CLIENTID/ its connection, how many messages wait, how often the
# connection was lost, and what was refused, by reason. Loaded on demand if there is a bridge; owns
# nothing; allocates.
from slotmq.constants import NONE

_REASONS = "in/topic in/size out/full out/size out/refused"


def topics(broker):
    """The rows of all bridges, as in sys_topics.py."""
    sessions = broker.sessions
    for one in broker.bridges.every:
        name = "connection/%s/" % one.remote_id.decode()
        session = one.session
        waits = 0 if session == NONE else sessions.queued[session] + sessions.inflight[session]
        yield name + "link", ("%s %s" % (one.text(), one.where())).encode()
        yield name + "queued", b"%d" % waits
        yield name + "losses", b"%d" % one.losses
        for reason in _REASONS.split():
            yield name + "refused/" + reason, b"%d" % one.refusals.get(reason, 0)
