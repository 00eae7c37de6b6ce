# limits.py - every capacity of the broker, what it costs, and the sum.
#
# A Limits is made once, before anything else; all tables are allocated from it and
# nothing grows afterwards. What the limits are, and their bounds, is in config/capacities.py;
# the RAM as a sum with one line per owner in config/budget.py. Both are loaded on demand: a
# running broker needs the numbers only. Allocates only at start.
from slotmq.platform import ondemand


class Limits:
    """Capacities of one broker; keyword arguments replace the defaults (config/capacities.py)."""

    def __init__(self, **values):
        ondemand.take("config.capacities", 0).fill(self, values)

    def replaced(self, values):
        """A copy with some fields replaced; {} gives an equal one."""
        mine = ondemand.take("config.capacities", 0).values_of(self)
        mine.update(values)
        return Limits(**mine)

    def rows(self):
        """The heap of all tables on 32-bit MicroPython: [(owner, bytes, how many)]."""
        return ondemand.take("config.budget", 0).rows(self)

    def ram_bytes(self):
        return sum([row[1] for row in self.rows()])

    def hole_bytes(self):
        """Heap in front of the tables for calls and for what a connection allocates."""
        return 1024 + 256 * (self.connections + 1)
