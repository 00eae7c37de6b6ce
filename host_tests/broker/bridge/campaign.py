"""Messages over a bridge between two brokers with journals, which are killed at random.

    python -m host_tests.broker.bridge.campaign --messages 100000

Of QoS 1 none is lost, of QoS 2 none is lost or doubled, and each topic keeps its order.
"""

import itertools
import random
import tempfile
import threading
import time
from pathlib import Path

import click

from slotmq_tools.ports import free_port

from ...support.program import Run, conf
from ..wire import codec
from ..wire.client import Client

TOPICS = {1: "c/1", 2: "c/2"}  # by QoS
PATIENCE_S = 60.0
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

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._client = connected(address, "publisher")
        self._ids = itertools.cycle(range(1, 60000))

    def publish(self, payload: bytes, qos: int) -> None:
        number = next(self._ids)
        first = codec.PUBACK if qos == 1 else codec.PUBREC
        self._until(
            lambda dup: codec.publish(TOPICS[qos], payload, qos, number, dup=dup), first, number
        )
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
                self._client = connected(self._address, "publisher")
                continue
            return

    def close(self) -> None:
        self._client.sock.close()


class Subscriber(threading.Thread):
    """Receives as the standard says: of QoS 2 each packet id once until PUBREL."""

    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__(daemon=True)
        self._address = address
        self.came: dict[str, list[bytes]] = {topic: [] for topic in TOPICS.values()}
        self._held: set[int] = set()
        self._client = connected(address, "subscriber")
        self._client.subscribe(*TOPICS.values(), qos=2)
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
                self._client = connected(self._address, "subscriber")
                if not self._client.connack.session_present:
                    self.failure = "the session of the subscriber is lost"

    def _take(self, packet) -> None:
        number = packet.packet_id
        if isinstance(packet, codec.Publish):
            if packet.qos < 2 or number not in self._held:
                self.came[packet.topic].append(packet.payload)
            if packet.qos == 2:
                self._held.add(number)
            self._client.send(codec.ack(codec.PUBACK if packet.qos == 1 else codec.PUBREC, number))
        else:
            self._held.discard(number)
            self._client.send(codec.ack(codec.PUBCOMP, number))

    def close(self) -> None:
        self.is_ended = True
        self._client.sock.close()


def campaign(folder: Path, messages: int, seed: int, near: str, far: str) -> dict[str, int]:
    """Run it; -> what happened. AssertionError: a message is lost, doubled or in disorder."""
    draw = random.Random(seed)
    there = Killed(folder / "there", far)
    port = there.address[1]
    bridge = (
        f"connection up\naddress 127.0.0.1:{port}",
        "remote_clientid edge",
        "topic c/# out 2",
    )
    here = Killed(folder / "here", near, *bridge, "restart_timeout 1 1", "keepalive_interval 5")
    subscriber = Subscriber(there.address)
    subscriber.start()
    publisher = Publisher(here.address)
    sent: dict[str, list[bytes]] = {topic: [] for topic in TOPICS.values()}
    ended = threading.Event()

    def publish() -> None:
        for k in range(messages):
            qos = 1 + k % 2
            publisher.publish(b"%d" % k, qos)
            sent[TOPICS[qos]].append(b"%d" % k)
        ended.set()

    thread = threading.Thread(target=publish, daemon=True)
    thread.start()
    deadline = time.monotonic() + PATIENCE_S
    known = -1
    while not ended.is_set():
        time.sleep(draw.uniform(*LIFE_S))
        draw.choice((here, there)).kill()
        if (count := sum(map(len, sent.values()))) != known:
            known, deadline = count, time.monotonic() + PATIENCE_S
        assert time.monotonic() < deadline, "the publisher is stuck"
    last = {topic: payloads[-1] for topic, payloads in sent.items()}
    deadline = time.monotonic() + PATIENCE_S
    while any(subscriber.came[topic][-1:] != [last[topic]] for topic in last):
        assert time.monotonic() < deadline, {t: len(c) for t, c in subscriber.came.items()}
        time.sleep(0.05)
    subscriber.close()
    publisher.close()
    for broker in (here, there):
        broker.run.stop()
    assert not subscriber.failure, subscriber.failure
    one, two = (subscriber.came[TOPICS[qos]] for qos in (1, 2))
    assert two == sent[TOPICS[2]]
    assert list(dict.fromkeys(one)) == sent[TOPICS[1]]
    again = len(one) - len(sent[TOPICS[1]])
    return {"messages": messages, "kills": here.kills + there.kills, "QoS 1 again": again}


@click.command()
@click.option("--messages", default=100_000, show_default=True)
@click.option("--seed", default=None, type=int)
@click.option("--near", default="cpython", type=click.Choice(["cpython", "micropython"]))
@click.option("--far", default="cpython", type=click.Choice(["cpython", "micropython"]))
def main(messages: int, seed: int | None, near: str, far: str) -> None:
    """Kill two brokers with a bridge while they pass messages."""
    seed = random.randrange(1 << 30) if seed is None else seed
    click.echo(f"seed {seed}")
    with tempfile.TemporaryDirectory() as folder:
        click.echo(campaign(Path(folder), messages, seed, near, far))


if __name__ == "__main__":
    main()
