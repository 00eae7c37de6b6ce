# broker_on_board.py - the real Broker and Loop on the fake sockets and poller of a port.
#
# The fakes are the modules `socket` and `select` of lib/slotmq/platform/sockets_micropython.py,
# which is imported anew for each board, also on CPython.
import sys

import fakes
from packets import connect
from select_module import Select

from slotmq import Limits, Settings
from slotmq import broker as broker_module
from slotmq.broker import Broker
from slotmq.net import closing

CONNACK = b"\x20\x02\0\0"
_HALF_CLOSE = closing.half_close


class _Micropython:
    """The module `micropython`, of which sockets_micropython.py uses nothing here."""


def import_sockets(board):
    """Import platform/sockets_micropython.py as on this board."""
    name = "slotmq.platform.sockets_micropython"
    given = {"socket": board, "select": Select(board), "micropython": _Micropython}
    kept = {each: sys.modules.get(each) for each in (name, "socket", "select", "micropython")}
    sys.modules.update(given)
    sys.modules.pop(name, None)
    try:
        return __import__(name, None, None, ["accept"])
    finally:
        for each, before in kept.items():
            sys.modules.pop(each, None)
            if before:
                sys.modules[each] = before


class BrokerOnBoard:
    """A broker on a board, with a clock that only turn() and run() advance."""

    def __init__(self, board, limits=None, settings=None):
        self.board = board
        self.sockets = import_sockets(board)
        self.broker = Broker(limits or Limits(connections=4), settings or Settings(sys_interval=0))
        closing.half_close = self.sockets.half_close

    def listen(self, *args):
        """Broker.listen() on the board."""
        kept = broker_module.open_listener, broker_module.make_poller, broker_module.clock
        broker_module.open_listener = self.sockets.open_listener
        broker_module.make_poller = self.sockets.make_poller
        broker_module.clock = self.board.clock
        try:
            return self.broker.listen(*args)
        finally:
            broker_module.open_listener, broker_module.make_poller, broker_module.clock = kept

    def end(self):
        closing.half_close = _HALF_CLOSE

    def turn(self, times=1, ms=1):
        for _ in range(times):
            self.board.pass_time(ms)
            self.broker.turn(0)

    def run(self, ms):
        """Turn until so much time has passed. A turn may take long, if a write waits."""
        end = self.board.clock.ms + ms
        while self.board.clock.ms < end:
            self.turn(1, 10)

    def knock(self, port=1883):
        """Open a TCP connection; -> its client, or None if the stack does not answer."""
        peer = self.board.connect(port)
        return peer and Client(peer)

    def client(self, name, port=1883, **options):
        """Connect a client: TCP, CONNECT and CONNACK."""
        client = self.knock(port)
        client.send(connect(name, **options))
        self.turn(4)
        found = client.packets()
        assert found == [CONNACK], found
        return client


class Client(fakes.Client):
    """An MQTT client on a Peer."""

    def __init__(self, peer):
        super().__init__(peer)
        self.peer = peer
        self.send = peer.send
