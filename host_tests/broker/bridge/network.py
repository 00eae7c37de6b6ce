"""The link between two brokers, which can be cut or frozen, and clients that count."""

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Callable

from ..wire import codec
from ..wire.client import Client

TIMEOUT_S = 30.0
PIECE = 4096


class Link:
    """Forwards TCP connections to `target`; the bridge connects to `address`.

    rate: bytes a second, of both directions together; 0: all at once."""

    rate = 0

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()
        self._pairs: dict[socket.socket, socket.socket] = {}  # here, there, here, ...
        self._theirs: set[socket.socket] = set()
        self._forgotten: list[socket.socket] = []  # open ends whose other end is closed
        self._lock = threading.Lock()
        self._frozen = self._ended = False
        self.is_up = True
        self.cuts = 0
        self._thread = threading.Thread(target=self._forward, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """Both ends of each connection are closed; bytes under way are lost."""
        with self._lock:
            for sock in (*self._pairs, *self._forgotten):
                sock.close()
            self.cuts += len(self._pairs) // 2
            self._pairs.clear()
            self._forgotten.clear()

    def cut_here(self) -> None:
        """The bridge's end of each connection is closed; the other broker learns nothing."""
        with self._lock:
            for here, there in zip(*[iter(self._pairs)] * 2, strict=True):
                here.close()
                self._forgotten.append(there)
                self.cuts += 1
            self._pairs.clear()

    def wait_connected(self) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not self._pairs:
            assert time.monotonic() < deadline, "nobody connects"
            time.sleep(0.005)

    def down(self) -> None:
        """Cut it, and let nobody come until up()."""
        self.is_up = False
        self.cut()

    def up(self) -> None:
        self.is_up = True

    def freeze(self, is_frozen: bool = True) -> None:
        """Forward nothing, and close nothing: a half-open link."""
        self._frozen = is_frozen

    def close(self) -> None:
        self._ended = True
        self._thread.join()
        self.cut()
        self._listener.close()

    def passes(self, sock: socket.socket, is_theirs: bool, data: bytes) -> None:
        """These bytes pass, from the bridge or from the other broker. For a subclass."""

    def _forward(self) -> None:
        while not self._ended:
            with selectors.DefaultSelector() as selector:
                with self._lock:
                    socks = [] if self._frozen else list(self._pairs)
                    for sock in (*socks, self._listener):
                        selector.register(sock, selectors.EVENT_READ)
                for key, _ in selector.select(0.01):
                    if key.fileobj is self._listener:
                        self._accept()
                    elif isinstance(key.fileobj, socket.socket):
                        self._pass(key.fileobj)

    def _accept(self) -> None:
        here, _ = self._listener.accept()
        if not self.is_up:
            here.close()
            return
        try:
            there = socket.create_connection(self._target)
        except OSError:
            here.close()
            return
        for sock in (here, there):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._pairs |= {here: there, there: here}
            self._theirs.add(there)

    def _pass(self, sock: socket.socket) -> None:
        with self._lock:
            other = self._pairs.get(sock)
        if other is None:
            return
        data = b""
        with contextlib.suppress(OSError):
            data = sock.recv(self.rate // 50 or PIECE)
            if data:
                self.passes(sock, sock in self._theirs, data)
                other.sendall(data)
                if self.rate:
                    time.sleep(len(data) / self.rate)
                return
        with self._lock:
            for each in (sock, other):
                self._pairs.pop(each, None)
                each.close()


class Collector(Client):
    """A client that is subscribed and keeps the payloads that come, by topic."""

    def __init__(self, address: tuple[str, int], *filters: str, qos: int = 2) -> None:
        super().__init__(address)
        self.connect(codec.connect("", clean=True))
        self.subscribe(*filters, qos=qos)
        self.came: dict[str, list[bytes]] = {}

    def collect(self) -> None:
        for message in self.receive_all():
            self.came.setdefault(message.topic, []).append(message.payload)

    def wait_for(self, condition: Callable[["Collector"], object], what: str) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        self.collect()
        while not condition(self):
            assert time.monotonic() < deadline, f"waited for {what}: {self.came}"
            time.sleep(0.02)
            self.collect()


def publisher(address: tuple[str, int]) -> Client:
    client = Client(address)
    client.connect(codec.connect("", clean=True))
    return client
