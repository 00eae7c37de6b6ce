# rp2_socket.py - the socket module of MicroPython's rp2 port, with CYW43 and W5500 alike.
#
# Written from extmod/modlwip.c of MicroPython 1.25.0 and 1.26.1; comments name the functions. Its
# TCP is in lwip_tcp.py.
#
#   board = Board()                      the module: board.socket(), board.getaddrinfo(), constants
#   peer = board.connect(1883)           a client's SYN; None: it got no answer (try again later)
#   peer.send(b"..."); peer.received     see Peer in network_stack.py: stop(), go_on(), rate, end()
#   board.clock.ms; board.pass_time(ms)  acknowledgements, timers and callbacks happen in it
#   board.later(ms, callback)            a soft timer; runs also while a write waits
#   board.no_memory                      what a write does after ERR_MEM: LENGTH, ENOBUFS, EAGAIN
#   board.output_fails = n               the next n tcp_output() end in ERR_MEM
#   board.memory_used, board.waits       of MEM_SIZE now; [ms] that writes have waited
#   board.mem32[id(sock) + 4]            the address of its control block; 0: it has none
#   board.mem16[block + 2 * k]           its fields; snd_buf and snd_queuelen are adjacent
#   board.heap.fail("accept: object")    an allocation that fails, see Heap in network_stack.py
#   board.pcbs                           the TCP control blocks in use, 5 at most
from lwip_tcp import MEMP_NUM_TCP_PCB_LISTEN, PCB_SIZE, TCP_WND, Lwip
from network_stack import BaseSocket, Udp

# What a write on a socket that does not block does if the stack has no memory for it
LENGTH = "length"  # to 1.28: waits 200 x 50 ms, then returns a length though nothing is queued
ENOBUFS = "enobufs"  # proposed upstream: OSError 105, nothing is queued
EAGAIN = "eagain"  # proposed upstream: None, nothing is queued

CLOSE_TIMEOUT_MS = 10000  # MICROPY_PY_LWIP_TCP_CLOSE_TIMEOUT_MS
TRIES, TRY_MS = 200, 50  # lwip_tcp_send

_NEW, _LISTENING, _CONNECTING, _CONNECTED, _PEER_CLOSED = 0, 1, 2, 3, 4
_ABORTED, _RESET, _BADF = -13, -14, -17
_ERRNO = {_ABORTED: 103, _RESET: 104, _BADF: 9}  # error_lookup_table
_RD, _WR, _ERR, _HUP, _NVAL = 1, 4, 8, 16, 32


class _Memory:
    """The board's memory by address, as far as `read` knows it."""

    def __init__(self, heap, read):
        self._heap = heap
        self._read = read

    def __getitem__(self, address):
        self._heap.enter()
        try:
            return self._read(address)
        finally:
            self._heap.leave()


class Board(Lwip):
    """The socket module of one board, and the network it is in."""

    # mp_module_lwip_globals_table
    AF_INET, AF_INET6 = 2, 10
    SOCK_STREAM, SOCK_DGRAM = 1, 2
    SOL_SOCKET, SO_REUSEADDR, SO_BROADCAST = 1, 4, 0x20
    IPPROTO_IP, IPPROTO_TCP = 0, 6
    TCP_NODELAY = 0x40  # TF_NODELAY

    POSIX_POLL = False

    def __init__(self, version=(1, 25), no_memory=LENGTH):
        super().__init__()
        self.version = version
        self.no_memory = no_memory
        self.waits = []
        self.sockets = []
        self.mem32 = _Memory(self.heap, self._pcb_of_socket)
        self.mem16 = _Memory(self.heap, self._field_of_pcb)

    def _pcb_of_socket(self, address):
        for sock in self.sockets:
            if id(sock) + 4 == address:
                return sock.pcb.address if sock.pcb else 0
        raise AssertionError("no socket lies there")

    def _field_of_pcb(self, address):
        for pcb in self.pcbs:
            if 0 <= address - pcb.address < PCB_SIZE:
                return pcb.field(address - pcb.address)
        raise AssertionError("no control block lies there")

    def socket(self, family=2, kind=1, proto=0):
        locked = self.heap.enter()
        try:
            self.heap.alloc("socket: object", locked)
            return Udp(self) if kind == self.SOCK_DGRAM else Socket(self, self.new_pcb())
        finally:
            self.heap.leave()

    def getaddrinfo(self, host, port, family=0, kind=0, proto=0, flags=0):
        # lwip_getaddrinfo: the family is 2 for any address. The fake resolves no names.
        if family not in (0, 2) or kind not in (0, 1) or proto or flags:
            self.printed.append("Warning: unsupported getaddrinfo constraints")
        if not _is_address(host):
            raise OSError(-2)
        return [(2, 1, 0, "", (host, port))]


