# esp32_socket.py - the socket module of MicroPython's esp32 port.
#
# Written from MicroPython 1.25.0 (ports/esp32/modsocket.c, function names below) and lwIP 2.2.1
# (src/api/sockets.c, api_msg.c, of which ESP-IDF has a version of its own). Errors are newlib's
# numbers. Used as modlwip.py's Board is; there are no control blocks to look into.
#
# What is simpler: the system's memory does not end, and segments are acknowledged whole or not.
from wire import Net, Peer, read_exactly

LWIP_MAX_SOCKETS = 10  # of ESP-IDF's Kconfig; as many netconns
TCP_SND_BUF = 5760  # CONFIG_LWIP_TCP_SND_BUF_DEFAULT
TCP_WND = 5760
_EAGAIN, _ENFILE, _EADDRINUSE, _ECONNABORTED, _ECONNRESET = 11, 23, 112, 113, 104
_NEW, _CONNECTED, _PEER_CLOSED = 0, 1, 2
_RD, _WR, _HUP, _NVAL = 1, 4, 16, 32


class Connection:
    """A netconn and its control block."""

    def __init__(self, peer):
        self.peer = peer
        self.queue = b""  # not acknowledged
        self.incoming = b""
        self.error = 0
        self.closed = False


class Board(Net):
    # mp_module_socket_globals_table: no options of IPv6
    AF_INET, AF_INET6 = 2, 10
    SOCK_STREAM, SOCK_DGRAM, SOCK_RAW = 1, 2, 3
    IPPROTO_IP, IPPROTO_TCP, IPPROTO_UDP = 0, 6, 17
    SOL_SOCKET, SO_REUSEADDR, SO_BROADCAST = 0xFFF, 4, 0x20
    IP_ADD_MEMBERSHIP, TCP_NODELAY = 3, 1

    POSIX_POLL = False
    TICK_MS = 10  # FreeRTOS's: a wait for events ends with it, not with the packet

    def __init__(self):
        super().__init__()
        self.descriptors = []  # in use, by their sockets; None: lost
        self.listeners = []
        self.connections = []
        self.garbage = []  # sockets that nobody has

    def connect(self, port):
        """A client's SYN; -> its Peer, whose state is "reset" where no netconn is left."""
        for listener in self.listeners:
            if listener.port == port:
                peer = Peer(self)
                waiting = sum([len(each.waiting) for each in self.listeners])
                if len(self.descriptors) + waiting >= LWIP_MAX_SOCKETS:
                    # accept_function (api_msg.c): aborted, and accept() is told
                    peer.state = "reset"
                    listener.aborted += 1
                    return peer
                connection = Connection(peer)
                self.connections.append(connection)
                listener.waiting.append(connection)
                return peer
        raise AssertionError("nobody listens there")

    def carry(self):
        for connection in list(self.connections):
            peer = connection.peer
            n = peer.may_take(len(connection.queue))
            peer.take(connection.queue[:n])
            connection.queue = connection.queue[n:]
            if connection.closed:
                peer.to_send = bytearray()
                if not connection.queue and peer.state == "open":
                    peer.state = "ended"
                if peer.state != "open":
                    self.connections.remove(connection)
                continue
            n = min(len(peer.to_send), TCP_WND - len(connection.incoming))
            connection.incoming += bytes(peer.to_send[:n])
            peer.to_send = peer.to_send[n:]

    def lose(self, peer, how):
        for connection in list(self.connections):
            if connection.peer is peer:
                self.connections.remove(connection)
                connection.queue = b""
                connection.error = _ECONNRESET if how == "reset" else _ECONNABORTED

    def collect(self):
        for sock in self.garbage:
            sock.close()
        self.garbage = []

    def socket(self, family=2, kind=1, proto=0):
        # socket_make_new: where no descriptor is left it collects garbage first
        locked = self.heap.enter()
        try:
            self.heap.alloc("socket: object", locked)
            sock = Socket(self, kind)
            if len(self.descriptors) >= LWIP_MAX_SOCKETS:
                self.collect()
            if len(self.descriptors) >= LWIP_MAX_SOCKETS:
                raise OSError(_ENFILE)
            self.descriptors.append(sock)
            return sock
        finally:
            self.heap.leave()

    def getaddrinfo(self, host, port, family=0, kind=1, proto=0, flags=0):
        # esp_socket_getaddrinfo: only IPv4 has an address; the rest is None
        if ":" in host:
            return [(10, 1, 0, host, None)]
        return [(2, 1, 0, host, (host, port))]


