"""A bridge from an emulated board, over its lwIP, to mosquitto on this computer."""

from collections.abc import Iterator

import pytest

from host_tests.broker.bridge.network import Collector, Link
from host_tests.broker.wire.process import PEER, BrokerProcess

from .conftest import Deployed

HOST = "10.0.2.2"  # this computer's loopback, as slirp shows it to the board
STATE = "$SYS/broker/connection/board/state"
CONF = """\
listener 1883
allow_anonymous true
limit message_bytes 4096
connection up
address {}:{}
topic out/# out 2
topic in/# in 2 "" far/
remote_clientid board
restart_timeout 1
keepalive_interval 5
"""


@pytest.fixture(scope="module")
def mosquitto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(PEER, "", tmp_path_factory.mktemp("mosquitto"))
    yield broker
    broker.stop()


@pytest.fixture(scope="module")
def link(mosquitto: BrokerProcess, board: Deployed) -> Iterator[Link]:
    link = Link(mosquitto.address)
    board.deploy(CONF.format(HOST, link.address[1]))
    yield link
    link.close()


def test_it_passes_what_waited_for_the_link(
    board: Deployed, link: Link, mosquitto: BrokerProcess
) -> None:
    there = Collector(mosquitto.address, "out/#", STATE)
    there.wait_for(lambda c: c.came.get(STATE) == [b"1"], "the bridge")
    near = board.connect("near")
    near.subscribe("in/#", qos=2)
    near.publish("out/1", b"with the link", 1)
    there.wait_for(lambda c: c.came.get("out/1") == [b"with the link"], "what went out")
    link.down()
    there.wait_for(lambda c: c.came[STATE][-1] == b"0", "the will")
    wanted = [b"%d" % k for k in range(12)]
    for payload in wanted:
        near.publish("out/2", payload, 2)
    there.publish("far/in/x", b"to the board", 2)
    assert near.receive_all() == []
    link.up()
    there.wait_for(lambda c: len(c.came.get("out/2", ())) == len(wanted), "what waited here")
    assert there.came["out/2"] == wanted
    near.receive("in/x", b"to the board", 2)
    there.sock.close()


def test_a_half_open_link_is_found_while_clients_are_served(
    board: Deployed, link: Link, mosquitto: BrokerProcess
) -> None:
    there = Collector(mosquitto.address, "out/#")
    near = board.connect("near")
    near.subscribe(STATE)
    near.receive(STATE, b"1", retain=True)
    link.freeze()
    near.publish("out/3", b"kept", 1)
    near.receive(STATE, b"0")
    near.ping()
    link.cut()
    link.freeze(False)
    there.wait_for(lambda c: c.came.get("out/3") == [b"kept"], "what waited here")
    there.sock.close()
