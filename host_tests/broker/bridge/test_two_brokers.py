"""A bridge to a real broker, over a link that is cut, frozen and away."""

import contextlib
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType

import pytest

from slotmq_tools.ports import free_port

from ..wire.client import Client
from ..wire.process import PEER, BrokerProcess
from .network import Collector, Link, publisher

STATE = "$SYS/broker/connection/edge/state"
AGAIN = "restart_timeout 1\n"
ID = "remote_clientid edge\n"
Bridged = Callable[..., "Two"]


class Two:
    """`here` has a bridge over `link` to `there`."""

    def __init__(
        self, stack: contextlib.ExitStack, folder: Path, runtime: str, other: str
    ) -> None:
        self._stack, self._folder, self._runtime = stack, folder, runtime
        self.there = self.start(other, "")
        self.link = Link(self.there.address)
        stack.callback(self.link.close)

    def start(self, runtime: str, text: str) -> BrokerProcess:
        self._folder = self._folder / "next"
        self._folder.mkdir()
        broker = BrokerProcess(runtime, text, self._folder)
        self._stack.callback(broker.stop)
        return broker

    def bridge(self, *lines: str) -> None:
        host, port = self.link.address
        text = f"connection up\naddress {host}:{port}\n{ID}{AGAIN}" + "".join(
            f"{line}\n" for line in lines
        )
        self.here = self.start(self._runtime, text)

    def collector(self, broker: BrokerProcess, *filters: str) -> Collector:
        client = Collector(broker.address, *filters)
        self._stack.callback(client.sock.close)
        return client

    def publisher(self, broker: BrokerProcess) -> Client:
        client = publisher(broker.address)
        self._stack.callback(client.sock.close)
        return client

    def pass_both_ways(
        self,
        payloads: Sequence[bytes],
        far: str = "",
        when: Mapping[int, str] = MappingProxyType({}),
    ) -> float:
        """Publish these on both sides, at QoS 1 and 2 in turn, below q/out and q/in: all pass, of
        QoS 2 once, and in order. -> how many seconds publishing took. when: after so many messages
        the link does that."""
        here = self.collector(self.here, "q/in/#")
        there = self.collector(self.there, f"{far}q/out/#")
        near, away = self.publisher(self.here), self.publisher(self.there)
        start = time.monotonic()
        for k, payload in enumerate(payloads):
            near.publish(f"q/out/{1 + k % 2}", payload, 1 + k % 2)
            away.publish(f"{far}q/in/{1 + k % 2}", payload, 1 + k % 2)
            if k in when:
                if when[k] != "up":
                    self.link.wait_connected()
                getattr(self.link, when[k])()
        took = time.monotonic() - start
        for client, name in ((there, f"{far}q/out/"), (here, "q/in/")):
            client.wait_for(partial(has_all, name, payloads), "all of them")
            came = client.came[name + "2"]
            if client is here and self.there.runtime == PEER:
                # mosquitto 2.0 sends PUBLISH again after its PUBREL, if that was lost with two
                # connections (db__message_reconnect_reset_outgoing).
                came = list(dict.fromkeys(came))
            assert came == payloads[1::2], name
            assert list(dict.fromkeys(client.came[name + "1"])) == payloads[::2]
        return took

    def wait_up(self, state: bytes = b"1") -> None:
        """Wait until the bridge has said so here."""
        client = self.collector(self.here, STATE)
        client.wait_for(lambda c: c.came.get(STATE, [b""])[-1] == state, f"state {state!r}")


@pytest.fixture(params=[PEER, pytest.param("cpython", marks=pytest.mark.nightly)])
def two(request: pytest.FixtureRequest, tmp_path: Path, runtime: str) -> Iterator[Two]:
    with contextlib.ExitStack() as stack:
        yield Two(stack, tmp_path, runtime, request.param)


def has_all(name: str, wanted: Sequence[bytes], client: Collector) -> bool:
    """Are the topics of both levels of QoS complete?"""
    at_1, at_2 = (client.came.get(name + qos, []) for qos in "12")
    return {*at_1} == {*wanted[::2]} and len(at_2) >= len(wanted[1::2])


FIVE = "bridge_protocol_version mqttv50"


@pytest.mark.spec("MQTT-7.0.0-1")
@pytest.mark.parametrize("version", [(), (FIVE, "bridge_max_topic_alias 5")], ids=["3", "5"])
def test_topics_pass_both_ways_with_their_prefixes(two: Two, version: tuple[str, ...]) -> None:
    two.bridge("topic t/# both 2 here/ over/there/", "topic out out 1", *version)
    two.wait_up()
    here = two.collector(two.here, "#")
    there = two.collector(two.there, "#", STATE)
    large = b"L" * 30000
    for broker, topic in ((two.here, "here/t/h"), (two.there, "over/there/t/t")):
        client = two.publisher(broker)
        for qos, payload in enumerate((b"zero", large, b"two")):
            client.publish(topic, payload, qos)
        client.publish("out", b"out")
    there.wait_for(lambda c: len(c.came.get("over/there/t/h", "")) == 3, "what went out")
    here.wait_for(lambda c: len(c.came.get("here/t/t", "")) == 3, "what came in")
    assert sorted(there.came["over/there/t/h"]) == sorted([b"zero", large, b"two"])
    assert sorted(here.came["here/t/t"]) == sorted([b"zero", large, b"two"])
    # No echo: each broker has its own messages once.
    assert len(here.came["here/t/h"]) == len(there.came["over/there/t/t"]) == 3
    there.wait_for(lambda c: c.came["out"] == [b"out", b"out"], "topic out")
    assert here.came["out"] == [b"out"]
    there.wait_for(lambda c: c.came.get(STATE) == [b"1"], "the state")


