# rights.py - who may read and publish what in seeds with an acl_file: the text of that file, and
# what it allows, written down a second time. In some seeds it is read again, with other rules.
import io

from ..messages import TOPICS, matches
from . import tables
from .delivery import QUEUED, RELEASED, SENT_2

USERS = (None, b"reader", b"part")
RULES = b"""\
topic readwrite #
topic readwrite $v
user reader
topic deny a/c
topic read #
topic read $v
user part
topic deny b/#
topic read a/#
topic write #
pattern readwrite c/#
"""
OTHER_RULES = RULES.replace(b"deny a/c", b"deny b/#").replace(
    b"deny b/#\ntopic read a/#", b"deny a/#\ntopic read b/#"
)


def file_of(world):
    """open() for access/acl_file.py: an executor of Spark has no file of rules."""
    return lambda path, mode: io.BytesIO(OTHER_RULES if world.has_other_rules else RULES)


def user_of(name):
    """The user name with which the client of this id connects."""
    return USERS[int(name[6:]) % 3] if name[:6] == b"client" else None


def may_read(model, user, topic):
    if user is None or not model.world.plan.has_rules:
        return True
    others = model.world.has_other_rules
    if user == b"reader":
        return not matches(b"b/#", topic) if others else topic != b"a/c"
    return matches(b"b/#" if others else b"a/#", topic) or matches(b"c/#", topic)


def may_write(model, user, topic):
    if user is None or not model.world.plan.has_rules:
        return True
    if user == b"reader":
        return matches(b"c/#", topic)
    denied = b"a/#" if model.world.has_other_rules else b"b/#"
    return matches(b"#", topic) and not matches(denied, topic)


def may_subscribe(model, user, topic_filter):
    """Is there a topic under this filter that may be read?"""
    some = [topic for topic in TOPICS if matches(topic_filter, topic)]
    some.append(topic_filter.replace(b"+", b"x").replace(b"#", b"x"))
    return any(may_read(model, user, topic) for topic in some)


def recheck(model, session, may_have_sent):
    """The broker has dropped what the session may not read by now: a reload has changed the rules,
    or its client has come back since. may_have_sent: the client stays connected, and what was
    sent to it goes on."""
    rows = {row.packet_id: row for row in tables.queue(model.broker, session.name)}
    for row in rows.values():
        forbidden = row.topic is not None and not may_read(model, session.user, row.topic)
        if forbidden and not (may_have_sent and row.state != QUEUED):
            model.fail("%s keeps a message of %s, which it may not read", session.name, row.topic)
    released = [row for row in rows.values() if row.topic is None]
    released = [row for row in released if row.packet_id not in session.in_flight]
    for scan in session.scans:
        for topic in scan.expected:
            if not may_read(model, session.user, topic):
                scan.expected[topic] = None
    for row in session.deliveries.values():
        for delivery in row:
            if not may_read(model, session.user, delivery.msg.topic):
                delivery.required = False
    for delivery in list(session.queue):
        if may_read(model, session.user, delivery.msg.topic):
            continue
        row = rows.get(delivery.packet_id)
        if row and row.topic is None:
            delivery.state = RELEASED
        elif row is None and delivery.qos == 2 and not delivery.packet_id and released:
            # The journal did not know whether it was sent.
            delivery.packet_id, delivery.state = released.pop(0).packet_id, RELEASED
            session.in_flight[delivery.packet_id] = delivery
        elif row is None and not _is_there(delivery, rows):
            if delivery.state == SENT_2 and not (delivery.restored or model.world.loss_allowed):
                model.fail("%s: no PUBREL would follow %r", session.name, delivery)
            session.finish(delivery)
            model.world.events["forbidden"] += 1


def _is_there(delivery, rows):
    # Was it sent, though the model has not seen it yet?
    return any(row.key == delivery.msg.key() for row in rows.values())
