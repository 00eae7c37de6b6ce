"""Clients for the tests of the plugin."""

import ssl

from host_tests.broker.wire import codec
from host_tests.broker.wire.client import Client
from slotmq_tools.testing.mqtt import Mqtt


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