CUTS = MappingProxyType({10: "cut", 30: "cut", 40: "down", 50: "up"})
# Only the bridge learns of it: the other broker takes it over from a dead connection.
HALF = MappingProxyType({15: "cut_here", 35: "cut_here"})


@pytest.mark.parametrize(
    ("topic", "when"),
    [("", CUTS), (' "" p/', CUTS), ("\n" + FIVE, CUTS), ("", HALF)],
    ids=["3.1.1", "prefix", "5.0", "half open"],
)
def test_a_link_that_is_cut_loses_nothing_and_doubles_no_qos_2(
    two: Two, topic: str, when: Mapping[int, str]
) -> None:
    two.bridge(f"topic q/# both 2{topic}")
    two.wait_up()
    payloads = [b"%03d" % k for k in range(60)]
    two.pass_both_ways(payloads, "p/" if "p/" in topic else "", when)
    assert two.link.cuts >= 2


def test_a_message_that_is_too_large_on_either_side_blocks_nothing(two: Two) -> None:
    """Without a limit that CONNACK says, what comes is skipped; what leaves is not sent."""
    limits = "limit topic_bytes 1000", "limit route_topic_bytes 1000", "limit max_packet 3000"
    two.bridge("topic a/# both 1", "bridge_max_packet_size 2000", *limits)
    two.wait_up()
    here, there = two.collector(two.here, "a/#"), two.collector(two.there, "a/#")
    near_client, far_client = two.publisher(two.here), two.publisher(two.there)
    for k in range(3):
        near_client.publish("a/out", b"o" * 2500, 1)
        near_client.publish("a/out", b"%d" % k, 1)
        far_client.publish("a/in", b"i" * 20000, 1)
        far_client.publish("a/in", b"%d" % k, 1)
    wanted = [b"0", b"1", b"2"]
    here.wait_for(lambda c: c.came.get("a/in") == wanted, "the small ones")
    there.wait_for(lambda c: c.came.get("a/out") == wanted, "the small ones")
    assert two.link.cuts == 0


def test_a_half_open_link_is_found_by_keep_alive(two: Two) -> None:
    two.bridge("topic a/# out 1", "keepalive_interval 1")
    two.wait_up()
    two.link.freeze()
    two.publisher(two.here).publish("a/x", b"kept", 1)
    two.wait_up(b"0")
    there = two.collector(two.there, "a/#")
    two.link.cut()
    two.link.freeze(False)
    there.wait_for(lambda c: c.came.get("a/x") == [b"kept"], "what waited")


def test_a_slow_link_delays_nobody_else_and_loses_nothing(two: Two) -> None:
    two.bridge("topic q/# both 2", "keepalive_interval 2")
    two.wait_up()
    two.link.rate = 4000
    start = time.monotonic()
    took = two.pass_both_ways([b"%d %s" % (k, b"." * 300) for k in range(24)])
    passed = time.monotonic() - start
    assert passed > 3  # 2 x 24 x 300 bytes at 4,000 bytes a second
    assert took < passed / 2


def test_the_other_broker_comes_late_and_its_name_is_looked_up(
    tmp_path: Path, runtime: str
) -> None:
    with contextlib.ExitStack() as stack:
        two = Two(stack, tmp_path, runtime, "cpython")
        two.link.down()
        port = free_port()
        host, up = two.link.address
        text = f"connection up\naddresses 127.0.0.1:{port} localhost:{up}\n{ID}restart_timeout 1\n"
        two.here = two.start(runtime, f"{text}topic a out 2\n")
        client = two.publisher(two.here)
        for k in range(5):
            client.publish("a", b"%d" % k, 2)
        there = two.collector(two.there, "a")
        two.link.up()
        there.wait_for(lambda c: len(c.came.get("a", ())) == 5, "what waited")
        assert there.came == {"a": [b"%d" % k for k in range(5)]}
        assert host == "127.0.0.1"


