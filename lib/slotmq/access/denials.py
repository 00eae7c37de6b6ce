# denials.py - the log line about a PUBLISH or a will that acl_file denies, at most once a minute.
# Loaded on demand; owns nothing; allocates.
from slotmq.platform.runtime import const

_NOTICE = const(4)
_MINUTE = const(600)  # tenths of a second


def log(acl, session, topic):
    broker = acl.broker
    # The zero of now may have moved since.
    if not broker._log_mask & _NOTICE or 0 < acl.quiet_until - broker.now <= _MINUTE:
        return
    acl.quiet_until = broker.now + _MINUTE
    user = acl.owners.name(session)
    who = broker.sessions.client_id(session).decode()
    by = ", u%r" % user.decode() if user else ""
    line = "Denied a message from %r%s to %r by acl_file (so far %d)."
    broker.log(_NOTICE, line % (who, by, topic.decode(), acl.denied))
