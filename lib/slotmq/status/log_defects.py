# log_defects.py - log lines about exceptions that have ended a turn. Loaded on demand; owns
# nothing; allocates the line.
import io
import sys

from slotmq.constants import ERROR, WARNING
from slotmq.platform.runtime import MICROPYTHON


def _place(failed):
    # Where it was raised, as far as the port keeps that. Not its text, which may have a client's
    # bytes in it.
    if not MICROPYTHON:
        at = __import__("traceback").extract_tb(failed.__traceback__)[-1]
        return "%s:%d, in %s" % (at.filename, at.lineno, at.name)
    out = io.StringIO()
    sys.print_exception(failed, out)
    place = "unknown place"
    for line in out.getvalue().split("\n")[1:]:
        if line[:7] != "  File ":
            break
        place = line.strip()
    return place


def caught(broker, conn, failed):
    """An exception has ended a turn. failed: the exception if it is a defect, else None: the heap
    was used up. If that has left the journal incomplete, set it as full, and log that once until
    it can be written again."""
    is_memory = failed is None or isinstance(failed, MemoryError)
    if failed and broker._log_mask & ERROR and (conn >= 0 or _is_rare(broker.loop)):
        name = type(failed).__name__ + (" with the heap locked" if is_memory else "")
        broker.log(ERROR, "%s, a defect: %s." % (name, _place(failed)))
    if not is_memory:
        return
    journal = broker.journal
    if not journal or journal.whole:
        return
    journal.failures += 1
    if broker.journal_full is True:
        return
    broker.journal_full = broker.subscriptions.journal_full = True
    broker.fast_path = None
    waits = journal.always
    then = "all clients wait until that changes" if waits else "nothing new is promised"
    broker.log(WARNING, "The journal: no heap is left, %s." % then)


def _is_rare(loop):
    # It may come back in each turn: the 1st, the 2nd, the 4th, the 8th is logged.
    n = loop.exhausted + loop.exceptions
    return not n & (n - 1)
