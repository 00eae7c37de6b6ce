# rights.py - what rules.acl allows, written down a second time: who may read and publish what.
from ..messages import TOPICS, matches

USERS = (None, b"reader", b"part")


def user_of(name):
    """The user name with which the client of this id connects."""
    return USERS[int(name[6:]) % 3] if name[:6] == b"client" else None


def may_read(model, user, topic):
    if user is None or not model.world.plan.has_rules:
        return True
    if user == b"reader":
        return topic != b"a/c"
    return matches(b"a/#", topic) or matches(b"c/#", topic)


def may_write(model, user, topic):
    if user is None or not model.world.plan.has_rules:
        return True
    if user == b"reader":
        return matches(b"c/#", topic)
    return matches(b"#", topic) and not matches(b"b/#", topic)


def may_subscribe(model, user, topic_filter):
    """Is there a topic under this filter that may be read?"""
    some = [topic for topic in TOPICS if matches(topic_filter, topic)]
    some.append(topic_filter.replace(b"+", b"x").replace(b"#", b"x"))
    return any(may_read(model, user, topic) for topic in some)