class Socket:
    def __init__(self, board, kind):
        self.board = board
        self.kind = kind
        self.state = _NEW
        self.blocks = True
        self.connection = None
        self.nodelay = False
        self.waiting = []
        self.aborted = 0
        self.port = 0

    def setblocking(self, on):
        self.blocks = on

    def setsockopt(self, level, option, value):
        # socket_setsockopt: the level is not looked at
        if option == self.board.TCP_NODELAY:
            self.nodelay = bool(value)
        elif option not in (4, 0x20, 3, 20):
            self.board.printed.append("Warning: lwip.setsockopt() option not implemented")

    def bind(self, address):
        # _socket_getaddrinfo: mp_obj_get_array_fixed_n of what is no tuple
        if address is None:
            raise TypeError("object 'NoneType' isn't a tuple or list")
        if [each for each in self.board.listeners if each.port == address[1]]:
            raise OSError(_EADDRINUSE)
        self.port = address[1]
        self.state = _CONNECTED

    def listen(self, backlog=2):
        self.state = _CONNECTED
        self.board.listeners.append(self)

    def accept(self):
        board = self.board
        locked = board.heap.enter()
        try:
            return self._accept(board, locked)
        finally:
            board.heap.leave()

    def _accept(self, board, locked):
        # socket_accept, lwip_accept: the descriptor is there before the object that would close it
        if self.aborted:
            self.aborted -= 1
            raise OSError(_ECONNABORTED)
        if not self.waiting:
            assert not self.blocks
            raise OSError(_EAGAIN)
        connection = self.waiting.pop(0)
        if len(board.descriptors) >= LWIP_MAX_SOCKETS:
            connection.peer.state = "reset"
            board.connections.remove(connection)
            raise OSError(_ENFILE)
        board.descriptors.append(None)
        board.heap.alloc("accept: object", locked)
        sock = Socket(board, 1)
        board.descriptors[-1] = sock
        sock.connection = connection
        sock.state = _CONNECTED
        try:
            board.heap.alloc("accept: address", locked)
        except MemoryError:
            board.garbage.append(sock)
            raise
        return sock, ("192.168.4.2", 50000)

    def readinto(self, buf, n=None):
        self.board.heap.enter()
        try:
            return read_exactly(self._read, buf, len(buf) if n is None else n)
        finally:
            self.board.heap.leave()

    def recv(self, n):
        # socket_recv: one read, into memory of its own
        locked = self.board.heap.enter()
        try:
            self.board.heap.alloc("recv: bytes", locked)
            data = self._read(n)
            if data is None:
                raise OSError(_EAGAIN)
            return data
        finally:
            self.board.heap.leave()

    def _read(self, n):
        # _socket_read_data: after the peer's end 0 for ever. lwip_recv: what came before an error
        # is given before the error is.
        if self.state == _PEER_CLOSED:
            return b""
        self.board.carry()
        connection = self.connection
        data = connection.incoming[:n]
        if data:
            connection.incoming = connection.incoming[n:]
            return data
        if connection.error:
            raise OSError(connection.error)
        if connection.peer.has_ended and not connection.peer.to_send:
            self.state = _PEER_CLOSED
            return b""
        assert not self.blocks, "reads until something comes"
        return None

    def write(self, buf, off=0, n=None):
        self.board.heap.enter()
        try:
            return self._write(bytes(memoryview(buf)[off : off + (len(buf) if n is None else n)]))
        finally:
            self.board.heap.leave()

    def _write(self, data):
        # socket_stream_write, lwip_write
        self.board.carry()
        connection = self.connection
        if connection.error:
            raise OSError(connection.error)
        n = min(len(data), TCP_SND_BUF - len(connection.queue))
        if not n:
            assert not self.blocks, "writes until there is room"
            return None
        connection.queue += data[:n]
        return n

    def poll(self, flags):
        # socket_stream_ioctl: select() on what was asked for, HUP with the rest
        board = self.board
        if self.state == _NEW:
            return flags & _WR | _HUP
        if self not in board.descriptors:
            return _NVAL
        board.carry()
        ready = 0
        connection = self.connection
        if connection is None:
            return flags & _RD if self.waiting or self.aborted else 0
        ended = connection.peer.has_ended and not connection.peer.to_send
        if connection.incoming or ended or connection.error:
            ready |= flags & _RD
        if connection.error or len(connection.queue) < TCP_SND_BUF:
            ready |= flags & _WR
        if connection.error:
            ready |= flags & _HUP
        return ready

    def close(self):
        board = self.board
        board.heap.enter()
        try:
            if self in board.descriptors:
                board.descriptors.remove(self)
            if self in board.listeners:
                board.listeners.remove(self)
            connection = self.connection
            if connection and not connection.closed:
                connection.closed = True
                if connection.incoming:  # RST
                    connection.peer.state = "reset"
            board.carry()
        finally:
            board.heap.leave()
