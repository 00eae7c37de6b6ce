# denials.py - the log line about a PUBLISH or a will that acl_file denies: of a client and a topic
# at most one a minute (platform/said.py). Loaded on demand; owns nothing; allocates.
from slotmq.constants import NOTICE
from slotmq.platform import ondemand


def log(acl, session, topic):
    broker = acl.broker
    who = broker.sessions.client_id(session)
    if ondemand.take("platform.said", broker.now).may(broker, NOTICE, who, topic):
        user = acl.owners.name(session)
        by = ", u%r" % user.decode() if user else ""
        line = "Denied a message from %r%s to %r by acl_file (so far %d)."
        broker.log(NOTICE, line % (who.decode(), by, topic.decode(), acl.denied))
