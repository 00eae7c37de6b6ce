# log.py - one line for each entry, to where the configuration wants it.
#
# Owns the destinations and `mask`, which has a bit for each type that is written:
# error 1, warning 2, notice 4, information 8, subscribe 16, unsubscribe 32, debug
# 64. Who logs looks at the mask first, so that nothing is put together in vain:
# `if broker.log_mask & _NOTICE: broker.log(_NOTICE, ...)`. Allocates the line.
import sys
import time

from slotmq.runtime import const

_YEAR_2000 = const(946684800)  # where the clocks of most boards begin
_CLOCK_IS_SET = const(1700000000)  # less means that nobody has told the time yet


class Log:
    def __init__(self):
        self.mask = 0
        self.outs = []
        self.epoch = _YEAR_2000 if time.gmtime(0)[0] == 2000 else 0
        self.start = int(time.time())

    def open(self, settings, mask):
        """Begin, or begin anew after a reload, when files may have been moved away."""
        self.close()
        self.mask = mask
        for dest in settings.log_dest:
            if dest == "stdout":
                self.outs.append(sys.stdout)
            elif dest == "stderr":
                self.outs.append(sys.stderr)
            else:
                self.outs.append(open(dest[5:].strip(), "a", 1))  # "file PATH", by lines

    def close(self):
        for out in self.outs:
            if out not in (sys.stdout, sys.stderr):
                out.close()
        self.outs = []

    def write(self, bit, text):
        if not self.mask & bit:
            return
        line = "%d: %s\n" % (self.now(), text)
        for out in self.outs:
            try:
                out.write(line)
                # CPython holds back what goes to no terminal, MicroPython nothing
                # (and its flush() would wait for the disk).
                getattr(out, "line_buffering", True) or out.flush()
            except (OSError, ValueError):
                pass  # a full disk, a reader that has gone: the broker goes on

    def now(self):
        """Seconds since 1970 as in mosquitto's log, since the start without a set clock."""
        now = int(time.time())
        return now + self.epoch if now + self.epoch > _CLOCK_IS_SET else now - self.start
