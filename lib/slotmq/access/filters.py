# filters.py - may a client subscribe to a filter? It may if something under the filter can be
# read: if a rule with `read`, `readwrite` or `subscribe` has topics in common with the filter, and
# no denial before it covers all of these. So a filter that is partly readable is granted, and only
# what is readable is delivered. Loaded on demand, with SUBSCRIBE; owns nothing; allocates.
from slotmq.constants import PROGRAM, UNKNOWN

_READ_OR_SUBSCRIBE = 5
_PLUS = b"+"
_HASH = b"#"


def may_subscribe(acl, session, topic_filter):
    owners = acl.owners
    user = owners.user[session]
    if user == PROGRAM:
        return True
    wanted = topic_filter.split(b"/")
    denials = []
    if user != UNKNOWN:
        if _search(acl, acl.base + min(user, acl.rows - 2), -1, wanted, denials):
            return True
    if owners.is_odd[session]:
        return False
    return _search(acl, acl.base + acl.rows - 1, session, wanted, denials)


def _search(acl, row, session, wanted, denials):
    # Does a rule of the row allow it? denials: those before it, to which the row's are added.
    # row, session: as of Acl.search().
    for i in range(acl.first[row], acl.first[row + 1]):
        at = acl.end[i - 1] if i else 0
        if (acl.text[at] == 36) != (wanted[0][:1] == b"$"):
            continue
        rule = bytes(acl.text[at : acl.end[i]])
        if session >= 0:
            size = acl.expand(at, acl.end[i], session)
            rule = bytes(acl.scratch[: max(0, size)])
        if not rule:
            continue  # a pattern that matches nothing
        levels = rule.split(b"/")
        if not acl.access[i]:
            denials.append(levels)
        elif acl.access[i] & _READ_OR_SUBSCRIBE:
            both = common(levels, wanted)
            if both and not any([covers(each, both) for each in denials]):
                return True
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


def common(a, b):
    """The filter of the topics that both match; None: there are none. All as lists of levels."""
    found = []
    for i in range(min(len(a), len(b))):
        if a[i] == _HASH:
            return found + b[i:]
        if b[i] == _HASH:
            return found + a[i:]
        if a[i] != b[i] and _PLUS not in (a[i], b[i]):
            return None
        found.append(b[i] if a[i] == _PLUS else a[i])
    # One ends here; the other may go on with # alone.
    rest = a[len(found) :] + b[len(found) :]
    return None if rest and rest != [_HASH] else found
