# senders_cpython.py - the contract of fast/senders_viper.py on CPython: for each connection a dict
# of the topic names that it may publish to, as Routes.slot_of.
_NOTHING: dict = {}


def make(routes, connections):
    return Senders(routes, connections)


class Senders:
    def __init__(self, routes, _connections):
        self.routes = routes
        self.slots_of = {}  # connection: {topic name: slot}

    def clear(self):
        """Routes has forgotten all topics."""
        self.slots_of.clear()

    def add(self, conn, buf, off, n):
        name = bytes(buf[off : off + n])
        slot = self.routes.slot_of.get(name, -1)
        if slot >= 0:
            self.slots_of.setdefault(conn, {})[name] = slot

    def remove(self, conn):
        self.slots_of.pop(conn, None)

    def of(self, conn):
        """The routes on which the connection may publish, by topic name."""
        return self.slots_of.get(conn, _NOTHING)

    def may(self, conn, slot):
        return slot in self.of(conn).values()
