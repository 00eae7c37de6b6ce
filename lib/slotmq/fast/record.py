# record.py - chooses the inner loops of the recorder for this runtime. Apart from
# fast/__init__.py, so that a broker that does not record does not load them.
# ruff: noqa: F401 - others import from here
import sys

from slotmq.platform import ondemand
from slotmq.platform.runtime import MICROPYTHON


def best():
    """The fastest make() and add_all() for this platform."""
    if not MICROPYTHON or ondemand.IS_SMALL or sys.platform != "linux":
        return make, add_all
    words = ondemand.take("fast.record_words_viper", 0)
    return words.make, words.add_all


if MICROPYTHON:
    from slotmq.fast.record_viper import add, add_all, make
else:
    from slotmq.fast.record_cpython import add, add_all, make
