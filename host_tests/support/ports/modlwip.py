# modlwip.py - the socket module of MicroPython's rp2 port, with CYW43 and W5500 alike.
#
# Written from the sources of MicroPython 1.25.0 and 1.26.1 (extmod/modlwip.c, function names
# below; extmod/lwip-include/lwipopts_common.h, ports/rp2/lwip_inc/lwipopts.h) and of lwIP 2.2.1
# (src/core/tcp.c, tcp_out.c, mem.c, include/lwip/tcp.h).
#
#   board = Board()                      the module: board.socket(), board.getaddrinfo(), constants
#   peer = board.connect(1883)           a client's SYN; None: it got no answer (try again later)
#   peer.send(b"..."); peer.received     see Peer in wire.py: stop(), go_on(), rate, end(), reset()
#   board.clock.ms; board.pass_time(ms)  acknowledgements, timers and callbacks happen in it
#   board.later(ms, callback)            a soft timer; runs also while a write waits
#   board.no_memory                      what a write does after ERR_MEM: LENGTH, ENOBUFS, EAGAIN
#   board.output_fails = n               the next n tcp_output() end in ERR_MEM
#   board.memory_used, board.waits       of MEM_SIZE now; [ms] that writes have waited
#   board.mem32[id(sock) + 4]            the address of its control block; 0: it has none
#   board.mem16[block + 2 * k]           its fields; snd_buf and snd_queuelen stand side by side
#   board.heap.fail("accept: object")    an allocation that fails, see Heap in wire.py
#   board.pcbs                           the TCP control blocks in use, 5 at most
#
# What is simpler than lwIP: no congestion window and no retransmission; segments of one size;
# the memory does not fragment; FIN and pure ACKs cost none of it.
from wire import Net, Peer, read_exactly

# What a write on a socket that does not block does when the stack has no memory for it
LENGTH = "length"  # to 1.28: waits 200 x 50 ms, then returns a length though nothing is queued
ENOBUFS = "enobufs"  # proposed upstream: OSError 105, nothing is queued
EAGAIN = "eagain"  # proposed upstream: nothing now, nothing is queued

MEM_SIZE = 8000  # lwipopts_common.h: of all that is not acknowledged
TCP_MSS = 800
TCP_SND_BUF = 8 * TCP_MSS
TCP_WND = 8 * TCP_MSS
MEMP_NUM_TCP_SEG = 32
TCP_SND_QUEUELEN = 32  # lwip/opt.h: 4 * TCP_SND_BUF / TCP_MSS
MEMP_NUM_TCP_PCB = 5  # lwip/opt.h
MEMP_NUM_TCP_PCB_LISTEN = 8
CLOSE_TIMEOUT_MS = 10000  # MICROPY_PY_LWIP_TCP_CLOSE_TIMEOUT_MS
TRIES, TRY_MS = 200, 50  # lwip_tcp_send
# mem.c and pbuf.c: headers of mem, of pbuf, and of TCP, IPv6 and Ethernet before the first bytes
_MEM_AND_PBUF, _HEADERS = 24, 76

_NEW, _LISTENING, _CONNECTED, _PEER_CLOSED = 0, 1, 3, 4
_ABORTED, _RESET, _BADF = -13, -14, -17
_ERRNO = {_ABORTED: 103, _RESET: 104, _BADF: 9}  # error_lookup_table
_RD, _WR, _ERR, _HUP, _NVAL = 1, 4, 8, 16, 32
# tcp.h: where the fields of struct tcp_pcb lie on a 32-bit board
_PORT, _FLAGS, _RCV_NXT, _RCV_WND, _RCV_ANN_WND, _MSS = 66, 70, 80, 84, 86, 94
_CWND, _SND_NXT, _SND_WND, _SND_WND_MAX, _SND_BUF, _SND_QUEUELEN = 116, 124, 140, 142, 144, 146
_SIZE = 256
_BASE = 0x20010000


def _aligned(n):
    return n + 3 & ~3


