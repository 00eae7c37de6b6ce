"""Messages both ways over a bridge between two brokers with journals, which are killed at random.

    python -m host_tests.broker.bridge.campaign --messages 100000 --far micropython

Of QoS 1 none is lost, of QoS 2 none is lost or doubled, and each topic keeps its order. mosquitto
as the other broker is stopped by SIGTERM: killed, it loses by design what it has not saved. It
sends some QoS 2 messages again though it has sent their PUBREL; only such ones may come twice.
"""

import getpass
import itertools
import random
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path

import click

from slotmq_dev.peers import mosquitto
from slotmq_tools.codec import PUBLISH, PUBREL, Reader, two
from slotmq_tools.ports import free_port

from ...support.program import Run, conf
from ..wire import codec
from ..wire.client import Client
from ..wire.process import PEER, Program
from .network import Link

VERSIONS = ("mqttv311", "mqttv50")  # of the bridge
PATIENCE_S = 60.0
# Messages that may be under way: no queue is full, and mosquitto, which has no window here, can
# send all of them again between two kills.
AHEAD = 300
LIFE_S = 0.4, 2.0  # of a broker between two kills


class Killed:
    """A broker with a journal that is killed and started again."""

    def __init__(self, folder: Path, runtime: str, *lines: str) -> None:
        folder.mkdir()
        self.address = ("127.0.0.1", free_port())
        self._folder, self._runtime = folder, runtime
        always = (f"listener {self.address[1]} 127.0.0.1", "allow_anonymous true")
        kept = ("persistence true", f"persistence_location {folder}/", "limit messages 4000")
        more = ("limit queued 3000", "limit deliveries 4000", "max_session_share 100")
        self._conf = conf(folder, *always, *kept, *more, "max_offline_share 100", *lines)
        self.kills = 0
        self.start()

    def start(self) -> None:
        self.run = Run(self._folder, self._runtime, "-c", self._conf, "--board", "HOST")
        self.run.headline()

    def kill(self) -> None:
        self.run.kill()
        self.kills += 1
        self.start()

    def stop(self) -> None:
        self.run.stop()


class Mosquitto:
    """mosquitto with persistence, which is stopped in order and started again."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.address = ("127.0.0.1", free_port())
        self._folder = folder
        always = (f"listener {self.address[1]} 127.0.0.1", "allow_anonymous true")
        kept = ("persistence true", f"persistence_location {folder}/")
        more = ("set_tcp_nodelay true", f"user {getpass.getuser()}")
        self._conf = conf(folder, *always, *kept, *more)
        self.kills = 0
        self.start()

    def start(self) -> None:
        command = [*mosquitto.broker(), "-c", str(self._conf)]
        self.run = Program(command, self._folder)
        self.run.address = self.address
        self.run.wait_for(self._listens, "mosquitto to listen")

    def kill(self) -> None:
        self.stop()
        self.kills += 1
        self.start()

    def stop(self) -> None:
        self.run.stop()

    def _listens(self) -> bool:
        with socket.socket() as sock:
            return sock.connect_ex(self.address) == 0


Broker = Killed | Mosquitto


def connected(address: tuple[str, int], client_id: str) -> Client:
    """A client with a persistent session, as soon as the broker lets it in."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        client = None
        try:
            client = Client(address)
            assert client.connect(codec.connect(client_id, clean=False)).code == 0
        except (AssertionError, OSError):
            if client:
                client.sock.close()
            assert time.monotonic() < deadline, f"{client_id} cannot connect"
            time.sleep(0.02)
            continue
        return client


class Publisher:
    """Publishes one message after the other, each until its last acknowledgement has come."""

    def __init__(self, address: tuple[str, int], name: str) -> None:
        self._address, self._name = address, name
        self._client = connected(address, name)
        self._ids = itertools.cycle(range(1, 60000))

    def publish(self, topic: str, payload: bytes, qos: int) -> None:
        number = next(self._ids)
        first = codec.PUBACK if qos == 1 else codec.PUBREC
        self._until(lambda dup: codec.publish(topic, payload, qos, number, dup=dup), first, number)
        if qos == 2:
            self._until(lambda dup: codec.ack(codec.PUBREL, number), codec.PUBCOMP, number)

    def _until(self, packet, answer: int, number: int) -> None:
        for attempt in itertools.count():
            try:
                self._client.send(packet(attempt > 0))
                while self._client.next() != codec.Ack(answer, number):
                    pass
            except (AssertionError, OSError):
                self._client.sock.close()
                self._client = connected(self._address, self._name)
                continue
            return

    def close(self) -> None:
        self._client.sock.close()


