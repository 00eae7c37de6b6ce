# senders_viper.py - which connections may publish on a remembered route, on MicroPython: a bit for
# each connection and route, beside Routes. Only where publishers are asked: with acl_file, or with
# hooks that have cache_verdicts. Owns the bits: `size` bytes of `data` for each route. A set bit:
# allowed; a clear one: ask. Allocates at construction only.
import micropython

from slotmq.fast.bytes_viper import find_route


@micropython.viper
def _clear(bits: ptr8, at: int, n: int):
    n += at
    while at < n:
        bits[at] = 0
        at += 1


def make(routes, connections):
    return Senders(routes, connections)


class Senders:
    def __init__(self, routes, connections):
        self.routes = routes
        self.size = (connections + 7) // 8
        self.data = bytearray(len(routes.first) * self.size)

    def clear(self, slot):
        # The route has another topic now.
        _clear(self.data, slot * self.size, self.size)

    def add(self, conn, buf, off, n):
        # The connection may publish to this topic name, if Routes knows it.
        slot = find_route(self.routes.columns, buf, off, n)
        if slot >= 0:
            self.data[slot * self.size + (conn >> 3)] |= 1 << (conn & 7)

    def remove(self, conn):
        # The connection is another client's from now on.
        mask = ~(1 << (conn & 7))
        for i in range(conn >> 3, len(self.data), self.size):
            self.data[i] &= mask

    def may(self, conn, slot):
        return self.data[slot * self.size + (conn >> 3)] >> (conn & 7) & 1