class Pcb:
    """A TCP control block, and what of its connection the stack holds."""

    def __init__(self, address):
        self.address = address
        self.state = "CLOSED"
        self.peer = None
        self.socket = None  # that has it; None while it waits to be accepted, or is closed
        self.listener = None
        self.port = 0
        self.queue = []  # pbufs: [bytes that are not acknowledged, memory, segments, ms]
        self.oversize = 0  # room in the last pbuf
        self.snd_buf = TCP_SND_BUF
        self.rcv_wnd = TCP_WND
        self.nodelay = False
        self.sequence = 0xFFF0 + address
        self.refused = []  # what came before it was accepted
        self.abort_ms = None
        self.fin_taken = False
        self.fin_lost = False

    def field(self, offset):
        peer = self.peer
        window = 0 if peer and peer.takes == 0 else 0xFFFF
        acknowledged = self.sequence - (TCP_SND_BUF - self.snd_buf)
        return {
            _PORT: self.port,
            _FLAGS: self.nodelay << 6,
            _RCV_NXT: acknowledged * 7 & 0xFFFF,
            _RCV_WND: self.rcv_wnd,
            _RCV_ANN_WND: self.rcv_wnd,
            _MSS: TCP_MSS,
            _CWND: 4 * TCP_MSS,
            _SND_NXT: self.sequence & 0xFFFF,
            _SND_NXT + 2: self.sequence >> 16 & 0xFFFF,
            _SND_WND: window,
            _SND_WND_MAX: 0xFFFF,
            _SND_BUF: self.snd_buf,
            _SND_QUEUELEN: len(self.queue),
        }.get(offset, 0)


class _Mem32:
    def __init__(self, board):
        self._board = board

    def __getitem__(self, address):
        board = self._board
        board.heap.enter()
        try:
            for sock in board.sockets:
                if id(sock) + 4 == address:
                    return sock.pcb.address if sock.pcb else 0
        finally:
            board.heap.leave()
        raise AssertionError("nothing of ours lies there")


class _Mem16:
    def __init__(self, board):
        self._board = board

    def __getitem__(self, address):
        board = self._board
        board.heap.enter()
        try:
            for pcb in board.pcbs:
                if 0 <= address - pcb.address < _SIZE:
                    return pcb.field(address - pcb.address)
        finally:
            board.heap.leave()
        raise AssertionError("no control block lies there")


