# filters.py - may a client subscribe to a filter? It may if something under the filter can be
# read. The rules are searched in their order: a denial that covers the whole filter refuses it,
# and a rule with `read`, `readwrite` or `subscribe` that has a topic in common with the filter
# allows it. So a filter that is partly readable is granted, and only what is readable is
# delivered. Loaded on demand, with SUBSCRIBE; owns nothing; allocates.
from slotmq.platform.runtime import const

_UNKNOWN = const(0xFFFE)
_PROGRAM = const(0xFFFC)
_READ_OR_SUBSCRIBE = const(5)
_PLUS = b"+"
_HASH = b"#"


def may_subscribe(acl, session, topic_filter):
    owners = acl.owners
    user = owners.user[session]
    if user == _PROGRAM:
        return True
    wanted = topic_filter.split(b"/")
    found = -1
    if user != _UNKNOWN:
        found = _search(acl, acl.base + min(user, acl.rows - 2), -1, wanted)
    if found < 0 and not owners.is_odd[session]:
        found = _search(acl, acl.base + acl.rows - 1, session, wanted)
    return found > 0


def _search(acl, row, session, wanted):
    # As Acl.search().
    for i in range(acl.first[row], acl.first[row + 1]):
        at = acl.end[i - 1] if i else 0
        if (acl.text[at] == 36) != (wanted[0][:1] == b"$"):
            continue
        rule = bytes(acl.text[at : acl.end[i]])
        if session >= 0:
            size = acl.expand(at, acl.end[i], session)
            rule = bytes(acl.scratch[: max(0, size)])
        levels = rule.split(b"/")
        if not acl.access[i]:
            if rule and covers(levels, wanted):
                return 0
        elif rule and acl.access[i] & _READ_OR_SUBSCRIBE and have_common(levels, wanted):
            return 1
    return -1


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
