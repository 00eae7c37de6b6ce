"""Clients for the tests of the plugin, and its fixtures: not those of the same names in
host_tests/conftest.py."""

import ssl
from collections.abc import Iterator

import pytest

from host_tests.broker.wire import codec
from host_tests.broker.wire.client import Client
from slotmq_tools import cache
from slotmq_tools.testing.mqtt import Mqtt
from slotmq_tools.testing.plugin import mqtt, mqtt_session

__all__ = ("mqtt", "mqtt_session")


@pytest.fixture(autouse=True, scope="session")
def _cache() -> Iterator[None]:
    """Pytester's runs have a home of their own: they would fetch MicroPython each time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLOTMQ_CACHE", str(cache.root()))
        yield


def connected(mqtt: Mqtt, name: str, **named: object) -> Client:
    """A client of MQTT 3.1.1 that has been accepted."""
    client = Client((mqtt.host, mqtt.port))
    try:
        if mqtt.cafile:
            trusts = ssl.create_default_context(cafile=mqtt.cafile)
            client.sock = trusts.wrap_socket(client.sock, server_hostname="localhost")
        assert client.connect(codec.connect(name, **named)).code == 0  # type: ignore[arg-type]
    except BaseException:
        client.sock.close()
        raise
    return client