class Board(Net):
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
        self.output_fails = 0
        self.waits = []
        self.sockets = []
        self.pcbs = []
        self.listeners = []
        self.garbage = []  # sockets that nobody has: the collector will close them
        self.mem32 = _Mem32(self)
        self.mem16 = _Mem16(self)

    # The network's side

    def connect(self, port):
        """The SYN of a client; -> its Peer, or None where there is no answer.

        tcp_listen_input (lwIP tcp_in.c): no control block, or more waiting than the backlog:
        the SYN is dropped."""
        for listener in self.listeners:
            if listener.port == port:
                if listener.pending() >= listener.backlog:
                    return None
                pcb = self.new_pcb()
                if pcb is None:
                    return None
                pcb.state = "ESTABLISHED"
                pcb.peer = peer = Peer(self)
                pcb.port = port
                listener.offer(pcb)
                return peer
        raise AssertionError("nobody listens there")

    def new_pcb(self):
        # tcp_alloc (tcp.c): where all are in use the oldest in TIME_WAIT goes, then in LAST_ACK.
        if len(self.pcbs) >= MEMP_NUM_TCP_PCB:
            for state in ("TIME_WAIT", "LAST_ACK", "CLOSING"):
                old = [pcb for pcb in self.pcbs if pcb.state == state]
                if old:
                    self.pcbs.remove(old[0])
                    break
            else:
                return None
        used = [pcb.address for pcb in self.pcbs]
        address = _BASE
        while address in used:
            address += _SIZE
        pcb = Pcb(address)
        self.pcbs.append(pcb)
        return pcb

    def carry(self):
        now = self.clock.ms
        for pcb in list(self.pcbs):
            peer = pcb.peer
            if peer is None or pcb.state == "TIME_WAIT":
                continue
            self._acknowledge(pcb, peer, now)
            self._receive(pcb, peer)
            if pcb.state in ("FIN_WAIT", "LAST_ACK") and not pcb.queue:
                if peer.state == "open" and peer.takes != 0:
                    peer.state = "ended"
                    pcb.fin_taken = True
                if pcb.fin_taken and pcb.state == "LAST_ACK":
                    self.pcbs.remove(pcb)
                    continue
                if pcb.fin_taken and peer.has_ended:
                    pcb.state = "TIME_WAIT"
                    continue
            if pcb.abort_ms is not None and now >= pcb.abort_ms:
                peer.state = "reset"  # _lwip_tcp_close_poll
                self.pcbs.remove(pcb)

    def _acknowledge(self, pcb, peer, now):
        while pcb.queue:
            first = pcb.queue[0]
            n = peer.may_take(len(first[0]))
            if now - first[3] < peer.rtt_ms or not n:
                return
            peer.take(first[0][:n])
            first[0] = first[0][n:]
            pcb.snd_buf += n
            if first[0]:
                return
            pcb.queue.pop(0)

    def _receive(self, pcb, peer):
        # The window is of what the program has not read.
        while peer.to_send and pcb.rcv_wnd:
            n = min(len(peer.to_send), pcb.rcv_wnd, TCP_MSS)
            data = bytes(peer.to_send[:n])
            peer.to_send = peer.to_send[n:]
            if pcb.state in ("FIN_WAIT", "LAST_ACK"):
                continue  # tcp_recv_null
            pcb.rcv_wnd -= n
            (pcb.socket.incoming if pcb.socket else pcb.refused).append(data)
        if peer.has_ended and not peer.to_send:
            if pcb.state == "ESTABLISHED":
                pcb.state = "CLOSE_WAIT"
            if pcb.socket is None and not pcb.refused:
                pcb.fin_lost = True  # _lwip_tcp_recv_unaccepted: nobody hears of it
            if pcb.socket and pcb.socket.state == _CONNECTED and not pcb.fin_lost:
                pcb.socket.state = _PEER_CLOSED  # _lwip_tcp_recv without a pbuf

    def lose(self, peer, how):
        for pcb in list(self.pcbs):
            if pcb.peer is peer:
                self.pcbs.remove(pcb)
                if pcb.listener:
                    pcb.listener.withdraw(pcb)  # _lwip_tcp_err_unaccepted
                sock = pcb.socket
                if sock:  # _lwip_tcp_error
                    sock.incoming = []
                    sock.state = _RESET if how == "reset" else _ABORTED
                    sock.pcb = None

    def collect(self):
        """A garbage collection: sockets that nobody has are closed by their finaliser."""
        for sock in self.garbage:
            sock.close()
        self.garbage = []

    def pass_time(self, ms, locked=False):
        self.collect()
        super().pass_time(ms, locked)

    # Memory

    @property
    def memory_used(self):
        return sum([pbuf[1] for pcb in self.pcbs for pbuf in pcb.queue])

    def tcp_write(self, pcb, data):
        # tcp_write and tcp_pbuf_prealloc (tcp_out.c); False: ERR_MEM, nothing is queued.
        n = len(data)
        if n > pcb.snd_buf or len(pcb.queue) >= TCP_SND_QUEUELEN:
            return False
        # What cannot leave yet lies in segments that take more bytes: the window is closed, or
        # Nagle waits for an acknowledgement.
        stuck = pcb.queue and (pcb.peer.takes == 0 or not pcb.nodelay)
        into = min(pcb.oversize, n) if stuck else 0
        made = []
        rest = n - into
        room = 0
        if stuck and rest:
            last = 0
            for pbuf in reversed(pcb.queue):
                last += len(pbuf[0])
                if pbuf[2]:
                    break
            room = TCP_MSS - last - into
        oversize = pcb.oversize - into
        while rest > 0:
            chained = not made and room > 0
            size = min(rest, room if chained else TCP_MSS)
            alloc = size
            if stuck and not pcb.nodelay:  # more is expected
                alloc = room if chained else TCP_MSS
            memory = _MEM_AND_PBUF + _aligned(alloc) + (0 if chained else _HEADERS)
            made.append([size, memory, 0 if chained else 1])
            oversize = alloc - size
            rest -= size
        queue = [pbuf for each in self.pcbs for pbuf in each.queue]
        if self.memory_used + sum([pbuf[1] for pbuf in made]) > MEM_SIZE:
            return False
        if sum([pbuf[2] for pbuf in queue + made]) > MEMP_NUM_TCP_SEG:
            return False
        if len(pcb.queue) + len(made) > TCP_SND_QUEUELEN:
            return False
        at = into
        if into:
            pcb.queue[-1][0] += data[:into]
        for size, memory, segments in made:
            pcb.queue.append([data[at : at + size], memory, segments, self.clock.ms])
            at += size
        pcb.oversize = oversize
        pcb.snd_buf -= n
        pcb.sequence += n
        return True

    def tcp_output(self):
        # False: ERR_MEM, from the network interface
        if self.output_fails:
            self.output_fails -= 1
            return False
        return True

    # The module's side

    def socket(self, family=2, kind=1, proto=0):
        locked = self.heap.enter()
        try:
            self.heap.alloc("socket: object", locked)
            return Socket(self, self.new_pcb())
        finally:
            self.heap.leave()

    def getaddrinfo(self, host, port, family=0, kind=0, proto=0, flags=0):
        # lwip_getaddrinfo: family 2 whatever the address is. No names are resolved here.
        if family not in (0, 2) or kind not in (0, 1) or proto or flags:
            self.printed.append("Warning: unsupported getaddrinfo constraints")
        if not _is_address(host):
            raise OSError(-2)
        return [(2, 1, 0, "", (host, port))]