def test_a_bridge_of_mosquitto_gets_no_echo(tmp_path: Path, runtime: str) -> None:
    with contextlib.ExitStack() as stack:
        two = Two(stack, tmp_path, PEER, runtime)
        two.bridge("topic # both 2")
        there = two.collector(two.there, "#", STATE)
        there.wait_for(lambda c: c.came.get(STATE, [b""])[-1] == b"1", "its state")
        here = two.collector(two.here, "#")
        two.publisher(two.here).publish("a", b"from mosquitto", 2)
        two.publisher(two.there).publish("b", b"from slotmq", 2)
        there.wait_for(lambda c: len(c.came) == 3, "both")
        here.wait_for(lambda c: len(c.came) == 2, "both")
        assert (here.came["a"], here.came["b"]) == ([b"from mosquitto"], [b"from slotmq"])
        assert (there.came["a"], there.came["b"]) == ([b"from mosquitto"], [b"from slotmq"])


def test_a_bridge_of_mosquitto_that_comes_back_gets_what_waited(
    tmp_path: Path, runtime: str
) -> None:
    """It takes 20 messages of QoS 2 at a time, and drops the others."""
    wanted = [b"%03d" % number for number in range(100)]
    with contextlib.ExitStack() as stack:
        two = Two(stack, tmp_path, PEER, runtime)
        two.bridge("topic q in 2")
        there = two.collector(two.there, STATE)
        there.wait_for(lambda c: c.came.get(STATE, [b""])[-1] == b"1", "its state")
        here, far_client = two.collector(two.here, "q"), two.publisher(two.there)
        two.link.down()
        for payload in wanted:
            far_client.publish("q", payload, 2)
        two.link.up()
        here.wait_for(lambda c: c.came.get("q", [b""])[-1] == wanted[-1], "the last one")
        assert here.came["q"] == wanted


def test_three_brokers_in_a_ring_do_not_echo_between_two(tmp_path: Path, runtime: str) -> None:
    """`#` both ways from two edges through one hub: each message is everywhere once."""
    with contextlib.ExitStack() as stack:
        two = Two(stack, tmp_path, runtime, "cpython")
        two.bridge("topic # both 1")
        two.wait_up()
        host, port = two.there.address
        text = f"connection up\naddress {host}:{port}\ntopic # both 1\nremote_clientid second\n"
        third = two.start("cpython", text + AGAIN)
        ends = [two.collector(broker, "#") for broker in (two.here, two.there, third)]
        state = "$SYS/broker/connection/second/state"
        two.collector(third, state).wait_for(lambda c: c.came.get(state) == [b"1"], "the second")
        for k, broker in enumerate((two.here, two.there, third)):
            two.publisher(broker).publish(f"from/{k}", b"once", 1)
        for client in ends:
            client.wait_for(lambda c: len(c.came) == 3, "all three")
            assert client.came == {f"from/{k}": [b"once"] for k in range(3)}


def is_up(state: str, client: Collector) -> bool:
    return client.came.get(state) == [b"1"]


def test_a_ring_whose_links_leave_out_the_topics_of_their_end(
    tmp_path: Path, runtime: str
) -> None:
    """The table of docs/bridge.md: mosquitto and two slotmq, each message everywhere once."""
    names = "abc"
    ports = [free_port() for _ in names]
    with contextlib.ExitStack() as stack:
        brokers = []
        for k, kind in enumerate((runtime, "cpython", PEER)):
            own, before = names[k], names[k - 1]
            folder = tmp_path / own
            folder.mkdir()
            lines = f"connection up\naddress 127.0.0.1:{ports[(k + 1) % 3]}\n{AGAIN}"
            lines += f"topic {own}/# out 1\ntopic {before}/# out 1\nremote_clientid of-{own}\n"
            brokers.append(BrokerProcess(kind, f"{lines}listener {ports[k]} 127.0.0.1\n", folder))
            stack.callback(brokers[-1].stop)
        ends = [
            Collector(broker.address, "#", "$SYS/broker/connection/+/state") for broker in brokers
        ]
        for k, end in enumerate(ends):
            stack.callback(end.sock.close)
            state = f"$SYS/broker/connection/of-{names[k - 1]}/state"
            end.wait_for(partial(is_up, state), state)
        for name, broker in zip(names, brokers, strict=True):
            client = publisher(broker.address)
            stack.callback(client.sock.close)
            for number in range(3):
                client.publish(f"{name}/x", b"%d" % number, 1)
        wanted = {f"{name}/x": [b"0", b"1", b"2"] for name in names}
        for end in ends:
            end.wait_for(
                lambda c: len(c.came.get("a/x", ())) >= 3 <= len(c.came.get("c/x", ())), "all"
            )
        time.sleep(0.3)  # what goes round would come now
        for end in ends:
            end.collect()
            assert {name: end.came[name] for name in wanted} == wanted


def test_it_connects_from_the_address_that_is_asked_for(tmp_path: Path, runtime: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        lines = f"address 127.0.0.1:{server.getsockname()[1]}", "bridge_bind_address 127.0.0.2"
        text = "\n".join(("connection up", *lines, "topic a", ""))
        here = BrokerProcess(runtime, text, tmp_path)
        sock, peer = server.accept()
        with sock:
            assert peer[0] == "127.0.0.2"
            assert sock.recv(100)[:1] == b"\x10"
        here.stop()
