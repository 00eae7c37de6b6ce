# mypy: ignore-errors
# Stands for umqtt.simple of micropython-lib in the recipe of docs/pytest.md.
import socket


def _text(text):
    data = text.encode() if isinstance(text, str) else text
    return len(data).to_bytes(2, "big") + data


class MQTTClient:
    def __init__(self, client_id, server, port=1883):
        self.client_id = client_id
        self.address = socket.getaddrinfo(server, port)[0][-1]

    def _send(self, first, body):
        self.sock.write(bytes((first, len(body))) + body)

    def connect(self):
        self.sock = socket.socket()
        self.sock.connect(self.address)
        self._send(0x10, _text("MQTT") + b"\4\2\0\0" + _text(self.client_id))
        assert self.sock.read(4) == b"\x20\2\0\0"

    def publish(self, topic, payload):
        self._send(0x30, _text(topic) + payload)

    def disconnect(self):
        self._send(0xE0, b"")
        self.sock.close()