def _is_address(host):
    return ":" in host or all(part.isdigit() for part in host.split("."))


class Socket:
    def __init__(self, board, pcb):
        if pcb is None:
            raise OSError(12)  # lwip_socket_make_new: ENOMEM
        self.board = board
        self.pcb = pcb
        pcb.socket = self
        self.state = _NEW
        self.blocks = True
        self.incoming = []
        self.address = None
        self.reuse = False
        self.waiting = []  # a listener's ring of control blocks
        self.backlog = None
        self.port = 0
        board.sockets.append(self)

    def setblocking(self, on):
        self.blocks = on

    def setsockopt(self, level, option, value):
        # lwip_socket_setsockopt: the level is not looked at
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

    def listen(self, backlog=2):
        board = self.board
        for other in board.listeners:  # tcp_listen_with_backlog_and_err
            if other.port == self.port and other.address == self.address:
                raise OSError(98)
        if len(board.listeners) == MEMP_NUM_TCP_PCB_LISTEN:
            raise OSError(12)
        locked = board.heap.enter()
        try:
            board.pcbs.remove(self.pcb)  # becomes a listening one, of which there are others
            self.pcb.state = "LISTEN"
            if backlog > 1:
                board.heap.alloc("listen: backlog", locked)
        finally:
            board.heap.leave()
        self.backlog = backlog & 255
        self.state = _LISTENING
        board.listeners.append(self)

    def pending(self):
        return len(self.waiting)

    def offer(self, pcb):
        # _lwip_tcp_accept
        pcb.listener = self
        self.waiting.append(pcb)

    def withdraw(self, pcb):
        self.waiting.remove(pcb)

    def accept(self):
        board = self.board
        locked = board.heap.enter()
        try:
            return self._accept(board, locked)
        finally:
            board.heap.leave()

    def _accept(self, board, locked):
        # lwip_socket_accept: to 1.27 the object is made before the control block is taken from
        # the queue; from 1.28 after it, and a control block that no object has is lost.
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
        try:
            alloc("accept: address", locked)
        except MemoryError:
            board.garbage.append(sock)
            raise
        return sock, ("192.168.4.2", 50000)

    # mp_stream_readinto and mp_stream_write (py/stream.c): EAGAIN is None, other errors raise

    def _check(self):
        # STREAM_ERROR_CHECK
        if self.state < 0:
            raise OSError(_ERRNO[self.state])

    def readinto(self, buf, n=None):
        self.board.heap.enter()
        try:
            return read_exactly(self._read, buf, len(buf) if n is None else n)
        finally:
            self.board.heap.leave()

    def recv(self, n):
        # lwip_socket_recv: one read, into memory of its own
        locked = self.board.heap.enter()
        try:
            self.board.heap.alloc("recv: bytes", locked)
            data = self._read(n)
            if data is None:
                raise OSError(11)
            return data
        finally:
            self.board.heap.leave()

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

    def write(self, buf, off=0, n=None):
        locked = self.board.heap.enter()
        try:
            if n is None:
                n = len(buf)
            return self._write(bytes(memoryview(buf)[off : off + n]), locked)
        finally:
            self.board.heap.leave()

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
                raise OSError(107)  # tcp_write(NULL): read as a connection that is none
            queued = board.tcp_write(self.pcb, data)
        if board.clock.ms > begin:
            board.waits.append(board.clock.ms - begin)
        if queued and not board.tcp_output():
            raise OSError(12)  # though the bytes are queued, and will arrive
        return len(data)  # though nothing is queued, if it is not

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
