"""MQTT.js, the client of browsers and Node-RED: each scenario is a function in a script.

MQTT 5.0 is in test_scenario5.py, except for what that scenario does not have.
"""

from pathlib import Path

import pytest

from ..wire.process import BrokerProcess
from .programs import script, succeed

SCENARIOS = Path(__file__).with_name("scenarios.cjs")


BOTH = pytest.mark.parametrize("version", ["3", "4"], ids=["v31", "v311"])
ALL = pytest.mark.parametrize("version", ["3", "4", "5"], ids=["v31", "v311", "v5"])


def run(broker: BrokerProcess, name: str, base: str, version: str) -> None:
    host, port = broker.address
    succeed(script(SCENARIOS, name, host, str(port), base, version))


@BOTH
@pytest.mark.parametrize("name", ["qos", "retained", "will", "offline"])
def test_scenario(broker: BrokerProcess, base: str, name: str, version: str):
    run(broker, name, base, version)


@ALL
@pytest.mark.ours("the peer acknowledges QoS 2 messages that it has no room for, and drops them")
def test_a_burst_of_both_qos_arrives_whole(broker: BrokerProcess, base: str, version: str):
    run(broker, "burst", base, version)


@BOTH
@pytest.mark.ours("the peer acknowledges QoS 2 messages that it has no room for, and drops them")
@pytest.mark.config("limit received 32\n")
def test_a_burst_beyond_the_table_arrives_after_a_reconnect(
    broker: BrokerProcess, base: str, version: str
):
    run(broker, "overflow", base, version)


def test_readers_of_different_versions_get_the_same_messages(broker: BrokerProcess, base: str):
    run(broker, "mixed", base, "5")


@pytest.mark.config("mqtt_versions 3")
@pytest.mark.ours("the peer speaks version 5")
def test_version_5_is_refused_with_a_reason(broker: BrokerProcess, base: str):
    run(broker, "refused", base, "5")
