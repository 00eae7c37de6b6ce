# named_cpython.py - Limits and Settings of `from slotmq import ...` on CPython: a name that is
# none is an error with the one that is nearest, and a limit is a number. On boards these are the
# base classes, which say less. Owns nothing. Allocates.
from slotmq.config import limits, settings
from slotmq.config.capacities import fields
from slotmq.platform import ondemand


class Limits(limits.Limits):
    __doc__ = limits.Limits.__doc__

    def __init__(self, **values):
        known = [row[0] for row in fields()]
        for name, value in values.items():
            if name not in known:
                raise ValueError("no such limit: " + name + suggestion(name, known))
            if not isinstance(value, int):
                raise TypeError("%s: expected int, not %r" % (name, value))
        super().__init__(**values)


class Settings(settings.Settings):
    __doc__ = settings.Settings.__doc__

    def __init__(self, when_full=None, **values):
        others = settings._OF_JOURNAL + settings._OF_OTHERS
        known = dir(self) + others.split()
        for name in values:
            if name not in known:
                raise TypeError("Settings has no " + name + suggestion(name, known))
        super().__init__(when_full, **values)


def suggestion(name, known):
    """`; did you mean NAME?` if one of the known names is alike, or ""."""
    return ondemand.take("config.other_keys", 0).suggestion(str(name), known)
