# log.py - the log: one line for each entry, to the configured destinations.
#
# Owns the destinations of the process, which app/log_dests.py opens and closes: files, terminals,
# and others, which find the type of a line in `current`. Owns `mask`, which has a bit for each
# type of line that is written: error 1, warning 2, notice 4, information 8, subscribe 16,
# unsubscribe 32, debug 64.
# Callers test the mask first, so that no text is formatted in vain:
# `if broker._log_mask & _NOTICE: broker.log(_NOTICE, ...)`.
# Nothing is written before they are open. Allocates the line.
import sys
import time

from slotmq.constants import CLOCK_IS_SET, YEAR_2000


mask = 0
current = 0  # the bit of the line that is being written
outs = []
_epoch = YEAR_2000 if time.gmtime(0)[0] == 2000 else 0
_start = int(time.time())


def write(bit, text):
    """Write a line of that type; 0: not to terminals, where it is printed anyway."""
    global current
    if bit and not mask & bit:
        return
    line = "%d: %s\n" % (now(), text)
    current = bit
    for out in outs:
        try:
            if bit or out not in (sys.stdout, sys.stderr):
                out.write(line)
        except (OSError, ValueError):
            pass  # a full disk, a closed pipe: the broker goes on


def now():
    """Seconds since 1970, as in mosquitto's log; since the start while the clock is not set."""
    t = int(time.time())
    return t + _epoch if t + _epoch > CLOCK_IS_SET else t - _start