class Released:
    """Notes which QoS 2 messages a broker sends again, with DUP, after it has sent PUBREL."""

    def __init__(self) -> None:
        self.again: set[bytes] = set()
        self._payloads: dict[int, bytes] = {}  # by packet id
        self._released: dict[int, bytes] = {}

    def publish(self, number: int, payload: bytes, is_dup: bool) -> None:
        if is_dup and self._released.get(number) == payload:
            self.again.add(payload)
        self._payloads[number] = payload

    def pubrel(self, number: int) -> None:
        self._released[number] = self._payloads.get(number, b"")


class Witness(Link):
    """The link from the bridge to mosquitto."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.released = Released()
        self._readers: dict[socket.socket, Reader] = {}
        super().__init__(target)

    def passes(self, sock: socket.socket, is_theirs: bool, data: bytes) -> None:
        reader = self._readers.setdefault(sock, Reader())
        for first, body in reader.packets(data) if is_theirs else ():
            if first >> 4 == PUBLISH and first & 4:
                at = 2 + two(body, 0)
                self.released.publish(two(body, at), body[at + 2 :], first & 8 > 0)
            elif first >> 4 == PUBREL:
                self.released.pubrel(two(body, 0))


class Subscriber(threading.Thread):
    """Receives as the standard says: of QoS 2 each packet id once until PUBREL."""

    def __init__(self, address: tuple[str, int], name: str, topics: Collection[str]) -> None:
        super().__init__(daemon=True)
        self._address, self._name = address, name
        self.came: dict[str, list[bytes]] = {topic: [] for topic in topics}
        self._held: set[int] = set()
        self.released = Released()
        self._client = connected(address, name)
        self._client.subscribe(*topics, qos=2)
        self.is_ended = False
        self.failure = ""

    def run(self) -> None:
        while not self.is_ended:
            try:
                self._take(self._client.next())
            except TimeoutError:
                continue
            except (AssertionError, OSError):
                self._client.sock.close()
                if self.is_ended:
                    return
                self._client = connected(self._address, self._name)
                if not self._client.connack.session_present:
                    self.failure = f"the session of {self._name} is lost"

    def _take(self, packet) -> None:
        number = packet.packet_id
        if isinstance(packet, codec.Publish):
            if packet.qos < 2 or number not in self._held:
                self.came[packet.topic].append(packet.payload)
            if packet.qos == 2:
                self._held.add(number)
                self.released.publish(number, packet.payload, packet.dup)
            self._client.send(codec.ack(codec.PUBACK if packet.qos == 1 else codec.PUBREC, number))
        else:
            self._held.discard(number)
            self.released.pubrel(number)
            self._client.send(codec.ack(codec.PUBCOMP, number))

    def close(self) -> None:
        self.is_ended = True
        with suppress(OSError):
            self._client.sock.shutdown(socket.SHUT_RDWR)
        self.join(PATIENCE_S)
        self._client.sock.close()  # perhaps a new one


class Flow(threading.Thread):
    """Messages in one direction, at QoS 1 and 2 in turn, from a publisher to a subscriber."""

    pause_s = 0.0  # between two messages

    def __init__(
        self,
        name: str,
        source: Broker,
        target: Broker,
        messages: int,
        witness: Witness | None = None,
    ) -> None:
        super().__init__(daemon=True)
        self.topics = {1: f"{name}/1", 2: f"{name}/2"}
        self._subscriber = Subscriber(target.address, f"{name}-to", self.topics.values())
        self._publisher = Publisher(source.address, f"{name}-from")
        self._sent: dict[str, list[bytes]] = {topic: [] for topic in self.topics.values()}
        self._messages = messages
        self._is_ahead = threading.Event()
        # What mosquitto sends again, to the bridge or to the subscriber
        self._faults = [self._subscriber.released.again] if witness else []
        if witness and isinstance(source, Mosquitto):
            self._faults = [witness.released.again]
        self._subscriber.start()

    def run(self) -> None:
        for k in range(self._messages):
            while k > self._last_that_came() + AHEAD:
                self._is_ahead.set()
                time.sleep(0.01)
            self._is_ahead.clear()
            qos = 1 + k % 2
            topic, payload = self.topics[qos], b"%d" % k
            self._publisher.publish(topic, payload, qos)
            self._sent[topic].append(payload)
            time.sleep(self.pause_s)

    def _last_that_came(self) -> int:
        return min(int(came[-1]) if came else 0 for came in self._subscriber.came.values())

    def is_ahead(self) -> bool:
        """Does the publisher wait, since so many messages do?"""
        return self._is_ahead.is_set()

    def count(self) -> int:
        return sum(map(len, self._sent.values()))

    def has_sent(self, count: int) -> bool:
        return self.count() >= count

    def has_all(self) -> bool:
        came = self._subscriber.came
        return all(came[topic][-1:] == sent[-1:] for topic, sent in self._sent.items())

    def state(self) -> dict[str, tuple[int, int]]:
        """Of each topic how many messages were sent, and how many came."""
        came = self._subscriber.came
        return {topic: (len(sent), len(came[topic])) for topic, sent in self._sent.items()}

    def close(self) -> list[int]:
        """Check what has come; -> how many of QoS 1 and 2 came again."""
        self._subscriber.close()
        self._publisher.close()
        assert not self._subscriber.failure, self._subscriber.failure
        again = []
        for qos, topic in self.topics.items():
            came, sent = self._subscriber.came[topic], self._sent[topic]
            once = list(dict.fromkeys(came))
            assert once == sent, (topic, list(set(sent) - set(once))[:10])
            again.append(len(came) - len(once))
            doubled = {payload for payload, n in Counter(came).items() if n > 1}
            assert qos == 1 or doubled <= set().union(*self._faults), (topic, doubled)
        return again


def bridge(address: tuple[str, int], version: str = "mqttv311") -> Sequence[str]:
    """The lines of a bridge to this address."""
    return (
        f"connection up\naddress {address[0]}:{address[1]}",
        "remote_clientid edge",
        "topic out/# out 2\ntopic in/# in 2",
        f"restart_timeout 1 1\nkeepalive_interval 5\nbridge_protocol_version {version}",
    )


def campaign(
    folder: Path, messages: int, seed: int, near: str, far: str, version: str
) -> dict[str, int]:
    """Run it; -> what happened. AssertionError: a message is lost, doubled or in disorder."""
    draw = random.Random(seed)
    there = Mosquitto(folder / "there") if far == PEER else Killed(folder / "there", far)
    witness = Witness(there.address) if far == PEER else None
    here = Killed(folder / "here", near, *bridge((witness or there).address, version))
    flows = [
        Flow("out", here, there, messages - messages // 2, witness),
        Flow("in", there, here, messages // 2, witness),
    ]
    wait_until(lambda: subscribed(there), "the bridge to subscribe")
    for flow in flows:
        flow.start()
    deadline = time.monotonic() + PATIENCE_S
    known = -1
    victims = itertools.cycle(draw.sample((here, there), 2))
    while any(flow.is_alive() for flow in flows):
        time.sleep(draw.uniform(*LIFE_S))
        next(victims).kill()
        if (count := sum(flow.count() for flow in flows)) != known:
            known, deadline = count, time.monotonic() + PATIENCE_S
        state = [flow.state() for flow in flows]
        assert time.monotonic() < deadline, ("the publishers are stuck", state)
    wait_until(lambda: all(flow.has_all() for flow in flows), "the last messages", flows)
    again = [sum(counts) for counts in zip(*(flow.close() for flow in flows), strict=True)]
    for broker in (here, there):
        broker.stop()
    if witness:
        witness.close()
    kills = {"kills here": here.kills, "kills there": there.kills}
    return {"messages": messages, **kills, "QoS 1 again": again[0], "QoS 2 again": again[1]}


def subscribed(there: Broker) -> bool:
    """Does the bridge get what is published there? Else the first messages would go nowhere."""
    client = Client(there.address)
    client.connect(codec.connect("", clean=True))
    client.subscribe("$SYS/broker/connection/edge/state")
    found = client.receive_all()
    client.sock.close()
    return [message.payload for message in found] == [b"1"]


def wait_until(condition: Callable[[], bool], what: str, flows: Sequence[Flow] = ()) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, (what, [flow.state() for flow in flows])
        time.sleep(0.05)


@click.command()
@click.option("--messages", default=100_000, show_default=True)
@click.option("--seed", default=None, type=int)
@click.option("--near", default="cpython", type=click.Choice(["cpython", "micropython"]))
@click.option("--far", default="cpython", type=click.Choice(["cpython", "micropython", PEER]))
@click.option("--version", default=VERSIONS[0], type=click.Choice(VERSIONS))
def main(messages: int, seed: int | None, near: str, far: str, version: str) -> None:
    """Kill two brokers with a bridge while they pass messages."""
    seed = random.randrange(1 << 30) if seed is None else seed
    click.echo(f"seed {seed}")
    with tempfile.TemporaryDirectory() as folder:
        click.echo(campaign(Path(folder), messages, seed, near, far, version))


if __name__ == "__main__":
    main()
