# lwip_tcp.py - TCP of lwIP as MicroPython's rp2 port has it, with CYW43 and W5500 alike: control
# blocks, windows, and the memory that all connections share.
#
# Written from lwIP 2.2.1 (src/core/tcp.c, tcp_in.c, tcp_out.c, mem.c, include/lwip/tcp.h) with the
# options of MicroPython 1.25.0 and 1.26.1 (extmod/lwip-include/lwipopts_common.h,
# ports/rp2/lwip_inc/lwipopts.h). Comments name the functions.
#
# Simpler than lwIP: there is no congestion window and no retransmission; all segments have the
# same maximum size; the memory does not fragment; FIN and pure ACKs take none of it.
from network_stack import Peer, Stack

MEM_SIZE = 8000  # lwipopts_common.h: of everything that is not acknowledged
TCP_MSS = 800
TCP_SND_BUF = 8 * TCP_MSS
TCP_WND = 8 * TCP_MSS
MEMP_NUM_TCP_SEG = 32
TCP_SND_QUEUELEN = 32  # lwip/opt.h: 4 * TCP_SND_BUF / TCP_MSS
MEMP_NUM_TCP_PCB = 5  # lwip/opt.h
MEMP_NUM_TCP_PCB_LISTEN = 8
# mem.c and pbuf.c: headers of mem, of pbuf, and of TCP, IPv6 and Ethernet before the first bytes
_MEM_AND_PBUF, _HEADERS = 24, 76
# tcp.h: where the fields of struct tcp_pcb lie on a 32-bit board
_PORT, _FLAGS, _RCV_NXT, _RCV_WND, _RCV_ANN_WND, _MSS = 66, 70, 80, 84, 86, 94
_CWND, _SND_NXT, _SND_WND, _SND_WND_MAX, _SND_BUF, _SND_QUEUELEN = 116, 124, 140, 142, 144, 146
PCB_SIZE = 256
_FIRST_ADDRESS = 0x20010000


def _aligned(n):
    return n + 3 & ~3


class Pcb:
    """A TCP control block, and what of its connection the stack has."""

    def __init__(self, address):
        self.address = address
        self.state = "CLOSED"
        self.peer = None
        self.socket = None  # None while it waits to be accepted, or is closed
        self.listener = None
        self.port = 0
        self.queue = []  # pbufs: [unacknowledged bytes, memory, segments, ms when queued]
        self.oversize = 0  # free bytes of the last pbuf
        self.snd_buf = TCP_SND_BUF
        self.rcv_wnd = TCP_WND
        self.nodelay = False
        self.sequence = 0xFFF0 + address
        self.refused = []  # what arrived before it was accepted
        self.abort_ms = None
        self.fin_taken = False
        self.fin_lost = False
        self.remote = None  # while a SYN waits for its answer: where it was sent to
        self.answered_ms = 0

    def dial(self, address, answered_ms):
        """tcp_connect: what is written meanwhile waits."""
        self.state = "SYN_SENT"
        self.remote = tuple(address)
        self.answered_ms = answered_ms

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


class Lwip(Stack):
    """The TCP of one board. Its sockets are in rp2_socket.py."""

    def __init__(self):
        super().__init__()
        self.output_fails = 0
        self.pcbs = []

    def connect(self, port):
        """The SYN of a client; -> its Peer, or None if there is no answer.

        tcp_listen_input (tcp_in.c): if there is no control block, or as many connections wait as
        the backlog allows, the SYN is dropped."""
        listener = self.find_listener(port)
        if len(listener.waiting) >= listener.backlog:
            return None
        pcb = self.new_pcb()
        if pcb is None:
            return None
        pcb.state = "ESTABLISHED"
        pcb.peer = Peer(self)
        pcb.port = port
        pcb.listener = listener  # _lwip_tcp_accept
        listener.waiting.append(pcb)
        return pcb.peer

    def new_pcb(self):
        # tcp_alloc (tcp.c): if all are in use, the oldest one in TIME_WAIT is freed, then the
        # oldest one in LAST_ACK or CLOSING.
        if len(self.pcbs) >= MEMP_NUM_TCP_PCB:
            for state in ("TIME_WAIT", "LAST_ACK", "CLOSING"):
                old = [pcb for pcb in self.pcbs if pcb.state == state]
                if old:
                    self.pcbs.remove(old[0])
                    break
            else:
                return None
        used = [pcb.address for pcb in self.pcbs]
        address = _FIRST_ADDRESS
        while address in used:
            address += PCB_SIZE
        pcb = Pcb(address)
        self.pcbs.append(pcb)
        return pcb

    def carry(self):
        now = self.clock.ms
        for pcb in list(self.pcbs):
            if pcb.state == "SYN_SENT" and self.has_link and now >= pcb.answered_ms:
                self._answer(pcb)
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

    def _answer(self, pcb):
        # tcp_process in SYN_SENT: SYN and ACK, or RST
        if pcb.remote in self.servers:
            pcb.state = "ESTABLISHED"
            pcb.peer = Peer(self)
            pcb.socket.connected()
            self.dialled.append(pcb.peer)
        else:
            self.pcbs.remove(pcb)
            pcb.socket.lost("reset")

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
        # The window shrinks by what the program has not read.
        ignored = pcb.state in ("FIN_WAIT", "LAST_ACK")  # tcp_recv_null
        n = min(len(peer.to_send), pcb.rcv_wnd)
        if n:
            data = bytes(peer.to_send[:n])
            peer.to_send = peer.to_send[len(peer.to_send) if ignored else n :]
            for at in range(0, 0 if ignored else n, TCP_MSS):
                piece = data[at : at + TCP_MSS]
                pcb.rcv_wnd -= len(piece)
                (pcb.socket.incoming if pcb.socket else pcb.refused).append(piece)
        if peer.has_ended and not peer.to_send:
            if pcb.state == "ESTABLISHED":
                pcb.state = "CLOSE_WAIT"
            if pcb.socket is None and not pcb.refused:
                pcb.fin_lost = True  # _lwip_tcp_recv_unaccepted ignores it
            if pcb.socket and not pcb.fin_lost:
                pcb.socket.peer_closed()

    def lose(self, peer, how):
        for pcb in list(self.pcbs):
            if pcb.peer is peer:
                self.pcbs.remove(pcb)
                if pcb.listener:
                    pcb.listener.waiting.remove(pcb)  # _lwip_tcp_err_unaccepted
                if pcb.socket:
                    pcb.socket.lost(how)

    def pass_time(self, ms, locked=False):
        self.collect()
        super().pass_time(ms, locked)

    # Memory

    @property
    def memory_used(self):
        return sum([pbuf[1] for pcb in self.pcbs for pbuf in pcb.queue])

    def tcp_write(self, pcb, data):
        """tcp_write and tcp_pbuf_prealloc (tcp_out.c); False: ERR_MEM, nothing is queued."""
        n = len(data)
        if n > pcb.snd_buf or len(pcb.queue) >= TCP_SND_QUEUELEN:
            return False
        # Data that cannot leave yet is in segments that take more bytes: the window is closed, or
        # Nagle's algorithm waits for an acknowledgement.
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
        """False: ERR_MEM, from the network interface."""
        if self.output_fails:
            self.output_fails -= 1
            return False
        return True
