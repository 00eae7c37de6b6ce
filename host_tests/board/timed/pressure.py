"""Four clients of an emulated board, one of which subscribes and stops reading.

Messages come 20 times in one of the board's seconds; the emulator may be slower than a board.
Behind each the sender asks PINGREQ, whose answer tells when the broker has handled it: how much
later it is delivered does not depend on the way to the board. Payloads are numbered, so that a
byte too many or too few on any stream shows.
"""

import select
import socket
from contextlib import suppress
from dataclasses import dataclass, field

from host_tests.board.conftest import Deployed
from host_tests.broker.wire import codec
from host_tests.broker.wire.client import Client

EACH_S = 0.05
FILL = b"-" * 900  # for the one that does not read, where the messages themselves are small
BEAT = 10  # of so many messages one goes to the watcher
LONGEST_S = 20  # until all that may lie between is full, and 2.5 s
SETTLED_S = 2.5
TRIES = 3
WILL = codec.Will("gone", b"slow", 1)
PINGREQ = b"\xc0\0"


class Late(AssertionError):
    """It took longer than it may."""


def measured(board: Deployed, size: int, qos: int) -> None:
    """Run it; anew where it took too long, since this computer may have done other things."""
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
class Heard:
    """What one client has received, and when."""

    client: Client
    held: bytearray = field(default_factory=bytearray)
    moments: dict[int, float] = field(default_factory=dict)  # the board's, by message number

    def take(self, now: float, size: int) -> bool:
        """Read what has come; True if the will was among it."""
        data = self.client.sock.recv(65536)
        assert data, "closed"
        self.held += data
        is_gone = False
        while packet := codec.take(self.held):
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
        """How much later than the sender heard that it was handled, the shortest first."""
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
        """Send and hear until the one that does not read is ended, and a while longer; judge."""
        before, stalled = self.board.board.figures(), self.board.system("broker/clients/stalled")
        slow = self.board.open()
        slow.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2304)
        assert slow.connect(codec.connect("slow", clean=False, will=WILL)).code == 0
        slow.subscribe("flood", "fill", qos=0)
        quick, watcher = (Heard(self.board.connect(name)) for name in ("quick", "watcher"))
        quick.client.subscribe("flood", qos=self.qos)
        watcher.client.subscribe("beat", "gone", qos=self.qos)
        self._talk(self.board.connect("sender").sock, {r.client.sock: r for r in (quick, watcher)})
        self._judge(quick, watcher)
        self.board.hang_up()
        assert self.board.system("broker/clients/stalled") == stalled + 1
        again = self.board.open()
        assert again.connect(codec.connect("slow", clean=False)).session_present
        self.board.hang_up()
        self.board.connect("slow")  # and its session ends
        after = self.board.board.figures()
        assert (after["resets"], after["bites"]) == (before["resets"], before["bites"])
        self._judge_times(quick, watcher)

    def _talk(self, sender: socket.socket, readers: dict[socket.socket, Heard]) -> None:
        sender.setblocking(False)
        waiting, answers = bytearray(), bytearray()
        began = now = self._now()
        until = began + LONGEST_S
        while now < until + SETTLED_S or len(self.handled) < len(self.sent):
            assert now < until + LONGEST_S, f"{len(self.handled)} of {len(self.sent)} handled"
            if len(self.sent) * EACH_S <= now - began and now < until:
                waiting += self._packets(len(self.sent))
                self.sent.append(now)
            with suppress(BlockingIOError):
                del waiting[: sender.send(waiting)]
            ready, _, _ = select.select([*readers, sender], [], [], 0.01)
            now = self._now()
            for sock in ready:
                if sock is sender:
                    answers += sock.recv(65536)
                    self._hear(answers, now)
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

    def _hear(self, answers: bytearray, now: float) -> None:
        while packet := codec.take(answers):
            if isinstance(packet, codec.Pingresp):
                self.handled.append(now)

    def _judge(self, quick: Heard, watcher: Heard) -> None:
        assert self.is_gone, "the one that does not read is still there"
        numbers = list(range(1, len(self.sent)))
        assert list(watcher.moments) == numbers[BEAT - 1 :: BEAT]
        # At QoS 0 one that finds the socket full is dropped, and dropped whole.
        lost = sorted({*numbers} - {*quick.moments})
        assert len(lost) <= (0 if self.qos else len(numbers) // 5), lost

    def _judge_times(self, quick: Heard, watcher: Heard) -> None:
        round_trips = [there - here for here, there in zip(self.sent, self.handled, strict=True)]
        delays, beats = quick.delays(self.handled), watcher.delays(self.handled)
        p99, longest = delays[int(len(delays) * 0.99)], max(delays[-1], beats[-1], *round_trips)
        if p99 >= 1 or longest >= 3:
            raise Late(f"{p99:.2f} s at the 99th percentile, {longest:.2f} s at the most")
