# runtime_record.py - runtime.py's part for the recorder, loaded only with it.
# ruff: noqa: F401 - others import from here
import sys

from slotmq import ondemand
from slotmq.runtime import MICROPYTHON


def best():
    """make() and tap() that are the fastest here."""
    if not MICROPYTHON or ondemand.IS_SMALL or sys.platform != "linux":
        return make, tap
    words = ondemand.take("hot_record_words", 0)
    return words.make, words.tap


if MICROPYTHON:
    from slotmq.hot_record import add, make, tap
else:
    from slotmq.hot_record_cpython import add, make, tap
