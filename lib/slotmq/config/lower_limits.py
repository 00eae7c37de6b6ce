# lower_limits.py - what to lower where the tables do not fit. Loaded on demand by a start that is
# refused, and by the tools. Owns nothing; allocates.
from slotmq.config import budget
from slotmq.platform import ondemand


def report(found, lack, limits, own, settings=None):
    """What to lower for so many bytes less than these rows: the limits above the board's own, if
    these fit, or else those of the largest tables."""
    owners = [row[0] for row in found]
    now = _size(limits, settings, owners)
    raised = []
    capacities = ondemand.take("config.capacities", 0)
    mine = capacities.values(limits)
    for name, less in capacities.values(own).items():
        value = mine[name]
        try:
            saved = value > less and now - _size(limits.replaced({name: less}), settings, owners)
        except ValueError:  # another limit needs it
            continue
        if saved:
            text = "%s (%d bytes less with %d than with %d)"
            raised.append((saved, name, text % (name, saved, less, value)))
    if now - _size(own, settings, owners) < lack:
        lack += lack // 2  # nobody does without these
        named = {"messages": "message_bytes", "version 5": "subscriptions", "shared": "rx_bytes"}
        named["access lists"] = "acl_bytes"
        raised = []
        for row in found:
            name = named.get(row[0], row[0])
            raised.append((row[1], name, "%s (%s take %d)" % (name, row[0], row[1])))
    names, told = [], []
    for saved, name, text in sorted(raised, reverse=True):
        if lack > 0 and name not in names:
            names.append(name)
            told.append(text)
        lack -= saved
    return "lower limit " + ", ".join(told)


def _size(limits, settings, owners):
    return sum([row[1] for row in budget.rows(limits, settings) if row[0] in owners])
