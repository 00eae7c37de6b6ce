"""MQTT.js, the client of browsers and Node-RED: each scenario is a function in a script."""

from pathlib import Path

import pytest

from ..wire.process import BrokerProcess
from .programs import script, succeed

SCENARIOS = Path(__file__).with_name("scenarios.cjs")


@pytest.mark.parametrize("version", ["3", "4"], ids=["v31", "v311"])
@pytest.mark.parametrize("name", ["qos", "burst", "retained", "will", "offline"])
def test_scenario(broker: BrokerProcess, base: str, name: str, version: str):
    succeed(script(SCENARIOS, name, str(broker.address[1]), base, version))


@pytest.mark.ours("the peer speaks version 5")
def test_version_5_is_refused_with_a_reason(broker: BrokerProcess, base: str):
    succeed(script(SCENARIOS, "refused", str(broker.address[1]), base, "5"))
