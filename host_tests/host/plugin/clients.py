"""Clients for the tests of the plugin."""

from host_tests.broker.wire import codec
from host_tests.broker.wire.client import Client
from slotmq_tools.testing.mqtt import Mqtt


def connected(mqtt: Mqtt, name: str, **named: object) -> Client:
    """A client of MQTT 3.1.1 that has been accepted."""
    client = Client((mqtt.host, mqtt.port))
    try:
        assert client.connect(codec.connect(name, **named)).code == 0  # type: ignore[arg-type]
    except BaseException:
        client.sock.close()
        raise
    return client
