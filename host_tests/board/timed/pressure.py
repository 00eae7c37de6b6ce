"""Four clients of an emulated board, one of which subscribes and does not read.

The sender sends 20 messages a second of the board's time, since the emulator may be slower than a
board, and never more: a burst after this computer held the sender up would fill a Pico W's 9,856
bytes for messages. After each it sends PINGREQ, whose answer shows when the broker has handled the
message: so the measured delay does not depend on the connection. Payloads are numbered, to find
any byte that is lost or duplicated.
"""

import select
import socket
from contextlib import suppress
from dataclasses import dataclass, field

from host_tests.board.conftest import Deployed
from host_tests.broker.wire import codec
from host_tests.broker.wire.client import Client

EACH_S = 0.05
FILL = b"-" * 900  # fills the buffers of the client that does not read, if messages are small
BEAT = 10  # every tenth message is also sent to the watcher
LONGEST_S = 20  # until all buffers are full, and 2.5 s more
SETTLED_S = 2.5
TRIES = 3
WILL = codec.Will("gone", b"slow", 1)
PINGREQ = b"\xc0\0"


class Late(AssertionError):
    """A message was delayed too long, or so long that the reader's queue was full."""


def measured(board: Deployed, size: int, qos: int) -> None:
    """Run it, up to three times if messages are late: this computer may be busy."""
    for _ in range(TRIES - 1):
        try:
            Pressure(board, size, qos).run()
            return
        except Late:
            board.hang_up()
    Pressure(board, size, qos).run()


def payload(number: int, size: int) -> bytes:
    return (b"%08d" % number * (size // 8 + 1))[:size]


@dataclass
class Receiver:
    """A client that reads: which messages it has received, and when."""

    client: Client
    unread: bytearray = field(default_factory=bytearray)
    moments: dict[int, float] = field(default_factory=dict)  # the board's time, by message number

    def take(self, now: float, size: int) -> bool:
        """Read what has arrived; -> whether the will was among it."""
        data = self.client.sock.recv(65536)
        assert data, "closed"
        self.unread += data
        is_gone = False
        while packet := codec.take(self.unread):
            assert isinstance(packet, codec.Publish), packet
            if packet.qos:
                self.client.send(codec.ack(codec.PUBACK, packet.packet_id))
            if packet.topic == WILL.topic:
                is_gone = True
                continue
            number = int(packet.payload[:8])
            assert packet.payload == payload(number, 16 if packet.topic == "beat" else size)
            assert number > max(self.moments, default=0), "doubled, or out of order"
            self.moments[number] = now
        return is_gone

    def delays(self, handled: list[float]) -> list[float]:
        """Seconds from the answer to the sender until each message arrived, sorted."""
        return sorted(moment - handled[number] for number, moment in self.moments.items())


@dataclass
class Pressure:
    board: Deployed
    size: int
    qos: int
    sent: list[float] = field(default_factory=lambda: [0.0])  # the board's time of each message
    handled: list[float] = field(default_factory=lambda: [0.0])
    is_gone: bool = False

    def run(self) -> None:
        """Send until the client that does not read is disconnected, and 2.5 s more; then check."""
        before, stalled = self.board.board.figures(), self.board.system("broker/clients/stalled")
        slow = self.board.open()
        slow.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2304)
        assert slow.connect(codec.connect("slow", clean=False, will=WILL)).code == 0
        slow.subscribe("flood", "fill", qos=0)
        reader, watcher = (Receiver(self.board.connect(name)) for name in ("reader", "watcher"))
        reader.client.subscribe("flood", qos=self.qos)
        watcher.client.subscribe("beat", "gone", qos=self.qos)
        self._talk(
            self.board.connect("sender").sock, {r.client.sock: r for r in (reader, watcher)}
        )
        self._check(reader, watcher)
        self.board.hang_up()
        assert self.board.system("broker/clients/stalled") == stalled + 1
        again = self.board.open()
        assert again.connect(codec.connect("slow", clean=False)).session_present
        self.board.hang_up()
        self.board.connect("slow")  # ends its session
        after = self.board.board.figures()
        assert (after["resets"], after["bites"]) == (before["resets"], before["bites"])
        self._check_times(reader, watcher)

    def _talk(self, sender: socket.socket, readers: dict[socket.socket, Receiver]) -> None:
        sender.setblocking(False)
        waiting, answers = bytearray(), bytearray()
        now = self._now()
        until = now + LONGEST_S
        while now < until + SETTLED_S or len(self.handled) < len(self.sent):
            assert now < until + LONGEST_S, f"{len(self.handled)} of {len(self.sent)} handled"
            if now - self.sent[-1] >= EACH_S and now < until:
                waiting += self._packets(len(self.sent))
                self.sent.append(now)
            with suppress(BlockingIOError):
                del waiting[: sender.send(waiting)]
            ready, _, _ = select.select([*readers, sender], [], [], 0.01)
            now = self._now()
            for sock in ready:
                if sock is sender:
                    answers += sock.recv(65536)
                    self._read_answers(answers, now)
                elif readers[sock].take(now, self.size):
                    self.is_gone = True
                    until = now + SETTLED_S

    def _now(self) -> float:
        seconds: float = self.board.board.figures()["seconds"]
        return seconds

    def _packets(self, number: int) -> bytes:
        data = codec.publish("flood", payload(number, self.size), self.qos, 2 * number)
        if self.size < 500:
            data += codec.publish("fill", FILL)
        if number % BEAT == 0:
            data += codec.publish("beat", payload(number, 16), self.qos, 2 * number + 1)
        return data + PINGREQ

    def _read_answers(self, answers: bytearray, now: float) -> None:
        while packet := codec.take(answers):
            if isinstance(packet, codec.Pingresp):
                self.handled.append(now)

    def _check(self, reader: Receiver, watcher: Receiver) -> None:
        assert self.is_gone, "the client that does not read is still connected"
        numbers = list(range(1, len(self.sent)))
        assert list(watcher.moments) == numbers[BEAT - 1 :: BEAT]
        # At QoS 0 a message is dropped as a whole if the socket is full.
        lost = sorted({*numbers} - {*reader.moments})
        if len(lost) > (0 if self.qos else len(numbers) // 5):
            raise Late(f"dropped: {lost}")

    def _check_times(self, reader: Receiver, watcher: Receiver) -> None:
        round_trips = [there - here for here, there in zip(self.sent, self.handled, strict=True)]
        delays, beats = reader.delays(self.handled), watcher.delays(self.handled)
        p99, longest = delays[int(len(delays) * 0.99)], max(delays[-1], beats[-1], *round_trips)
        if p99 >= 1 or longest >= 3:
            raise Late(f"{p99:.2f} s at the 99th percentile, {longest:.2f} s at the most")