def _is_address(host):
    return ":" in host or all(part.isdigit() for part in host.split("."))


class Socket(BaseSocket):
    def __init__(self, board, pcb):
        if pcb is None:
            raise OSError(12)  # lwip_socket_make_new: ENOMEM
        super().__init__(board)
        self.pcb = pcb
        pcb.socket = self
        self.state = _NEW
        self.incoming = []
        self.address = None
        self.reuse = False
        self.backlog = None
        board.sockets.append(self)

    def setsockopt(self, level, option, value):
        # lwip_socket_setsockopt: the level is ignored
        board = self.board
        if option == board.SO_REUSEADDR:
            self.reuse = bool(value)
        elif option == board.TCP_NODELAY:
            if self.pcb is None:
                raise AssertionError("writes through a NULL pointer")
            self.pcb.nodelay = bool(value)
        elif option not in (board.SO_BROADCAST, 20):
            board.printed.append("Warning: lwip.setsockopt() not implemented")

    def bind(self, address):
        host, port = address  # lwip_parse_inet_addr
        if host and not _is_address(host):
            raise ValueError("invalid arguments")
        for other in self.board.listeners:  # tcp_bind: of one IP version, unless both may share
            same = other.port == port and (":" in host) == (":" in other.address)
            if same and not (self.reuse and other.reuse):
                raise OSError(98)
        self.address, self.port = host, port

    def connect(self, address):
        # lwip_socket_connect: tcp_connect() fails without a route; then it waits `timeout` ms
        if self.state != _NEW:
            raise OSError(114)
        self.board.route()
        assert _is_address(address[0])
        self.state = _CONNECTING
        self.pcb.dial(address, self.board.clock.ms + self.board.SYN_MS)
        assert not self.blocks
        raise OSError(self.board.EINPROGRESS)

    def connected(self):
        # _lwip_tcp_connected
        self.state = _CONNECTED

    def listen(self, backlog=2):
        board = self.board
        for other in board.listeners:  # tcp_listen_with_backlog_and_err
            if other.port == self.port and other.address == self.address:
                raise OSError(98)
        if len(board.listeners) == MEMP_NUM_TCP_PCB_LISTEN:
            raise OSError(12)
        locked = board.heap.enter()
        try:
            board.pcbs.remove(self.pcb)  # listening control blocks have a pool of their own
            self.pcb.state = "LISTEN"
            if backlog > 1:
                board.heap.alloc("listen: backlog", locked)
        finally:
            board.heap.leave()
        self.backlog = backlog & 255
        self.state = _LISTENING
        board.listeners.append(self)

    def peer_closed(self):
        # _lwip_tcp_recv without a pbuf
        if self.state == _CONNECTED:
            self.state = _PEER_CLOSED

    def lost(self, how):
        # _lwip_tcp_error
        self.incoming = []
        self.state = _RESET if how == "reset" else _ABORTED
        self.pcb = None

    def _accept(self, locked):
        # lwip_socket_accept: to 1.27 the object is allocated before the control block is taken
        # from the queue; from 1.28 after that, and if it fails the control block is lost.
        board = self.board
        alloc = board.heap.alloc
        if board.version < (1, 28):
            alloc("accept: object", locked)
        if self.state != _LISTENING:
            raise OSError(9)
        if not self.waiting:
            board.pass_time(1, locked)  # poll_sockets()
        if not self.waiting:
            raise OSError(11)
        pcb = self.waiting.pop(0)
        pcb.listener = None
        if board.version >= (1, 28):
            alloc("accept: object", locked)
        sock = Socket(board, pcb)
        sock.blocks = self.blocks
        sock.state = _CONNECTED
        sock.incoming, pcb.refused = pcb.refused, []
        board.carry()
        return sock

    def _check(self):
        # STREAM_ERROR_CHECK
        if self.state < 0:
            raise OSError(_ERRNO[self.state])

    def _read(self, n):
        # lwip_tcp_receive: one pbuf at most
        self._check()
        self.board.carry()
        self._check()
        if not self.incoming:
            assert not self.blocks
            return b"" if self.state == _PEER_CLOSED else None
        data = self.incoming[0][:n]
        n = len(data)
        self.incoming[0] = self.incoming[0][n:]
        if not self.incoming[0]:
            self.incoming.pop(0)
        self.pcb.rcv_wnd += n  # tcp_recved
        return data

    def _write(self, data, locked):
        # lwip_tcp_send
        board = self.board
        self._check()
        board.carry()
        self._check()
        data = data[: self.pcb.snd_buf]
        if not self.pcb.snd_buf:
            assert not self.blocks
            return None
        begin = board.clock.ms
        queued = board.tcp_write(self.pcb, data)
        for _ in range(TRIES):
            if queued:
                break
            if board.no_memory == EAGAIN:
                return None
            if board.no_memory == ENOBUFS:
                raise OSError(105)
            if not board.tcp_output():
                raise OSError(12)
            board.pass_time(TRY_MS, locked)
            if self.pcb is None:
                raise OSError(107)  # tcp_write(NULL) gives ERR_CONN
            queued = board.tcp_write(self.pcb, data)
        if board.clock.ms > begin:
            board.waits.append(board.clock.ms - begin)
        if queued and not board.tcp_output():
            raise OSError(12)  # though the bytes are queued, and will arrive
        return len(data)  # even if nothing is queued

    def poll(self, flags):
        # lwip_socket_ioctl(MP_STREAM_POLL)
        board = self.board
        board.carry()
        ready = 0
        if flags & _RD and (self.waiting if self.state == _LISTENING else self.incoming):
            ready |= _RD
        if flags & _WR and self.state != _LISTENING and self.pcb and self.pcb.snd_buf:
            ready |= _WR
        if self.state == _NEW:
            ready |= _HUP
        elif self.state == _PEER_CLOSED:
            ready |= flags & (_RD | _WR)
        elif self.state == _RESET:
            ready |= flags & _WR | _HUP
        elif self.state == _BADF:
            ready |= _NVAL
        elif self.state < 0:
            ready |= _ERR
        return ready

    def close(self):
        board = self.board
        board.heap.enter()
        try:
            if self.pcb:
                self._close(board, self.pcb)
            if self in board.sockets:
                board.sockets.remove(self)
        finally:
            board.heap.leave()

    def _close(self, board, pcb):
        # lwip_socket_ioctl(MP_STREAM_CLOSE), tcp_close_shutdown (tcp.c)
        self.pcb = pcb.socket = None
        if self.state == _LISTENING:
            for waiting in self.waiting:
                waiting.peer.state = "reset"
                board.pcbs.remove(waiting)
            self.waiting = []
            board.listeners.remove(self)
        elif pcb.peer is None:
            board.pcbs.remove(pcb)
        elif pcb.rcv_wnd != TCP_WND:  # something was not read: RST at once
            pcb.peer.state = "reset"
            board.pcbs.remove(pcb)
        else:
            pcb.state = "LAST_ACK" if pcb.state == "CLOSE_WAIT" else "FIN_WAIT"
            pcb.abort_ms = board.clock.ms + CLOSE_TIMEOUT_MS
        self.state = _BADF
        self.incoming = []
        board.carry()
