# limits.py - the capacities of one broker.
#
# Owns the numbers. A Limits is made before anything else; it sizes all tables, which never grow.
# Names, meaning and bounds of the limits are in config/capacities.py, the RAM that they cost in
# config/budget.py. These two are loaded on demand, because a running broker needs only the
# numbers. Allocates only at the start.
from slotmq.platform import ondemand


class Limits:
    """Capacities of one broker; keyword arguments replace the defaults (config/capacities.py)."""

    def __init__(self, **values):
        ondemand.take("config.capacities", 0).fill(self, values)

    def replaced(self, values):
        """A copy with some fields replaced; {} gives an equal one."""
        mine = ondemand.take("config.capacities", 0).values(self)
        mine.update(values)
        return Limits(**mine)

    def rows(self):
        """The heap of all tables on 32-bit MicroPython: [(owner, bytes, how many)]."""
        return ondemand.take("config.budget", 0).rows(self)

    def ram_bytes(self):
        return sum([row[1] for row in self.rows()])

    def hole_bytes(self):
        """Heap kept free below the tables, for calls and for the objects of connections."""
        return 1024 + 256 * (self.connections + 1)
