# rights.py - who may read and publish what in seeds with an acl_file: the text of that file, and
# what it allows, written down a second time.
import io

from ..messages import TOPICS, matches

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


def opened(path, mode):
    """open() for access/acl_file.py: an executor of Spark has no file of rules."""
    return io.BytesIO(RULES)


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
