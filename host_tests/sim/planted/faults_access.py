"""Faults in the checks of users and rules (model/rights.py)."""

from .faults import Fault

FAULTS = (
    Fault(
        "the rules are not asked about a PUBLISH",
        "access/acl.py",
        "        if not self.may_publish(session, buf, topic, n):\n            return False\n",
        "",
    ),
    Fault(
        "the fast path asks nobody about a publisher",
        "fast/path_cpython.py",
        "    slot_of = routes.senders.of(conn) if routes.senders else routes.slot_of",
        "    slot_of = routes.slot_of",
    ),
    Fault(
        "a route has receivers that may not read it",
        "access/acl.py",
        "            if self.reads(session, buf, off, n):\n                subs.pool",
        "            if True:\n                subs.pool",
    ),
    Fault(
        "a retained message goes to who may not read it",
        "delivery/retain.py",
        "    if broker.acl and not broker.acl.may_read(session, msg):\n        return True\n",
        "",
    ),
    Fault(
        "a will is published that its client may not publish",
        "delivery/lifecycle.py",
        "    if acl and session != _NONE and not acl.may_publish(",
        "    if False and not acl.may_publish(",
    ),
    Fault(
        "a filter is granted of which nothing may be read",
        "protocol/subscribe.py",
        "    if acl and not acl.may_subscribe(",
        "    if False and not acl.may_subscribe(",
    ),
    Fault(
        "a group's message goes to a member that may not read it",
        "v5/shared_subscriptions.py",
        "and (not broker.acl or broker.acl.may_read(session, msg))",
        "and True",
        900,
    ),
    Fault(
        "new rules leave what is queued",
        "access/acl_file.py",
        "    recheck.every_session(broker)\n",
        "",
    ),
    Fault(
        "new rules leave the routes",
        "access/acl_file.py",
        "    broker.subscriptions.forget_routes()\n",
        "",
    ),
    Fault(
        "a session that comes back keeps what was sent and may not be read",
        "protocol/open_session.py",
        "        if broker.acl and fields.present:",
        "        if False:",
        600,
    ),
    Fault(
        "another user takes over a connected client",
        "protocol/open_session.py",
        "    is_same = is_same and not _is_anothers(broker, broker.conns.session[old], fields)\n",
        "",
    ),
    Fault(
        "another user resumes a session",
        "protocol/open_session.py",
        "    elif clean or _is_anothers(broker, session, fields):",
        "    elif clean:",
    ),
    Fault(
        "the journal forgets the user of a session",
        "journal/rows.py",
        "        flags |= records.OWNED\n",
        "        pass\n",
    ),
)
