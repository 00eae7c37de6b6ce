# broker_on_board.py - the real Broker and Loop on the fake sockets and poller of a port.
#
# The fakes are the modules `socket` and `select` of sockets_micropython.py and
# listening_micropython.py in lib/slotmq/platform, which are imported anew for each board, also on
# CPython.
import sys

import fakes
import watch
from packets import connect
from select_module import Select

from slotmq import Limits, Settings
from slotmq.broker import Broker
from slotmq.net import closing
from slotmq.platform import ondemand

CONNACK = b"\x20\x02\0\0"
_HALF_CLOSE = closing.half_close


class _Micropython:
    """The module `micropython`, of which listening_micropython.py uses nothing here."""


def import_platform(board):
    """Import sockets_micropython.py and listening_micropython.py as on this board; -> both."""
    names = [f"slotmq.platform.{name}_micropython" for name in ("sockets", "listening")]
    given = {"socket": board, "select": Select(board), "micropython": _Micropython}
    kept = {each: sys.modules.get(each) for each in names + list(given)}
    sys.modules.update(given)
    for name in names:
        sys.modules.pop(name, None)
    try:
        return [__import__(name, None, None, ["socket"]) for name in names]
    finally:
        for each, before in kept.items():
            sys.modules.pop(each, None)
            if before:
                sys.modules[each] = before


class BrokerOnBoard:
    """A broker on a board, with a clock that only turn() and run() advance."""

    def __init__(self, board, limits=None, settings=None):
        self.board = board
        sockets, self.listening = import_platform(board)
        self.broker = Broker(limits or Limits(connections=4), settings or Settings(sys_interval=0))
        watch.begin(self.broker)
        closing.half_close = sockets.half_close

    def listen(self, *args):
        """Broker.listen() on the board."""
        control = ondemand.take("control", 0)
        kept = control.open_listener, control.make_poller, control.clock
        control.open_listener = self.listening.open_listener
        control.make_poller = self.listening.make_poller
        control.clock = self.board.clock
        try:
            return self.broker.listen(*args)
        finally:
            control.open_listener, control.make_poller, control.clock = kept

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
        self.watch = watch.Watch()
        self._seen = 0  # bytes that the watch has

    def send(self, data):
        self.watch.read(data)
        self.peer.send(data)

    def packets(self):
        received = self.peer.received
        if self._seen < len(received):
            self.watch.written(received[self._seen :])
            self._seen = len(received)
        watch.check()
        return super().packets()
