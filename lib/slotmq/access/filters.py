# filters.py - may a client subscribe to a filter? It may if something under the filter can be
# read. The rules are searched in their order: a denial that covers the whole filter refuses it,
# and a rule with `read`, `readwrite` or `subscribe` that has a topic in common with the filter
# allows it. So a filter that is partly readable is granted, and only what is readable is
# delivered. Loaded on demand, with SUBSCRIBE; owns nothing; allocates.
from slotmq.platform.runtime import const

_PROGRAM = const(0xFFFC)
_EVERYBODY = const(0xFFFB)
_READ_OR_SUBSCRIBE = const(5)
_PLUS = b"+"
_HASH = b"#"


def may_subscribe(acl, session, topic_filter):
    owners = acl.owners
    user = owners.user[session]
    if user == _PROGRAM:
        return True
    wanted = topic_filter.split(b"/")
    at = 0
    for i in range(acl.count):
        end = acl.end[i]
        who = acl.user[i]
        if who == _EVERYBODY and owners.is_odd[session]:
            return False
        if who in (user, _EVERYBODY) and (acl.text[at] == 36) == (topic_filter[0] == 36):
            rule = bytes(acl.text[at:end])
            if who == _EVERYBODY:
                size = acl.expand(at, end, session)
                rule = bytes(acl.scratch[: max(0, size)])
            levels = rule.split(b"/")
            if not acl.access[i]:
                if rule and covers(levels, wanted):
                    return False
            elif rule and acl.access[i] & _READ_OR_SUBSCRIBE and have_common(levels, wanted):
                return True
        at = end
    return False


def covers(rule, wanted):
    """Does the rule match every topic that the filter matches? Both as lists of levels."""
    if wanted == [_HASH]:
        wanted = [_PLUS, _HASH]  # the same topics, since each has a level
    for i in range(len(rule)):
        if rule[i] == _HASH:
            return True  # also what ends at the level above
        if i == len(wanted) or wanted[i] == _HASH:
            return False
        if rule[i] != _PLUS and rule[i] != wanted[i]:
            return False
    return len(rule) == len(wanted)


def have_common(a, b):
    """Is there a topic that both filters match?"""
    i = 0
    while i < len(a) and i < len(b):
        if _HASH in (a[i], b[i]):
            return True
        if a[i] != b[i] and _PLUS not in (a[i], b[i]):
            return False
        i += 1
    # One ends here; the other may go on with # alone.
    rest = a[i:] + b[i:]
    return not rest or rest == [_HASH]
