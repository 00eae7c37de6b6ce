# esp32_socket.py - the socket module of MicroPython's esp32 port.
#
# Written from MicroPython 1.25.0 (ports/esp32/modsocket.c; comments name the functions) and lwIP
# 2.2.1 (src/api/sockets.c, api_msg.c, of which ESP-IDF has a version of its own). Error numbers
# are newlib's. It is used as the Board of rp2_socket.py is; control blocks cannot be read.
#
# Simpler than on a board: the system's memory never ends.
from network_stack import BaseSocket, Peer, Stack, Udp

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
        self.remote = None  # while a SYN waits for its answer: where it was sent to
        self.answered_ms = 0


class Board(Stack):
    # mp_module_socket_globals_table: no options of IPv6
    AF_INET, AF_INET6 = 2, 10
    SOCK_STREAM, SOCK_DGRAM, SOCK_RAW = 1, 2, 3
    IPPROTO_IP, IPPROTO_TCP, IPPROTO_UDP = 0, 6, 17
    SOL_SOCKET, SO_REUSEADDR, SO_BROADCAST = 0xFFF, 4, 0x20
    IP_ADD_MEMBERSHIP, TCP_NODELAY = 3, 1

    POSIX_POLL = False
    EINPROGRESS, EHOSTUNREACH = 119, 118
    TICK_MS = 10  # FreeRTOS's: a wait for events ends at a tick, not when the packet arrives

    def __init__(self):
        super().__init__()
        self.descriptors = []  # in use: their sockets; None: lost
        self.connections = []

    def connect(self, port):
        """A client's SYN; -> its Peer, whose state is "reset" if no netconn is left."""
        listener = self.find_listener(port)
        peer = Peer(self)
        waiting = sum([len(each.waiting) for each in self.listeners])
        if len(self.descriptors) + waiting >= LWIP_MAX_SOCKETS:
            # accept_function (api_msg.c): aborted; accept() fails with ECONNABORTED
            peer.state = "reset"
            listener.aborted += 1
            return peer
        connection = Connection(peer)
        self.connections.append(connection)
        listener.waiting.append(connection)
        return peer

    def carry(self):
        for connection in list(self.connections):
            if connection.remote:
                self._answer(connection)
                continue
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

    def _answer(self, connection):
        # SYN and ACK, or RST
        if connection.closed:
            self.connections.remove(connection)
        elif self.has_link and self.clock.ms >= connection.answered_ms:
            if connection.remote in self.servers:
                self.dialled.append(connection.peer)
            else:
                self.connections.remove(connection)
                connection.error = _ECONNRESET
            connection.remote = None

    def lose(self, peer, how):
        for connection in list(self.connections):
            if connection.peer is peer:
                self.connections.remove(connection)
                connection.queue = b""
                connection.error = _ECONNRESET if how == "reset" else _ECONNABORTED

    def socket(self, family=2, kind=1, proto=0):
        # socket_make_new: if no descriptor is left it collects garbage first
        if kind == self.SOCK_DGRAM and self.names:
            return Udp(self)
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
        # esp_socket_getaddrinfo: the address is None but for IPv4
        if ":" in host:
            return [(10, 1, 0, host, None)]
        return [(2, 1, 0, host, (host, port))]


class Socket(BaseSocket):
    def __init__(self, board, kind):
        super().__init__(board)
        self.kind = kind
        self.state = _NEW
        self.connection = None
        self.nodelay = False
        self.aborted = 0

    def setsockopt(self, level, option, value):
        # socket_setsockopt: the level is ignored
        if option == self.board.TCP_NODELAY:
            self.nodelay = bool(value)
        elif option not in (4, 0x20, 3, 20):
            self.board.printed.append("Warning: lwip.setsockopt() option not implemented")

    def bind(self, address):
        # _socket_getaddrinfo: mp_obj_get_array_fixed_n takes tuples only
        if address is None:
            raise TypeError("object 'NoneType' isn't a tuple or list")
        if [each for each in self.board.listeners if each.port == address[1]]:
            raise OSError(_EADDRINUSE)
        self.port = address[1]
        self.state = _CONNECTED

    def connect(self, address):
        # socket_connect: select() waits as long as the socket's timeout
        board = self.board
        if address is None:
            raise TypeError("object 'NoneType' isn't a tuple or list")
        board.route()
        self.state = _CONNECTED
        self.connection = Connection(Peer(board))
        self.connection.remote = tuple(address)
        self.connection.answered_ms = board.clock.ms + board.SYN_MS
        board.connections.append(self.connection)
        assert not self.blocks
        raise OSError(board.EINPROGRESS)

    def listen(self, backlog=2):
        self.state = _CONNECTED
        self.board.listeners.append(self)

    def _accept(self, locked):
        # socket_accept, lwip_accept: the descriptor exists before the object that would close it
        board = self.board
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
        return sock

    def _read(self, n):
        # _socket_read_data: after the peer's FIN always 0. lwip_recv: data that came before an
        # error is read before the error is reported.
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
        assert not self.blocks, "waits until data comes"
        return None

    def _write(self, data, locked):
        # socket_stream_write, lwip_write
        self.board.carry()
        connection = self.connection
        if connection.error:
            raise OSError(connection.error)
        n = min(len(data), TCP_SND_BUF - len(connection.queue))
        if not n:
            assert not self.blocks, "waits until there is space"
            return None
        connection.queue += data[:n]
        return n

    def poll(self, flags):
        # socket_stream_ioctl: select() for the flags asked for; HUP with the others
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
        if connection.remote:
            return 0
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
